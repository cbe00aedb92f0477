//! Samples on a terminal: on the whole of it, or a line per sample in aligned columns, for pipes
//! too.
//!
//! Invariant: the table of figures defines the columns; a figure that is not reported is a dash.
//! The names of the columns come again every twenty lines.

use std::io::{IsTerminal, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::scope;

use iostrata_run::{FIGURES, Figure, FigureColumn, WatchSample, WatchTarget};
use iostrata_show::screen::{Ending, Look, short_name};

use super::stream::{Next, Stream, TargetUpdate};
use crate::display::{Display, print_text};
use crate::exit_error::ExitError;

/// Lines from one header to the next.
const HEADER_EVERY: usize = 20;
/// Width of a target's name where several are watched.
const NAME_WIDTH: usize = 24;

/// Shows samples as they come.
///
/// # Errors
/// When stdout cannot be written.
pub fn show_lines(
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
        print_text(&layout.below(&arrived))?;
    }
    // What the terminal shows of Ctrl-C stands on the last line.
    if is_terminal { print_text("\n") } else { Ok(()) }
}

/// Shows one sample of each target.
///
/// # Errors
/// When stdout cannot be written.
pub fn once(
    stream: &Stream<'_>,
    samples: &[TargetUpdate],
    display: &Display,
) -> Result<(), ExitError> {
    let layout = LineLayout::begin(stream, display);
    let lines: String = samples.iter().map(|arrived| layout.line(arrived)).collect();
    print_text(&(layout.header() + &lines))
}

/// Which columns there are.
pub(super) struct LineLayout {
    names: Vec<String>,
    columns: Vec<(FigureColumn, &'static Figure)>,
}

/// Whether a target does not report something.
fn lacks(target: &WatchTarget, what: &str) -> bool {
    let mut named = target.missing.iter().filter_map(|one| one.split_once(':'));
    named.any(|(names, _)| names.split(", ").any(|name| name == what))
}

impl LineLayout {
    /// Names the targets and what they do not report.
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
        let column = |figure: &'static Figure| Some((figure.column?, figure));
        let told = FIGURES.iter().filter(|figure| is_told(figure.told_with));
        let names = targets.iter().map(|target| short_name(&target.name, NAME_WIDTH)).collect();
        Self { names, columns: told.filter_map(column).collect() }
    }

    pub(super) fn header(&self) -> String {
        let name =
            if self.names.len() > 1 { format!("{:NAME_WIDTH$} ", "target") } else { String::new() };
        let names = self.columns.iter().map(|(of, _)| format!(" {:>1$}", of.name, of.width));
        format!("{name}{:>6}{}\n", "t", names.collect::<String>())
    }

    /// What went on when a stall began, in lines of their own below the line of the sample.
    fn below(&self, arrived: &TargetUpdate) -> String {
        let sentences = arrived.watched.snapshot.iter().flat_map(|one| one.sentences());
        sentences.map(|text| format!("{:8}{text}\n", "")).collect()
    }

