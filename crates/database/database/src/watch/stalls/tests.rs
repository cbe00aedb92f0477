//! Stalls in series of seconds, and what does not count as one.

use crate::target::TargetSample;
use iostrata_run::StallCause;

use super::*;

/// A second of a course: transactions, sessions that wait, and the age in percent.
type Second = (u64, u64, u64);

/// Which seconds stalled, and every stall.
fn course(seconds: impl IntoIterator<Item = Second>) -> (Vec<usize>, Vec<TransactionStall>) {
    course_of(seconds.into_iter().map(|(tps, running, age)| (tps, Some(running), age)))
}

fn course_of(
    seconds: impl IntoIterator<Item = (u64, Option<u64>, u64)>,
) -> (Vec<usize>, Vec<TransactionStall>) {
    let (mut stalls, mut total) = (Stalls::default(), 0);
    let (mut stalled, mut all): (Vec<usize>, Vec<TransactionStall>) = Default::default();
    for (second, (tps, sessions_running, age)) in seconds.into_iter().enumerate() {
        total += tps;
        let sample = TargetSample {
            transactions: Some(total),
            sessions_running,
            checkpoint_age_bytes: Some(age),
            checkpoint_age_limit_bytes: Some(100),
            ..TargetSample::default()
        };
        let found =
            stalls.take(SampleMoment { at_s: second as f64, sample, ..SampleMoment::default() });
        if found.is_going {
            stalled.push(second);
        }
        if let Some(stall) = found.stall {
            match all.last_mut().filter(|last| last.t_s == stall.t_s) {
                Some(last) => *last = stall,
                None => all.push(stall),
            }
        }
    }
    (stalled, all)
}

fn steady(n: usize, tps: u64) -> impl Iterator<Item = Second> {
    // A deterministic tremble of a tenth.
    (0..n).map(move |n| (tps * (95 + (n as u64 * 37) % 11) / 100, 8, 70))
}

#[test]
fn redo_that_runs_full_is_a_stall_with_its_start_and_cause() {
    // What was measured, second by second, on a volume of 1,500 writes per second.
    let fall = [(190, 8, 99), (3, 8, 100), (42, 8, 100), (287, 8, 97), (524, 8, 90)];
    let (stalled, all) = course(steady(30, 610).chain(fall).chain(steady(10, 640)));
    assert_eq!(stalled, [30, 31, 32, 33]);
    let [stall] = &all[..] else { panic!("{all:?}") };
    assert_eq!((stall.t_s, stall.length_s, stall.min_tps), (29.0, 4.0, 3.0));
    assert_eq!(stall.cause, StallCause::RedoFull);
}

#[test]
fn a_long_stall_does_not_become_usual() {
    let long = (0..200).map(|_| (2, 8, 100));
    let (stalled, all) = course(steady(20, 500).chain(long).chain(steady(5, 500)));
    assert_eq!((stalled.len(), all.len()), (200, 1));
    assert_eq!((all[0].t_s, all[0].length_s), (19.0, 200.0));
}

#[test]
fn a_short_breath_does_not_end_a_stall() {
    let breath = [(0, 8, 100), (0, 8, 100), (400, 8, 100), (0, 8, 100)];
    let (stalled, all) = course(steady(20, 500).chain(breath).chain(steady(5, 500)));
    assert_eq!(stalled, [20, 21, 23]);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].length_s, all[0].min_tps), (4.0, 0.0));
}

#[test]
fn where_nobody_sends_nothing_stalls() {
    let idle = (0..100).map(|_| (0, 0, 100));
    let (stalled, all) = course(steady(30, 500).chain(idle).chain(steady(30, 500)));
    assert!(stalled.is_empty() && all.is_empty(), "{all:?}");
    // Two of ten clients go on.
    let fewer = (0..60).map(|_| (90, 2, 99));
    assert_eq!(course(steady(30, 500).chain(fewer)).0, [0; 0]);
}

