//! A line per sample in aligned columns, for pipes and plain terminals.
//!
//! Invariant: a figure that is not told is a dash. The names of the columns come again every twenty
//! lines.

use iostrata_run::host::PressureShare;
use iostrata_run::{FileClass, WatchDevice, WatchSample, WatchTarget};
use iostrata_screen::short_name;

use super::stream::{Arrived, Next, Stream};
use crate::display::{Display, print_text};
use crate::exit_error::ExitError;

/// Lines from one header to the next.
const HEADER_EVERY: usize = 20;
/// Width of a target's name where several are watched.
const NAME_WIDTH: usize = 24;
const MIB: f64 = 1_048_576.0;

/// A column: its name, its width, its figure.
#[derive(Clone)]
struct LineColumn {
    name: &'static str,
    width: usize,
    of: fn(&WatchSample) -> String,
}

const fn column(name: &'static str, width: usize, of: fn(&WatchSample) -> String) -> LineColumn {
    LineColumn { name, width, of }
}

/// All columns of the target itself.
const COLUMNS: &[LineColumn] = &[
    column("tps", 6, |one| compact(one.tps)),
    column("age%", 5, |one| compact(one.checkpoint_age_pct)),
    column("ageM", 6, |one| mib(one.checkpoint_age_bytes)),
    column("left", 5, |one| compact(one.redo_seconds_left)),
    column("redoM/s", 7, |one| compact(one.redo_bytes_per_s.map(|bytes| bytes / MIB))),
    column("dirty%", 6, |one| compact(one.dirty_pct)),
    column("flush/s", 7, |one| compact(one.flushed_pages_per_s)),
    column("adapt", 6, |one| compact(one.flush_adaptive_pages_per_s)),
    column("lru", 5, |one| compact(one.flush_lru_pages_per_s)),
    column("bgrd", 5, |one| compact(one.flush_background_pages_per_s)),
    column("sync", 5, |one| compact(one.flush_sync_pages_per_s)),
    column("hist", 6, |one| whole(one.history_list_length)),
    column("purge", 6, |one| compact(one.purge_per_s)),
    column("rd", 3, |one| whole(one.pending_reads)),
    column("wr", 3, |one| whole(one.pending_writes)),
    column("sy", 3, |one| whole(one.pending_syncs)),
    column("run", 4, |one| whole(one.sessions_running)),
    column("lock", 4, |one| whole(one.row_locks_waiting)),
    column("open", 5, |one| compact(one.oldest_transaction_s)),
];

/// The columns of the host and its device, where it is this one.
const DEVICE_COLUMNS: &[LineColumn] = &[
    column("r/s", 6, |one| device(one, |of| Some(of.reads_per_s))),
    column("w/s", 6, |one| device(one, |of| Some(of.writes_per_s))),
    column("fl/s", 5, |one| device(one, |of| of.flushes_per_s)),
    column("r ms", 5, |one| device(one, |of| of.read_ms)),
    column("w ms", 5, |one| device(one, |of| of.write_ms)),
    column("qd", 5, |one| device(one, |of| Some(of.in_flight))),
    column("stl%", 4, |one| compact(one.cpu_stolen_pct)),
];

/// What tasks waited for, and what held them back, where that is known.
const PRESSURE_COLUMNS: &[LineColumn] = &[
    column("io%", 4, |one| share(one.pressure.and_then(|of| of.io), |of| Some(of.some_pct))),
    column("ioF%", 4, |one| share(one.pressure.and_then(|of| of.io), |of| of.full_pct)),
    column("cpu%", 4, |one| share(one.pressure.and_then(|of| of.cpu), |of| Some(of.some_pct))),
    column("mem%", 4, |one| share(one.pressure.and_then(|of| of.memory), |of| Some(of.some_pct))),
];
const THROTTLE_COLUMNS: &[LineColumn] = &[
    column("lim%", 4, |one| compact(one.throttle.as_ref().and_then(|of| of.io_limit_used_pct))),
    column("held", 5, |one| {
        compact(one.throttle.as_ref().and_then(|of| of.cpu_throttled_us).map(|us| us as f64 / 1e3))
    }),
];

/// MiB written per second by class of file. The last ones are told by performance_schema alone.
const FILE_COLUMNS: &[LineColumn] = &[
    column("datM", 5, |one| written(one, FileClass::Data)),
    column("logM", 5, |one| written(one, FileClass::Redo)),
    column("dblM", 5, |one| written(one, FileClass::Doublewrite)),
];
const MORE_FILE_COLUMNS: &[LineColumn] = &[
    column("tmpM", 5, |one| written(one, FileClass::Temporary)),
    column("binM", 5, |one| written(one, FileClass::Binlog)),
    column("othM", 5, |one| written(one, FileClass::Other)),
];