    pub(super) fn line(&self, arrived: &TargetUpdate) -> String {
        let sample = &arrived.watched.sample;
        let name = match self.names.get(arrived.target) {
            Some(name) if self.names.len() > 1 => format!("{name:NAME_WIDTH$} "),
            _ => String::new(),
        };
        let t = format!("{:>6}", format!("{:.1}", sample.t_s).trim_end_matches(".0"));
        if let Some(error) = &sample.error {
            return format!("{name}{t}  no answer: {error}\n");
        }
        let cell = |(column, figure): &(FigureColumn, &Figure)| {
            format!(" {:>1$}", cell(column, figure, sample), column.width)
        };
        let figures = self.columns.iter().map(cell);
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

/// A figure as its column shows it: whole numbers in full where there is room.
fn cell(column: &FigureColumn, figure: &Figure, sample: &WatchSample) -> String {
    match (figure.of)(sample) {
        Some(count) if figure.is_whole() && column.divisor == 1.0 && count < 100_000.0 => {
            format!("{count:.0}")
        }
        value => compact(value.map(|value| value / column.divisor)),
    }
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

/// What a shell gives back for Ctrl-C, which is no signal in a terminal's raw mode.
const INTERRUPTED: u8 = 130;

/// Whether there is a terminal that shows and listens.
pub fn has_screen() -> bool {
    stdout().is_terminal() && stdin().is_terminal()
}

/// Shows every sample until the user quits, a signal comes or the samples end.
///
/// # Errors
/// A terminal that goes away; Ctrl-C.
pub fn show_screen(stream: &mut Stream<'_>) -> Result<(), ExitError> {
    let targets = stream.targets.clone();
    let stop = Arc::clone(stream.stop_flag());
    let is_over = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let ended = scope(|scope| {
        scope.spawn(|| {
            let sender = sender;
            while !is_over.load(Ordering::Relaxed) {
                match stream.next() {
                    Next::Sample(arrived) => {
                        if sender.send((arrived.target, arrived.watched.sample)).is_err() {
                            return;
                        }
                    }
                    Next::Nothing => {}
                    Next::End => return,
                }
            }
        });
        let ended = iostrata_show::screen::run(&targets, &receiver, &stop, Look::of_environment());
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    match ended {
        Ok(Ending::Interrupted) => Err(ExitError::Interrupted(INTERRUPTED)),
        Ok(Ending::Quit | Ending::Stopped | Ending::StreamEnded) => Ok(()),
        Err(error) => Err(ExitError::NotHere(format!("{error}; use --lines"))),
    }
}

#[cfg(test)]
mod tests {
    use iostrata_database::watch::WatchStep;
    use iostrata_run::{StallCause, TransactionStall};

    use super::*;

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
        assert_eq!(compact(None), "-");
        let (column, figure) = *LineLayout::of(&[WatchTarget::default()])
            .columns
            .iter()
            .find(|(column, _)| column.name == "hist")
            .unwrap();
        let of = |length| {
            let sample = WatchSample { history_list_length: Some(length), ..Default::default() };
            cell(&column, figure, &sample)
        };
        assert_eq!([of(3), of(98_765), of(100_000)], ["3", "98765", "100K"]);
    }

    #[test]
    fn a_line_is_as_wide_as_its_header_and_ends_with_the_stall() {
        let layout = LineLayout::of(&[WatchTarget::default()]);
        let sample = WatchSample {
            t_s: 12.0,
            tps: Some(3.0),
            stalled: true,
            stall_cause: Some(StallCause::RedoFull),
            stall_evidence: Some("the age was at 99 % of its limit".to_owned()),
            ..WatchSample::default()
        };
        let stall = Some(TransactionStall { length_s: 4.2, ..TransactionStall::default() });
        let line = layout.line(&TargetUpdate {
            target: 0,
            watched: WatchStep { sample, stall, ..WatchStep::default() },
            is_first: false,
        });
        let (figures, said) = line.split_once("  STALL ").unwrap();
        assert_eq!(figures.len(), layout.header().trim_end_matches('\n').len());
        assert_eq!(said, "4 s, redo full: the age was at 99 % of its limit\n");
    }

    #[test]
    fn what_no_target_tells_has_no_column() {
        let missing = ["device, throttle: elsewhere", "pressure of its own: not found"];
        let target =
            WatchTarget { missing: missing.map(str::to_owned).into(), ..WatchTarget::default() };
        let header = |targets: &[WatchTarget]| LineLayout::of(targets).header();
        let alone = header(std::slice::from_ref(&target));
        assert!(!alone.contains("r/s") && !alone.contains("lim%") && !alone.contains("stl%"));
        assert!(alone.contains("io%") && alone.contains("tmpM") && alone.contains("datM"));
        assert!(header(&[target, WatchTarget::default()]).contains("r/s"), "another tells it");
    }
}
