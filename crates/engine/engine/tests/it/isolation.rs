//! What each level of isolation allows and what it forbids: transactions interleaved on one thread,
//! which never wait for a lock.

use iostrata_engine::{Direction, EngineError, Isolation, TransactionError};

use crate::common::accounts::{Account, Accounts, is_conflict, is_locked, rows};

use Isolation::{ReadCommitted, RepeatableRead, Snapshot};

const LEVELS: [Isolation; 3] = [ReadCommitted, RepeatableRead, Snapshot];

#[test]
fn uncommitted_rows_are_not_read() {
    for level in LEVELS {
        for commits in [false, true] {
            let accounts = Accounts::new();
            let mut writer = accounts.begin(level);
            writer.put("x", 10).unwrap();
            writer.put("z", 10).unwrap();
            writer.t.delete(&accounts.table, b"y").unwrap();
            let mut reader = accounts.begin(level);
            assert_eq!(reader.rows(), rows(&[("x", 50), ("y", 50)]), "{level:?}");
            assert_eq!((reader.get("x"), reader.get("z")), (Some(50), None), "{level:?}");
            if commits {
                // Not what it had for a while either.
                writer.put("x", 20).unwrap();
                writer.commit();
                let mut after = accounts.begin(level);
                assert_eq!(after.rows(), rows(&[("x", 20), ("z", 10)]), "{level:?}");
            } else {
                writer.t.rollback();
                assert_eq!(reader.rows(), rows(&[("x", 50), ("y", 50)]), "{level:?}");
            }
        }
    }
}

#[test]
fn uncommitted_rows_are_not_overwritten() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let (mut first, mut second) = (accounts.begin(level), accounts.begin(level));
        first.put("x", 1).unwrap();
        assert!(is_locked(&second.put("x", 2)), "{level:?}");
        first.put("y", 1).unwrap();
        first.commit();
        let written = second.put("x", 2);
        assert_eq!(is_conflict(&written), level == Snapshot, "{level:?}");
        if level != Snapshot {
            second.put("y", 2).unwrap();
            second.commit();
        }
        assert_eq!(accounts.now("x"), accounts.now("y"), "{level:?}");
    }
}

#[test]
fn a_row_read_again_is_another_at_read_committed_alone() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let mut reader = accounts.begin(level);
        assert_eq!(reader.get("x"), Some(50));
        accounts.set("x", 10);
        accounts.delete("y");
        let (x, y) = if level == ReadCommitted { (10, None) } else { (50, Some(50)) };
        assert_eq!((reader.get("x"), reader.get("y")), (Some(x), y), "{level:?}");
        reader.commit();
    }
}

#[test]
fn a_range_read_again_has_other_rows_at_read_committed_alone() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let mut reader = accounts.begin(level);
        assert_eq!(reader.rows(), rows(&[("x", 50), ("y", 50)]));
        accounts.set("a", 1);
        accounts.set("z", 1);
        accounts.delete("y");
        let new = rows(&[("a", 1), ("x", 50), ("z", 1)]);
        let old = rows(&[("x", 50), ("y", 50)]);
        let wanted = if level == ReadCommitted { new } else { old };
        assert_eq!(reader.rows(), wanted, "{level:?}");
    }
}

/// A scan that is under way has a snapshot of its own at every level.
#[test]
fn one_scan_is_of_one_moment_at_every_level() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let reader = accounts.begin(level);
        let mut cursor = reader.t.cursor(&accounts.table, .., Direction::Forward).unwrap();
        accounts.set("z", 1);
        accounts.set("y", 1);
        accounts.delete("x");
        let mut seen = Vec::new();
        while let Some((key, value)) = cursor.next_row().unwrap() {
            seen.push((String::from_utf8(key.to_vec()).unwrap(), value[0]));
        }
        assert_eq!(seen, rows(&[("x", 50), ("y", 50)]), "{level:?}");
    }
}

#[test]
fn a_snapshot_is_taken_at_the_beginning_and_repeatable_reads_begin_with_the_first() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let mut reader = accounts.begin(level);
        accounts.set("x", 10);
        let wanted = if level == Snapshot { 50 } else { 10 };
        assert_eq!(reader.get("x"), Some(wanted), "{level:?}");
    }
}

/// Money is moved from x to y between a read of x and a read of y.
#[test]
fn two_rows_are_of_two_moments_at_read_committed_alone() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let mut reader = accounts.begin(level);
        let x = reader.get("x").unwrap();
        let mut mover = accounts.begin(level);
        mover.put("x", 20).unwrap();
        mover.put("y", 80).unwrap();
        mover.commit();
        let sum = x + reader.get("y").unwrap();
        assert_eq!(sum, if level == ReadCommitted { 130 } else { 100 }, "{level:?}");
    }
}

