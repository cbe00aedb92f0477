//! When file I/O is queried, and by which statement.
//!
//! A server adds up the counters of all its open files to report those of one instrument, so that
//! many tables make it slow. Invariant: it takes at most 0.4 % of the time, except for the first
//! answers, which are needed for any rate. Which instruments are on is checked again after a while.

use std::time::{Duration, Instant};

use super::file_event::{COLUMNS, FileEvent, INSTRUMENTS};
use super::turn::Turn;
use crate::connect::TextRows;

/// So many times as long as the statement took passes until it is sent again.
const REST: u32 = 250;
/// Statements that are sent as soon as they are wanted.
const AT_ONCE: u32 = 3;
/// Statements until instruments are checked again.
const INSTRUMENTS_AGAIN: u32 = 30;

/// What is sent next, and what was found.
#[derive(Debug)]
pub(crate) struct FileRound {
    /// Instruments that are on, and whether they are timed.
    instruments: Vec<(String, bool)>,
    look_in: u32,
    turn: Turn,
}

impl Default for FileRound {
    fn default() -> Self {
        Self { instruments: Vec::new(), look_in: 0, turn: Turn::new(REST, AT_ONCE) }
    }
}

impl FileRound {
    /// Whether it is time.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.turn.is_due(now)
    }

    /// The statement that reads instruments, where that is due.
    pub(crate) fn instruments_sql(&self) -> Option<String> {
        (self.look_in == 0).then(|| {
            format!(
                "SELECT NAME, TIMED = 'YES' FROM performance_schema.setup_instruments WHERE NAME \
                 LIKE '{INSTRUMENTS}%' AND ENABLED = 'YES' AND EXISTS (SELECT 1 FROM \
                 performance_schema.setup_consumers WHERE NAME = 'global_instrumentation' AND \
                 ENABLED = 'YES')"
            )
        })
    }

    /// Its answer.
    pub(crate) fn take_instruments(&mut self, rows: TextRows) {
        let instrument = |row: Vec<Option<String>>| {
            let mut row = row.into_iter();
            Some((row.next()??, row.next()?.as_deref() == Some("1")))
        };
        self.instruments = rows.into_iter().filter_map(instrument).collect();
        self.look_in = INSTRUMENTS_AGAIN;
    }

    /// The statement that reads their counters; none where all are off.
    pub(crate) fn events_sql(&self) -> Option<String> {
        let names: Vec<String> =
            self.instruments.iter().map(|(name, _)| format!("'{name}'")).collect();
        (!names.is_empty()).then(|| {
            format!(
                "SELECT EVENT_NAME, {COLUMNS} FROM performance_schema.file_summary_by_event_name \
                 WHERE EVENT_NAME IN ({}) AND COUNT_STAR > 0",
                names.join(", ")
            )
        })
    }

    /// Its answer, and how long all of it took.
    pub(crate) fn take_events(
        &mut self,
        rows: TextRows,
        now: Instant,
        took: Duration,
    ) -> Vec<FileEvent> {
        self.look_in = self.look_in.saturating_sub(1);
        self.turn.answered(now, took);
        let event = |row: Vec<Option<String>>| {
            let mut row = row.into_iter();
            let name = row.next()??;
            let numbers: Vec<Option<u64>> = row.map(|cell| cell?.parse().ok()).collect();
            let is_timed = self.instruments.iter().any(|(one, timed)| *one == name && *timed);
            Some(FileEvent::of(name, is_timed, &numbers))
        };
        rows.into_iter().filter_map(event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<Option<String>> {
        cells.iter().map(|cell| Some((*cell).to_owned())).collect()
    }

    #[test]
    fn what_is_on_is_asked_for_and_a_slow_answer_is_asked_for_seldom() {
        let (mut round, now) = (FileRound::default(), Instant::now());
        assert!(round.is_due(now) && round.instruments_sql().is_some());
        round.take_instruments(vec![
            row(&["wait/io/file/innodb/innodb_log_file", "1"]),
            row(&["wait/io/file/sql/binlog", "0"]),
        ]);
        assert!(round.instruments_sql().is_none());
        let sql = round.events_sql().unwrap();
        assert!(sql.contains("IN ('wait/io/file/innodb/innodb_log_file', 'wait/io/file/sql/bin"));
        let numbers = ["1", "2", "3000", "4", "5", "6000", "7", "8000"];
        let rows = ["wait/io/file/innodb/innodb_log_file", "wait/io/file/sql/binlog"]
            .map(|name| [&row(&[name])[..], &row(&numbers)[..]].concat());
        let found = round.take_events(rows.to_vec(), now, Duration::from_millis(10));
        let times = [found[0].counts.write_ns, found[1].counts.write_ns];
        assert_eq!(times, [Some(6), None]);
        assert_eq!(found[1].counts.written_bytes, Some(5));
        // Two more for the first rates, whatever they take.
        for _ in 1..AT_ONCE {
            assert!(round.is_due(now));
            round.take_events(Vec::new(), now, Duration::from_millis(10));
        }
        let later = |ms| now + Duration::from_millis(ms);
        assert!(!round.is_due(later(2_499)) && round.is_due(later(2_500)));
        for _ in AT_ONCE..INSTRUMENTS_AGAIN {
            round.take_events(Vec::new(), now, Duration::ZERO);
        }
        assert!(round.instruments_sql().is_some(), "a user may have switched one");
    }

    #[test]
    fn nothing_is_asked_for_where_all_is_off() {
        let mut round = FileRound::default();
        round.take_instruments(Vec::new());
        assert_eq!(round.events_sql(), None);
    }
}
