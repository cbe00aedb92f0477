//! Whether a server that is tuned writes more than it did, for nothing.
//!
//! Method: pages per transaction are taken over whole rounds of the redo, as pages that became
//! dirty: what is written of them comes in bursts, a round later. The first round after a server
//! was taken over is that of the change, and counts for nothing. Invariant: only the same load is
//! compared; where it was not seen before, nothing is.

use crate::tune::monitor::{Vitals, WorkDone};
use crate::tune::need::Rest;

/// A span is a round of the redo, and so many seconds at least.
const SPAN_S: f64 = 60.0;
/// Ratio of the pages that may be written to the pages before.
const MORE: f64 = 1.1;
/// A load is the same while it makes redo at a rate within this factor, and transactions of a size
/// within that one.
const SAME_RATE: f64 = 1.5;
const SAME_SIZE: f64 = 1.25;
/// One that was given back for it is taken over again at so many times the rate.
const ANOTHER_LOAD: f64 = 2.0;

/// What was done in some time.
#[derive(Clone, Copy, Debug, Default)]
struct GainSpan {
    seconds: f64,
    done: WorkDone,
    has_stalled: bool,
}

impl GainSpan {
    fn redo_bytes_per_s(&self) -> f64 {
        self.done.redo_bytes / self.seconds
    }

    fn pages_per_txn(&self) -> Option<f64> {
        let WorkDone { transactions, pages, .. } = self.done;
        Some(pages? / transactions.filter(|count| *count > 0.0)?)
    }

    fn bytes_per_txn(&self) -> Option<f64> {
        Some(self.done.redo_bytes / self.done.transactions.filter(|count| *count > 0.0)?)
    }

    fn is_like(&self, other: &Self) -> bool {
        let within =
            |one: f64, other: f64, factor: f64| (1.0 / factor..=factor).contains(&(one / other));
        let sizes = self.bytes_per_txn().zip(other.bytes_per_txn());
        within(self.redo_bytes_per_s(), other.redo_bytes_per_s(), SAME_RATE)
            && sizes.is_some_and(|(one, other)| within(one, other, SAME_SIZE))
    }
}

/// Compares a server with itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gain {
    was_active: bool,
    running: GainSpan,
    /// The last whole span in which it had its own settings.
    before: Option<GainSpan>,
    /// Whether the round of the change is over.
    is_settled: bool,
    /// The rate at which it was given back, and why.
    refused: Option<(f64, Rest)>,
}

impl Gain {
    /// Takes in the present state.
    pub fn take(&mut self, now: &Vitals, is_active: bool, is_stalled: bool) {
        if is_active != self.was_active {
            let has_stalled = self.running.has_stalled;
            self.before.iter_mut().for_each(|before| before.has_stalled |= has_stalled);
            (self.was_active, self.is_settled, self.running) =
                (is_active, false, GainSpan::default());
        }
        let is_another = |(rate, _): &(f64, Rest)| now.redo_bytes_per_s > ANOTHER_LOAD * rate;
        self.refused = self.refused.take().filter(|one| !is_stalled && !is_another(one));
        self.running.seconds += now.dt_s;
        self.running.done.add(&now.done);
        self.running.has_stalled |= is_stalled;
        if self.running.done.redo_bytes < now.limit_bytes || self.running.seconds < SPAN_S {
            return;
        }
        let span = std::mem::take(&mut self.running);
        match (is_active, self.is_settled) {
            (false, _) => self.before = Some(span),
            (true, false) => self.is_settled = true,
            (true, true) => self.compare(&span),
        }
    }

    fn compare(&mut self, span: &GainSpan) {
        let calm = self.before.filter(|before| !before.has_stalled && before.is_like(span));
        let Some(before) = calm else { return };
        if let Some((before, tuned)) = before.pages_per_txn().zip(span.pages_per_txn())
            && tuned > MORE * before
        {
            self.refused = Some((span.redo_bytes_per_s(), Rest::MorePages { before, tuned }));
        }
    }

    /// Why it is left alone.
    pub fn rest(&self) -> Option<Rest> {
        self.refused.as_ref().map(|(_, why)| why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of 100 transactions of 10 KB that dirty so many pages each.
    fn second(pages: f64) -> Vitals {
        let (redo_bytes, transactions) = (1e6, Some(100.0));
        Vitals {
            limit_bytes: 20e6,
            redo_bytes_per_s: 1e6,
            dt_s: 1.0,
            done: WorkDone { redo_bytes, transactions, pages: Some(100.0 * pages) },
            ..Vitals::default()
        }
    }

    /// After two minutes before and three tuned.
    fn after(before: f64, tuned: &Vitals, stalls: bool) -> Option<Rest> {
        let mut gain = Gain::default();
        (0..120).for_each(|at| gain.take(&second(before), false, stalls && at == 30));
        (0..180).for_each(|_| gain.take(tuned, true, false));
        gain.rest()
    }

    #[test]
    fn a_tenth_more_is_too_much_where_nothing_stalled() {
        let more = Rest::MorePages { before: 2.0, tuned: 2.5 };
        assert_eq!(after(2.0, &second(2.15), false), None);
        assert_eq!(after(2.0, &second(2.5), false), Some(more));
        // The last whole minute before counts, and what began after it.
        let mut gain = Gain::default();
        (0..130).for_each(|at| gain.take(&second(2.0), false, at > 122));
        (0..180).for_each(|_| gain.take(&second(2.5), true, false));
        assert_eq!(gain.rest(), None, "it had stalled");
        assert_eq!(Gain::default().rest(), None);
    }

    #[test]
    fn only_the_same_load_is_compared() {
        let twice =
            Vitals { done: WorkDone { redo_bytes: 2e6, ..second(2.5).done }, ..second(2.5) };
        assert_eq!(after(2.0, &twice, false), None, "transactions are larger");
        let mut unseen = Gain::default();
        (0..300).for_each(|_| unseen.take(&second(9.0), true, false));
        assert_eq!(unseen.rest(), None, "it was not seen before");
    }

    #[test]
    fn it_is_taken_over_again_when_it_stalls_or_the_load_is_another() {
        for (now, stalls, expected) in [
            (second(2.0), false, true),
            (second(2.0), true, false),
            (Vitals { redo_bytes_per_s: 3e6, ..second(2.0) }, false, false),
        ] {
            let mut gain = Gain::default();
            (0..120).for_each(|_| gain.take(&second(2.0), false, false));
            (0..180).for_each(|_| gain.take(&second(2.5), true, false));
            gain.take(&now, false, stalls);
            assert_eq!(gain.rest().is_some(), expected);
        }
    }
}
