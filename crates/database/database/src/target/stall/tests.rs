//! Stalls of seconds 10 to 14 in a minute of samples.

use super::*;

const STALLED: StallSpan = StallSpan { from_s: 10.2, to_s: 14.1, sessions: 8 };

/// A sample per second; `at` makes each from its second and whether it is within the stall.
fn samples(at: impl Fn(u64, bool) -> TargetSample) -> Vec<StallSample> {
    let sampled = |second: u64| {
        let is_within = (11..=14).contains(&second);
        StallSample { at_s: second as f64, sample: Ok(at(second, is_within)) }
    };
    (0..60).map(sampled).collect()
}

fn cause(at: impl Fn(u64, bool) -> TargetSample) -> StallCause {
    let (cause, evidence) = stall_cause(&samples(at), STALLED);
    assert!(!evidence.is_empty());
    cause
}

fn nothing() -> TargetSample {
    TargetSample::default()
}

/// A counter that grows by `usual` per second, and by `stalled` within the stall.
fn counter(second: u64, usual: u64, stalled: u64) -> Option<u64> {
    let within = second.clamp(10, 14) - 10;
    Some(usual * (second - within) + stalled * within)
}

#[test]
fn each_cause_is_named_by_its_evidence() {
    let age = |_, is_within| TargetSample {
        checkpoint_age_bytes: Some(if is_within { 98 } else { 70 }),
        checkpoint_age_limit_bytes: Some(100),
        ..nothing()
    };
    assert_eq!(cause(age), StallCause::RedoFull);
    let waits = |second, _| TargetSample { redo_waits: counter(second, 0, 9), ..nothing() };
    assert_eq!(cause(waits), StallCause::RedoFull);
    let furious =
        |second, _| TargetSample { pages_flushed_for_redo: counter(second, 0, 900), ..nothing() };
    assert_eq!(cause(furious), StallCause::RedoFull);
    let free = |second, _| TargetSample { free_page_waits: counter(second, 1, 50), ..nothing() };
    assert_eq!(cause(free), StallCause::FreePages);
    let buffer = |second, _| TargetSample { log_buffer_waits: counter(second, 0, 4), ..nothing() };
    assert_eq!(cause(buffer), StallCause::LogBuffer);
    let purge = |_, _| TargetSample {
        history_list_length: Some(5_000),
        history_list_limit: Some(1_000),
        ..nothing()
    };
    assert_eq!(cause(purge), StallCause::Purge);
    // Each takes 1 ms, and 100 ms within the stall.
    let slow = |second, _| TargetSample {
        redo_flushes: counter(second, 1_000, 10),
        redo_flush_us: counter(second, 1_000_000, 1_000_000),
        ..nothing()
    };
    assert_eq!(cause(slow), StallCause::Device);
    let even = |second, _| TargetSample {
        redo_flushes: counter(second, 10, 10),
        redo_flush_us: counter(second, 1_000_000, 1_000_000),
        ..nothing()
    };
    assert_eq!(cause(even), StallCause::Unknown);
    let lock = |_, is_within: bool| TargetSample {
        row_locks_waiting: Some(if is_within { 7 } else { 0 }),
        ..nothing()
    };
    assert_eq!(cause(lock), StallCause::Lock);
    let stuck = |second: u64, is_within| TargetSample {
        redo_end_bytes: Some(1_000 * (second + 1)),
        redo_durable_bytes: Some(if is_within { 10_500 } else { 1_000 * second }),
        ..nothing()
    };
    assert_eq!(cause(stuck), StallCause::Device);
    let stuck_later = |second: u64, is_within: bool| TargetSample {
        redo_durable_bytes: Some(if is_within && second > 11 { 12_000 } else { 1_000 * second }),
        ..stuck(second, is_within)
    };
    assert_eq!(cause(stuck_later), StallCause::Device, "for 2 of its 3 seconds");
    let starved = |second, is_within: bool| TargetSample {
        session_waits: is_within.then(|| SessionWaits { processor: 5, ..SessionWaits::default() }),
        ..stuck(second, is_within)
    };
    assert_eq!(cause(starved), StallCause::Processors, "they sync late, too");
    let asleep = |second, is_within: bool| TargetSample {
        session_waits: is_within.then(|| SessionWaits {
            processor: 5,
            uninterruptible: 1,
            ..SessionWaits::default()
        }),
        ..stuck(second, is_within)
    };
    assert_eq!(cause(asleep), StallCause::Device, "one of them waits for it at every look");
    let pending = |_, is_within| TargetSample {
        pending_reads: Some(0),
        pending_writes: Some(u64::from(is_within)),
        ..nothing()
    };
    assert_eq!(cause(pending), StallCause::Device);
}

