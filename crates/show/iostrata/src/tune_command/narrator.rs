//! What tuning says while it goes on: a line for each change, one every ten seconds.

use iostrata_run::{TunedSetting, WatchDocument};
use iostrata_tune::Vitals;
use iostrata_units::times;

use crate::args::Printing;
use crate::display::{Display, print_text};

/// Prints lines: on stdout, or on stderr beside a document.
pub struct Narrator<'a> {
    display: &'a Display,
    is_document: bool,
    is_quiet: bool,
}

impl<'a> Narrator<'a> {
    /// As the user wants it printed.
    pub fn new(display: &'a Display, printing: &Printing) -> Self {
        Self { display, is_document: printing.json, is_quiet: printing.quiet }
    }

    /// A line.
    pub fn say(&self, text: &str) {
        if self.is_document {
            self.display.note(text);
        } else if !self.is_quiet {
            // Whoever reads it may be gone; the server is led on.
            let _unread = print_text(&format!("{text}\n"));
        }
    }

    /// A change that was made, or would be.
    pub fn changed(&self, one: &TunedSetting, is_dry: bool) {
        let TunedSetting { t_s, name, from, to, why } = one;
        let would = if is_dry { " (not set: --dry-run)" } else { "" };
        self.say(&format!("[ {t_s:.0}s ] {name}: {from} -> {to}{would}; {why}"));
    }

    /// How the server is.
    pub fn status(&self, t_s: f64, now: &Vitals, tps: Option<f64>, is_leading: bool) {
        let tps = tps.map_or_else(String::new, |tps| format!(", {tps:.0} tps"));
        let led = if is_leading { "" } else { "; left alone, as its redo does not run out" };
        self.say(&format!(
            "[ {t_s:.0}s ] checkpoint age {:.0} % of {:.0} MB, redo {:.2} MB/s, {:.0} dirty pages, \
             {:.0} pages/s written{tps}{led}",
            now.age_pct(),
            now.limit_bytes / 1e6,
            now.redo_bytes_per_s / 1e6,
            now.dirty_pages,
            now.written_per_s,
        ));
    }

    /// What came of it.
    pub fn summary(&self, document: &WatchDocument, is_dry: bool) {
        let per_txn = document.pages_written_per_txn.map_or_else(String::new, |pages| {
            format!(", {pages:.2} pages written per transaction")
        });
        let tps = document.tps.map_or_else(String::new, |tps| format!(", {tps:.0} tps"));
        let led = match (is_dry, document.settings.len() as u64) {
            (true, _) => "watched, nothing was set (--dry-run)".to_owned(),
            (false, 0) => "watched, nothing had to be set".to_owned(),
            (false, changes) => format!("led, settings changed {}", times(changes)),
        };
        let stalled = match document.stalls.len() as u64 {
            0 => "it never stalled".to_owned(),
            stalls => format!("it stalled {}", times(stalls)),
        };
        let lasted = document.duration_s;
        self.say(&format!("{lasted:.0} s: {led}{tps}{per_txn}; {stalled}"));
    }
}