#[test]
fn ten_minutes_of_tremble_raise_nothing() {
    // Poisson-like counts of a slow server, with requests in flight all the time.
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    for mean in [0.5_f64, 3.0, 12.0, 40.0, 300.0] {
        let quiet: Vec<Second> = (0..600)
            .map(|_| {
                let (mut count, mut left) = (0, mean);
                loop {
                    left += (1.0 - draw()).ln();
                    if left < 0.0 {
                        break (count, 3, 60);
                    }
                    count += 1;
                }
            })
            .collect();
        assert_eq!(course(quiet).0, [0; 0], "{mean} per second");
    }
}

#[test]
fn a_slow_server_stalls_too() {
    let slow = (0..60).map(|n| (3 + n % 3, 2, 60));
    let (stalled, _) = course(slow.chain((0..12).map(|_| (0, 8, 60))));
    assert!(stalled.len() >= 6, "{stalled:?}");
}

#[test]
fn what_nothing_explains_is_another_load_after_a_minute() {
    let slower = (0..180).map(|_| (100, 8, 60));
    let (stalled, all) = course(steady(60, 500).chain(slower));
    assert!((55..=62).contains(&stalled.len()), "{}", stalled.len());
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].cause, StallCause::Unknown);
}

#[test]
fn who_does_not_tell_its_sessions_stalls_where_a_cause_shows() {
    let usual = || (0..30).map(|_| (500, None, 70));
    let full = course_of(usual().chain((0..5).map(|_| (1, None, 100))));
    assert_eq!(full.0, [30, 31, 32, 33, 34]);
    let idle = course_of(usual().chain((0..50).map(|_| (0, None, 60))));
    assert_eq!(idle.0, [0; 0]);
}

#[test]
fn tenths_of_a_second_are_looked_at_second_by_second() {
    let (mut stalls, mut total, mut stalled) = (Stalls::default(), 0, Vec::new());
    for tenth in 0..150_u64 {
        // Bursts: five tenths with nothing in between are no stall.
        total += if tenth % 10 < 5 || (100..130).contains(&tenth) { 0 } else { 100 };
        let sample = TargetSample {
            transactions: Some(total),
            sessions_running: Some(8),
            ..TargetSample::default()
        };
        let moment = SampleMoment { at_s: tenth as f64 / 10.0, sample, ..SampleMoment::default() };
        if stalls.take(moment).is_going {
            stalled.push(tenth);
        }
    }
    assert!(stalled.first().is_some_and(|first| (104..=108).contains(first)), "{stalled:?}");
    assert!(stalled.last().is_some_and(|last| (130..=140).contains(last)), "{stalled:?}");
}

#[test]
fn tasks_that_wait_for_processors_at_its_beginning_are_not_its_cause_for_good() {
    let cause = |looks: &[SessionWaits]| {
        let (mut stalls, mut total, mut asked) = (Stalls::default(), 0, looks.iter());
        let mut last = None;
        for second in 0..40_u64 {
            total += if second < 30 { 600 } else { 0 };
            let sample = TargetSample {
                transactions: Some(total),
                sessions_running: Some(6),
                ..TargetSample::default()
            };
            last = stalls
                .take(SampleMoment { at_s: second as f64, sample, ..SampleMoment::default() })
                .stall
                .or(last);
            if stalls.needs_session_waits()
                && let Some(waits) = asked.next()
            {
                last = stalls.explain(*waits);
            }
        }
        (last.unwrap().cause, asked.count())
    };
    let processor = SessionWaits { processor: 5, ..SessionWaits::default() };
    let semi_sync = SessionWaits { semi_sync: 6, ..SessionWaits::default() };
    assert_eq!(cause(&[processor, semi_sync, semi_sync]), (StallCause::SemiSync, 1));
    assert_eq!(cause(&[processor, SessionWaits::default()]), (StallCause::Unknown, 0));
    assert_eq!(cause(&[processor; 7]), (StallCause::Processors, 1), "in turns after the third");
    let later = [processor, processor, processor, semi_sync];
    assert_eq!(cause(&later), (StallCause::SemiSync, 0), "they began to wait for it meanwhile");
}

