//! Everything that was watched of one target, as the document that is kept.

use iostrata_run::{TransactionStall, WatchDocument, WatchSample, WatchTarget};

use crate::watch::Watched;

/// Collects what was watched.
#[derive(Clone, Debug, Default)]
pub struct WatchRecord {
    samples: Vec<WatchSample>,
    stalls: Vec<TransactionStall>,
    transactions: Sum,
    pages: Sum,
}

/// What happened in the time in which it was told.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: f64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, per_s: Option<f64>, seconds: f64) {
        if let Some(per_s) = per_s {
            self.count += per_s * seconds;
            self.seconds += seconds;
        }
    }
}

impl WatchRecord {
    /// Adds what a sample came to.
    pub fn add(&mut self, watched: &Watched) {
        let sample = &watched.sample;
        let seconds = self.samples.last().map_or(0.0, |last| sample.t_s - last.t_s);
        self.transactions.add(sample.tps, seconds);
        self.pages.add(sample.flushed_pages_per_s, seconds);
        if let Some(stall) = &watched.stall {
            // One that goes on replaces what was known of it.
            match self.stalls.last_mut().filter(|last| last.t_s == stall.t_s) {
                Some(last) => *last = stall.clone(),
                None => self.stalls.push(stall.clone()),
            }
        }
        self.samples.push(sample.clone());
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The document of it.
    pub fn document(&self, target: WatchTarget) -> WatchDocument {
        let (transactions, pages) = (self.transactions, self.pages);
        let has_time = transactions.seconds > 0.0;
        let per_txn = transactions.count > 0.0 && pages.seconds > 0.0;
        WatchDocument {
            target,
            duration_s: self.samples.last().map_or(0.0, |last| last.t_s),
            samples: self.samples.clone(),
            stalls: self.stalls.clone(),
            tps: has_time.then(|| transactions.count / transactions.seconds),
            pages_written_per_txn: per_txn.then(|| pages.count / transactions.count),
            ..WatchDocument::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use iostrata_run::StallCause;

    use super::*;

    fn watched(t_s: f64, tps: Option<f64>, stall: Option<(f64, f64)>) -> Watched {
        let flushed_pages_per_s = tps.map(|tps| 2.0 * tps);
        let sample = WatchSample { t_s, tps, flushed_pages_per_s, ..WatchSample::default() };
        let stall = stall.map(|(t_s, length_s)| {
            let (cause, evidence) = (StallCause::RedoFull, "full".to_owned());
            TransactionStall { t_s, length_s, min_tps: 0.0, cause, evidence }
        });
        Watched { sample, stall }
    }

    #[test]
    fn rates_are_weighed_by_time_and_a_stall_is_kept_once() {
        let mut record = WatchRecord::default();
        for one in [
            watched(0.0, None, None),
            watched(1.0, Some(100.0), None),
            watched(4.0, Some(20.0), Some((1.0, 3.0))),
            watched(5.0, None, Some((1.0, 4.0))),
            watched(6.0, Some(40.0), Some((5.5, 0.5))),
        ] {
            record.add(&one);
        }
        let document = record.document(WatchTarget::default());
        // 100 in one second, 60 in three, 40 in one; a second without a rate is left out.
        assert_eq!(document.tps, Some(40.0));
        assert_eq!(document.pages_written_per_txn, Some(2.0));
        assert_eq!((document.duration_s, document.samples.len()), (6.0, 5));
        let stalls: Vec<(f64, f64)> =
            document.stalls.iter().map(|one| (one.t_s, one.length_s)).collect();
        assert_eq!(stalls, [(1.0, 4.0), (5.5, 0.5)]);
        assert_eq!(WatchRecord::default().document(WatchTarget::default()).tps, None);
    }
}
