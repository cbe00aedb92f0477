//! The readers on the machine that runs the tests.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iostrata_linux::host::{
    HostObserver, Observer, ObserverOptions, Root, Scope, describe_host, describe_path, mounts,
    parse_diskstats, parse_stat, quiet_check,
};
use iostrata_run::host::{DirectIoBehaviour, Evidence, HostFacts, OwnIo, PathFacts, PathKind};
use iostrata_stats::Verdict;
use tempfile::TempDir;

/// A directory on a real disk, or `None` (noted on stderr) where there is none.
fn on_disk(test: &str) -> Option<(TempDir, PathFacts)> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let facts = describe_path(&Root::system(), dir.path()).unwrap();
    if facts.kind != PathKind::Disk || facts.devices.is_empty() {
        eprintln!("skipped: {test}: {} is not on a visible disk", dir.path().display());
        return None;
    }
    Some((dir, facts))
}

#[test]
fn this_machine_describes_itself() {
    let host: HostFacts = describe_host(&Root::system());
    assert!(host.kernel.is_some() && host.cpus >= Some(1) && host.memory_bytes > Some(1 << 20));
    assert!(host.cpus_allowed <= host.cpus);
    assert_eq!(host.user_is_root, rustix::process::geteuid().is_root());
    assert!(host.memlock_limit_bytes.is_some() || host.memlock_unlimited == Some(true));
}

#[test]
fn this_disk_agrees_with_stat_and_sysfs() {
    let Some((dir, facts)) = on_disk("this_disk_agrees_with_stat_and_sysfs") else { return };
    let top = &facts.block_stack[0];
    if facts.file_system.as_deref() != Some("btrfs") {
        assert_eq!(top.device_number, facts.device_number);
    }
    assert!(dir.path().starts_with(facts.mount_point.as_deref().unwrap()));
    assert!(facts.free_bytes <= facts.total_bytes && facts.total_bytes > Some(0));
    let disk = facts.devices.last().unwrap();
    let sectors = fs::read_to_string(format!("/sys/class/block/{}/size", disk.name)).unwrap();
    assert_eq!(disk.size_bytes.unwrap() / 512, sectors.trim().parse::<u64>().unwrap());
    assert!(disk.logical_block_bytes >= Some(512));
    assert!(disk.scheduler.is_none() || !disk.schedulers_available.is_empty());
}

#[test]
fn every_mount_of_this_machine_is_described() {
    for mount in mounts(&Root::system()) {
        if let Ok(facts) = describe_path(&Root::system(), &mount.at) {
            assert!(facts.mount_point.is_some(), "{}", mount.at.display());
        }
    }
}

#[test]
fn both_sources_of_counters_agree() {
    let Some((_dir, facts)) = on_disk("both_sources_of_counters_agree") else { return };
    let name = &facts.devices[0].name;
    let of_sysfs = || {
        let text = fs::read_to_string(format!("/sys/class/block/{name}/stat")).unwrap();
        parse_stat(&text).unwrap()
    };
    let first = of_sysfs();
    let of_proc = parse_diskstats(&fs::read_to_string("/proc/diskstats").unwrap())[name];
    let last = of_sysfs();
    let counts = [
        [first.reads, of_proc.reads, last.reads],
        [first.sectors_read, of_proc.sectors_read, last.sectors_read],
        [first.writes, of_proc.writes, last.writes],
        [first.sectors_written, of_proc.sectors_written, last.sectors_written],
        [first.queue_ms, of_proc.queue_ms, last.queue_ms],
    ];
    for [first, between, last] in counts {
        assert!(first <= between && between <= last, "{first} {between} {last}");
    }
    assert_eq!(first.flushes.is_some(), of_proc.flushes.is_some());
}

const BLOCK: usize = 1 << 16;
const FILE_BYTES: u64 = 64 << 20;