/// Both add what they have read plainly to what they write.
#[test]
fn an_update_of_what_was_read_plainly_is_lost_but_at_snapshot() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let (mut first, mut second) = (accounts.begin(level), accounts.begin(level));
        let (of_first, of_second) = (first.get("x").unwrap(), second.get("x").unwrap());
        first.put("x", of_first + 1).unwrap();
        first.commit();
        let written = second.put("x", of_second + 2);
        if level == Snapshot {
            assert!(is_conflict(&written));
            assert_eq!(accounts.now("x"), Some(51));
        } else {
            written.unwrap();
            second.commit();
            assert_eq!(accounts.now("x"), Some(52), "{level:?}: the first is lost");
        }
    }
}

#[test]
fn no_update_of_what_was_locked_is_lost() {
    for level in LEVELS {
        for modifies in [false, true] {
            let accounts = Accounts::new();
            let add = |t: &mut Account<'_>, value| {
                if modifies {
                    return t.add("x", value).map(drop);
                }
                let row = t.lock("x")?.unwrap();
                t.put("x", row + value)
            };
            let (mut first, mut second) = (accounts.begin(level), accounts.begin(level));
            assert_eq!((first.get("x"), second.get("x")), (Some(50), Some(50)));
            add(&mut first, 1).unwrap();
            assert!(is_locked(&add(&mut second, 2)), "{level:?}");
            first.commit();
            let added = add(&mut second, 2);
            if level == Snapshot {
                assert!(is_conflict(&added));
                assert_eq!(accounts.now("x"), Some(51));
            } else {
                added.unwrap();
                second.commit();
                assert_eq!(accounts.now("x"), Some(53), "{level:?}");
            }
        }
    }
}

/// As in InnoDB: plain reads see the snapshot, locking reads and writes the newest row.
#[test]
fn a_locking_read_shows_the_newest_row_at_repeatable_read() {
    let accounts = Accounts::new();
    let mut t = accounts.begin(RepeatableRead);
    assert_eq!(t.get("x"), Some(50));
    accounts.set("x", 10);
    accounts.set("z", 1);
    accounts.delete("y");
    assert_eq!(t.lock("x").unwrap(), Some(10));
    assert_eq!(t.get("x"), Some(50), "the snapshot stays");
    assert_eq!(t.lock("y").unwrap(), None);
    assert_eq!(t.lock("z").unwrap(), Some(1));
    assert!(t.add("x", 1).unwrap());
    assert_eq!(t.get("x"), Some(11), "what it wrote itself");
    assert_eq!(t.rows(), rows(&[("x", 11), ("y", 50)]));
    t.commit();
    assert_eq!(accounts.now("x"), Some(11));
}

/// The first to commit a row wins over those that began before, whatever they do with it.
#[test]
fn the_first_updater_wins_at_snapshot() {
    type Use = fn(&mut Account<'_>) -> Result<(), EngineError>;
    let uses: [(&str, Use); 6] = [
        ("put", |t| t.put("x", 9)),
        ("put of a deleted row", |t| t.put("y", 9)),
        ("insert of a row of another", |t| t.t.insert(t.table, b"z", &[9])),
        ("delete", |t| t.t.delete(t.table, b"x").map(drop)),
        ("modify", |t| t.add("x", 1).map(drop)),
        ("locking read", |t| t.lock("x").map(drop)),
    ];
    for (name, uses) in uses {
        let accounts = Accounts::new();
        let mut late = accounts.begin(Snapshot);
        accounts.set("x", 10);
        accounts.delete("y");
        accounts.set("z", 1);
        // Purge takes into account a transaction that began before.
        accounts.engine.step(0).unwrap();
        assert!(is_conflict(&uses(&mut late)), "{name}");
        let over = late.t.commit().unwrap_err();
        let is_over = matches!(over, EngineError::Transaction(TransactionError::Finished { .. }));
        assert!(is_over, "{name}: {over}");
        // It holds no lock any more, and a transaction that begins now has no conflict.
        uses(&mut accounts.begin(Snapshot)).unwrap_or_else(|error| {
            let exists = matches!(error, EngineError::Transaction(TransactionError::Exists { .. }));
            assert!(exists, "{name}: {error}");
        });
    }
}

/// The first to lock a row wins, even if the other began before.
#[test]
fn who_waited_for_the_first_updater_has_a_conflict_unless_that_one_rolled_back() {
    for commits in [false, true] {
        let accounts = Accounts::new();
        let (mut second, mut first) = (accounts.begin(Snapshot), accounts.begin(Snapshot));
        first.put("x", 1).unwrap();
        assert!(is_locked(&second.put("x", 2)));
        if commits {
            first.commit()
        } else {
            first.t.rollback()
        }
        let written = second.put("x", 2);
        assert_eq!(is_conflict(&written), commits);
        if !commits {
            written.unwrap();
            second.commit();
        }
        assert_eq!(accounts.now("x"), Some(if commits { 1 } else { 2 }));
    }
}

/// Together x and y may not fall below 50; each takes 50 from another row.
#[test]
fn write_skew_is_possible_with_plain_reads_alone() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let (mut first, mut second) = (accounts.begin(level), accounts.begin(level));
        for t in [&mut first, &mut second] {
            assert_eq!(t.get("x").unwrap() + t.get("y").unwrap(), 100);
        }
        first.put("x", 0).unwrap();
        second.put("y", 0).unwrap();
        first.commit();
        second.commit();
        assert_eq!((accounts.now("x"), accounts.now("y")), (Some(0), Some(0)), "{level:?}");
    }
}

