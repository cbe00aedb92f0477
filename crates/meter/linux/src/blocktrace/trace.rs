//! One traced window after the other, on a prepared instance.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Instant;

use iostrata_run::host::{ApplicationLatency, BlockLatency};

use crate::blocktrace::instance::Instance;
use crate::blocktrace::matching::{MatchOptions, match_events};
use crate::blocktrace::parser::PageParser;
use crate::blocktrace::tally::tally;
use crate::blocktrace::tracepoint::Known;
use crate::blocktrace::{TraceError, TraceScope};

/// What a trace is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TraceState {
    Idle,
    Running { since: Instant },
    Stopped { seconds: f64 },
}

impl TraceState {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running { .. } => "running",
            Self::Stopped { .. } => "stopped",
        }
    }
}

/// Traces the block events of a window. The order is start, stop, take, any number of times.
pub struct BlockTrace {
    instance: Instance,
    parser: PageParser,
    recorded: Vec<&'static Known>,
    state: TraceState,
}

impl BlockTrace {
    /// Opens the trace instance in the directory `instance`, which someone made, with the events
    /// that [`events`](crate::blocktrace::events) names enabled in it.
    ///
    /// # Errors
    /// [`TraceError`] when the instance is not there, closed to this user, on another clock, or
    /// does not record what is needed.
    pub fn open(instance: &Path, scope: TraceScope) -> Result<Self, TraceError> {
        if scope.devices.is_empty() {
            return Err(TraceError::NoDevice);
        }
        let instance = Instance::open(instance)?;
        let mut parser = PageParser::new(instance.layout()?, scope);
        let mut recorded = Vec::new();
        for (known, format) in instance.events()? {
            let learned = parser.learn(known.kind, &format);
            let file = format!("{}/format", known.directory());
            learned.map_err(|field| instance.unknown(&file, &format!("no field {field}")))?;
            recorded.push(known);
        }
        Ok(Self { instance, parser, recorded, state: TraceState::Idle })
    }

    /// Begins the window: what was recorded is forgotten, and only the scope's devices and the
    /// threads that its processes have now count.
    ///
    /// # Errors
    /// [`TraceError::NotSet`], [`TraceError::OutOfOrder`].
    pub fn start(&mut self, switch: &mut Switch<'_>) -> Result<(), TraceError> {
        if let TraceState::Running { .. } = self.state {
            return Err(self.out_of_order("start"));
        }
        set(switch, Setting::off())?;
        self.parser.reset();
        self.note_threads();
        self.set_filters(switch)?;
        set(switch, Setting::clear())?;
        set(switch, Setting::on())?;
        self.state = TraceState::Running { since: Instant::now() };
        Ok(())
    }

    /// Keeps the events of others out of the buffer, where they would cost time and room.
    fn set_filters(&mut self, switch: &mut Switch<'_>) -> Result<(), TraceError> {
        let devices = self.parser.scope().device_filter();
        // A filter of 0 takes an earlier one away.
        let threads = thread_filter(self.parser.threads()).unwrap_or_else(|| "0".to_owned());
        for known in &self.recorded {
            let filter = if known.is_of_device() {
                &devices
            } else if known.is_of_caller() {
                &threads
            } else {
                continue;
            };
            set(switch, Setting::filter(&known.directory(), filter.clone()))?;
        }
        Ok(())
    }

    /// Ends the window.
    ///
    /// # Errors
    /// [`TraceError::NotSet`], [`TraceError::OutOfOrder`].
    pub fn stop(&mut self, switch: &mut Switch<'_>) -> Result<(), TraceError> {
        let TraceState::Running { since } = self.state else {
            return Err(self.out_of_order("stop"));
        };
        set(switch, Setting::off())?;
        self.state = TraceState::Stopped { seconds: since.elapsed().as_secs_f64() };
        Ok(())
    }

    /// Reads the window and matches it. `application` is the mean latency that the meter saw in
    /// it, for comparison.
    ///
    /// # Errors
    /// [`TraceError::Unreadable`], [`TraceError::OutOfOrder`].
    pub fn take(
        &mut self,
        application: Option<ApplicationLatency>,
    ) -> Result<BlockLatency, TraceError> {
        let TraceState::Stopped { seconds } = self.state else {
            return Err(self.out_of_order("take"));
        };
        self.state = TraceState::Idle;
        let losses = self.read_buffers()?;
        let mut events = std::mem::take(&mut self.parser.events);
        // Where a processor's oldest events were overwritten, the others are cut to the same
        // begin: half a request is none.
        let before = events.len();
        if let Some(begin) = losses.begin_ns {
            events.retain(|event| event.ns >= begin);
        }
        let cut = (before - events.len()) as u64;
        let scope = self.parser.scope();
        let options = MatchOptions {
            is_limited: scope.is_limited,
            knows_callers: !scope.processes.is_empty(),
        };
        let matched = match_events(events, &options);
        let mut latency = tally(&matched, application);
        latency.seconds = seconds;
        latency.device = scope.names();
        latency.lost_events = losses.events.saturating_add(self.parser.odd);
        latency.notes.extend(notes(&latency, cut, matched.unclaimed, scope.is_limited));
        Ok(latency)
    }

