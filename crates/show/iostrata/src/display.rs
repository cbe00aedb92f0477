//! Progress and notes on stderr, results on stdout.
//!
//! Invariant: with `--quiet` stderr stays empty but for errors; with `--json` stdout holds one
//! document and nothing else. Where stderr is no terminal, progress is left out.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use iostrata_io::Progress;
use iostrata_server::printable;

use crate::exit_error::ExitError;

/// What a command shows while it works. The bar begins with the first progress: a command that
/// shows something else has none.
pub struct Display {
    quiet: bool,
    progress: bool,
    bar: OnceLock<ProgressBar>,
}

impl Display {
    /// A display; `quiet` shows nothing.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, progress: !quiet, bar: OnceLock::new() }
    }

    /// The same that shows no progress.
    pub fn without_progress(self) -> Self {
        Self { progress: false, ..self }
    }

    /// A line for the user that is no result.
    pub fn note(&self, text: &str) {
        if self.quiet {
            return;
        }
        let text = printable(text);
        match self.bar.get() {
            // It draws the bar again.
            Some(bar) => bar.suspend(|| anstream::eprintln!("{text}")),
            None => anstream::eprintln!("{text}"),
        }
    }

    /// How far it has come: a share from 0 to 1 and what is being done.
    pub fn progress(&self, share: f64, text: &str) {
        let bar = self.bar.get_or_init(|| bar(self.progress));
        bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
        bar.set_message(text.to_owned());
    }

    /// How far filling files has come.
    pub fn filling(&self, progress: Progress, what: &str) {
        let share = progress.done_bytes as f64 / progress.total_bytes.max(1) as f64;
        let total = iostrata_stats::units::bytes(progress.total_bytes as f64);
        self.progress(share, &format!("filling {total} {what}"));
    }

    /// Takes the progress display away.
    pub fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn bar(progress: bool) -> ProgressBar {
    if !progress || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(1000);
    if let Ok(style) = ProgressStyle::with_template("{bar:28} {percent:>3} %  {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Prints a JSON document on stdout.
///
/// # Errors
/// When stdout cannot be written. A reader that went away is no error.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), ExitError> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| ExitError::Bug(format!("the document cannot be written: {error}")))?;
    print_text(&format!("{text}\n"))
}

/// Prints a text on stdout.
///
/// # Errors
/// As [`print_json`].
pub fn print_text(text: &str) -> Result<(), ExitError> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(ExitError::NotHere(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Columns to fill: the terminal's as set by the shell, else 100.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    columns.unwrap_or(100).clamp(60, 140)
}

/// Whether stdout takes colour.
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
