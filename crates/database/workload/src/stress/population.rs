//! The first rows.
//!
//! Invariant: an object and its history come from one stream of the seed, whichever of their tables
//! asks, so that both agree.

use iostrata_database::target::{Rows, Value};
use iostrata_stats::{Random, split_mix};

use crate::stress::schema::{SECTIONS, STATUSES, TableId, ZONES};
use crate::tpcc::draw::letters;

/// Rows that are made at once, about.
const BATCH: usize = 256;
/// Least and most characters of a note.
pub(super) const NOTE: (i64, i64) = (60, 100);
const NAME: i64 = 20;
/// Amounts are below it.
const AMOUNT: u64 = 1_000;

/// The amount of a history row. It follows from what the row is called, so that a transaction knows
/// the amount of the row that it removes.
pub(super) fn amount(object: i64, number: i64) -> i64 {
    let mut state = (object as u64) << 32 ^ number as u64;
    1 + (split_mix(&mut state) % AMOUNT) as i64
}

/// One table's rows, in the order of their keys.
pub(super) struct RowSource {
    table: TableId,
    next: i64,
    last: i64,
    history: i64,
    seed: u64,
    now_s: i64,
    text: Vec<u8>,
}

impl RowSource {
    pub fn new(table: TableId, (objects, history): (i64, i64), seed: u64, now_s: i64) -> Self {
        let last = match table {
            TableId::Zones => ZONES,
            TableId::Sections => SECTIONS,
            TableId::Statuses => STATUSES,
            TableId::Objects | TableId::History => objects,
        };
        Self { table, next: 1, last, history, seed, now_s, text: Vec::new() }
    }

    /// Some rows; none are left when it leaves the buffer empty.
    pub fn fill(&mut self, rows: &mut Rows) {
        rows.clear(match self.table {
            TableId::Zones | TableId::Statuses => 2,
            TableId::Sections => 3,
            TableId::Objects => 7,
            TableId::History => 6,
        });
        while self.next <= self.last && rows.len() < BATCH {
            let id = self.next;
            match self.table {
                TableId::Objects => self.object(id, rows),
                TableId::History => self.history(id, rows),
                small => self.small(small, id, rows),
            }
            self.next += 1;
        }
    }

    /// The stream of an object, and the statuses of its history, from the oldest.
    fn statuses(&self, object: i64) -> (Random, Vec<i64>) {
        let mut random = Random::of_stream(self.seed, 1 << 63 | object as u64);
        let statuses = (0..self.history).map(|_| status(&mut random)).collect();
        (random, statuses)
    }

    fn object(&mut self, id: i64, rows: &mut Rows) {
        let (mut random, statuses) = self.statuses(id);
        let section = 1 + random.below(SECTIONS as u64) as i64;
        let total: i64 = (1..=self.history).map(|number| amount(id, number)).sum();
        let status = statuses.last().copied().unwrap_or(1);
        for number in [id, section, status, self.history, total] {
            rows.push(number.into());
        }
        self.push_letters(&mut random, (NAME, NAME), rows);
        self.push_letters(&mut random, NOTE, rows);
    }

    fn history(&mut self, id: i64, rows: &mut Rows) {
        let (_, statuses) = self.statuses(id);
        let mut random = Random::of_stream(self.seed, 3 << 62 | id as u64);
        for (number, status) in (1..).zip(statuses) {
            for value in [id, number, status, amount(id, number), self.now_s] {
                rows.push(value.into());
            }
            self.push_letters(&mut random, NOTE, rows);
        }
    }

    fn small(&mut self, table: TableId, id: i64, rows: &mut Rows) {
        let mut random = Random::of_stream(self.seed, (table.number() as u64) << 32 | id as u64);
        rows.push(id.into());
        if table == TableId::Sections {
            rows.push((1 + (id - 1) % ZONES).into());
        }
        self.push_letters(&mut random, (NAME, NAME), rows);
    }

    fn push_letters(&mut self, random: &mut Random, (least, most): (i64, i64), rows: &mut Rows) {
        self.text.clear();
        letters(random, &mut self.text, least, most);
        rows.push(Value::Text(&self.text));
    }
}

/// A status that is drawn.
pub(super) fn status(random: &mut Random) -> i64 {
    1 + random.below(STATUSES as u64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(table: TableId) -> Vec<Vec<i64>> {
        let mut source = RowSource::new(table, (300, 3), 5, 1_700_000_000);
        let (mut rows, mut found) = (Rows::default(), Vec::new());
        loop {
            source.fill(&mut rows);
            if rows.is_empty() {
                return found;
            }
            let numbers = |row| -> Vec<i64> {
                let number =
                    |value| if let Value::Int(number) = value { Some(number) } else { None };
                rows.row(row).filter_map(number).collect()
            };
            found.extend((0..rows.len()).map(numbers));
        }
    }

    #[test]
    fn objects_agree_with_their_history() {
        let (objects, history) = (all(TableId::Objects), all(TableId::History));
        assert_eq!((objects.len(), history.len()), (300, 900));
        for (object, history) in objects.iter().zip(history.chunks(3)) {
            let [id, section, status, last, total] = object[..] else { panic!("{object:?}") };
            assert!((1..=SECTIONS).contains(&section) && last == 3);
            assert!(history.iter().all(|row| row[0] == id && (1..=STATUSES).contains(&row[2])));
            assert_eq!(history.iter().map(|row| row[1]).collect::<Vec<_>>(), [1, 2, 3]);
            assert_eq!(history[2][2], status);
            assert_eq!(history.iter().map(|row| row[3]).sum::<i64>(), total);
        }
        let amounts: Vec<i64> = history.iter().map(|row| row[3]).collect();
        assert!(amounts.iter().all(|amount| (1..=1_000).contains(amount)));
        assert!(amounts.windows(2).filter(|pair| pair[0] == pair[1]).count() < 10);
    }

    #[test]
    fn the_small_tables_lead_to_each_other() {
        let sections = all(TableId::Sections);
        assert_eq!(sections.len() as i64, SECTIONS);
        assert!((1..=ZONES).all(|zone| sections.iter().filter(|row| row[1] == zone).count() == 10));
        assert_eq!(all(TableId::Statuses).len() as i64, STATUSES);
        assert_eq!(all(TableId::Zones).len() as i64, ZONES);
    }
}