    fn read_buffers(&mut self) -> Result<Losses, TraceError> {
        let mut page = vec![0; self.parser.page_bytes()];
        let mut losses = Losses::default();
        for mut buffer in self.instance.buffers()? {
            let first = self.parser.events.len();
            loop {
                let bytes = buffer.take_page(&mut page)?;
                if bytes == 0 {
                    break;
                }
                self.parser.read(page.get(..bytes).unwrap_or_default());
            }
            losses.events += buffer.overrun.saturating_add(buffer.dropped);
            let oldest = self.parser.events.get(first).map(|event| event.ns);
            if buffer.overrun > 0 {
                losses.begin_ns = losses.begin_ns.max(oldest);
            }
        }
        // Pages tell of the same losses once more, unless the counters were not there.
        losses.events = losses.events.max(self.parser.lost);
        Ok(losses)
    }

    fn note_threads(&mut self) {
        let processes = self.parser.scope().processes.clone();
        let threads = self.parser.threads();
        threads.clear();
        add_threads(threads, &processes);
    }

    fn out_of_order(&self, asked: &'static str) -> TraceError {
        TraceError::OutOfOrder { asked, state: self.state.name() }
    }
}

/// What the buffers could not keep.
#[derive(Default)]
struct Losses {
    events: u64,
    /// When the window begins whole, where its begin was overwritten.
    begin_ns: Option<u64>,
}

fn set(switch: &mut Switch<'_>, setting: Setting) -> Result<(), TraceError> {
    switch(&setting).map_err(|source| TraceError::NotSet {
        file: setting.file,
        value: setting.value,
        source,
    })
}

fn notes(latency: &BlockLatency, cut: u64, unclaimed: u64, is_limited: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if latency.lost_events > 0 {
        notes.push(format!(
            "{} events were lost and {cut} more left out that were not whole without them: the \
             buffer was too small for the window",
            latency.lost_events
        ));
    }
    if is_limited && unclaimed > 0 {
        notes.push(format!(
            "{unclaimed} requests came from a kernel worker and no waiting call was found for \
             them: how long the limit held them back is not known"
        ));
    }
    notes
}

/// One file of the trace instance and what is to be written into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file, below the instance's directory.
    pub file: String,
    /// What to write. The file must be opened with truncation, as `std::fs::write` does: that is
    /// what clears `trace`.
    pub value: String,
}

/// Carries a setting out. Called only within `start` and `stop`.
pub type Switch<'a> = dyn FnMut(&Setting) -> io::Result<()> + 'a;

impl Setting {
    fn new(file: impl Into<String>, value: impl Into<String>) -> Self {
        Self { file: file.into(), value: value.into() }
    }

    /// Recording begins.
    pub(crate) fn on() -> Self {
        Self::new("tracing_on", "1")
    }

    /// Recording ends.
    pub(crate) fn off() -> Self {
        Self::new("tracing_on", "0")
    }

    /// What was recorded is forgotten.
    pub(crate) fn clear() -> Self {
        Self::new("trace", "0")
    }

    /// Only events that the expression holds for are recorded.
    pub(crate) fn filter(event_directory: &str, expression: String) -> Self {
        Self::new(format!("{event_directory}/filter"), expression)
    }
}

/// Most ranges in one filter: the kernel tries them one after the other, and takes 4 KiB of text.
const RANGES_MAX: usize = 32;

/// Adds the threads that these processes have now. A process that is gone adds none.
fn add_threads(threads: &mut HashSet<u32>, processes: &[u32]) {
    for process in processes {
        let tasks = Path::new("/proc").join(process.to_string()).join("task");
        let Ok(entries) = std::fs::read_dir(tasks) else { continue };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        threads.extend(names.filter_map(|name| name.parse::<u32>().ok()));
    }
}

/// A filter expression that events of these threads pass, and of few others: threads started
/// together have numbers side by side, so that a few ranges hold them all. `None` without threads.
fn thread_filter(threads: &HashSet<u32>) -> Option<String> {
    let mut numbers: Vec<u32> = threads.iter().copied().collect();
    numbers.sort_unstable();
    let mut gap_max = 8;
    let mut ranges = ranges(&numbers, gap_max);
    while ranges.len() > RANGES_MAX {
        gap_max = gap_max.saturating_mul(2);
        ranges = self::ranges(&numbers, gap_max);
    }
    let tests: Vec<String> = ranges
        .iter()
        .map(|(first, last)| format!("(common_pid >= {first} && common_pid <= {last})"))
        .collect();
    (!tests.is_empty()).then(|| tests.join(" || "))
}

/// Ranges that hold every number, with no gap wider than `gap_max` within one.
fn ranges(sorted: &[u32], gap_max: u32) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in sorted {
        match ranges.last_mut() {
            Some((_, last)) if number - *last <= gap_max => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

#[cfg(test)]
mod threads_tests {
    use super::*;

    #[test]
    fn threads_side_by_side_share_a_range() {
        assert_eq!(thread_filter(&HashSet::new()), None);
        let filter = thread_filter(&HashSet::from([10, 500, 501, 507])).unwrap();
        let wanted = "(common_pid >= 10 && common_pid <= 10) || \
                      (common_pid >= 500 && common_pid <= 507)";
        assert_eq!(filter, wanted);
    }

    #[test]
    fn scattered_threads_still_make_a_short_filter() {
        let scattered: Vec<u32> = (0..2000).map(|n| n * 1000).collect();
        let filter = thread_filter(&scattered.iter().copied().collect()).unwrap();
        assert!(filter.matches("||").count() < RANGES_MAX && filter.len() < 4096);
        let near = ranges(&scattered, 1000);
        assert_eq!(near, [(0, 1_999_000)]);
    }

    #[test]
    fn a_running_thread_is_found_and_a_wrong_process_adds_none() {
        let mut threads = HashSet::new();
        add_threads(&mut threads, &[std::process::id(), u32::MAX]);
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(threads.contains(&own));
    }
}
