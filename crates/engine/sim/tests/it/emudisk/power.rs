//! Power cuts under real file systems: what was synced is there afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iostrata_sim::emudisk::Power;
use iostrata_stats::Random;

use crate::emudisk::served::{MIB, Served, can_serve, done, run, wait_for};

/// A fast disk that loses what was not flushed.
const DISK: &str = "nvme-no-plp";
const FILES: u64 = 12;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    fn size_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 64 * MIB,
            // XFS takes no smaller ones.
            Self::Xfs => 320 * MIB,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    fn make(self, device: &str) {
        match self {
            Self::Ext4 => done("mkfs.ext4", &["-q", "-F", device]),
            Self::Xfs => done("mkfs.xfs", &["-q", "-f", device]),
        };
    }

    fn check(self, device: &str) {
        match self {
            Self::Ext4 => done("fsck.ext4", &["-f", "-n", device]),
            Self::Xfs => done("xfs_repair", &["-n", device]),
        };
    }
}

/// Contents of a version of a file.
fn contents(version: u64) -> Vec<u8> {
    let bytes = 1000 + (version * 7919) % 60_000;
    version.to_le_bytes().into_iter().cycle().take(bytes as usize).collect()
}

fn version_of(path: &Path) -> Option<u64> {
    let found = fs::read(path).ok()?;
    let version = u64::from_le_bytes(found.get(..8)?.try_into().ok()?);
    (contents(version) == found).then_some(version)
}

/// Replaces files, each durably, until the disk fails; versions that were acknowledged, by file.
fn write_until_it_fails(dir: &Path, first: u64) -> BTreeMap<u64, u64> {
    let mut acknowledged = BTreeMap::new();
    let mut replace = |version: u64| -> io::Result<()> {
        let (new, path) = (dir.join("new"), path_of(dir, version % FILES));
        let mut file = File::create(&new)?;
        file.write_all(&contents(version))?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(dir)?.sync_all()?;
        acknowledged.insert(version % FILES, version);
        // Something that is not synced, so that there is something to lose.
        fs::write(dir.join(format!("loose{}", version % 5)), contents(version))
    };
    let _ = (first..).try_for_each(&mut replace);
    acknowledged
}

fn path_of(dir: &Path, file: u64) -> PathBuf {
    dir.join(format!("file{file}"))
}

/// Lets file systems of one kind lose power again and again. Returns how many acknowledged
/// replacements were checked.
fn lose_power(kind: Kind, rounds: u64) -> usize {
    let disk = Served::start(DISK, kind.size_bytes());
    let device = disk.device.to_str().unwrap().to_owned();
    let mount_point = disk.mount_point();
    let mount_words = ["-t", kind.name(), &device, mount_point.to_str().unwrap()];
    let umount_words = [mount_point.to_str().unwrap()];
    kind.make(&device);
    let (mut random, mut checked) = (Random::new(rounds), 0);
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    for round in 0..rounds {
        done("mount", &mount_words);
        let tear = ["", " tear 512", " tear 4096"][(round % 3) as usize];
        let first = round * 1_000_000;
        let dir = mount_point.clone();
        let writer = std::thread::spawn(move || write_until_it_fails(&dir, first));
        std::thread::sleep(Duration::from_millis(30 + random.below(120)));
        disk.control(&format!("power-cut{tear}"));
        expected.extend(writer.join().unwrap());
        assert_eq!(disk.stats().power, Power::Off, "it is held by a mount");
        wait_for("it is unmounted", || run("umount", &umount_words).status.success());
        wait_for("the power is back", || disk.stats().power == Power::On);
        done("mount", &mount_words);
        for (file, version) in &expected {
            let found = version_of(&path_of(&mount_point, *file));
            let is_kept = found.is_some_and(|found| found >= *version);
            assert!(
                is_kept,
                "{kind:?}{tear}, cut {round}: file {file} is {found:?}, not {version}"
            );
            checked += 1;
        }
        done("umount", &umount_words);
        kind.check(&device);
    }
    assert_eq!(disk.stats().cuts, rounds);
    checked
}

