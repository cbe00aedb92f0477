//! How many commits per second; for people who tune, so nothing is asserted.
//!
//! `IOSTRATA_RATE= cargo test -p iostrata-redo --test it -- --nocapture rate`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iostrata_engine::redo::{Redo, RedoSettings, RedoSync};
use iostrata_innodb::{Counter, Lsn};
use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, Durability, FileMode, FileName, MemDisk, RealDisk};

use crate::redo::common::{fresh, reopen, short, smallest};
use crate::redo::hooked::Hooked;

const LASTS: Duration = Duration::from_millis(500);

fn settings(sync: RedoSync) -> RedoSettings {
    let (capacity_bytes, log_buffer_bytes, write_ahead_bytes) = (64 << 20, 16 << 20, 4096);
    RedoSettings { capacity_bytes, log_buffer_bytes, write_ahead_bytes, sync }
}

fn busy(micros: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

/// Processor time of this process, in microseconds, in steps of 10,000.
fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) * 10_000.0
}

/// Commits of 200 bytes, with so much work of the processor before each.
fn measure(name: &str, disk: &Arc<dyn Disk>, sync: RedoSync, threads: u32, work_us: u64) {
    for name in disk.list().unwrap() {
        disk.remove(&name).unwrap();
    }
    let redo = fresh(disk, &settings(sync));
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let (start, cpu) = (Instant::now(), cpu_us());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut done = 0;
                while !stop.load(Ordering::Relaxed) {
                    if redo.lsn().0 - redo.checkpoint_lsn().0 > redo.limits().async_age {
                        redo.take_checkpoint(Lsn(redo.durable().0), false).unwrap();
                    }
                    busy(work_us);
                    let end = redo.append(&[7; 200]).end;
                    redo.make_durable(end).unwrap();
                    done += 1;
                }
                commits.fetch_add(done, Ordering::Relaxed);
            });
        }
        std::thread::sleep(LASTS);
        stop.store(true, Ordering::Relaxed);
    });
    let cpu = cpu_us() - cpu;
    let (seconds, counts) = (start.elapsed().as_secs_f64(), redo.counts.read());
    let commits = commits.into_inner() as f64;
    let syncs = counts[Counter::OsLogFsyncs].max(counts[Counter::LogWrites]) as f64;
    eprintln!(
        "{name:10} {sync:?} threads {threads:2} work {work_us:3} us: {:8.0} commits/s, {:7.0} groups/s of {:5.2}, {:5.2} us of CPU each",
        commits / seconds,
        syncs / seconds,
        commits / syncs,
        cpu / commits - work_us as f64,
    );
}

/// One thread that writes a block and syncs it, with nothing around it.
fn floor(name: &str, disk: &Arc<dyn Disk>) {
    let name_of = FileName::new("floor").unwrap();
    let file = disk.open(&name_of, FileMode::Create).unwrap();
    disk.write(file, 0, &Aligned::zeroed(1 << 20), Durability::Volatile).unwrap();
    disk.sync(file, SyncKind::Fsync).unwrap();
    let (block, start, mut done) = (Aligned::zeroed(4096), Instant::now(), 0_u64);
    while start.elapsed() < LASTS {
        disk.write(file, done % 256 * 4096, &block, Durability::Volatile).unwrap();
        disk.sync(file, SyncKind::Fdatasync).unwrap();
        done += 1;
    }
    disk.close(file);
    eprintln!(
        "{name:10} floor: {:.0} writes and syncs/s",
        done as f64 / start.elapsed().as_secs_f64()
    );
}

/// The smallest log with some frames: opened, read, started and given a checkpoint.
fn reopening() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &smallest());
    for index in 0..100 {
        redo.append(&short(1, index));
    }
    redo.make_durable(redo.lsn()).unwrap();
    drop(redo);
    let start = Instant::now();
    for _ in 0..100 {
        let (redo, _) = reopen(&disk, &smallest()).unwrap();
        redo.take_checkpoint(redo.checkpoint_lsn(), false).unwrap();
        redo.take_checkpoint(redo.checkpoint_lsn(), true).unwrap();
    }
    eprintln!("smallest   {:?} for an opening with a checkpoint", start.elapsed() / 100);
}

#[test]
fn rate() {
    let Ok(wanted) = std::env::var("IOSTRATA_RATE") else {
        eprintln!("skipped: set IOSTRATA_RATE to the beginning of a disk's name, or to nothing");
        return;
    };
    reopening();
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let real =
        |direct| -> Arc<dyn Disk> { Arc::new(RealDisk::new(directory.path(), direct).unwrap()) };
    let slow = |sync| -> Arc<dyn Disk> {
        {
            let before_sync = Box::new(move || std::thread::sleep(sync));
            Arc::new(Hooked {
                disk: Arc::new(MemDisk::new()),
                before_sync,
                after_sync: Box::new(|| {}),
            })
        }
    };
    let disks = [
        ("memory", Arc::new(MemDisk::new()) as Arc<dyn Disk>),
        ("sleep 1 us", slow(Duration::from_micros(1))),
        ("sleep 2 ms", slow(Duration::from_millis(2))),
        ("buffered", real(false)),
        ("direct", real(true)),
    ];
    for (name, disk) in disks.into_iter().filter(|(name, _)| name.starts_with(&wanted)) {
        floor(name, &disk);
        for work_us in [0, 50] {
            for threads in [1, 4, 16] {
                measure(name, &disk, RedoSync::Fdatasync, threads, work_us);
            }
        }
        if name == "direct" {
            measure(name, &disk, RedoSync::WriteThrough, 1, 0);
            measure(name, &disk, RedoSync::WriteThrough, 16, 0);
        }
    }
}

/// How long a gibibyte of log without a checkpoint takes to be read, and to be made durable again.
#[test]
fn opening() {
    if std::env::var_os("IOSTRATA_RATE").is_none() {
        eprintln!("skipped: set IOSTRATA_RATE");
        return;
    }
    for direct in [false, true] {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(directory.path(), direct).unwrap());
        let settings =
            RedoSettings { capacity_bytes: 1_200 << 20, ..settings(RedoSync::Fdatasync) };
        let redo = fresh(&disk, &settings);
        while redo.lsn().0 < 1 << 30 {
            redo.append(&vec![7; 1 << 20]);
        }
        redo.make_durable(redo.lsn()).unwrap();
        drop(redo);
        let start = Instant::now();
        let (redo, mut scan) = Redo::open(Arc::clone(&disk), settings, Default::default()).unwrap();
        while scan.next().unwrap().is_some() {}
        let read = start.elapsed();
        redo.start(scan).unwrap();
        let (written, all) = (redo.counts.read()[Counter::OsLogWritten] >> 20, start.elapsed());
        eprintln!(
            "direct {direct}: 1 GiB read in {read:.2?}, {written} MiB written, {all:.2?} in all"
        );
    }
}
