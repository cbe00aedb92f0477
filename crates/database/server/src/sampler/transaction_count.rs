//! Transactions that a server has ended, from counters that each tell a part of them.
//!
//! `Com_commit` and `Com_rollback` count what clients end by a statement. Where clients let every
//! statement be a transaction, and on replicas, these stand still and `Handler_commit` moves; it
//! counts every statement of a transaction too, so that it is taken only there, and the sampler's
//! own statements, which are taken off. Invariant: pure; the count never goes back.

/// How much of what was counted before still speaks at the next sample.
const MEMORY: f64 = 0.95;
/// So many statements are in no usual transaction: beyond it, statements are transactions.
const STATEMENTS_MAX: f64 = 500.0;

/// Counts transactions from one sample to the next.
#[derive(Debug, Default)]
pub(crate) struct TransactionCount {
    last: Option<(u64, Option<u64>)>,
    total: u64,
    /// What both counters counted lately.
    by_statement: f64,
    by_handler: f64,
}

impl TransactionCount {
    /// The transactions so far: what was ended by a statement, what the handler committed, and how
    /// many of these were the sampler's own since the sample before.
    pub(crate) fn count(
        &mut self,
        ended: Option<u64>,
        handler: Option<u64>,
        own: u64,
    ) -> Option<u64> {
        let ended = ended?;
        let Some((last_ended, last_handler)) = self.last.replace((ended, handler)) else {
            self.total = ended;
            return Some(self.total);
        };
        // Counters that went back are of another start.
        let more = ended.saturating_sub(last_ended);
        let handled = handler.zip(last_handler).map_or(0, |(now, last)| now.saturating_sub(last));
        let handled = handled.saturating_sub(own);
        self.by_statement = self.by_statement * MEMORY + more as f64;
        self.by_handler = self.by_handler * MEMORY + handled as f64;
        // That nothing was ended since the sample before says nothing: in a stall nothing is.
        let is_handler = self.by_statement * STATEMENTS_MAX < self.by_handler;
        self.total += if is_handler { handled } else { more };
        Some(self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(all: &[(u64, u64)]) -> Vec<u64> {
        let (mut count, mut last, mut out) = (TransactionCount::default(), None, Vec::new());
        let (mut ended, mut handler) = (1_000, 9_000);
        for (more, handled) in [(0, 0)].iter().chain(all) {
            (ended, handler) = (ended + more, handler + handled);
            let now = count.count(Some(ended), Some(handler), 2).unwrap();
            out.extend(last.replace(now).map(|last| now - last));
        }
        out
    }

    #[test]
    fn statements_within_a_transaction_are_none() {
        assert_eq!(rates(&[(400, 8_402), (410, 8_500), (3, 70)]), [400, 410, 3]);
        // In a stall statements still end, and no transaction does.
        assert_eq!(rates(&[(400, 8_402), (0, 98), (0, 2), (380, 8_002)]), [400, 0, 0, 380]);
    }

    #[test]
    fn where_every_statement_commits_the_handler_tells() {
        assert_eq!(rates(&[(0, 502), (0, 602), (0, 2)]), [500, 600, 0]);
        // A few transactions beside do not hide them.
        assert_eq!(rates(&[(0, 2_002), (1, 2_002), (2, 2_002)]), [2_000, 2_000, 2_000]);
    }

    #[test]
    fn a_restart_does_not_go_back() {
        let mut count = TransactionCount::default();
        assert_eq!(count.count(Some(500), Some(900), 0), Some(500));
        assert_eq!(count.count(Some(3), Some(9), 0), Some(500));
        assert_eq!(count.count(Some(13), Some(40), 0), Some(510));
        assert_eq!(count.count(None, Some(50), 0), None);
        let mut without = TransactionCount::default();
        without.count(Some(5), None, 0);
        assert_eq!(without.count(Some(9), None, 0), Some(9));
    }
}