fn filled_file(dir: &Path) -> PathBuf {
    let path = dir.join("filled");
    let mut file = File::create(&path).unwrap();
    let mut state = 1u64;
    let mut block = vec![0u8; BLOCK];
    for _ in 0..FILE_BYTES / BLOCK as u64 {
        for word in block.chunks_exact_mut(8) {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
    path
}

/// Observes reading the file from end to end, `times` over.
fn observe_reads(facts: &PathFacts, file: &mut File, direct: bool, times: u64) -> Evidence {
    let root = Root::system();
    let scope = Scope::of(&root, facts);
    let mut observer = HostObserver::new(root, ObserverOptions::default());
    // Direct I/O wants memory that is aligned to a page.
    let mut memory = vec![0u8; BLOCK + 4096];
    let start = memory.as_ptr().align_offset(4096);
    observer.arm(&scope).unwrap();
    observer.start().unwrap();
    for _ in 0..times {
        file.seek(SeekFrom::Start(0)).unwrap();
        for _ in 0..FILE_BYTES / BLOCK as u64 {
            file.read_exact(&mut memory[start..start + BLOCK]).unwrap();
        }
    }
    observer.stop().unwrap();
    let reads = times * FILE_BYTES / BLOCK as u64;
    let read_bytes = times * FILE_BYTES;
    let own = OwnIo { direct, reads, read_bytes, ..OwnIo::default() };
    observer.take(Some(&own)).unwrap()
}

#[test]
fn direct_reads_arrive_at_the_device_and_cached_reads_do_not() {
    let name = "direct_reads_arrive_at_the_device_and_cached_reads_do_not";
    let Some((dir, facts)) = on_disk(name) else { return };
    if facts.direct_io.behaviour != DirectIoBehaviour::Honoured {
        eprintln!("skipped: {name}: direct I/O is not known to be honoured here");
        return;
    }
    let path = filled_file(dir.path());
    let direct_flag = rustix::fs::OFlags::DIRECT.bits() as i32;
    let mut direct = OpenOptions::new().read(true).custom_flags(direct_flag).open(&path).unwrap();
    let evidence = observe_reads(&facts, &mut direct, true, 1);
    assert!(!evidence.verdicts.has(Verdict::DirectIgnored), "{:?}", evidence.device_delta);
    assert!(evidence.device_delta.unwrap().read_bytes() >= FILE_BYTES);
    assert!(evidence.device.unwrap().read_await_ms.is_some());
    assert!(evidence.cpu.is_some() && evidence.switches.unwrap().voluntary > 0);

    let mut buffered = File::open(&path).unwrap();
    let mut warm = Vec::new();
    buffered.read_to_end(&mut warm).unwrap();
    let evidence = observe_reads(&facts, &mut buffered, false, 16);
    assert!(evidence.verdicts.has(Verdict::Cached), "{:?}", evidence.device_delta);
}

#[test]
fn what_was_not_issued_is_foreign() {
    let name = "what_was_not_issued_is_foreign";
    let Some((dir, facts)) = on_disk(name) else { return };
    if facts.direct_io.behaviour != DirectIoBehaviour::Honoured {
        eprintln!("skipped: {name}: direct I/O is not known to be honoured here");
        return;
    }
    let path = filled_file(dir.path());
    let root = Root::system();
    let mut observer = HostObserver::new(root.clone(), ObserverOptions::default());
    observer.arm(&Scope::of(&root, &facts)).unwrap();
    observer.start().unwrap();
    let copied = Command::new("dd")
        .args(["iflag=direct", "bs=1M", "of=/dev/null", "status=none"])
        .arg(format!("if={}", path.display()))
        .status()
        .unwrap();
    observer.stop().unwrap();
    assert!(copied.success());
    let own = OwnIo { direct: true, ..OwnIo::default() };
    let evidence = observer.take(Some(&own)).unwrap();
    assert!(evidence.verdicts.has(Verdict::ForeignIo), "{:?}", evidence.foreign);
}

#[test]
fn a_quiet_check_names_the_disk() {
    let Some((_dir, facts)) = on_disk("a_quiet_check_names_the_disk") else { return };
    let check = quiet_check(&Root::system(), &facts, Duration::from_millis(50)).unwrap();
    assert!(facts.devices.iter().any(|device| device.name == check.device));
    assert!(check.iostat.is_some() && check.seconds > 0.0);
    assert!(check.processes.iter().all(|process| process.pid != std::process::id()));
}