#[test]
fn a_server_that_others_keep_from_processors_stalls_though_no_session_is_seen_at_work() {
    let course_of = |[usual_running, low_tps]: [u64; 2],
                     [usual_pct, pressure_pct]: [f64; 2],
                     (waiting, waited_pct): (u64, u64)| {
        let (mut stalls, mut total, mut stalled) = (Stalls::default(), 0, Vec::new());
        for second in 0..40_u64 {
            let is_low = second >= 30;
            total += if is_low { low_tps } else { 6_000 };
            let sample = TargetSample {
                transactions: Some(total),
                sessions_running: Some(if is_low { 0 } else { usual_running }),
                ..TargetSample::default()
            };
            let pressure_pct = Some(if is_low { pressure_pct } else { usual_pct });
            let processors = ProcessorWaits { pressure_pct, throttled_pct: None };
            let moment =
                SampleMoment { at_s: second as f64, sample, processors, ..SampleMoment::default() };
            let found = stalls.take(moment);
            let waits = SessionWaits {
                processor: waiting,
                processor_waited_pct: waited_pct,
                ..SessionWaits::default()
            };
            let explained = stalls.needs_session_waits().then(|| stalls.explain(waits)).flatten();
            let stall = explained.or(found.stall.filter(|_| found.is_going));
            stalled.extend(stall.map(|stall| (second, stall.cause)));
        }
        stalled
    };
    let course = |pressure, waits| course_of([6, 100], pressure, waits);
    let starved: Vec<_> = (30..40).map(|second| (second, StallCause::Processors)).collect();
    assert_eq!(course([5.0, 95.0], (4, 70)), starved);
    assert_eq!(course([5.0, 95.0], (1, 97)), starved, "clients are held up as well");
    assert_eq!(course([5.0, 95.0], (1, 70)), [], "most of its sessions went away");
    assert_eq!(course([90.0, 95.0], (4, 70)), starved, "others took some of them before");
    assert_eq!(course([5.0, 95.0], (0, 97)), [], "its load went away while others work");
    assert_eq!(course([5.0, 8.0], (4, 97)), [], "processors are there");
    // Clients are slower than the server: no sample sees a session at work.
    assert_eq!(course_of([0, 100], [90.0, 95.0], (4, 97)), starved);
    assert_eq!(course_of([0, 100], [90.0, 95.0], (4, 70)), [], "it runs when it has to");
    assert_eq!(course_of([0, 0], [90.0, 95.0], (1, 97)), [], "its load went away");
}

#[test]
fn redo_that_waits_for_its_device_is_not_said_to_wait_for_a_processor() {
    let cause = |uninterruptible: u64| {
        let (mut stalls, mut total, mut last) = (Stalls::default(), 0, None);
        for second in 0..40_u64 {
            let is_low = second >= 30;
            total += if is_low { 2 } else { 6_000 };
            let sample = TargetSample {
                transactions: Some(total),
                sessions_running: Some(4),
                redo_end_bytes: Some(1_000 * (second + 1)),
                redo_durable_bytes: Some(1_000 * second.min(30)),
                ..TargetSample::default()
            };
            let pressure_pct = Some(if is_low { 95.0 } else { 5.0 });
            let processors = ProcessorWaits { pressure_pct, throttled_pct: None };
            last = stalls
                .take(SampleMoment {
                    at_s: second as f64,
                    sample,
                    processors,
                    ..SampleMoment::default()
                })
                .stall
                .or(last);
            if stalls.needs_session_waits() {
                let waits =
                    SessionWaits { processor: 2, uninterruptible, ..SessionWaits::default() };
                last = stalls.explain(waits).or(last);
            }
        }
        last.unwrap().cause
    };
    assert_eq!(cause(1), StallCause::Device);
    assert_eq!(cause(0), StallCause::Processors);
}

