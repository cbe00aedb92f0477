//! Cycles: found when they are closed, and only then.

use iostrata_engine::lock::*;

use crate::lock::support::*;

/// Each of so many transactions holds its row and waits for the row of the next; the last one
/// closes the cycle and is refused. Rolled back, it lets all others go on.
fn cycle_of(count: u64) {
    let (table, all) = transactions(count);
    for (number, one) in (0..).zip(&all) {
        assert_eq!(one.acquire(row(number)), Ok(Grant::Now));
    }
    let (last, others) = all.split_last().unwrap();
    for (number, one) in (0..).zip(others) {
        one.ask_as_waiter(row(number + 1), number + 1);
    }
    assert_eq!(last.acquire(row(0)), Err(LockFailure::Deadlock { holder: 0 }));
    assert_eq!(table.stats().waiting, count - 1, "the victim does not wait");
    assert_eq!(last.acquire(row(count - 1)), Ok(Grant::Already), "and keeps its locks");
    last.release(&[row(count - 1)]);
    for one in others.iter().rev() {
        let number = one.owner.number();
        assert_eq!(one.answer(), Ok(Grant::Now));
        one.release(&[row(number), row(number + 1)]);
    }
    let stats = table.stats();
    assert_eq!((stats.deadlocks, stats.waits, stats.timeouts), (1, count - 1, 0));
    assert_empty(&table);
}

#[test]
fn cycles_of_two_three_and_eight_have_one_victim() {
    cycle_of(2);
    cycle_of(3);
    cycle_of(8);
}

#[test]
fn a_long_chain_is_no_cycle() {
    let (table, all) = transactions(8);
    for (number, one) in (0..).zip(&all) {
        one.acquire(row(number)).unwrap();
    }
    for number in (0..7_u64).rev() {
        all[number as usize].ask_as_waiter(row(number + 1), 7 - number);
    }
    for one in all.iter().rev() {
        let number = one.owner.number();
        if number < 7 {
            assert_eq!(one.answer(), Ok(Grant::Now));
        }
        one.release(&[row(number), row(number + 1)]);
    }
    assert_eq!(table.stats().deadlocks, 0);
    assert_empty(&table);
}

/// 1 and 2 wait for row 0 in this order. When 1 has it and wants the row of 2, it closes a cycle
/// that did not exist while both were waiting.
#[test]
fn a_cycle_through_a_lock_that_was_handed_over_is_found() {
    let (table, all) = transactions(3);
    all[0].acquire(row(0)).unwrap();
    all[2].acquire(row(2)).unwrap();
    all[1].ask_as_waiter(row(0), 1);
    all[2].ask_as_waiter(row(0), 2);
    all[0].release(&[row(0)]);
    assert_eq!(all[1].answer(), Ok(Grant::Now));
    assert_eq!(all[1].acquire(row(2)), Err(LockFailure::Deadlock { holder: 2 }));
    all[1].release(&[row(0)]);
    assert_eq!(all[2].answer(), Ok(Grant::Now));
    all[2].release(&[row(0), row(2)]);
    assert_empty(&table);
}

/// As soon as the lock is handed to 1, it waits for nothing: whether or not its thread has noticed,
/// to wait for 1 is no deadlock for an owner of a lock that 1 wanted.
#[test]
fn who_was_handed_the_lock_waits_no_more() {
    let (table, all) = transactions(2);
    for _ in 0..300 {
        all[0].acquire(row(0)).unwrap();
        all[1].acquire(row(1)).unwrap();
        all[1].ask_as_waiter(row(0), 1);
        all[0].release(&[row(0)]);
        all[0].ask(row(1), FOREVER);
        assert_eq!(all[1].answer(), Ok(Grant::Now));
        all[1].release(&[row(0), row(1)]);
        assert_eq!(all[0].answer(), Ok(Grant::Now));
        all[0].release(&[row(1)]);
    }
    assert_eq!(table.stats().deadlocks, 0);
    assert_empty(&table);
}

#[test]
fn who_gave_up_is_in_no_cycle() {
    let (table, all) = transactions(2);
    all[0].acquire(row(0)).unwrap();
    all[1].acquire(row(1)).unwrap();
    all[1].ask(row(0), std::time::Duration::from_millis(1));
    assert!(matches!(all[1].answer(), Err(LockFailure::Timeout { holder: 0, .. })));
    all[0].ask_as_waiter(row(1), 1);
    all[1].release(&[row(1)]);
    assert_eq!(all[0].answer(), Ok(Grant::Now));
    assert_eq!(table.stats().deadlocks, 0);
}
