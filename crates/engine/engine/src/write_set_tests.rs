//! What is too large is refused when it is added.

use std::sync::Arc;

use iostrata_innodb::PageNo;

use crate::transaction::tests::{begin, engine};
use crate::write_set::WriteSet;
use crate::{EngineError, Isolation, RequestError, Table, Transaction, TransactionError};

/// The number of the first of many writes that is too large for a transaction.
fn first_refused(t: &mut Transaction, table: &Table, numbers: std::ops::Range<u32>) -> u32 {
    for number in numbers {
        let key = [&b"n"[..], &number.to_be_bytes()].concat();
        match t.put(table, &key, &[7; 1500]) {
            Ok(()) => {}
            Err(EngineError::Transaction(TransactionError::TooLarge { .. })) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("none is refused");
}

#[test]
fn a_write_that_makes_a_transaction_too_large_is_refused_and_the_rest_can_commit() {
    let (engine, table) = engine();
    let mut t = begin(&engine, Isolation::default());
    // What a later write replaces does not count, nor what was gone back behind.
    let before = t.savepoint();
    for round in 0..200_u8 {
        t.put(&table, b"a", &[round; 1500]).unwrap();
        t.put(&table, b"b", b"short").unwrap();
    }
    t.rollback_to(before).unwrap();
    let before = t.savepoint();
    let fits = first_refused(&mut t, &table, 0..100);
    let frame = engine.parts().storage.frame_bytes_max();
    assert_eq!(fits as usize, frame / (5 + 1500 + 48));
    t.rollback_to(before).unwrap();
    assert_eq!(first_refused(&mut t, &table, 0..100), fits, "there is as much room as before");
    for _ in 0..100 {
        t.put(&table, b"n\0\0\0\0", &[8; 1500]).unwrap();
    }
    t.commit().unwrap();
    assert_eq!(table.prefix(b"n").count(), fits as usize);
    assert_eq!(engine.counters()[crate::Counter::RowLocks], 0);
    let mut t = begin(&engine, Isolation::default());
    first_refused(&mut t, &table, 100..200);
    drop(t);
    assert_eq!(table.prefix(b"n").count(), fits as usize);
}

#[test]
fn a_change_that_makes_a_batch_too_large_is_refused_and_the_rest_can_commit() {
    let (engine, table) = engine();
    let frame = engine.parts().storage.frame_bytes_max();
    let mut batch = engine.batch();
    let mut rounds = 0;
    // Of several changes of a row the last one counts.
    while rounds * 1500 < 10 * frame {
        batch.put(&table, b"a", &[rounds as u8; 1500]).unwrap();
        rounds += 1;
    }
    let mut fits = 0_u32;
    let refused = loop {
        let key = [&b"n"[..], &fits.to_be_bytes()].concat();
        match batch.put(&table, &key, &[7; 1500]) {
            Ok(()) => fits += 1,
            Err(error) => break error,
        }
        assert!(fits < 1_000, "none is refused");
    };
    let is_typed = matches!(
        refused,
        EngineError::Request(RequestError::BatchTooLarge { bytes, limit })
            if limit == frame && bytes > limit
    );
    assert!(is_typed, "{refused}");
    assert_eq!(fits as usize + 1, frame / (5 + 1500 + 48), "and the row a");
    batch.delete(&table, b"a").unwrap();
    batch.commit().unwrap();
    assert_eq!(table.prefix(b"n").count(), fits as usize);
    assert_eq!(table.get(b"a").unwrap(), None);
}

#[test]
fn the_memory_of_a_dropped_set_is_used_again_and_holds_nothing_of_it() {
    let (_engine, table) = engine();
    let tree = Arc::clone(table.tree());
    let before = Arc::strong_count(&tree);
    let mut writes = WriteSet::default();
    let number = writes.tree_of(&table, table.pages()).unwrap();
    writes.push(number, b"key", Some(&[7; 500]));
    writes.freed = Some(PageNo(9));
    drop(writes);
    assert_eq!(Arc::strong_count(&tree), before, "no table is kept alive");
    let again = WriteSet::default();
    assert!(again.is_empty() && again.freed.is_none() && again.kept_bytes() >= 500);
    assert_eq!(WriteSet::default().kept_bytes(), 0, "one is lent once");
}