#[test]
fn redo_that_is_synced_once_a_second_is_not_stuck_within_the_second() {
    let short = |pending: u64, samples_per_sync: u64| {
        let sampled = |at: u64| {
            let is_within = at >= 34;
            let sample = TargetSample {
                redo_end_bytes: Some(1_000 * (at + 5)),
                redo_durable_bytes: Some(1_000 * at.min(33).next_multiple_of(samples_per_sync)),
                pending_writes: Some(if is_within { pending } else { 1 }),
                pending_reads: Some(0),
                ..nothing()
            };
            StallSample { at_s: at as f64 * 0.3, sample: Ok(sample) }
        };
        let all: Vec<StallSample> = (0..37).map(sampled).collect();
        stall_cause(&all, StallSpan { from_s: 10.0, to_s: 11.0, sessions: 8 }).0
    };
    assert_eq!(short(0, 1), StallCause::Unknown);
    assert_eq!(short(1, 1), StallCause::Device);
    // Redo waits as long while nothing stalls: commits do not require it, and what is in flight are
    // pages.
    assert_eq!(short(1, 3), StallCause::Unknown);
}

#[test]
fn redo_that_is_synced_once_a_second_explains_no_stall_of_many_seconds() {
    let long = |last_sync: u64| {
        let sampled = |at: u64| {
            let sample = TargetSample {
                redo_end_bytes: Some(1_000 * (at + 5)),
                redo_durable_bytes: Some(1_000 * at.min(last_sync).next_multiple_of(4)),
                pending_writes: Some(0),
                pending_reads: Some(0),
                ..nothing()
            };
            StallSample { at_s: at as f64 * 0.3, sample: Ok(sample) }
        };
        let all: Vec<StallSample> = (0..60).map(sampled).collect();
        stall_cause(&all, StallSpan { from_s: 10.0, to_s: 16.0, sessions: 8 }).0
    };
    assert_eq!(long(60), StallCause::Unknown);
    assert_eq!(long(33), StallCause::Device, "nothing was synced for all of it");
}

#[test]
fn what_is_as_usual_explains_nothing() {
    let even = |second, _| TargetSample {
        checkpoint_age_bytes: Some(80),
        checkpoint_age_limit_bytes: Some(100),
        redo_end_bytes: Some(1_000 * second + 10),
        redo_durable_bytes: Some(1_000 * second),
        redo_waits: Some(0),
        log_buffer_waits: counter(second, 3, 3),
        free_page_waits: counter(second, 20, 20),
        history_list_length: Some(50_000),
        pending_reads: Some(1),
        pending_writes: Some(1),
        row_locks_waiting: Some(2),
        ..nothing()
    };
    let (cause, evidence) = stall_cause(&samples(even), STALLED);
    assert_eq!(cause, StallCause::Unknown);
    assert_eq!(evidence, "4 samples within it show none of the known causes");
}

#[test]
fn an_age_that_fell_while_a_stall_goes_on_does_not_explain_it() {
    let full_until = |last: u64| {
        move |second: u64, is_within: bool| TargetSample {
            checkpoint_age_bytes: Some(if is_within && second <= last { 99 } else { 5 }),
            checkpoint_age_limit_bytes: Some(100),
            ..nothing()
        }
    };
    assert_eq!(cause(full_until(13)), StallCause::RedoFull);
    assert_eq!(cause(full_until(11)), StallCause::Unknown);
}

