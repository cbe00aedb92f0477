//! From courses of orders to figures.
//!
//! Invariant: a ratio rests on pairs from the same round.

use serde::Serialize;

use super::Way;
use super::store::{EngineCounts, OrderStore};
use crate::drive::{Course, SLICE};
use crate::engines::Engine;

/// One window of one engine.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Settled transactions per second.
    pub rate: f64,
    /// Processor time per transaction, in microseconds, all threads of the engine included.
    pub cpu_us: f64,
    /// Bytes that the device wrote per transaction.
    pub device_bytes: Option<f64>,
    /// Transactions begun anew, per thousand.
    pub retries_per_1000: f64,
    /// Transactions per second of the three thirds of the window.
    pub thirds: [f64; 3],
    /// Resident memory of the process at the end of each third, in MiB.
    pub memory_mib: Vec<u64>,
    /// What the engine counts itself, per transaction.
    pub parts: Option<Parts>,
}

/// What one transaction takes of the engine's parts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parts {
    /// Processor time of applying, in microseconds; below likewise.
    pub rows_us: f64,
    /// Of making commits durable.
    pub commit_us: f64,
    /// Of writing pages back.
    pub cleaner_us: f64,
    /// Of purge.
    pub purge_us: f64,
    /// Bytes of redo.
    pub redo_bytes: f64,
    /// Syncs.
    pub syncs: f64,
    /// Commits whose old versions were kept, at most at any look.
    pub history_max: u64,
}

/// What is looked at while a window passes.
#[derive(Debug, Default)]
pub struct WindowWatch {
    first: Option<EngineCounts>,
    last: Option<EngineCounts>,
    history_max: u64,
    memory_mib: Vec<u64>,
}

impl WindowWatch {
    /// One look, about once per slice.
    pub fn look(&mut self, store: &dyn OrderStore, slice: usize, slices: usize) {
        if let Some(counts) = store.counts() {
            self.first.get_or_insert(counts);
            self.history_max = self.history_max.max(counts.history);
        }
        let third = slices.div_ceil(3).max(1);
        if slice > 0 && slice.is_multiple_of(third) {
            self.memory_mib.push(memory_mib());
        }
    }

    /// The last look.
    pub fn end(&mut self, store: &dyn OrderStore) {
        self.last = store.counts();
        self.memory_mib.push(memory_mib());
    }

    fn parts(&self, transactions: f64) -> Option<Parts> {
        let (first, last) = (self.first?, self.last?);
        let each = |of: fn(&EngineCounts) -> u64| (of(&last) - of(&first)) as f64 / transactions;
        Some(Parts {
            rows_us: each(|counts| counts.rows_ns) / 1e3,
            commit_us: each(|counts| counts.commit_ns) / 1e3,
            cleaner_us: each(|counts| counts.cleaner_ns) / 1e3,
            purge_us: each(|counts| counts.purge_ns) / 1e3,
            redo_bytes: each(|counts| counts.redo_bytes),
            syncs: each(|counts| counts.syncs),
            history_max: self.history_max,
        })
    }
}

impl Sample {
    /// The figures of a course.
    pub fn of(course: &Course, retries: u64, watched: WindowWatch) -> Self {
        let operations = course.operations().max(1) as f64;
        let rate = |slices: &[u64]| {
            slices.iter().sum::<u64>() as f64 / (slices.len().max(1) as f64 * SLICE.as_secs_f64())
        };
        let third = course.slices.len().div_ceil(3).max(1);
        let thirds = std::array::from_fn(|at| {
            let slices = course.slices.chunks(third).nth(at).unwrap_or_default();
            rate(slices)
        });
        Self {
            rate: rate(&course.slices),
            cpu_us: course.passed.cpu.as_secs_f64() * 1e6 / operations,
            device_bytes: course.passed.device_bytes.map(|bytes| bytes as f64 / operations),
            retries_per_1000: retries as f64 * 1e3 / operations,
            thirds,
            parts: watched.parts(operations),
            memory_mib: watched.memory_mib,
        }
    }
}

/// Resident memory of this process; 0 where the kernel does not report it.
fn memory_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}

/// The value in the middle; 0 without any.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

/// All engines in one way.
#[derive(Clone, Debug, Serialize)]
pub struct WayTable {
    /// How orders were acknowledged.
    pub way: Way,
    /// Each engine's windows, by rounds.
    pub engines: Vec<(Engine, Vec<Sample>)>,
}

impl WayTable {
    /// No windows yet.
    pub fn new(way: Way, engines: &[Engine]) -> Self {
        Self { way, engines: engines.iter().map(|engine| (*engine, Vec::new())).collect() }
    }

    /// Adds a window of the engine at this place.
    pub fn add(&mut self, at: usize, sample: Sample) {
        self.engines[at].1.push(sample);
    }

    /// Our rate over that of the engine at this place: of each round, the one in the middle.
    pub fn ratio(&self, at: usize) -> Option<f64> {
        let (_, ours) = self.engines.iter().find(|(engine, _)| *engine == Engine::Iostrata)?;
        let pairs = ours.iter().zip(&self.engines[at].1);
        Some(median(pairs.map(|(ours, theirs)| ours.rate / theirs.rate.max(1e-9))))
    }
}

/// Everything of the orders.
#[derive(Clone, Debug, Serialize)]
pub struct OrdersTable {
    /// The emulated disk below; absent on a real one.
    pub disk: Option<String>,
    /// One table per way.
    pub ways: Vec<WayTable>,
}

/// Rates of reads and updates with one thread and with two.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scaling {
    reads: [Vec<f64>; 2],
    updates: [Vec<f64>; 2],
}

impl Scaling {
    /// Adds a window.
    pub fn add(&mut self, is_writing: bool, threads: usize, rate: f64) {
        let of = if is_writing { &mut self.updates } else { &mut self.reads };
        of[usize::from(threads > 1)].push(rate);
    }

    /// The rates in the middle with one thread and with two.
    pub fn rates(&self, is_writing: bool) -> [f64; 2] {
        let of = if is_writing { &self.updates } else { &self.reads };
        [0, 1].map(|at| median(of[at].iter().copied()))
    }
}

/// A long window of our engine.
#[derive(Clone, Debug, Serialize)]
pub struct SoakTable {
    /// The emulated disk below; absent on a real one.
    pub disk: Option<String>,
    /// The window.
    pub soak: Sample,
    /// One thread compared with two.
    pub scaling: Scaling,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rate: f64) -> Sample {
        Sample {
            rate,
            cpu_us: 1.0,
            device_bytes: None,
            retries_per_1000: 0.0,
            thirds: [rate; 3],
            memory_mib: Vec::new(),
            parts: None,
        }
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let mut table = WayTable::new(Way::Blocking, &[Engine::Iostrata, Engine::Redb]);
        for (ours, theirs) in [(10.0, 5.0), (4.0, 1.0), (9.0, 3.0)] {
            table.add(0, sample(ours));
            table.add(1, sample(theirs));
        }
        assert_eq!(table.ratio(1), Some(3.0));
        assert_eq!(table.ratio(0), Some(1.0));
        assert!(WayTable::new(Way::Tickets, &[Engine::Redb]).ratio(0).is_none());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn this_process_takes_memory() {
        assert!(memory_mib() > 0);
    }
}
