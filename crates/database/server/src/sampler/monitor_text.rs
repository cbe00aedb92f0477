//! The text of `SHOW ENGINE INNODB STATUS`, as far as nothing else reports it.
//!
//! Invariant: lines are found by what they begin with, wherever they stand; what a version does not
//! print is absent, and a line without its number does not count.

/// The figures of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MonitorText {
    /// End of the redo.
    pub(crate) lsn: Option<u64>,
    /// End of the redo that is durable.
    pub(crate) flushed_lsn: Option<u64>,
    /// Where recovery would begin.
    pub(crate) checkpoint_lsn: Option<u64>,
    /// Percona Server: the max checkpoint age.
    pub(crate) age_max: Option<u64>,
    /// Percona Server: the age from which pages are flushed as fast as possible.
    pub(crate) age_target: Option<u64>,
    /// Commits whose old row versions are not purged yet.
    pub(crate) history: Option<u64>,
    /// The next transaction id.
    pub(crate) transaction_id: Option<u64>,
}

impl MonitorText {
    /// Reads a text.
    pub(crate) fn parse(text: &str) -> Self {
        let of = |label: &str| text.lines().find_map(|line| number(line.strip_prefix(label)?));
        Self {
            lsn: of("Log sequence number"),
            flushed_lsn: of("Log flushed up to"),
            checkpoint_lsn: of("Last checkpoint at"),
            age_max: of("Max checkpoint age"),
            age_target: of("Checkpoint age target"),
            history: of("History list length"),
            transaction_id: of("Trx id counter"),
        }
    }

    /// Redo that recovery would read.
    pub(crate) fn age(&self) -> Option<u64> {
        Some(self.lsn?.saturating_sub(self.checkpoint_lsn?))
    }
}

/// The number that is all of the rest of a line.
fn number(rest: &str) -> Option<u64> {
    rest.trim().trim_start_matches([':', '=']).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_found_by_their_labels() {
        let old = "Trx id counter 36763\nPurge done for trx's n:o < 28511 undo n:o < 0\n\
                   History list length 3553\n---\nLOG\n---\nLog sequence number 59013201\n\
                   Log flushed up to   59010603\nPages flushed up to 22841368\n\
                   Last checkpoint at  20035667\n0 pending log writes, 0 pending chkp writes\n";
        let found = MonitorText::parse(old);
        assert_eq!((found.lsn, found.flushed_lsn), (Some(59_013_201), Some(59_010_603)));
        assert_eq!((found.checkpoint_lsn, found.history), (Some(20_035_667), Some(3_553)));
        assert_eq!(found.transaction_id, Some(36_763));
        assert_eq!((found.age_max, found.age_target), (None, None));
        let percona = "Log sequence number 100\nMax checkpoint age    80826164\n\
                       Checkpoint age target 78300347\nModified age          0\n";
        let found = MonitorText::parse(percona);
        assert_eq!((found.age_max, found.age_target), (Some(80_826_164), Some(78_300_347)));
    }

    #[test]
    fn what_is_no_number_is_absent() {
        // Two halves of a number, as servers before 5.5 print it.
        let text = "Log sequence number 0 44233\nLast checkpoint at\nHistory list length many\n";
        assert_eq!(MonitorText::parse(text), MonitorText::default());
        assert_eq!(MonitorText::parse(""), MonitorText::default());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,300}") {
            MonitorText::parse(&text);
            MonitorText::parse(&format!("Log sequence number{text}"));
        }
    }
}
