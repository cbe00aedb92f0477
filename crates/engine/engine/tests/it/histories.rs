//! Isolation by recorded histories: what eight threads read and wrote has no anomaly that the level
//! of their transactions forbids; and the judge finds each kind of anomaly in histories made by
//! hand.

use iostrata_engine::{Counter, Engine, Isolation};

use crate::common::engine::{How, tombstones};
use crate::common::history::{Anomaly, Event, History};
use crate::common::is_soak;
use crate::common::lists::history;

const APPEND: fn(usize, u32) -> Event = |key, element| Event::Append { key, element };

fn read(key: usize, list: &[u32]) -> Event {
    Event::Read { key, list: list.to_vec() }
}

fn locked(key: usize, list: &[u32]) -> Event {
    Event::Locked { key, list: list.to_vec() }
}

fn scan(lists: &[&[u32]]) -> Event {
    Event::Scan { lists: lists.iter().map(|list| list.to_vec()).collect() }
}

/// Each transaction by a thread of its own.
fn by_hand(transactions: Vec<Vec<Event>>, finals: &[&[u32]]) -> History {
    let threads = transactions.into_iter().map(|events| vec![events]).collect();
    History { threads, finals: finals.iter().map(|list| list.to_vec()).collect() }
}

const READ_COMMITTED: Isolation = Isolation::ReadCommitted;
const REPEATABLE_READ: Isolation = Isolation::RepeatableRead;
const SNAPSHOT: Isolation = Isolation::Snapshot;

#[test]
fn a_sound_history_has_no_anomaly() {
    let sound = by_hand(
        vec![
            vec![locked(0, &[]), APPEND(0, 1), read(0, &[1]), APPEND(1, 2)],
            vec![read(1, &[2]), locked(0, &[1]), APPEND(0, 3), APPEND(0, 4)],
            vec![APPEND(0, 9), Event::TakenBack { key: 0 }, read(0, &[1]), read(1, &[2])],
            vec![scan(&[&[1, 3, 4], &[2]])],
        ],
        &[&[1, 3, 4], &[2]],
    );
    for level in [READ_COMMITTED, REPEATABLE_READ, SNAPSHOT] {
        assert_eq!(sound.anomalies(level), []);
    }
}

#[test]
fn each_kind_of_wrong_read_is_found() {
    for (transactions, finals, wanted) in [
        (
            vec![vec![APPEND(0, 1), read(0, &[])]],
            [&[1][..], &[]],
            Anomaly::OwnWrites { transaction: 0, key: 0 },
        ),
        (vec![vec![read(0, &[7])]], [&[], &[]], Anomaly::AbortedRead { key: 0, element: 7 }),
        (vec![], [&[7], &[]], Anomaly::AbortedRead { key: 0, element: 7 }),
        (
            vec![vec![APPEND(0, 1), Event::TakenBack { key: 0 }], vec![scan(&[&[1], &[]])]],
            [&[], &[]],
            Anomaly::AbortedRead { key: 0, element: 1 },
        ),
        (
            vec![vec![APPEND(0, 1), APPEND(0, 2)], vec![read(0, &[1])]],
            [&[1, 2], &[]],
            Anomaly::IntermediateRead { key: 0, element: 1 },
        ),
        (
            vec![vec![APPEND(0, 1)], vec![APPEND(0, 2)], vec![read(0, &[2])]],
            [&[1, 2], &[]],
            Anomaly::NoPrefix { key: 0, list: vec![2] },
        ),
        (
            vec![vec![APPEND(0, 1)], vec![APPEND(0, 2)]],
            [&[2], &[]],
            Anomaly::LostAppend { key: 0, element: 1 },
        ),
        (vec![vec![APPEND(1, 1)]], [&[], &[1, 1]], Anomaly::LostAppend { key: 1, element: 1 }),
    ] {
        let found = by_hand(transactions, &finals).anomalies(READ_COMMITTED);
        assert_eq!(found, [wanted]);
    }
}

#[test]
fn a_cycle_of_writes_is_found_at_every_level() {
    let writes = |first, second| vec![APPEND(0, first), APPEND(1, second)];
    let bad = by_hand(vec![writes(1, 2), writes(3, 4)], &[&[1, 3], &[4, 2]]);
    for level in [READ_COMMITTED, REPEATABLE_READ, SNAPSHOT] {
        let found = bad.anomalies(level);
        assert!(matches!(&found[0], Anomaly::DirtyWrite { cycle } if cycle.len() == 2));
    }
}

#[test]
fn a_cycle_of_writes_and_reads_is_found_at_every_level() {
    let bad = by_hand(
        vec![
            vec![APPEND(0, 1), read(1, &[2])],
            vec![APPEND(1, 2), read(2, &[3])],
            vec![APPEND(2, 3), read(0, &[1])],
        ],
        &[&[1], &[2], &[3]],
    );
    for level in [READ_COMMITTED, REPEATABLE_READ, SNAPSHOT] {
        let found = bad.anomalies(level);
        assert!(matches!(&found[0], Anomaly::CircularFlow { cycle } if cycle.len() == 3));
    }
}

