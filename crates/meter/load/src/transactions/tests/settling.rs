//! Commits that are durable later, and sessions that go away.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_plan::{OpKind, TransactionPacing};
use iostrata_stats::Verdict;

use super::stand_in::{Act, Event, StandIn, only, spec};
use crate::clock::{MonotonicClock, clock_facts};
use crate::failure::LoadFailure;
use crate::figures::WindowFigures;
use crate::observer::{NoObserver, Surroundings};
use crate::transactions::window::TransactionWindow;

const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

#[test]
fn pending_commits_are_settled_in_order_and_only_then_counted() {
    let sessions = StandIn::new(|_, _| Act::Pending(100 * US, 3 * MS));
    let figures = sessions.measure(&spec(8, 1.0, TransactionPacing::Closed));
    let events = sessions.events();
    let mut committed = Vec::new();
    let (mut settled, mut most) = (0, 0);
    for event in &events {
        match event {
            Event::Ran { slot, .. } => committed.push(*slot),
            Event::Settled { slot, .. } => {
                assert_eq!(*slot, committed[settled], "in the order of the commits");
                settled += 1;
            }
            other => panic!("{other:?}"),
        }
        most = most.max(committed.len() - settled);
    }
    assert_eq!(most, 8, "the others run while one becomes durable");
    let in_window =
        |event: &&Event| matches!(event, Event::Settled { at_ns, .. } if *at_ns < 1_000_000_001);
    let expected = events.iter().filter(in_window).count() as u64;
    let done = only(&figures).ops[OpKind::Transaction].as_ref().unwrap();
    assert_eq!(done.ios, expected, "what is settled after the window is not counted");
    assert_eq!(settled, committed.len(), "nothing is left pending");
    assert!(done.latency_us.p50 >= 3_070.0, "the latency runs to the settlement: {done:?}");
    // Eight in flight, each for about 3.1 ms.
    assert!((2_400..=2_600).contains(&done.ios), "{}", done.ios);
}

#[test]
fn a_commit_that_never_is_durable_is_an_error() {
    let act = |n: u64| if n % 10 == 9 { Act::Undone(MS) } else { Act::Pending(MS, MS) };
    let figures =
        StandIn::new(move |n, _| act(n)).measure(&spec(4, 1.0, TransactionPacing::Closed));
    let stream = only(&figures);
    let done = stream.ops[OpKind::Transaction].as_ref().unwrap().ios;
    let lost = stream.transactions.as_ref().unwrap().errors["lost"];
    assert!(lost.abs_diff(done / 9) <= 1, "{lost} of {done}");
}

#[test]
fn what_is_due_is_not_kept_waiting_by_a_commit() {
    // Commits of 50 ms, and an arrival every 10 ms.
    let sessions = StandIn::new(|_, _| Act::Pending(MS, 50 * MS));
    let pacing = TransactionPacing::Open {
        rate_per_s: 100.0,
        process: iostrata_plan::RateProcess::Fixed,
        queue_max: 10,
        overload: iostrata_plan::Overload::Queue,
    };
    let figures = sessions.measure(&spec(16, 10.0, pacing));
    let stream = only(&figures);
    let response = stream.ops[OpKind::Transaction].as_ref().unwrap().response_us.unwrap();
    assert!(response.p50 < 52_000.0 && response.p99 < 53_000.0, "{response:?}");
    assert!(stream.start_lateness_us_p99.unwrap() < 300.0);
}

#[test]
fn a_session_that_is_gone_is_opened_again_with_growing_patience() {
    let away = Duration::from_secs(5);
    let act = move |n: u64| if n == 1_000 { Act::Goes(away) } else { Act::Done(MS) };
    let sessions = StandIn::new(move |n, _| act(n));
    let figures = sessions.measure(&spec(1, 20.0, TransactionPacing::Closed));
    let stream = only(&figures);
    let counts = stream.transactions.as_ref().unwrap();
    assert_eq!(counts.errors.iter().collect::<Vec<_>>(), [(&"2013".to_owned(), &1)]);
    let done = stream.ops[OpKind::Transaction].as_ref().unwrap().ios;
    assert!((14_000..=15_000).contains(&done), "{done}: 20 s less 5 to 6 s");
    let refused: Vec<u64> = sessions
        .events()
        .iter()
        .filter_map(|event| if let Event::Refused { at_ns } = event { Some(*at_ns) } else { None })
        .collect();
    assert!((8..=14).contains(&refused.len()), "{refused:?}");
    let patience: Vec<u64> = refused.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(patience.is_sorted() && patience.last().unwrap() <= &1_000_000_000, "{patience:?}");
}

