//! A line per second while transactions run, as sysbench prints it.

use iostrata_load::LiveFigures;
use iostrata_study::Watcher;

use crate::display::Display;

/// Prints them on stderr.
pub struct LiveLines<'a> {
    display: &'a Display,
    threads: u32,
    /// Seconds between lines; 0 for none.
    interval_s: u32,
    percentile: f64,
    last_s: f64,
}

impl<'a> LiveLines<'a> {
    /// Lines of a level.
    pub fn new(display: &'a Display, threads: u32, (interval_s, percentile): (u32, f64)) -> Self {
        Self { display, threads, interval_s, percentile, last_s: 0.0 }
    }
}

impl Watcher for LiveLines<'_> {
    fn opened(&mut self) {}

    fn closed(&mut self) {}

    fn live(&mut self, figures: &LiveFigures) {
        // The moments of looks are a little late.
        let is_due = figures.at_s - self.last_s >= f64::from(self.interval_s) - 0.5;
        if self.interval_s == 0 || !is_due {
            return;
        }
        self.last_s = figures.at_s;
        let latency =
            figures.percentile_us.map_or("n/a".to_owned(), |us| format!("{:.2}", us / 1e3));
        let warm_up = if figures.is_warm_up { " (warm-up)" } else { "" };
        self.display.note(&format!(
            "[ {:.0}s ] thds: {} tps: {:.2} lat (ms,{}%): {latency} err/s: {:.2}{warm_up}",
            figures.at_s, self.threads, figures.tps, self.percentile, figures.errors_per_s
        ));
    }
}
