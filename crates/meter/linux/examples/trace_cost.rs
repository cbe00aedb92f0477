//! What tracing costs: IOPS, and processor time of this process per request, with the trace off
//! and on, in pairs.
//!
//! Takes a block device to overwrite, a prepared trace instance, the number of writers and of
//! pairs, and whether to write (`write`) or read (`read`):
//! `trace_cost /dev/loop7 /sys/kernel/tracing/instances/NAME 4 10 read`. Run it alone on the
//! machine.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use iostrata_linux::blocktrace::{BlockTrace, Setting, TraceScope, TracedDevice};
use iostrata_run::host::{BlockLatency, DeviceNumber};

const BLOCK: usize = 4096;
const WINDOW: Duration = Duration::from_millis(300);

#[repr(align(4096))]
struct Block([u8; BLOCK]);

struct Load {
    stop: AtomicBool,
    done: AtomicU64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, instance, workers, pairs, kind] = arguments.as_slice() else {
        return Err("give DEVICE INSTANCE WORKERS PAIRS read|write".into());
    };
    let is_write = kind == "write";
    let mut trace = BlockTrace::open(Path::new(instance), scope(device)?)?;
    let load = Load { stop: AtomicBool::new(false), done: AtomicU64::new(0) };
    let workers: u64 = workers.parse()?;
    let pairs: u32 = pairs.parse()?;
    thread::scope(|scope| {
        for salt in 0..workers {
            let load = &load;
            scope.spawn(move || work(device, load, is_write, salt).is_ok());
        }
        thread::sleep(WINDOW);
        let outcome = measure(&mut trace, PathBuf::from(instance), &load, pairs);
        load.stop.store(true, Ordering::Relaxed);
        outcome
    })
}

fn scope(device: &str) -> Result<TraceScope, Box<dyn Error>> {
    let number = fs::metadata(device)?.rdev();
    let number =
        DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
    let name = device.trim_start_matches("/dev/").to_owned();
    let device = TracedDevice { name, number, partitions: Vec::new() };
    Ok(TraceScope { devices: vec![device], processes: vec![std::process::id()], is_limited: false })
}

fn work(device: &str, load: &Load, is_write: bool, salt: u64) -> Result<(), std::io::Error> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new().read(true).write(is_write).custom_flags(flags).open(device)?;
    let blocks = (rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))? / BLOCK as u64).max(1);
    let mut block = Block([9; BLOCK]);
    let mut at = salt * 104_729;
    while !load.stop.load(Ordering::Relaxed) {
        at = (at + 7919) % blocks;
        let offset = at * BLOCK as u64;
        match is_write {
            true => file.write_all_at(&block.0, offset)?,
            false => file.read_exact_at(&mut block.0, offset)?,
        }
        load.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn measure(
    trace: &mut BlockTrace,
    instance: PathBuf,
    load: &Load,
    pairs: u32,
) -> Result<(), Box<dyn Error>> {
    let mut switch = |setting: &Setting| fs::write(instance.join(&setting.file), &setting.value);
    let mut out = std::io::stdout();
    let (mut costs, mut added_us) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let mut rates = [Rate::default(); 2];
        let mut taken = None;
        // Off first in one pair, on first in the next.
        for step in 0..2 {
            let is_on = (pair + step) % 2 == 1;
            if is_on {
                trace.start(&mut switch)?;
            }
            rates[usize::from(is_on)] = rate(load);
            if is_on {
                trace.stop(&mut switch)?;
                let begin = Instant::now();
                taken = Some((trace.take(None)?, begin.elapsed()));
            }
        }
        let [off, on] = rates;
        costs.push((1.0 - on.iops / off.iops) * 100.0);
        added_us.push(on.cpu_us - off.cpu_us);
        let (off, on) = (off.iops, on.iops);
        writeln!(out, "off {off:.0} IOPS, on {on:.0} IOPS")?;
        if let Some((latency, spent)) = taken {
            writeln!(out, "  {} in {:.0} ms", summary(&latency), spent.as_secs_f64() * 1e3)?;
        }
    }
    writeln!(out, "IOPS lost: median {:.1} %", median(&mut costs))?;
    writeln!(out, "processor time added: median {:.2} us a request", median(&mut added_us))?;
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[derive(Clone, Copy, Default)]
struct Rate {
    iops: f64,
    /// Processor time of this process per request.
    cpu_us: f64,
}

/// One window.
fn rate(load: &Load) -> Rate {
    let cpu = || {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        spent.tv_sec as f64 * 1e6 + spent.tv_nsec as f64 / 1e3
    };
    let (begin, before, spent) = (Instant::now(), load.done.load(Ordering::Relaxed), cpu());
    thread::sleep(WINDOW);
    let done = (load.done.load(Ordering::Relaxed) - before).max(1) as f64;
    Rate { iops: done / begin.elapsed().as_secs_f64(), cpu_us: (cpu() - spent) / done }
}

fn summary(latency: &BlockLatency) -> String {
    let mut text = format!(
        "{} requests, {} calls, {} unmatched, {} lost;",
        latency.requests, latency.calls, latency.unmatched, latency.lost_events
    );
    for segment in &latency.segments {
        if let Some(times) = segment.reads.or(segment.writes) {
            text.push_str(&format!(" {:?} {:.1} us", segment.segment, times.latency_us.mean));
        }
    }
    text
}