#[test]
fn a_stall_without_a_cause_says_what_the_hypervisor_took() {
    let evidence = |stolen_pct: f64| {
        let (mut stalls, mut total) = (Stalls::default(), 0);
        let moments = (0..34_u64).map(|second| {
            let is_low = second >= 30;
            total += if is_low { 100 } else { 600 };
            let sample = TargetSample {
                transactions: Some(total),
                sessions_running: Some(8),
                ..TargetSample::default()
            };
            let stolen_pct = Some(if is_low { stolen_pct } else { 1.0 });
            SampleMoment { at_s: second as f64, sample, stolen_pct, ..SampleMoment::default() }
        });
        let last = moments.filter_map(|moment| stalls.take(moment).stall).last().unwrap();
        assert_eq!(last.cause, StallCause::Unknown);
        last.evidence
    };
    let taken = "; 44 % of the processor time went to other virtual machines";
    assert!(evidence(44.0).ends_with(taken), "{}", evidence(44.0));
    assert!(!evidence(15.0).contains("virtual"), "that halves nothing");
}

/// What was measured of a MariaDB whose redo has been past its async limit for long, on a volume of
/// 1,500 writes per second: transactions and pages written in each second, MB of checkpoint age,
/// sessions that wait.
const PAST_ASYNC: [(u64, u64, u64, u64); 60] = [
    (421, 10, 78, 4),
    (400, 47, 79, 5),
    (384, 20, 77, 7),
    (369, 73, 76, 3),
    (391, 7, 77, 6),
    (344, 4, 77, 7),
    (449, 3, 78, 6),
    (314, 7, 76, 5),
    (326, 12, 75, 5),
    (363, 80, 76, 3),
    (378, 200, 65, 4),
    (412, 68, 68, 6),
    (371, 67, 70, 4),
    (401, 68, 73, 3),
    (263, 0, 75, 8),
    (98, 2000, 75, 7),
    (67, 0, 75, 8),
    (94, 2003, 75, 8),
    (86, 1999, 75, 5),
    (83, 0, 76, 8),
    (78, 2001, 75, 3),
    (109, 2001, 76, 8),
    (90, 0, 76, 8),
    (100, 2001, 76, 6),
    (177, 1475, 75, 2),
    (294, 616, 75, 4),
    (382, 458, 75, 2),
    (362, 340, 75, 5),
    (450, 166, 75, 6),
    (400, 170, 75, 4),
    (424, 123, 77, 4),
    (396, 116, 77, 4),
    (379, 133, 77, 4),
    (469, 74, 79, 5),
    (441, 43, 77, 3),
    (441, 57, 78, 6),
    (424, 154, 79, 5),
    (426, 68, 75, 6),
    (427, 69, 74, 4),
    (437, 68, 73, 8),
    (415, 86, 66, 5),
    (457, 92, 68, 5),
    (436, 90, 71, 2),
    (381, 78, 71, 7),
    (421, 80, 71, 4),
    (434, 77, 72, 5),
    (403, 293, 71, 3),
    (375, 293, 73, 5),
    (286, 0, 76, 7),
    (72, 2001, 75, 5),
    (82, 0, 76, 8),
    (79, 2001, 75, 8),
    (96, 1996, 75, 7),
    (91, 0, 76, 6),
    (102, 2000, 76, 5),
    (85, 2000, 75, 8),
    (126, 1079, 75, 8),
    (297, 369, 76, 5),
    (265, 459, 76, 6),
    (339, 429, 76, 3),
];

#[test]
fn a_dense_stretch_of_pages_past_the_async_limit_is_told_as_the_redo() {
    let (mut stalls, mut transactions, mut pages) = (Stalls::default(), 0, 0);
    let found = PAST_ASYNC.iter().zip(1_u64..).filter_map(|((tps, written, age, running), at)| {
        (transactions, pages) = (transactions + tps, pages + written);
        let sample = TargetSample {
            transactions: Some(transactions),
            pages_flushed: Some(pages),
            sessions_running: Some(*running),
            checkpoint_age_bytes: Some(age * 1_000_000),
            checkpoint_age_async_bytes: Some(73_689_801),
            checkpoint_age_limit_bytes: Some(84_216_915),
            ..TargetSample::default()
        };
        stalls.take(SampleMoment { at_s: at as f64, sample, ..SampleMoment::default() }).stall
    });
    let mut causes: Vec<(f64, StallCause)> = found.map(|one| (one.t_s, one.cause)).collect();
    causes.dedup();
    assert_eq!(causes, [(15.0, StallCause::RedoFull), (49.0, StallCause::RedoFull)]);
}