#[test]
fn an_age_past_the_async_limit_explains_a_stall_where_it_is_not_usual() {
    let past = |usual: u64, stalled: u64| {
        move |_, is_within: bool| TargetSample {
            checkpoint_age_bytes: Some(if is_within { stalled } else { usual }),
            checkpoint_age_async_bytes: Some(88),
            checkpoint_age_limit_bytes: Some(100),
            ..nothing()
        }
    };
    assert_eq!(cause(past(70, 90)), StallCause::RedoFull);
    assert_eq!(cause(past(70, 86)), StallCause::Unknown);
    assert_eq!(cause(past(89, 91)), StallCause::Unknown);
    let writing = |per_s: [u64; 2]| {
        move |second, is_within| TargetSample {
            pages_flushed: counter(second, per_s[0], per_s[1]),
            ..past(89, 91)(second, is_within)
        }
    };
    assert_eq!(cause(writing([100, 1_000])), StallCause::RedoFull, "a dense stretch of pages");
    assert_eq!(cause(writing([100, 120])), StallCause::Unknown, "no more is written than usual");
    let free = |second, is_within| TargetSample {
        free_page_waits: counter(second, 1, 50),
        ..past(70, 90)(second, is_within)
    };
    assert_eq!(cause(free), StallCause::FreePages, "waits that are counted say more");
}

#[test]
fn a_target_that_does_not_answer_is_told() {
    let mut refused = samples(|_, _| nothing());
    refused[12].sample = Err("2013".to_owned());
    let found = stall_cause(&refused, STALLED);
    assert_eq!(found, (StallCause::Unknown, "the target did not answer: 2013".to_owned()));
    let found = stall_cause(&[], STALLED);
    assert_eq!(found, (StallCause::Unknown, "no sample was taken meanwhile".to_owned()));
}

#[test]
fn a_counter_that_began_anew_explains_nothing() {
    let restarted = |second, _| TargetSample {
        redo_waits: Some(if second < 12 { 1_000 } else { 3 }),
        ..nothing()
    };
    assert_eq!(cause(restarted), StallCause::Unknown);
}

#[test]
fn a_short_stall_between_two_samples_has_counters_only() {
    let short = StallSpan { from_s: 20.1, to_s: 20.8, sessions: 8 };
    let full = |second: u64, _| TargetSample {
        redo_waits: Some(if second > 20 { 5 } else { 0 }),
        pending_reads: Some(1),
        pending_writes: Some(0),
        ..nothing()
    };
    assert_eq!(stall_cause(&samples(full), short).0, StallCause::RedoFull);
    let pending =
        |_, _| TargetSample { pending_reads: Some(1), pending_writes: Some(0), ..nothing() };
    assert_eq!(stall_cause(&samples(pending), short).0, StallCause::Unknown);
}

#[test]
fn a_high_age_explains_nothing_while_every_session_waits_for_a_lock() {
    let waiting = |waiting: [u64; 2]| {
        move |second: u64, is_within: bool| TargetSample {
            checkpoint_age_bytes: Some(96),
            checkpoint_age_limit_bytes: Some(100),
            row_locks_waiting: Some(if is_within { waiting[usize::from(second > 11)] } else { 1 }),
            ..nothing()
        }
    };
    assert_eq!(cause(waiting([6, 8])), StallCause::Lock);
    assert_eq!(cause(waiting([6, 7])), StallCause::RedoFull, "one session waits for the redo");
    assert_eq!(cause(waiting([3, 8])), StallCause::RedoFull, "most had no lock to wait for once");
}

