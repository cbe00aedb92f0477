//! A second database under load on the volume of the measured one.
//!
//! Invariant: its load runs from before the warm-up of the measured one to after its window, and
//! what is told of it is of that window. It knows no database.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use iostrata_change::Platform;
use iostrata_load::{Load, LoadError, Surroundings, TransactionLoad, WindowObserver};
use iostrata_plan::TransactionSpec;
use iostrata_plan::study::pacing::WARM_UP_WINDOWS_MAX;
use iostrata_run::{SecondDatabase, Series, StreamFigures};

use super::database::StudiedDatabase;
use crate::use_watch::UseWatch;
use crate::{StudyError, Watcher};

/// Its load is prepared for so many windows beyond the longest warm-up, and so much time to open
/// and close them: it is ended, and never ends by itself.
const WINDOWS_BEYOND: f64 = 2.0;
const BEYOND: Duration = Duration::from_secs(60);

/// A second database that is open.
pub(super) struct Second<W: Platform> {
    pub database: Box<dyn StudiedDatabase<W>>,
    pub load: TransactionSpec,
}

impl<W: Platform> Second<W> {
    /// Keeps it under load while the other is measured for a window. `measure` gets who has to hear
    /// of that window.
    ///
    /// # Errors
    /// What `measure` gives; what went wrong with the second.
    pub fn beside<T>(
        &self,
        window: Duration,
        measure: impl FnOnce(&mut dyn Watcher) -> Result<T, StudyError>,
    ) -> Result<(T, SecondDatabase), StudyError> {
        let target = self.database.target()?;
        let used = || target.used().unwrap_or_default();
        let mut watch = SecondWatch { used: UseWatch::new(&used), opened: None, closed: None };
        let (measured, begun, streams) = self.under_load(window, || measure(&mut watch))?;
        let tps = streams
            .first()
            .zip(watch.window(begun))
            .map_or(0.0, |(stream, (from_s, to_s))| rate_between(&stream.series, from_s, to_s));
        Ok((measured, SecondDatabase { tps, used: watch.used.used() }))
    }

    /// Runs the load on a thread of its own as long as `during` takes. Gives when it began, too.
    fn under_load<T>(
        &self,
        window: Duration,
        during: impl FnOnce() -> Result<T, StudyError>,
    ) -> Result<(T, Option<Instant>, Vec<StreamFigures>), StudyError> {
        let of_second = |error: StudyError| StudyError::Second(Box::new(error));
        let source = self.database.source(&self.load).map_err(of_second)?;
        let runtime = window.mul_f64(WARM_UP_WINDOWS_MAX + WINDOWS_BEYOND) + BEYOND;
        let load = TransactionSpec { runtime: Some(runtime), ..self.load.clone() };
        let (over, begun) = (AtomicBool::new(false), OnceLock::new());
        let run = || {
            let surroundings = Surroundings { interrupted: &over, program: None };
            TransactionLoad::new(&*source, &load, true).run(&surroundings, &mut Begin(&begun))
        };
        let (measured, ran) = std::thread::scope(|scope| {
            let ends = EndsLoad(&over);
            let started = Builder::new().name("second".to_owned()).spawn_scoped(scope, run);
            let running = started
                .map_err(|source| LoadError::Spawn { worker: 0, workers: 1, source })
                .map_err(|error| of_second(error.into()))?;
            let measured = during()?;
            drop(ends);
            let ran = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, StudyError>((measured, ran))
        })?;
        let figures = ran.map_err(|error| of_second(error.into()))?;
        match figures.failure {
            Some(failure) => Err(of_second(failure.into())),
            None => Ok((measured, begun.get().copied(), figures.streams)),
        }
    }
}

/// Ends the load however the measurement ends: the thread is waited for.
struct EndsLoad<'a>(&'a AtomicBool);

impl Drop for EndsLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Keeps when the load of the second began.
struct Begin<'a>(&'a OnceLock<Instant>);

impl WindowObserver for Begin<'_> {
    fn opened(&mut self) {
        self.0.get_or_init(Instant::now);
    }

    fn open(&mut self, _elapsed_s: f64) {}

    fn closed(&mut self) {}
}

/// Looks at the second when the window of the first opens and closes.
struct SecondWatch<'a> {
    used: UseWatch<'a>,
    opened: Option<Instant>,
    closed: Option<Instant>,
}

impl SecondWatch<'_> {
    /// The window in seconds since the load of the second began.
    fn window(&self, begun: Option<Instant>) -> Option<(f64, f64)> {
        let since_s =
            |at: Option<Instant>| Some(at?.saturating_duration_since(begun?).as_secs_f64());
        Some((since_s(self.opened)?, since_s(self.closed)?))
    }
}

impl Watcher for SecondWatch<'_> {
    fn opened(&mut self) {
        self.opened = Some(Instant::now());
        self.used.opened();
    }

    fn closed(&mut self) {
        self.closed = Some(Instant::now());
        self.used.closed();
    }
}

/// The mean rate of the slices that begin in a stretch of a series; 0 where none does.
fn rate_between(series: &Series, from_s: f64, to_s: f64) -> f64 {
    let begins = |(slice, _): &(usize, f64)| {
        let at_s = *slice as f64 * series.width_s;
        (from_s..to_s).contains(&at_s)
    };
    let within: Vec<f64> =
        series.totals().into_iter().enumerate().filter(begins).map(|(_, count)| count).collect();
    let length_s = within.len() as f64 * series.width_s;
    if length_s > 0.0 { within.iter().sum::<f64>() / length_s } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::OpKind;

    #[test]
    fn only_what_lies_in_the_window_counts() {
        let counts = [(OpKind::Transaction, vec![9, 10, 20, 30, 9])].into_iter().collect();
        let series = Series { width_s: 0.5, counts, latency_mean_us: Vec::new() };
        assert_eq!(rate_between(&series, 0.5, 2.0), 40.0, "60 in 1.5 s");
        assert_eq!(rate_between(&series, 0.6, 1.4), 40.0, "20 in the only slice that begins then");
        assert_eq!(rate_between(&series, 9.0, 10.0), 0.0);
    }
}