/// Shows samples as they come.
///
/// # Errors
/// When stdout cannot be written.
pub fn show(
    stream: &mut Stream<'_>,
    display: &Display,
    is_terminal: bool,
) -> Result<(), ExitError> {
    let layout = LineLayout::begin(stream, display);
    let mut lines = 0;
    loop {
        let arrived = match stream.next() {
            Next::Sample(arrived) => arrived,
            Next::Nothing => continue,
            Next::End => break,
        };
        if arrived.is_first {
            continue;
        }
        if lines % HEADER_EVERY == 0 {
            print_text(&layout.header())?;
        }
        lines += 1;
        print_text(&layout.line(&arrived))?;
    }
    // What the terminal shows of Ctrl-C stands on the last line.
    if is_terminal { print_text("\n") } else { Ok(()) }
}

/// Shows one sample of each target.
///
/// # Errors
/// When stdout cannot be written.
pub fn once(stream: &Stream<'_>, samples: &[Arrived], display: &Display) -> Result<(), ExitError> {
    let layout = LineLayout::begin(stream, display);
    let lines: String = samples.iter().map(|arrived| layout.line(arrived)).collect();
    print_text(&(layout.header() + &lines))
}

/// Which columns there are.
pub(super) struct LineLayout {
    names: Vec<String>,
    /// Columns of which some target tells something, after those of the targets themselves.
    more: Vec<&'static LineColumn>,
}

/// Whether a target does not tell something.
fn lacks(target: &WatchTarget, what: &str) -> bool {
    let mut named = target.missing.iter().filter_map(|one| one.split_once(':'));
    named.any(|(names, _)| names.split(", ").any(|name| name == what))
}

/// What the sentences on what a target does not tell name before their colon.
static MORE: [(&str, &[LineColumn]); 4] = [
    ("device", DEVICE_COLUMNS),
    ("pressure", PRESSURE_COLUMNS),
    ("throttle", THROTTLE_COLUMNS),
    ("files of undo", MORE_FILE_COLUMNS),
];

impl LineLayout {
    /// Names the targets and what they do not tell.
    fn begin(stream: &Stream<'_>, display: &Display) -> Self {
        for target in &stream.targets {
            display.note(&format!("{}: {} {}", target.name, target.flavour, target.version));
            target.missing.iter().for_each(|text| display.note(&format!("  no {text}")));
        }
        Self::of(&stream.targets)
    }

    /// The layout for these targets.
    pub(super) fn of(targets: &[WatchTarget]) -> Self {
        let is_told = |what: &str| !targets.iter().all(|target| lacks(target, what));
        let told = MORE.iter().filter(|(what, _)| is_told(what)).map(|(_, columns)| *columns);
        let more = [FILE_COLUMNS].into_iter().chain(told).flatten().collect();
        let names = targets.iter().map(|target| short_name(&target.name, NAME_WIDTH)).collect();
        Self { names, more }
    }

    fn columns(&self) -> impl Iterator<Item = &'static LineColumn> {
        COLUMNS.iter().chain(self.more.iter().copied())
    }

    pub(super) fn header(&self) -> String {
        let name =
            if self.names.len() > 1 { format!("{:NAME_WIDTH$} ", "target") } else { String::new() };
        let names = self.columns().map(|column| format!(" {:>1$}", column.name, column.width));
        format!("{name}{:>6}{}\n", "t", names.collect::<String>())
    }

    pub(super) fn line(&self, arrived: &Arrived) -> String {
        let sample = &arrived.watched.sample;
        let name = match self.names.get(arrived.target) {
            Some(name) if self.names.len() > 1 => format!("{name:NAME_WIDTH$} "),
            _ => String::new(),
        };
        let t = format!("{:>6}", format!("{:.1}", sample.t_s).trim_end_matches(".0"));
        if let Some(error) = &sample.error {
            return format!("{name}{t}  no answer: {error}\n");
        }
        let figures =
            self.columns().map(|column| format!(" {:>1$}", (column.of)(sample), column.width));
        let end = match (&sample.stall_cause, sample.restarted) {
            (_, true) => "  restarted".to_owned(),
            (Some(cause), _) => {
                let since = arrived.watched.stall.as_ref().map_or(0.0, |stall| stall.length_s);
                let evidence = sample.stall_evidence.as_deref().unwrap_or_default();
                format!("  STALL {since:.0} s, {cause}: {evidence}")
            }
            _ => String::new(),
        };
        format!("{name}{t}{}{end}\n", figures.collect::<String>())
    }
}

fn device(sample: &WatchSample, of: fn(&WatchDevice) -> Option<f64>) -> String {
    compact(sample.device.as_ref().and_then(of))
}

fn share(of: Option<PressureShare>, pct: fn(PressureShare) -> Option<f64>) -> String {
    compact(of.and_then(pct))
}

/// MiB per second that are written to files of a class.
fn written(sample: &WatchSample, class: FileClass) -> String {
    let files = sample.files.as_ref().and_then(|files| files.class(class));
    compact(files.and_then(|one| one.write_bytes_per_s).map(|bytes| bytes / MIB))
}

fn mib(bytes: Option<u64>) -> String {
    compact(bytes.map(|bytes| bytes as f64 / MIB))
}

fn whole(count: Option<u64>) -> String {
    count.map_or("-".to_owned(), |count| match count {
        0..=99_999 => count.to_string(),
        more => compact(Some(more as f64)),
    })
}

