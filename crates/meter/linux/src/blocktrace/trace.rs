//! One traced window after the other, on a prepared instance, and the files of that instance as far
//! as they are read.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use iostrata_run::host::{ApplicationLatency, BlockLatency};

use crate::blocktrace::event::PageParser;
use crate::blocktrace::matching::{MatchOptions, match_events};
use crate::blocktrace::ring_buffer::{EventFormat, PageLayout};
use crate::blocktrace::tally::tally;
use crate::blocktrace::tracepoint::{KNOWN, NamedEvent};
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
    recorded: Vec<&'static NamedEvent>,
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
        // Pages report the same losses once more, unless the counters were not there.
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

/// Clocks that count nanoseconds and agree between processors.
const CLOCKS: [&str; 4] = ["mono", "mono_raw", "boot", "tai"];

/// Bytes requested at once; larger than any description.
const READ_BYTES: usize = 64 << 10;

/// A prepared instance.
pub(crate) struct Instance {
    dir: PathBuf,
}

/// One processor's part of the buffer.
pub(crate) struct CpuBuffer {
    pub(crate) pages: File,
    path: PathBuf,
    /// Records that were overwritten, and records that were refused.
    pub(crate) overrun: u64,
    pub(crate) dropped: u64,
}

impl Instance {
    /// Looks whether the instance is there, may be read, and counts the right time.
    pub(crate) fn open(dir: &Path) -> Result<Self, TraceError> {
        let instance = Self { dir: dir.to_owned() };
        let clock = match instance.text("trace_clock") {
            Err(TraceError::Unreadable { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Err(TraceError::NoInstance { path: dir.to_owned() });
            }
            other => other?,
        };
        let set = clock.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
        if CLOCKS.contains(&set.as_str()) {
            Ok(instance)
        } else {
            Err(TraceError::WrongClock { path: dir.to_owned(), clock: set })
        }
    }

    fn text(&self, file: &str) -> Result<String, TraceError> {
        let path = self.dir.join(file);
        read_text(&path).map_err(|source| TraceError::reading(path, source))
    }

    /// The events that the instance records, with their descriptions.
    pub(crate) fn events(&self) -> Result<Vec<(&'static NamedEvent, EventFormat)>, TraceError> {
        let mut found = Vec::new();
        let mut off = Vec::new();
        for known in KNOWN {
            let is_on = self
                .text(&format!("{}/enable", known.directory()))
                .is_ok_and(|text| text.starts_with('1'));
            if is_on {
                let file = format!("{}/format", known.directory());
                let format = EventFormat::parse(&self.text(&file)?)
                    .ok_or_else(|| self.unknown(&file, "its number"))?;
                found.push((known, format));
            } else if known.is_required {
                off.push(known.full_name());
            }
        }
        if off.is_empty() {
            Ok(found)
        } else {
            Err(TraceError::EventsOff { path: self.dir.clone(), events: off })
        }
    }

    /// How pages of the buffer are laid out.
    pub(crate) fn layout(&self) -> Result<PageLayout, TraceError> {
        // Only the top directory describes pages, two levels above an instance. A kernel that
        // gives each instance its own page size describes it there as well.
        let own = self.dir.join("events/header_page");
        let file = if own.exists() { own } else { self.dir.join("../../events/header_page") };
        let text = read_text(&file).map_err(|source| TraceError::reading(file.clone(), source))?;
        let mut layout = PageLayout::parse(&text)
            .map_err(|what| TraceError::UnknownFormat { path: file, what: what.to_owned() })?;
        if let Some(kib) =
            self.text("buffer_subbuf_size_kb").ok().and_then(|t| t.trim().parse().ok())
        {
            layout.page_bytes = layout.page_bytes.max(1024_usize.saturating_mul(kib));
        }
        Ok(layout)
    }

    /// The error of a description that lacks something.
    pub(crate) fn unknown(&self, file: &str, what: &str) -> TraceError {
        TraceError::UnknownFormat { path: self.dir.join(file), what: what.to_owned() }
    }

    /// Every processor's buffer, ready to be read without waiting.
    pub(crate) fn buffers(&self) -> Result<Vec<CpuBuffer>, TraceError> {
        let all = self.dir.join("per_cpu");
        let entries =
            fs::read_dir(&all).map_err(|source| TraceError::reading(all.clone(), source))?;
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.iter().map(|name| self.buffer(name)).collect()
    }

    fn buffer(&self, cpu: &str) -> Result<CpuBuffer, TraceError> {
        let stats = self.text(&format!("per_cpu/{cpu}/stats"))?;
        let count = |key: &str| {
            let value = stats.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            value.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let path = self.dir.join("per_cpu").join(cpu).join("trace_pipe_raw");
        let pages = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .map_err(|source| TraceError::reading(path.clone(), source))?;
        let dropped = count("dropped events").saturating_add(count("commit overrun"));
        Ok(CpuBuffer { pages, path, overrun: count("overrun"), dropped })
    }
}

/// Reads a file in large pieces: the kernel hands `header_page` out in one piece only, so that a
/// reader that begins with a few bytes gets no more than those.
fn read_text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; READ_BYTES];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl CpuBuffer {
    /// Takes the next page out of the buffer; its length, 0 when there is none.
    fn take_page(&mut self, into: &mut [u8]) -> Result<usize, TraceError> {
        loop {
            match self.pages.read(into) {
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) => return Err(TraceError::reading(self.path.clone(), error)),
            }
        }
    }
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
