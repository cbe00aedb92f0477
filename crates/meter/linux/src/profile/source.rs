//! The events of all processors, with their buffers.
//!
//! Invariant: either every processor is open or none; what is opened stays off until a window
//! starts.

use std::{fs, io};

use perf_event_open_sys::bindings::perf_event_attr;
use rustix::param::page_size;

use crate::profile::error::explain;
use crate::profile::event::{PerfEvent, Reach, Ring};
use crate::profile::{ProfileError, event};

/// Room for the samples of several seconds.
const SAMPLES_RING_BYTES: usize = 256 << 10;
/// Room for switches: all processors together, and the most for one.
const SWITCHES_ALL_BYTES: usize = 64 << 20;
const SWITCHES_RING_BYTES_MAX: usize = 8 << 20;
/// Below this a buffer is of no use.
const RING_BYTES_MIN: usize = 32 << 10;

/// One event of one processor.
#[derive(Debug)]
pub(crate) struct SampleSource {
    event: PerfEvent,
    pub(crate) ring: Ring,
}

/// One event on all processors.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) all: Vec<SampleSource>,
}

impl Sources {
    fn open(attr: &perf_event_attr, reach: Reach, ring_bytes: usize) -> Result<Self, ProfileError> {
        let mut all = Vec::new();
        for cpu in online() {
            match open_one(attr, reach, cpu, ring_bytes) {
                Ok(source) => all.push(source),
                // The processor was taken away since it was listed.
                Err(source) if source.raw_os_error() == Some(libc::ENODEV) && cpu > 0 => {}
                Err(source) => return Err(explain(source, reach)),
            }
        }
        Ok(Self { all })
    }

    /// Events that sample stacks: by cycles where the processors count them, else by time.
    pub(crate) fn samples(reach: Reach, hz: u32) -> Result<(Self, Clock), ProfileError> {
        if let Some(per_s) = cycles_per_s()
            && let period @ 1.. = per_s / u64::from(hz)
            && let Ok(sources) = Self::open(&event::cycles(period), reach, SAMPLES_RING_BYTES)
        {
            return Ok((sources, Clock::Cycles));
        }
        let sources = Self::open(&event::cpu_clock(hz), reach, SAMPLES_RING_BYTES)?;
        Ok((sources, Clock::CpuClock))
    }

    /// Events that record every switch of tasks.
    pub(crate) fn switches(reach: Reach) -> Result<Self, ProfileError> {
        let share = SWITCHES_ALL_BYTES / online().len().max(1);
        let bytes = (share.clamp(RING_BYTES_MIN, SWITCHES_RING_BYTES_MAX) + 1).next_power_of_two();
        Self::open(&event::switches(), reach, bytes / 2)
    }

    /// Begins to record everywhere.
    pub(crate) fn enable(&self) -> Result<(), ProfileError> {
        self.each("starting to sample", PerfEvent::enable)
    }

    /// Stops to record everywhere.
    pub(crate) fn disable(&self) -> Result<(), ProfileError> {
        self.each("stopping to sample", PerfEvent::disable)
    }

    fn each(
        &self,
        doing: &'static str,
        act: impl Fn(&PerfEvent) -> io::Result<()>,
    ) -> Result<(), ProfileError> {
        self.all
            .iter()
            .try_for_each(|source| act(&source.event))
            .map_err(|source| ProfileError::System { doing, source })
    }
}

/// What drives the sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// A timer; an idle processor is sampled too.
    CpuClock,
    /// Hardware cycles; an idle processor makes none.
    Cycles,
}

impl Clock {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CpuClock => "cpu-clock",
            Self::Cycles => "cycles",
        }
    }
}

/// Opens and maps; where the limit of locked memory (kernel.perf_event_mlock_kb) does not allow a
/// buffer of this size, a smaller one.
fn open_one(
    attr: &perf_event_attr,
    reach: Reach,
    cpu: u32,
    ring_bytes: usize,
) -> io::Result<SampleSource> {
    let event = PerfEvent::open(attr, reach, Some(cpu))?;
    let mut bytes = ring_bytes;
    loop {
        match Ring::map(&event, (bytes / page_size()).max(1)) {
            Ok(ring) => return Ok(SampleSource { event, ring }),
            Err(_) if bytes > RING_BYTES_MIN => bytes /= 2,
            Err(source) => return Err(source),
        }
    }
}

/// How many cycles a busy processor makes in a second; absent where none are counted.
///
/// A fixed number of cycles per sample, unlike the kernel's adaptive one, keeps the number of
/// samples proportional to busy time.
fn cycles_per_s() -> Option<u64> {
    const SPIN: std::time::Duration = std::time::Duration::from_millis(5);
    let counter = PerfEvent::open(&event::cycle_counter(), Reach::Own, None).ok()?;
    let (start, before) = (std::time::Instant::now(), counter.count().ok()?);
    while start.elapsed() < SPIN {
        std::hint::spin_loop();
    }
    let cycles = counter.count().ok()?.checked_sub(before)?;
    let per_s = cycles as f64 / start.elapsed().as_secs_f64();
    (per_s >= 1e6).then_some(per_s as u64)
}

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The numbers of the processors that are on; without sysfs, as many as this process may use.
pub(crate) fn online() -> Vec<u32> {
    let listed = fs::read_to_string(ONLINE).map(|text| numbers(&text)).unwrap_or_default();
    if !listed.is_empty() {
        return listed;
    }
    let count = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    (0..count).collect()
}

/// Reads a list such as `0-3,8`; odd parts are skipped.
fn numbers(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod processors_tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        assert_eq!(numbers("0-1\n"), [0, 1]);
        assert_eq!(numbers("0,2-4,9"), [0, 2, 3, 4, 9]);
        assert_eq!(numbers(""), [] as [u32; 0]);
        assert_eq!(numbers("x,1-,3"), [3]);
        assert!(!online().is_empty());
    }
}
