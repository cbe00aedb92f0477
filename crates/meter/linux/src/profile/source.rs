//! The events of all processors, with their buffers, and what can go wrong while profiling.
//!
//! Invariant: either every processor is open or none; what is opened stays off until a window
//! starts. A refusal names the value found and a fix for exactly that.

use std::str::FromStr;
use std::{fs, io};

use perf_event_open_sys::bindings::perf_event_attr;
use rustix::io::Errno;
use rustix::param::page_size;

use crate::profile::event::{self, PerfEvent, Reach, Ring};

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

// What can go wrong while profiling, and how the system refuses to sample the kernel.
//
// Invariant: a refusal names the value found and a fix for exactly that.

/// Why no profile can be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The system does not let this process sample the kernel.
    #[error("the kernel may not be sampled: {why}; {fix}")]
    NotPermitted {
        /// What forbids it, with the value found.
        why: String,
        /// What to do.
        fix: String,
    },
    /// The kernel has no way to sample.
    #[error("this kernel cannot sample: {source}; it needs CONFIG_PERF_EVENTS")]
    Unsupported {
        /// The system's error.
        source: io::Error,
    },
    /// A rate of 0, or one above what the kernel allows.
    #[error("a profile at {found} Hz is not possible; choose 1 to {max}")]
    Rate {
        /// Samples per second that were requested.
        found: u32,
        /// The kernel's limit (kernel.perf_event_max_sample_rate).
        max: u32,
    },
    /// The system refused a step that it normally grants.
    #[error("{doing} failed: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The steps came in the wrong order.
    #[error("cannot {asked} a profiler that is {state}; the order is start, stop, take")]
    OutOfOrder {
        /// The step requested.
        asked: &'static str,
        /// What the profiler was doing.
        state: &'static str,
    },
    /// The thread that drains the buffers ended by itself.
    #[error("the thread that reads the samples ended unexpectedly; this is a bug")]
    ReaderGone,
}

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const RATE_MAX: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// A number in a file; absent when it cannot be read.
fn number<T: FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Whether a refusal is about permission.
fn is_refusal(source: &io::Error) -> bool {
    matches!(Errno::from_io_error(source), Some(Errno::ACCESS | Errno::PERM))
}

/// Whether an error is about permission.
pub(crate) fn is_refusal_error(error: &ProfileError) -> bool {
    matches!(error, ProfileError::NotPermitted { .. })
}

/// Refuses a rate that the kernel would refuse.
pub(crate) fn check_rate(hz: u32) -> Result<(), ProfileError> {
    let max = number(RATE_MAX).unwrap_or(100_000);
    if (1..=max).contains(&hz) { Ok(()) } else { Err(ProfileError::Rate { found: hz, max }) }
}

/// Why an event could not be opened.
fn explain(source: io::Error, reach: Reach) -> ProfileError {
    if is_refusal(&source) {
        let is_root = rustix::process::geteuid().is_root();
        return refusal(number(PARANOID), is_root, reach);
    }
    match Errno::from_io_error(&source) {
        Some(Errno::NOSYS | Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP) => {
            ProfileError::Unsupported { source }
        }
        _ => ProfileError::System { doing: "opening a kernel event (perf_event_open)", source },
    }
}

fn refusal(paranoid: Option<i32>, is_root: bool, reach: Reach) -> ProfileError {
    // 0 allows events of whole processors, 1 the kernel's part of one's own tasks.
    let enough = match reach {
        Reach::Machine => 0,
        Reach::Own => 1,
    };
    let why = match paranoid {
        None => "kernel.perf_event_paranoid cannot be read".to_owned(),
        Some(value) if is_root || value <= enough => format!(
            "kernel.perf_event_paranoid is {value}, and yet perf_event_open is refused, as in a \
             container without CAP_PERFMON"
        ),
        Some(value) => {
            format!("kernel.perf_event_paranoid is {value} and this process lacks CAP_PERFMON")
        }
    };
    let in_container = is_root || paranoid.is_none_or(|value| value <= enough);
    let fix = if in_container {
        "start the container with --cap-add PERFMON (or --privileged)".to_owned()
    } else {
        format!("run as root, or once as root: sysctl kernel.perf_event_paranoid={enough}")
    };
    ProfileError::NotPermitted { why, fix }
}

/// The note for a profile that fell back to this process.
pub(crate) fn only_own(refused: &ProfileError) -> String {
    format!("only this process was sampled, without kernel threads and idle processors: {refused}")
}

/// The note for a kernel that hides its addresses.
pub(crate) fn hidden_symbols() -> String {
    "the kernel hides its addresses, so no function has a name and no time a layer; run as root, \
     or once as root: sysctl kernel.kptr_restrict=0"
        .to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(paranoid: Option<i32>, is_root: bool, reach: Reach) -> String {
        refusal(paranoid, is_root, reach).to_string()
    }

    #[test]
    fn a_refusal_names_the_value_and_the_fix() {
        let machine = text(Some(2), false, Reach::Machine);
        assert!(machine.contains("perf_event_paranoid is 2"), "{machine}");
        assert!(machine.contains("sysctl kernel.perf_event_paranoid=0"), "{machine}");
        let own = text(Some(3), false, Reach::Own);
        assert!(own.contains("is 3") && own.contains("perf_event_paranoid=1"), "{own}");
    }

    #[test]
    fn root_in_a_container_is_told_about_the_capability() {
        for text in [text(Some(2), true, Reach::Own), text(None, false, Reach::Machine)] {
            assert!(text.contains("--cap-add PERFMON"), "{text}");
            assert!(!text.contains("sysctl"), "{text}");
        }
    }

    #[test]
    fn refusals_and_missing_events_are_told_apart() {
        assert!(is_refusal(&Errno::ACCESS.into()) && is_refusal(&Errno::PERM.into()));
        assert!(!is_refusal(&Errno::NOENT.into()));
        let missing = explain(Errno::NOSYS.into(), Reach::Own);
        assert!(matches!(missing, ProfileError::Unsupported { .. }), "{missing}");
        let other = explain(Errno::MFILE.into(), Reach::Own);
        assert!(matches!(other, ProfileError::System { .. }), "{other}");
    }
}
