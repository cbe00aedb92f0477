//! Reads of a transaction: rows by their keys, and rows in an order.
//!
//! Invariant: without locks they see the snapshot and what the transaction wrote; with locks the
//! newest rows, which stay as they are until it ends.

use std::ops::Bound;

use iostrata_database::target::Value;
use iostrata_embedded::rows::{KeySpan, SharedTable};
use rocksdb::{ReadOptions, SnapshotWithThreadMode, Transaction};

use super::Database;
use super::load::RowRefusal;
use super::op::Scan;

/// What takes the rows, key and value.
pub(super) type EachRow<'e> = dyn FnMut(&[u8], &[u8]) -> Result<(), RowRefusal> + 'e;

/// What an operation reads and writes by.
pub(super) struct Access<'s> {
    pub transaction: &'s Transaction<'static, Database>,
    pub snapshot: Option<&'s SnapshotWithThreadMode<'static, Database>>,
}

impl Access<'_> {
    fn reading(&self, locks: bool) -> ReadOptions {
        let mut reading = ReadOptions::default();
        if let Some(snapshot) = self.snapshot.filter(|_| !locks) {
            reading.set_snapshot(snapshot);
        }
        reading
    }

    /// Whether the row is there; `row` becomes its value.
    pub fn get(&self, whole: &[u8], locks: bool, row: &mut Vec<u8>) -> Result<bool, RowRefusal> {
        let found = match locks {
            true => self.transaction.get_pinned_for_update(whole, true)?,
            false => self.transaction.get_pinned_opt(whole, &self.reading(false))?,
        };
        row.clear();
        if let Some(found) = &found {
            row.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    /// Gives the rows of a scan one by one.
    pub fn each_row(
        &self,
        (number, table): (u8, &SharedTable),
        scan: &Scan,
        args: &[Value<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), RowRefusal> {
        let mut span = KeySpan::default();
        if !span.fill(&table.layout, (&scan.prefix, scan.range), args)? {
            return Ok(());
        }
        let tag = [number, scan.index.map_or(0, |nth| nth as u8 + 1)];
        let (low, high) = whole_bounds(tag, &span);
        let mut reading = self.reading(scan.locks);
        reading.set_iterate_upper_bound(high.clone());
        reading.set_iterate_lower_bound(low.clone());
        let mut found = self.transaction.raw_iterator_opt(reading);
        match scan.is_descending {
            true => found.seek_for_prev(&high),
            false => found.seek(&low),
        }
        let (mut left, mut whole, mut row) = (scan.limit, Vec::new(), Vec::new());
        while left > 0
            && let (Some(at), Some(value)) = (found.key(), found.value())
        {
            // The bounds hold for what is committed alone, not for what the transaction wrote.
            if at >= &high[..] && scan.is_descending {
                found.prev();
                continue;
            }
            if at >= &high[..] || at < &low[..] {
                break;
            }
            whole.clear();
            let is_there = if scan.index.is_none() && !scan.locks {
                each(&at[2..], value)?;
                true
            } else {
                whole.extend_from_slice(&[number, 0]);
                whole.extend_from_slice(if scan.index.is_some() { value } else { &at[2..] });
                // What was there when the scan began may be gone once its lock is had.
                let is_there = self.get(&whole, scan.locks, &mut row)?;
                if is_there {
                    each(&whole[2..], &row)?;
                }
                is_there
            };
            left -= usize::from(is_there);
            match scan.is_descending {
                true => found.prev(),
                false => found.next(),
            }
        }
        Ok(found.status()?)
    }
}

fn whole_bounds(tag: [u8; 2], span: &KeySpan) -> (Vec<u8>, Vec<u8>) {
    let (low, high) = span.bounds();
    let with_tag = |key: &[u8]| [&tag[..], key].concat();
    let low = match low {
        Bound::Included(key) | Bound::Excluded(key) => with_tag(key),
        Bound::Unbounded => tag.to_vec(),
    };
    let high = match high {
        Bound::Included(key) | Bound::Excluded(key) => with_tag(key),
        Bound::Unbounded => vec![tag[0], tag[1] + 1],
    };
    (low, high)
}
