//! Admission: without steps, never past the wall, sound whatever the words are.

use proptest::prelude::*;

use super::*;

const RULE: AdmitRule = AdmitRule {
    delay_age: 700,
    wait_age: 900,
    span_us: 1000,
    flush_age: u64::MAX,
    flush_wait_age: u64::MAX,
    wait_excess: 1,
    checkpoint_age: u64::MAX,
    work: UserWork::Nothing,
    pace: RedoPace::FREE,
};

/// What a thread is told at a checkpoint age.
fn at(age: u64) -> Admit {
    RULE.decide(Lsn(5000), Lsn(5000 - age), Lsn(5000))
}

#[test]
fn nothing_is_delayed_below_the_limit_and_nothing_passes_the_wall() {
    assert_eq!((at(0), at(699), at(700)), (Admit::Go, Admit::Go, Admit::Go));
    assert_eq!(at(800), Admit::Delay { us: 1000 });
    assert!(matches!(at(899), Admit::Delay { .. }));
    assert_eq!(at(900), Admit::WaitCheckpoint { lsn: Lsn(4101), work: UserWork::Nothing });
    let reached = RULE.decide(Lsn(5000), Lsn(4101), Lsn(5000));
    assert!(matches!(reached, Admit::Delay { .. }), "what was waited for is enough: {reached:?}");
}

#[test]
fn delays_grow_without_a_step() {
    let delays: Vec<u64> = (700..900).map(|age| RULE.delay_us(age)).collect();
    assert!(delays.is_sorted(), "{delays:?}");
    assert!(delays[1] <= 10, "the first is a small one: {}", delays[1]);
    assert!(delays[199] > 100_000, "the last is a long one: {}", delays[199]);
}

#[test]
fn one_who_was_delayed_goes_on_below_the_wall_only() {
    let after = |age: u64| RULE.decide_delayed(Lsn(5000), Lsn(5000 - age));
    assert_eq!((after(100), after(899)), (Admit::Go, Admit::Go));
    assert!(matches!(after(900), Admit::WaitCheckpoint { .. }));
}

#[test]
fn threads_of_history_flush_by_themselves() {
    let work = UserWork::FlushAndCheckpoints;
    let (flush_age, flush_wait_age, wait_excess) = (600, 650, 2);
    let rule = AdmitRule { flush_age, flush_wait_age, wait_excess, work, ..AdmitRule::wall(900) };
    let told =
        |rule: AdmitRule, modified: u64| rule.decide(Lsn(5000), Lsn(5000), Lsn(5000 - modified));
    assert_eq!(told(rule, 599), Admit::Go);
    let until = Lsn(4390 + 10 + 1);
    assert_eq!(told(rule, 610), Admit::FlushSelf { until, wait: false }, "the excess");
    let until = Lsn(4340 + 2 * 10 + 1);
    assert_eq!(told(rule, 660), Admit::FlushSelf { until, wait: true }, "twice the excess");
    let rule = AdmitRule { work: UserWork::Checkpoints, wait_excess: 1, ..rule };
    assert_eq!(told(rule, 610), Admit::WakeCleaner);
    assert_eq!(told(rule, 660), Admit::WaitOldest(Lsn(4340 + 10 + 1)));
    let rule = AdmitRule { checkpoint_age: 700, ..AdmitRule::wall(900) };
    let told = |age: u64| rule.decide(Lsn(5000), Lsn(5000 - age), Lsn(5000));
    assert_eq!((told(699), told(700)), (Admit::Go, Admit::TakeCheckpoint));
    assert!(matches!(told(900), Admit::WaitCheckpoint { .. }));
}

proptest! {
    #[test]
    fn any_words_decide_something_sound(
        words in any::<[u64; ADMIT_WORDS]>(),
        lsn in any::<u64>(),
        checkpoint in any::<u64>(),
        oldest in any::<u64>(),
    ) {
        let rule = AdmitRule::from_words(words);
        prop_assert_eq!(AdmitRule::from_words(rule.to_words()), rule);
        let age = lsn.saturating_sub(checkpoint);
        match rule.decide(Lsn(lsn), Lsn(checkpoint), Lsn(oldest)) {
            Admit::FlushSelf { until, .. } | Admit::WaitOldest(until) => {
                prop_assert!(age < rule.wait_age && until.0 <= lsn);
            }
            Admit::Go | Admit::WakeCleaner | Admit::TakeCheckpoint => {
                prop_assert!(age < rule.wait_age);
            }
            Admit::Delay { us } => {
                prop_assert!(age < rule.wait_age);
                prop_assert!(age >= rule.delay_age);
                prop_assert!(us <= 1_000_000);
            }
            Admit::WaitCheckpoint { lsn: reached, .. } => {
                prop_assert!(age >= rule.wait_age && reached.0 <= lsn.saturating_add(1));
            }
            Admit::Paced { .. } => prop_assert!(false, "the pace is asked before"),
        }
        prop_assert!(rule.pace.wait_us(checkpoint, Lsn(lsn)) <= 1_000_000);
    }
}

#[test]
fn who_is_ahead_of_the_pace_waits_until_it_is_there() {
    // 1,000 bytes per second from LSN 5,000 on.
    let pace = RedoPace { lsn: Lsn(5000), at_us: 7_000_000, bytes_per_s: 1000, step_us: 1 };
    let wait_us = |now_us, lsn| pace.wait_us(now_us, Lsn(lsn));
    assert_eq!(wait_us(7_000_000, 5000), 0);
    assert_eq!(wait_us(7_000_000, 5100), 100_000);
    assert_eq!(wait_us(7_060_000, 5100), 40_000);
    assert_eq!(wait_us(7_100_000, 5100), 0);
    assert_eq!(wait_us(0, 5100), 1_000_000, "a clock that lags behind");
    assert_eq!(wait_us(u64::MAX, 1 << 50), 0);
    let rule = AdmitRule { pace, ..AdmitRule::wall(u64::MAX) };
    assert_eq!(AdmitRule::from_words(rule.to_words()), rule);
    assert_eq!(RedoPace::FREE.wait_us(0, Lsn(u64::MAX)), 0);
}

#[test]
fn those_whom_the_pace_lets_go_in_one_step_go_at_its_beginning() {
    let pace = RedoPace { lsn: Lsn(5000), at_us: 7_000_000, bytes_per_s: 1000, step_us: 50_000 };
    let wait_us = |now_us, lsn| pace.wait_us(now_us, Lsn(lsn));
    assert_eq!((wait_us(7_000_000, 5050), wait_us(7_000_000, 5051)), (0, 50_000));
    assert_eq!((wait_us(7_010_000, 5051), wait_us(7_010_000, 5099)), (40_000, 40_000));
    assert_eq!((wait_us(7_050_000, 5051), wait_us(7_050_000, 5099)), (0, 0));
    assert_eq!((wait_us(7_050_000, 5100), wait_us(7_050_000, 5101)), (0, 50_000));
    assert_eq!(pace.gather_us(), 50_000 / 4);
}