/// A figure in at most five letters.
fn compact(figure: Option<f64>) -> String {
    let Some(figure) = figure else { return "-".to_owned() };
    match figure {
        f if f < 9.95 && f > 0.0 => format!("{f:.1}"),
        f if f < 9_999.5 => format!("{f:.0}"),
        f if f < 99_950.0 => format!("{:.1}K", f / 1e3),
        f if f < 999_500.0 => format!("{:.0}K", f / 1e3),
        f if f < 99_950_000.0 => format!("{:.1}M", f / 1e6),
        f if f < 999_500_000.0 => format!("{:.0}M", f / 1e6),
        f => format!("{:.0}G", f / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_run::host::{PressureShares, ThrottleEvidence};
    use iostrata_run::{FileIo, StallCause, TransactionStall};
    use iostrata_watch::Watched;

    #[test]
    fn figures_are_short() {
        for (figure, text) in [
            (0.0, "0"),
            (0.04, "0.0"),
            (3.16, "3.2"),
            (612.4, "612"),
            (12_345.0, "12.3K"),
            (250_000.0, "250K"),
            (3_400_000.0, "3.4M"),
            (7e9, "7G"),
        ] {
            assert_eq!(compact(Some(figure)), text);
        }
        assert_eq!((compact(None), whole(None)), ("-".to_owned(), "-".to_owned()));
    }

    #[test]
    fn a_line_is_as_wide_as_its_header_and_ends_with_the_stall() {
        let more = MORE.iter().flat_map(|(_, columns)| *columns).chain(FILE_COLUMNS).collect();
        let layout = LineLayout { names: vec!["a".to_owned()], more };
        let sample = WatchSample {
            t_s: 12.0,
            tps: Some(3.0),
            stalled: true,
            stall_cause: Some(StallCause::RedoFull),
            stall_evidence: Some("the age was at 99 % of its limit".to_owned()),
            ..WatchSample::default()
        };
        let stall = Some(TransactionStall { length_s: 4.2, ..TransactionStall::default() });
        let line = layout.line(&Arrived {
            target: 0,
            watched: Watched { sample, stall },
            is_first: false,
        });
        let (figures, said) = line.split_once("  STALL ").unwrap();
        assert_eq!(figures.len(), layout.header().trim_end_matches('\n').len());
        assert_eq!(said, "4 s, redo full: the age was at 99 % of its limit\n");
    }

    #[test]
    fn every_figure_of_the_device_has_a_column() {
        let device = WatchDevice {
            name: "sda".to_owned(),
            reads_per_s: 11.0,
            writes_per_s: 12.0,
            flushes_per_s: Some(13.0),
            read_ms: Some(14.0),
            write_ms: Some(15.0),
            in_flight: 16.0,
        };
        let sample = WatchSample {
            device: Some(device),
            cpu_stolen_pct: Some(17.0),
            ..WatchSample::default()
        };
        let shown = DEVICE_COLUMNS.iter().map(|column| (column.name, (column.of)(&sample)));
        let expected = [
            ("r/s", "11"),
            ("w/s", "12"),
            ("fl/s", "13"),
            ("r ms", "14"),
            ("w ms", "15"),
            ("qd", "16"),
            ("stl%", "17"),
        ];
        assert!(shown.eq(expected.map(|(name, figure)| (name, figure.to_owned()))));
    }
    #[test]
    fn what_a_target_does_not_tell_is_named_before_a_colon() {
        let missing = ["device, throttle: elsewhere", "pressure of its own: not found"];
        let target =
            WatchTarget { missing: missing.map(str::to_owned).into(), ..WatchTarget::default() };
        let told = MORE.map(|(what, _)| lacks(&target, what));
        assert_eq!(told, [true, false, true, false]);
    }

    #[test]
    fn what_the_host_and_the_files_do_has_columns() {
        let pressure: PressureShares = serde_json::from_str(
            r#"{"io": {"some_pct": 21, "full_pct": 12, "some_us": 0},
                "cpu": {"some_pct": 13, "some_us": 0}}"#,
        )
        .unwrap();
        let throttle = ThrottleEvidence {
            io_limit_used_pct: Some(98.0),
            cpu_throttled_us: Some(45_000),
            ..ThrottleEvidence::default()
        };
        let files: FileIo = serde_json::from_str(
            r#"{"source": "performance_schema",
                "classes": [{"class": "redo", "write_bytes_per_s": 15728640}]}"#,
        )
        .unwrap();
        let sample = WatchSample {
            pressure: Some(pressure),
            throttle: Some(throttle),
            files: Some(files),
            ..WatchSample::default()
        };
        let all = [PRESSURE_COLUMNS, THROTTLE_COLUMNS, FILE_COLUMNS, MORE_FILE_COLUMNS].concat();
        let shown: Vec<String> =
            all.iter().map(|one| format!("{} {}", one.name, (one.of)(&sample))).collect();
        let expected = ["io% 21", "ioF% 12", "cpu% 13", "mem% -", "lim% 98", "held 45"];
        let files = ["datM -", "logM 15", "dblM -", "tmpM -", "binM -", "othM -"];
        assert_eq!(shown, [&expected[..], &files[..]].concat());
    }
}