#[test]
fn an_age_that_always_stands_high_gives_way_to_what_counts_waits() {
    let high = |second, is_within: bool| TargetSample {
        checkpoint_age_bytes: Some(97),
        checkpoint_age_limit_bytes: Some(100),
        log_buffer_waits: counter(second, 0, 40),
        pending_writes: Some(u64::from(is_within)),
        ..nothing()
    };
    assert_eq!(cause(high), StallCause::LogBuffer);
    let alone =
        |second, is_within| TargetSample { log_buffer_waits: None, ..high(second, is_within) };
    assert_eq!(cause(alone), StallCause::RedoFull, "where nothing else counts, it is the redo");
    let risen = |second, is_within| TargetSample {
        checkpoint_age_bytes: Some(if is_within { 97 } else { 80 }),
        ..high(second, is_within)
    };
    assert_eq!(cause(risen), StallCause::RedoFull, "it rose with the stall");
}

#[test]
fn what_holds_writers_up_in_most_samples_is_the_cause_of_a_stall_that_began_otherwise() {
    // Of the four samples within, the first so many are of a disk that was slow.
    let locked_after = |slow: u64| {
        move |second: u64, is_within: bool| TargetSample {
            row_locks_waiting: Some(if is_within && second > 10 + slow { 8 } else { 0 }),
            ..nothing()
        }
    };
    let (found, evidence) = stall_cause(&samples(locked_after(1)), STALLED);
    assert_eq!(found, StallCause::Lock);
    let told = "at least 8 of 8 sessions waited for row locks in 3 of 4 samples within it";
    assert_eq!(evidence, told);
    assert_eq!(cause(locked_after(2)), StallCause::Unknown, "half of them are not most");
    let held_back_after = |slow: u64| {
        move |second: u64, _| TargetSample {
            history_list_length: Some(50_000),
            history_list_limit: (second > 10 + slow).then_some(200),
            ..nothing()
        }
    };
    let (found, evidence) = stall_cause(&samples(held_back_after(1)), STALLED);
    assert_eq!(found, StallCause::Purge);
    assert!(evidence.contains("below 50000 in 3 of 4 samples within it"), "{evidence}");
    assert_eq!(cause(held_back_after(2)), StallCause::Unknown);
}

#[test]
fn a_full_queue_of_a_group_and_tasks_without_a_processor_are_named() {
    let with = |waits: SessionWaits| {
        move |_, is_within| TargetSample {
            session_waits: Some(waits).filter(|_| is_within),
            ..nothing()
        }
    };
    let group = |group_queue| SessionWaits {
        group_queue,
        group_queue_limit: 25_000,
        ..SessionWaits::default()
    };
    assert_eq!(cause(with(group(25_001))), StallCause::FlowControl);
    assert_eq!(cause(with(group(24_999))), StallCause::Unknown);
    let tasks = |processor| SessionWaits { processor, ..SessionWaits::default() };
    assert_eq!(cause(with(tasks(4))), StallCause::Processors);
    assert_eq!(cause(with(tasks(3))), StallCause::Unknown, "less than half of the sessions");
    // What explains it otherwise comes first.
    let locked = |_, is_within: bool| TargetSample {
        row_locks_waiting: Some(if is_within { 5 } else { 0 }),
        session_waits: Some(tasks(8)).filter(|_| is_within),
        ..nothing()
    };
    assert_eq!(cause(locked), StallCause::Lock);
}

#[test]
fn a_low_time_is_a_stall_where_chance_does_not_explain_it() {
    let is_stall = |usual_tps: f64, length_s: f64, share: f64| {
        let spell = LowSpell { start_s: 5.0, length_s, share_min: share, share };
        StallRule::WINDOW.is_stall(&spell, usual_tps)
    };
    assert!(is_stall(1_000.0, 0.1, 0.4), "40 of 100 transactions");
    assert!(!is_stall(25.0, 1.0, 0.48), "12 of 25 come by chance in a second of many");
    assert!(is_stall(25.0, 1.0, 0.1), "2 of 25 do not");
    assert!(!is_stall(0.5, 22.0, 0.0), "none of 11 in a time of many");
    assert!(is_stall(0.5, 60.0, 0.0), "none of 30");
}