#[test]
fn a_window_ends_early_when_every_session_stays_away() {
    let sessions = StandIn::new(|n, _| match n {
        0..50 => Act::Done(Duration::ZERO),
        _ => Act::Goes(Duration::MAX / 4),
    });
    let mut spec = spec(2, 60.0, TransactionPacing::Closed);
    spec.gone_max = Duration::from_millis(100);
    let interrupted = AtomicBool::new(false);
    let surroundings = Surroundings { interrupted: &interrupted, program: None };
    let outcome = TransactionWindow::new(&sessions, &spec, clock_facts(), MonotonicClock)
        .unwrap()
        .run(&surroundings, &mut NoObserver)
        .unwrap();
    let figures = WindowFigures::of(&outcome);
    let code = "2002".to_owned();
    assert_eq!(figures.failure, Some(LoadFailure::SessionsGone { sessions: 2, seconds: 0, code }));
    assert!(figures.duration_s < 30.0, "{} s", figures.duration_s);
    let done = only(&figures).ops[OpKind::Transaction].as_ref().unwrap().ios;
    assert!((50..=100).contains(&done), "what was measured until then is kept: {done}");
}

fn failure_of(act: impl Fn(u64) -> Act + Sync + 'static) -> (Option<LoadFailure>, f64) {
    let figures =
        StandIn::new(move |n, _| act(n)).measure(&spec(2, 10.0, TransactionPacing::Closed));
    (figures.failure, figures.duration_s)
}

#[test]
fn a_window_ends_at_a_failure_that_every_other_transaction_would_share() {
    let act = |n| if n < 100 { Act::Done(MS) } else { Act::Ends("1792") };
    let (failure, duration_s) = failure_of(act);
    let (code, text) = ("1792".to_owned(), "it said 1792".to_owned());
    assert_eq!(failure, Some(LoadFailure::Refused { code, text }));
    assert!(duration_s < 5.0, "{duration_s} s");
}

#[test]
fn a_window_of_which_most_transactions_fail_is_a_failure() {
    let share = |of: u64| move |n: u64| if n % 10 < of { Act::Fails("1") } else { Act::Done(MS) };
    assert_eq!(failure_of(share(4)).0, None);
    let Some(LoadFailure::TransactionsFailed { failed, done, code, text }) = failure_of(share(6)).0
    else {
        panic!("six of ten fail")
    };
    assert!(done > 0 && failed > done, "{failed} {done}");
    assert_eq!((code.as_str(), text.as_str()), ("1", "it said 1"));
}

#[test]
fn a_window_in_which_the_disk_was_full_is_a_failure_and_no_burst() {
    let rate = |n: u64| match n {
        5_000 => Act::Spoils("no_space"),
        0..5_000 => Act::Done(Duration::from_micros(500)),
        _ => Act::Done(8 * MS),
    };
    let spec = spec(1, 20.0, TransactionPacing::Closed);
    let fallen = StandIn::new(move |n, _| rate(n + u64::from(n >= 5_000))).measure(&spec);
    let total = |figures: &WindowFigures| only(figures).total.clone().unwrap().verdicts;
    assert!(total(&fallen).has(Verdict::BurstLimited), "{:?}", total(&fallen));
    let full = StandIn::new(move |n, _| rate(n)).measure(&spec);
    let Some(LoadFailure::TransactionsFailed { failed: 1, code, .. }) = &full.failure else {
        panic!("{:?}", full.failure)
    };
    assert_eq!(code, "no_space");
    assert!(!total(&full).has(Verdict::BurstLimited));
    assert!(!only(&full).verdicts.has(Verdict::BurstLimited));
}
