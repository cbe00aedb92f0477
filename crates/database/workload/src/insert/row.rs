//! The table, and what a row holds.
//!
//! Invariant: the string of a row begins with the sum of its keys, so that a row that is not whole
//! is found.

use iostrata_database::target::{Column, ColumnType, Index, Rows, Schema, Table, Value};
use iostrata_stats::Random;

use crate::loaded_mark::mark_table;
use crate::tpcc::draw::letters;

/// The number of the table with the rows.
pub const TABLE: usize = 0;
/// Columns of a row.
pub(super) const COLUMNS: usize = 5;
/// Random keys of a row: the columns behind its key.
pub(super) const KEYS: usize = 3;
/// Random keys are below it, as in 2009.
pub(super) const KEY_MAX: i64 = 300_000_000;
/// Digits of the sum of the keys, and the characters of a string in all.
const SUM_DIGITS: usize = 10;
const STRING: usize = 40;

/// The table, and one that says what was loaded.
pub fn schema() -> Schema {
    let column = |name: &str, of| Column { name: name.to_owned(), of, is_nullable: false };
    let int = ColumnType::Int { bytes: 4 };
    let index =
        |at: usize| Index { name: format!("insert_b{at}"), columns: vec![at], is_late: true };
    let rows = Table {
        name: "insert_rows".to_owned(),
        columns: vec![
            column("id", int),
            column("b1", int),
            column("b2", int),
            column("b3", int),
            column("c", ColumnType::Varchar(100)),
        ],
        key: vec![0],
        indexes: (1..=KEYS).map(index).collect(),
        auto_increment: true,
    };
    Schema { tables: vec![rows, mark_table("iostrata_insert", &["rows"])] }
}

/// Appends a row; one without a number gets the next one from the target.
pub(super) fn push(random: &mut Random, id: Option<i64>, text: &mut Vec<u8>, rows: &mut Rows) {
    let keys: [i64; KEYS] = std::array::from_fn(|_| random.below(KEY_MAX as u64) as i64);
    string(random, keys, text);
    rows.push(id.map_or(Value::Null, Value::Int));
    keys.into_iter().for_each(|key| rows.push(key.into()));
    rows.push(Value::Text(text));
}

fn string(random: &mut Random, keys: [i64; KEYS], text: &mut Vec<u8>) {
    text.clear();
    text.resize(SUM_DIGITS, b'0');
    let mut sum = keys.into_iter().sum::<i64>();
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (sum % 10) as u8;
        sum /= 10;
    }
    let rest = (STRING - SUM_DIGITS) as i64;
    letters(random, text, rest, rest);
}

/// Whether a row holds what was inserted.
pub(super) fn is_whole(keys: [i64; KEYS], text: &[u8]) -> bool {
    let sum = text.get(..SUM_DIGITS).and_then(|digits| std::str::from_utf8(digits).ok());
    let sum = sum.and_then(|digits| digits.parse::<i64>().ok());
    text.len() == STRING && sum == Some(keys.into_iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_whether_it_is_whole() {
        let (mut random, mut text, mut rows) = (Random::new(3), Vec::new(), Rows::new(COLUMNS));
        for id in [Some(7), None] {
            push(&mut random, id, &mut text, &mut rows);
        }
        assert_eq!(rows.get(0, 0), Value::Int(7));
        assert!(rows.get(1, 0).is_null());
        for row in 0..2 {
            let keys: [i64; KEYS] = std::array::from_fn(|at| rows.get(row, 1 + at).int());
            let text = rows.get(row, 4).text();
            assert!(keys.iter().all(|key| (0..KEY_MAX).contains(key)));
            assert!(is_whole(keys, text), "{keys:?} {text:?}");
            assert!(!is_whole([keys[0] + 1, keys[1], keys[2]], text));
            assert!(!is_whole(keys, &text[..39]) && !is_whole(keys, b"x"));
        }
    }
}