/// Two plain reads around another's commit, and a lost update, as each level sees them.
#[test]
fn read_skew_is_found_where_it_is_forbidden() {
    let skew = by_hand(
        vec![vec![read(0, &[]), read(1, &[2])], vec![APPEND(0, 1), APPEND(1, 2)]],
        &[&[1], &[2]],
    );
    assert_eq!(skew.anomalies(READ_COMMITTED), []);
    let of_repeatable = skew.anomalies(REPEATABLE_READ);
    assert!(matches!(&of_repeatable[..], [Anomaly::NoMoment { .. }]), "{of_repeatable:?}");
    let of_snapshot = skew.anomalies(SNAPSHOT);
    assert!(matches!(&of_snapshot[0], Anomaly::ReadSkew { cycle } if cycle.len() == 2));

    // It read the list, then wrote to its end behind another who had done so meanwhile.
    let late = by_hand(
        vec![vec![APPEND(0, 1)], vec![read(0, &[]), locked(0, &[1]), APPEND(0, 2)]],
        &[&[1, 2]],
    );
    assert_eq!(late.anomalies(READ_COMMITTED), []);
    assert_eq!(late.anomalies(REPEATABLE_READ), []);
    assert!(matches!(late.anomalies(SNAPSHOT)[0], Anomaly::ReadSkew { .. }));
}

#[test]
fn write_skew_is_allowed() {
    let skew = by_hand(
        vec![
            vec![read(0, &[]), read(1, &[]), APPEND(0, 1)],
            vec![read(0, &[]), read(1, &[]), APPEND(1, 2)],
        ],
        &[&[1], &[2]],
    );
    for level in [READ_COMMITTED, REPEATABLE_READ, SNAPSHOT] {
        assert_eq!(skew.anomalies(level), []);
    }
    // But not by locking reads, which hold their locks to the end.
    let locking = by_hand(
        vec![vec![locked(1, &[]), APPEND(0, 1)], vec![locked(0, &[]), APPEND(1, 2)]],
        &[&[1], &[2]],
    );
    assert!(matches!(locking.anomalies(READ_COMMITTED)[..], [Anomaly::NoMoment { .. }]));
}

#[test]
fn a_scan_of_no_one_moment_is_found_at_every_level() {
    let bad =
        by_hand(vec![vec![APPEND(0, 1), APPEND(1, 2)], vec![scan(&[&[1], &[]])]], &[&[1], &[2]]);
    for level in [READ_COMMITTED, REPEATABLE_READ, SNAPSHOT] {
        assert!(bad.anomalies(level).iter().any(|one| matches!(one, Anomaly::NoMoment { .. })));
    }
}

/// What a thread has committed or seen it sees in its next transaction.
#[test]
fn a_read_of_the_past_is_found_at_every_level() {
    let past = History {
        threads: vec![vec![vec![APPEND(0, 1)], vec![read(0, &[])]]],
        finals: vec![vec![1]],
    };
    for level in [READ_COMMITTED, REPEATABLE_READ, SNAPSHOT] {
        assert!(matches!(past.anomalies(level)[..], [Anomaly::NoMoment { .. }]));
    }
    // Two readers that see two writers in different orders.
    let fork = by_hand(
        vec![
            vec![APPEND(0, 1)],
            vec![APPEND(1, 2)],
            vec![read(0, &[1]), read(1, &[])],
            vec![read(1, &[2]), read(0, &[])],
        ],
        &[&[1], &[2]],
    );
    for level in [READ_COMMITTED, REPEATABLE_READ, SNAPSHOT] {
        assert!(matches!(fork.anomalies(level)[..], [Anomaly::NoMoment { .. }]));
    }
}

fn histories_are_sound(level: Isolation) {
    let directory = tempfile::tempdir().unwrap();
    let how = How::with(&[
        ("buffer_pool_size", "1M"),
        ("redo_log_capacity", "4M"),
        ("version_log_memory", "256K"),
    ]);
    let engine = Engine::open(directory.path(), how.settings()).unwrap();
    for round in 0..if is_soak() { 60 } else { 2 } {
        let name = "n".repeat(round + 1);
        let history = history(&engine, &name, level, 400).unwrap();
        let committed: usize = history.threads.iter().map(Vec::len).sum();
        assert!(committed > 400, "{level:?}: only {committed} transactions committed");
        let found = history.anomalies(level);
        assert!(found.is_empty(), "{level:?}, round {round}: {found:#?}");
    }
    let report = engine.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    let closed = engine.clone();
    engine.close().unwrap();
    let counters = closed.counters();
    assert_eq!(counters[Counter::HistoryListLength], 0);
    assert!(counters[Counter::RowLockWaits] > 0, "no transaction ever met another");
    // At read committed only a scan that is under way keeps versions.
    let met = counters[Counter::VersionsKept] > 0 && counters[Counter::RowsPurged] > 0;
    assert!(met || level == READ_COMMITTED, "no snapshot ever met a write");
    let engine = Engine::open(directory.path(), how.settings()).unwrap();
    assert_eq!(tombstones(&engine).unwrap(), 0);
    engine.close().unwrap();
}

#[test]
fn histories_of_read_committed_are_sound() {
    histories_are_sound(READ_COMMITTED);
}

#[test]
fn histories_of_repeatable_read_are_sound() {
    histories_are_sound(REPEATABLE_READ);
}

#[test]
fn histories_of_snapshot_are_sound() {
    histories_are_sound(SNAPSHOT);
}
