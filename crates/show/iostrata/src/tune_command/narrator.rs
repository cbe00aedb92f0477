//! What tuning says while it goes on: a line for each change, one every ten seconds.

use iostrata_database::tune::{Rest, Vitals};
use iostrata_run::{TunedFigure, TunedSetting, WatchDocument};
use iostrata_stats::Measured;
use iostrata_stats::units::{count, times};

use crate::args::Printing;
use crate::display::{Display, print_text};
use crate::server_group::lines;

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
            // Whoever reads it may be gone; tuning goes on.
            let _unread = print_text(&format!("{text}\n"));
        }
    }

    /// How a person puts the server back, should this program not do it.
    pub fn by_hand(&self, server: &str, statements: &[String]) {
        self.display.note(&format!(
            "Every setting goes back when tune ends. Should it be killed, iostrata restore \
             --target '{server}' puts them back, or by hand, if the server was not restarted \
             since:{}",
            lines(statements)
        ));
    }

    /// What becomes of the server when this host dies.
    pub fn lease(&self, lease: Result<(&str, u32), &String>) {
        self.display.note(&match lease {
            Ok((event, seconds)) => format!(
                "While it is tuned, the server puts itself back when it has heard nothing of tune \
                 for {seconds} s, by its event {event}."
            ),
            Err(why) => format!(
                "No lease ({why}): should this host die while the server is tuned, its settings \
                 stay until iostrata restore runs here, or a person puts them back."
            ),
        });
    }

    /// What keeps `tune` from setting the server; a dry run goes on.
    pub fn obstacle(&self, why: &str) {
        self.say(&format!("In the way of tuning it: {why}"));
    }

    /// A change that was made, or would be.
    pub fn changed(&self, one: &TunedSetting, is_dry: bool) {
        let TunedSetting { t_s, name, from, to, why } = one;
        let would = if is_dry { " (not set: --dry-run)" } else { "" };
        self.say(&format!("[ {t_s:.0}s ] {name}: {from} -> {to}{would}; {why}"));
    }

    /// How the server is.
    pub fn status(&self, t_s: f64, now: &Vitals, tps: Option<f64>, rest: Option<Rest>) {
        let tps = tps.map_or_else(String::new, |tps| format!(", {tps:.0} tps"));
        let left = rest.map_or_else(String::new, |why| format!("; left alone: {why}"));
        self.say(&format!(
            "[ {t_s:.0}s ] checkpoint age {:.0} % of {:.0} MB, redo {:.2} MB/s, {:.0} dirty pages, \
             {:.0} pages/s written{tps}{left}",
            now.age_pct(),
            now.limit_bytes / 1e6,
            now.redo_bytes_per_s / 1e6,
            now.dirty_pages,
            now.written_per_s,
        ));
    }

    /// What came of it.
    pub fn summary(&self, document: &WatchDocument, changes: u64, is_dry: bool) {
        let per_txn = document.pages_written_per_txn.map_or_else(String::new, |pages| {
            format!(", {pages:.2} pages written per transaction")
        });
        let tps = document.tps.map_or_else(String::new, |tps| format!(", {tps:.0} tps"));
        let tuned = match (is_dry, changes) {
            (true, _) => "watched, nothing was set (--dry-run)".to_owned(),
            (false, 0) => "watched, nothing had to be set".to_owned(),
            (false, changes) => format!("tuned, settings changed {}", times(changes)),
        };
        let stalled = match document.stalls.len() as u64 {
            0 => "it never stalled".to_owned(),
            stalls => format!("it stalled {}", times(stalls)),
        };
        let figures = &document.tuned;
        if figures.iter().any(|one| one.untuned.is_some()) {
            let is_known = |one: &&TunedFigure| one.tuned.is_some() || one.untuned.is_some();
            figures.iter().filter(is_known).for_each(|one| self.say(&beside(one)));
        } else if !figures.is_empty() {
            self.say(
                "What tuning saved is not known: a like load did not run untuned until the redo \
                 had gone round",
            );
        }
        let lasted = document.duration_s;
        self.say(&format!("{lasted:.0} s: {tuned}{tps}{per_txn}; {stalled}"));
    }
}

/// A figure as it was tuned, and as it was with the server's own settings.
fn beside(one: &TunedFigure) -> String {
    let side = |side: &Option<Measured>| match side {
        None => "not known".to_owned(),
        Some(Measured { value, ci95: Some([low, high]), .. }) => {
            format!("{} ({} to {})", count(*value), count(*low), count(*high))
        }
        Some(side) => count(side.value),
    };
    let TunedFigure { title, unit, untuned, tuned, .. } = one;
    format!("{title}, {unit}: {} tuned, {} untuned", side(tuned), side(untuned))
}

#[cfg(test)]
mod tests {
    use iostrata_stats::Verdicts;

    use super::*;

    #[test]
    fn what_is_not_known_is_said_beside_what_is() {
        let tuned = Measured::new(434.4, [431.0, 437.2], 30, Verdicts::none());
        let worst = Measured::without_interval(61.25, 300, Verdicts::none());
        let one = TunedFigure {
            title: "worst two seconds".to_owned(),
            unit: "transactions/s".to_owned(),
            tuned: Some(tuned),
            ..TunedFigure::default()
        };
        let begins = "worst two seconds, transactions/s: 434 (431 to 437) tuned,";
        assert_eq!(beside(&one), format!("{begins} not known untuned"));
        let one = TunedFigure { untuned: Some(worst), ..one };
        assert_eq!(beside(&one), format!("{begins} 61.2 untuned"));
    }
}
