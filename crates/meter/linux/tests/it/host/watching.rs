//! The observer on a machine whose counters the test sets.

use std::path::Path;
use std::time::Duration;

use iostrata_linux::host::{
    BlindObserver, HostError, HostObserver, Observer, ObserverOptions, Scope, describe_path,
};
use iostrata_run::host::{Evidence, LimitedRate, OwnIo};
use iostrata_stats::Verdict;

use crate::host::tree::{Tree, device_dir};

fn machine() -> Tree {
    Tree::new()
        .disk("sda", "8:0")
        .partition("sda", 1, "8:1")
        .mount("8:1 / / rw - ext4 /dev/sda1 rw")
        .mount("0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
        .place("/", "8:1")
        .file("/proc/self/cgroup", "0::/db\n")
        .file("/sys/fs/cgroup/db/cpu.stat", "nr_periods 10\nnr_throttled 0\nthrottled_usec 0\n")
        .file("/proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\n")
        .file("/proc/pressure/io", "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n")
}

/// Observes while `change` rewrites counters, and judges against `own`.
fn observe(tree: &Tree, own: Option<&OwnIo>, change: impl FnOnce(&Tree)) -> Evidence {
    let root = tree.root();
    let facts = describe_path(&root, Path::new("/data")).unwrap();
    let options = ObserverOptions { period: Duration::from_millis(2), samples_max: 50 };
    let mut observer = HostObserver::new(root.clone(), options);
    observer.arm(&Scope::of(&root, &facts)).unwrap();
    observer.start().unwrap();
    // Many periods before the change and after it: on a busy machine the sampling thread may wait
    // for its turn.
    std::thread::sleep(Duration::from_millis(100));
    change(tree);
    std::thread::sleep(Duration::from_millis(100));
    observer.stop().unwrap();
    observer.take(own).unwrap()
}

fn set_disk(tree: &Tree, reads: u64, read_mib: u64, writes: u64, written_mib: u64) {
    let stat = format!(
        "{reads} 0 {} 5 {writes} 0 {} 5 0 9 10 0 0 0 0 0 0\n",
        read_mib * 2048,
        written_mib * 2048
    );
    tree.rewrite(&format!("{}/stat", device_dir("sda")), &stat);
}

fn own_reads(reads: u64, mib: u64) -> OwnIo {
    OwnIo { direct: true, reads, read_bytes: mib << 20, ..OwnIo::default() }
}

#[test]
fn evidence_of_a_clean_window() {
    let tree = machine();
    let own = own_reads(25_600, 100);
    let evidence = observe(&tree, Some(&own), |tree| {
        set_disk(tree, 25_600, 100, 0, 0);
        tree.rewrite("/proc/stat", "cpu  20 0 10 60 10 0 0 0 0 0\n");
        tree.rewrite(
            "/proc/pressure/io",
            "some avg10=1.00 total=2000\nfull avg10=0.50 total=1000\n",
        );
    });
    assert!(evidence.verdicts.is_sound(), "{:?}", evidence.verdicts);
    assert_eq!(evidence.device_name.as_deref(), Some("sda"), "a partition stands for its disk");
    let delta = evidence.device_delta.unwrap();
    assert_eq!((delta.counters.reads, delta.read_bytes()), (25_600, 100 << 20));
    assert_eq!(evidence.device.unwrap().read_size_kib, Some(4.0));
    assert_eq!(evidence.layers.len(), 1);
    assert_eq!(evidence.cpu.unwrap().user_pct, 20.0);
    assert_eq!(evidence.pressure.unwrap().io.unwrap().some_us, 2000);
    assert_eq!(evidence.pressure.unwrap().cpu, None);
    assert_eq!(evidence.throttle.unwrap().cpu_periods_throttled, Some(0));
    assert!(evidence.switches.is_some());
    let series = evidence.device_series.unwrap();
    assert!(series.t_s.len() >= 2);
    assert_eq!(series.reads_per_s.len(), series.t_s.len());
    assert!(series.reads_per_s.iter().flatten().any(|rate| *rate > 0.0));
    assert!(series.t_s.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn foreign_traffic_is_raised_with_its_process() {
    let tree = machine()
        .file("/proc/4711/io", "read_bytes: 0\nwrite_bytes: 0\n")
        .file("/proc/4711/comm", "backup\n")
        .file("/proc/4711/stat", "4711 (backup) S 1 1\n");
    let evidence = observe(&tree, Some(&own_reads(25_600, 100)), |tree| {
        set_disk(tree, 25_700, 200, 0, 0);
        tree.rewrite("/proc/4711/io", "read_bytes: 104857600\nwrite_bytes: 0\n");
    });
    assert!(evidence.verdicts.has(Verdict::ForeignIo));
    let foreign = evidence.foreign.unwrap();
    assert!(foreign.raised && foreign.read_bytes_per_s > foreign.read_allowance_bytes_per_s);
    assert_eq!(foreign.processes.len(), 1);
    assert_eq!((foreign.processes[0].pid, foreign.processes[0].comm.as_str()), (4711, "backup"));
}

#[test]
fn memory_that_answers_is_seen() {
    let evidence = observe(&machine(), Some(&own_reads(25_600, 100)), |tree| {
        set_disk(tree, 5_000, 20, 0, 0);
    });
    assert!(
        evidence.verdicts.has(Verdict::Cached) && evidence.verdicts.has(Verdict::DirectIgnored)
    );
    assert!(!evidence.verdicts.has(Verdict::ForeignIo));
}

#[test]
fn stolen_time_is_seen() {
    let evidence = observe(&machine(), None, |tree| {
        tree.rewrite("/proc/stat", "cpu  10 0 10 75 0 0 0 5 0 0\n");
    });
    assert!(evidence.verdicts.has(Verdict::Steal));
    assert_eq!(evidence.foreign, None, "foreign I/O is not judged without own I/O");
}

#[test]
fn a_limit_that_is_used_up_is_seen() {
    let tree = machine()
        .file("/sys/fs/cgroup/db/io.max", "8:0 rbps=max wbps=max riops=100 wiops=max\n")
        .file("/sys/fs/cgroup/db/io.stat", "8:0 rbytes=0 wbytes=0 rios=0 wios=0\n");
    let evidence = observe(&tree, None, |tree| {
        // 1000 reads in a window far shorter than 10 s are more than 100 per second.
        tree.rewrite("/sys/fs/cgroup/db/io.stat", "8:0 rbytes=4096 wbytes=0 rios=1000 wios=0\n");
    });
    assert!(evidence.verdicts.has(Verdict::Throttled));
    let throttle = evidence.throttle.unwrap();
    assert_eq!(throttle.io_limit.unwrap().read_iops, Some(100));
    assert_eq!(throttle.io_limit_rate, Some(LimitedRate::Reads));
    let idle = observe(&tree, None, |_| {});
    assert!(!idle.verdicts.has(Verdict::Throttled));
}

#[test]
fn a_quota_is_counted_where_it_is_set() {
    let stat = |periods: u64, out: u64| {
        format!("nr_periods {periods}\nnr_throttled {out}\nthrottled_usec {}\n", out * 50_000)
    };
    let tree = machine()
        .file("/proc/self/cgroup", "0::/db/mysql\n")
        .file("/sys/fs/cgroup/db/mysql/cpu.max", "max 100000\n")
        .file("/sys/fs/cgroup/db/mysql/cpu.stat", &stat(0, 0))
        .file("/sys/fs/cgroup/db/cpu.max", "50000 100000\n")
        .file("/sys/fs/cgroup/db/cpu.stat", &stat(100, 10));
    let evidence = observe(&tree, None, |tree| {
        tree.rewrite("/sys/fs/cgroup/db/cpu.stat", &stat(104, 13));
    });
    assert!(evidence.verdicts.has(Verdict::CpuLimited));
    let throttle = evidence.throttle.unwrap();
    assert_eq!((throttle.cpu_periods, throttle.cpu_periods_throttled), (Some(4), Some(3)));
    assert_eq!(throttle.cpu_throttled_us, Some(150_000));
}

#[test]
fn a_mirror_is_not_foreign_and_another_volume_is() {
    let tree = Tree::new()
        .disk("sda", "8:0")
        .disk("sdb", "8:16")
        .disk("md0", "9:0")
        .file(&format!("{}/md/level", device_dir("md0")), "raid1\n")
        .file(&format!("{}/md/raid_disks", device_dir("md0")), "2\n")
        .mapped("dm-0", "253:0", "vg-data", "LVM-abc")
        .on("md0", "sda")
        .on("md0", "sdb")
        .on("dm-0", "md0")
        .mount("253:0 / / rw - xfs /dev/dm-0 rw")
        .place("/", "253:0");
    let own = OwnIo { direct: true, writes: 6400, written_bytes: 100 << 20, ..OwnIo::default() };
    let write = |tree: &Tree, name: &str, writes: u64, mib: u64| {
        let stat = format!("0 0 0 0 {writes} 0 {} 5 0 9 10\n", mib * 2048);
        tree.rewrite(&format!("{}/stat", device_dir(name)), &stat);
    };
    let mut base = 0;
    let mut observed = |below_mib: u64| {
        base += 1000;
        ["dm-0", "md0", "sda", "sdb"].iter().for_each(|name| write(&tree, name, base, base));
        observe(&tree, Some(&own), |tree| {
            ["dm-0", "md0"].iter().for_each(|name| write(tree, name, base + 6400, base + 100));
            ["sda", "sdb"].iter().for_each(|name| write(tree, name, base + 6400, base + below_mib));
        })
    };
    let mirrored = observed(100);
    assert!(mirrored.verdicts.is_sound(), "{:?}", mirrored.foreign);
    assert_eq!(mirrored.device_name.as_deref(), Some("dm-0"));
    assert_eq!(mirrored.layers.len(), 4);
    assert!(observed(160).verdicts.has(Verdict::ForeignIo));
}

#[test]
fn a_device_that_is_not_counted_says_so() {
    let tree = machine();
    tree.rewrite(&format!("{}/queue/iostats", device_dir("sda")), "0\n");
    let evidence = observe(&tree, Some(&own_reads(25_600, 100)), |_| {});
    assert_eq!(evidence.device, None);
    assert!(evidence.verdicts.is_sound(), "counters that stand still prove no cache");
    assert!(evidence.notes[0].contains("sda"), "{:?}", evidence.notes);
}

#[test]
fn counters_that_vanish_or_go_back() {
    let tree = machine();
    set_disk(&tree, 100, 1, 0, 0);
    let back = observe(&tree, Some(&own_reads(1, 1)), |tree| set_disk(tree, 50, 1, 0, 0));
    assert_eq!((back.device, back.foreign), (None, None));
    let gone = observe(&tree, Some(&own_reads(1, 1)), |tree| {
        tree.remove("/proc/stat");
        tree.remove(&device_dir("sda"));
    });
    assert_eq!((gone.device, gone.cpu), (None, None));
}

#[test]
fn steps_in_the_wrong_order_are_refused() {
    let tree = machine();
    let mut observer = HostObserver::new(tree.root(), ObserverOptions::default());
    let refused =
        |result: Result<(), HostError>| matches!(result, Err(HostError::OutOfOrder { .. }));
    assert!(refused(observer.start()) && refused(observer.stop()));
    observer.arm(&Scope::default()).unwrap();
    assert!(refused(observer.stop()));
    observer.start().unwrap();
    assert!(refused(observer.start()) && observer.take(None).is_err());
    observer.stop().unwrap();
    observer.take(None).unwrap();
    assert!(observer.take(None).is_err());
    assert_eq!(BlindObserver.take(None).unwrap(), Evidence::default());
}