fn rounds() -> u64 {
    if std::env::var_os("IOSTRATA_SOAK").is_some() { 100 } else { 3 }
}

#[test]
fn ext4_keeps_what_was_synced() {
    if can_serve("ext4_keeps_what_was_synced", &["mkfs.ext4", "fsck.ext4"]) {
        eprintln!("{} replacements were kept", lose_power(Kind::Ext4, rounds()));
    }
}

#[test]
fn xfs_keeps_what_was_synced() {
    if can_serve("xfs_keeps_what_was_synced", &["mkfs.xfs", "xfs_repair"]) {
        eprintln!("{} replacements were kept", lose_power(Kind::Xfs, rounds()));
    }
}

/// How many of 64 pages that were written have their new contents after a cut.
fn kept(disk: &Served, is_synced: bool, cut: &str) -> usize {
    let file = disk.file();
    let mark = |round: u8| {
        for page in 0..64 {
            file.write_all_at(&[round; 4096], page * 4096).unwrap();
        }
    };
    mark(1);
    file.sync_all().unwrap();
    mark(2);
    if is_synced {
        file.sync_all().unwrap();
    }
    disk.control(cut);
    let mut page = [0; 4096];
    let is_new = |page: &[u8; 4096]| page.iter().filter(|byte| **byte == 2).count() / 512;
    let sectors = (0..64).map(|number| {
        file.read_exact_at(&mut page, number * 4096).unwrap();
        assert!(page.iter().all(|byte| [1, 2].contains(byte)));
        is_new(&page)
    });
    sectors.sum()
}

#[test]
fn only_what_was_flushed_is_certain() {
    if !can_serve("only_what_was_flushed_is_certain", &[]) {
        return;
    }
    // The device is not in use, so each cut is over at once.
    let disk = Served::start(DISK, 16 * MIB);
    assert_eq!(kept(&disk, true, "power-cut tear 512"), 512);
    assert_eq!(kept(&disk, false, "power-cut"), 0);
    let torn = kept(&disk, false, "power-cut tear 512 seed 1");
    assert!((150..350).contains(&torn), "{torn} of 512 sectors at half");
    let torn = kept(&disk, false, "power-cut tear 4096 seed 1");
    assert!((100..400).contains(&torn) && torn.is_multiple_of(8), "{torn} sectors of whole pages");
    assert_eq!((disk.stats().power, disk.stats().cuts), (Power::On, 4));
    // A disk whose cache is off loses nothing that was done.
    let careful = Served::start("hdd-15k,cache=off", 16 * MIB);
    assert_eq!(careful.stats().unflushed_bytes, 0);
}

#[test]
fn a_disk_without_power_fails_at_once() {
    if !can_serve("a_disk_without_power_fails_at_once", &["mkfs.ext4"]) {
        return;
    }
    let disk = Served::start("hdd-15k", 64 * MIB);
    let device = disk.device.to_str().unwrap();
    let mount_point = disk.mount_point();
    disk.control("slow 0");
    Kind::Ext4.make(device);
    done("mount", &[device, mount_point.to_str().unwrap()]);
    // In flight when the power fails: fails, although the disk would have taken a minute.
    disk.control("slow 60000");
    let file = disk.file();
    let reader = std::thread::spawn(move || file.read_exact_at(&mut [0; 4096], 0));
    let before = disk.stats().reads;
    wait_for("the read arrives", || disk.stats().reads > before || reader.is_finished());
    disk.control("power-cut");
    let error = reader.join().unwrap().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    disk.control("slow 0");
    let error = disk.file().sync_all().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    assert_eq!(disk.stats().power, Power::Off);
    disk.control("power-on");
    assert_eq!(disk.stats().power, Power::On);
    disk.file().read_exact_at(&mut [0; 4096], 0).unwrap();
    // The file system of before may not be sound any more: it is only unmounted.
    run("umount", &[mount_point.to_str().unwrap()]);
}