#[test]
fn write_skew_is_gone_when_what_was_read_is_locked() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let sum = |t: &mut Account<'_>| -> Result<u8, EngineError> {
            Ok(t.lock("x")?.unwrap() + t.lock("y")?.unwrap())
        };
        let (mut first, mut second) = (accounts.begin(level), accounts.begin(level));
        assert_eq!(sum(&mut first).unwrap(), 100);
        first.put("x", 0).unwrap();
        assert!(is_locked(&sum(&mut second)), "{level:?}");
        first.commit();
        match sum(&mut second) {
            Ok(sum) => assert_eq!((sum, level != Snapshot), (50, true), "{level:?}"),
            Err(error) => assert!(level == Snapshot && is_conflict::<()>(&Err(error))),
        }
    }
}

/// Without a write by the first only its lock can stop the second.
#[test]
fn what_was_locked_is_not_changed_before_the_end() {
    for level in LEVELS {
        let accounts = Accounts::new();
        let (mut reader, mut writer) = (accounts.begin(level), accounts.begin(level));
        assert_eq!(reader.lock("y").unwrap(), Some(50));
        assert_eq!(reader.lock("z").unwrap(), None);
        assert!(is_locked(&writer.put("y", 1)) && is_locked(&writer.put("z", 1)), "{level:?}");
        reader.commit();
        writer.put("y", 1).unwrap();
        writer.put("z", 1).unwrap();
        writer.commit();
        assert_eq!((accounts.now("y"), accounts.now("z")), (Some(1), Some(1)));
    }
}

/// A savepoint behind one that was gone back to is gone, also when as much was written since.
#[test]
fn a_savepoint_that_is_gone_stays_gone() {
    let accounts = Accounts::new();
    let mut t = accounts.begin(RepeatableRead);
    t.put("a", 1).unwrap();
    let first = t.t.savepoint();
    let at_the_same_place = t.t.savepoint();
    t.put("b", 2).unwrap();
    let gone = t.t.savepoint();
    t.t.rollback_to(first).unwrap();
    for (key, value) in [("longer than b", 3), ("longer than b as well", 4)] {
        t.put(key, value).unwrap();
    }
    let kept = t.t.savepoint();
    t.put("c", 5).unwrap();
    let refused = t.t.rollback_to(gone);
    let is_gone = |error: &EngineError| {
        matches!(error, EngineError::Transaction(TransactionError::NoSavepoint { .. }))
    };
    assert!(refused.as_ref().is_err_and(is_gone), "{refused:?}");
    t.t.rollback_to(kept).unwrap();
    let both = [("longer than b", 3), ("longer than b as well", 4)];
    let all = [&[("a", 1)][..], &both, &[("x", 50), ("y", 50)]].concat();
    assert_eq!(t.rows(), rows(&all));
    t.t.rollback_to(at_the_same_place).unwrap();
    assert!(t.t.rollback_to(kept).as_ref().is_err_and(is_gone));
    t.t.rollback_to(first).unwrap();
    assert_eq!(t.rows(), rows(&[("a", 1), ("x", 50), ("y", 50)]));
    t.commit();
    assert_eq!(accounts.now("a"), Some(1));
}
