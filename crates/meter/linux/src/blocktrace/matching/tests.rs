//! Made-up sequences of events.

use proptest::prelude::*;

use super::*;
use crate::blocktrace::event::Span;

const APP: u32 = 100;
const WORKER: u32 = 7;
const INTERRUPT: u32 = 0;
const LIMITED: MatchOptions = MatchOptions { is_limited: true, knows_callers: true };
const FREE: MatchOptions = MatchOptions { is_limited: false, knows_callers: true };

fn span(kind: RequestKind, sector: u64, sectors: u32) -> Span {
    Span { device: 0, sector, sectors, kind, is_sync: true }
}

fn write(sector: u64, sectors: u32) -> Span {
    span(RequestKind::Write, sector, sectors)
}

fn event(ns: u64, tid: u32, kind: EventKind) -> TraceEvent {
    TraceEvent { ns, tid, kind }
}

fn queued(ns: u64, span: Span) -> TraceEvent {
    event(ns, APP, EventKind::BioQueued { span, by_worker: false })
}

fn got(ns: u64, span: Span) -> TraceEvent {
    event(ns, APP, EventKind::Got(span))
}

fn issued(ns: u64, span: Span) -> TraceEvent {
    event(ns, WORKER, EventKind::Issued(span))
}

fn completed(ns: u64, span: Span) -> TraceEvent {
    event(ns, INTERRUPT, EventKind::Completed(span))
}

fn began(ns: u64, tid: u32, sectors: u64) -> TraceEvent {
    event(ns, tid, EventKind::CallBegan { kind: CallKind::Write, bytes: Some(sectors * 512) })
}

fn ended(ns: u64, tid: u32) -> TraceEvent {
    event(ns, tid, EventKind::CallEnded { kind: CallKind::Write })
}

/// One write of 4 KiB with a time of 10 in each segment.
fn simple(start: u64, sector: u64) -> Vec<TraceEvent> {
    let span = write(sector, 8);
    vec![
        began(start, APP, 8),
        queued(start + 10, span),
        got(start + 12, span),
        event(start + 15, APP, EventKind::Inserted(span)),
        issued(start + 20, span),
        completed(start + 30, span),
        ended(start + 40, APP),
    ]
}

fn ways(matched: &MatchedRequests) -> Vec<(u64, u64, u64)> {
    matched.bios.iter().map(|bio| (bio.queued_ns, bio.issued_ns, bio.completed_ns)).collect()
}

#[test]
fn one_write_goes_its_whole_way() {
    let matched = match_events(simple(1000, 64), &FREE);
    let bio = BioTimes {
        kind: RequestKind::Write,
        queued_ns: 1010,
        got_ns: Some(1012),
        inserted_ns: Some(1015),
        issued_ns: 1020,
        completed_ns: 1030,
        call: Some(0),
    };
    let call = CallTimes {
        kind: CallKind::Write,
        began_ns: 1000,
        queued_ns: 1010,
        completed_ns: 1030,
        ended_ns: 1040,
        bios: 1,
        held_back: false,
    };
    assert_eq!(
        matched,
        MatchedRequests { bios: vec![bio], calls: vec![call], ..MatchedRequests::default() }
    );
}

#[test]
fn merged_bios_complete_with_their_host() {
    let (first, back, front) = (write(100, 8), write(108, 8), write(92, 8));
    let whole = write(92, 24);
    let matched = match_events(
        vec![
            queued(1, first),
            got(2, first),
            queued(3, back),
            event(4, APP, EventKind::BackMerged(back)),
            queued(5, front),
            event(6, APP, EventKind::FrontMerged(front)),
            issued(10, whole),
            completed(20, whole),
        ],
        &FREE,
    );
    assert_eq!(ways(&matched), [(1, 10, 20), (3, 10, 20), (5, 10, 20)]);
    assert_eq!((matched.merged, matched.unmatched), (2, 0));
    assert_eq!(matched.bios[1].got_ns, None);
}

#[test]
fn merged_requests_complete_together() {
    let (first, second) = (write(100, 8), write(108, 8));
    let whole = write(100, 16);
    let matched = match_events(
        vec![
            queued(1, first),
            got(2, first),
            queued(3, second),
            got(4, second),
            event(5, APP, EventKind::RequestMerged(second)),
            issued(10, whole),
            completed(20, whole),
        ],
        &FREE,
    );
    assert_eq!(ways(&matched), [(1, 10, 20), (3, 10, 20)]);
    assert_eq!(matched.unmatched, 0);
}

#[test]
fn halves_of_a_split_bio_arrived_together() {
    let (whole, first, second) = (write(0, 16), write(0, 6), write(6, 10));
    let split = EventKind::Split { device: 0, sector: 0, at: 6 };
    let matched = match_events(
        vec![
            began(0, APP, 16),
            queued(1, whole),
            event(2, APP, split),
            got(3, first),
            got(4, second),
            issued(10, first),
            issued(11, second),
            completed(20, second),
            completed(25, first),
            ended(30, APP),
        ],
        &FREE,
    );
    assert_eq!(ways(&matched), [(1, 11, 20), (1, 10, 25)]);
    let call = matched.calls[0];
    assert_eq!((call.queued_ns, call.completed_ns, call.ended_ns), (1, 25, 30));
}

#[test]
fn a_requeued_request_waits_on_in_the_queue() {
    let span = write(8, 8);
    let matched = match_events(
        vec![
            queued(1, span),
            got(2, span),
            issued(10, span),
            event(11, APP, EventKind::Requeued(span)),
            issued(50, span),
            completed(60, span),
        ],
        &FREE,
    );
    assert_eq!((ways(&matched), matched.requeued), (vec![(1, 50, 60)], 1));
}

#[test]
fn a_request_done_in_parts_is_done_with_the_last() {
    let whole = write(0, 16);
    let matched = match_events(
        vec![
            queued(1, whole),
            got(2, whole),
            issued(3, whole),
            completed(10, write(0, 8)),
            completed(20, write(8, 8)),
        ],
        &FREE,
    );
    assert_eq!((ways(&matched), matched.unmatched), (vec![(1, 3, 20)], 0));
}

#[test]
fn what_is_seen_in_part_adds_no_time() {
    let (before, after, lost) = (write(0, 8), write(8, 8), write(16, 8));
    let mut events = vec![completed(1, before), queued(2, lost), got(3, lost), issued(4, lost)];
    events.push(queued(9, after));
    let matched = match_events(events, &FREE);
    assert_eq!((matched.bios.len(), matched.unmatched), (0, 3));
}

#[test]
fn flushes_are_neither_reads_nor_writes() {
    let flush = span(RequestKind::Flush, 0, 0);
    let empty = span(RequestKind::FlushWrite, 0, 0);
    let journal = span(RequestKind::FlushWrite, 800, 8);
    let data = write(800, 8);
    let matched = match_events(
        vec![
            queued(1, empty),
            got(2, empty),
            issued(3, flush),
            completed(13, span(RequestKind::Flush, u64::MAX, 0)),
            completed(13, write(0, 0)),
            queued(20, journal),
            got(21, journal),
            issued(22, flush),
            completed(30, flush),
            issued(31, data),
            completed(40, data),
        ],
        &FREE,
    );
    assert_eq!(matched, MatchedRequests { flushes_ns: vec![10, 8], ..MatchedRequests::default() });
}

#[test]
fn a_call_that_the_limit_held_back_is_found_by_its_wait() {
    let bio = write(64, 8);
    let by_worker = EventKind::BioQueued { span: bio, by_worker: true };
    let events = vec![
        // Returns too soon, requests another length, waits as well but returns later, comes after.
        began(0, 1, 8),
        ended(50, 1),
        began(0, 2, 16),
        ended(1035, 2),
        began(0, 3, 8),
        ended(2000, 3),
        began(5, APP, 8),
        event(1000, WORKER, by_worker),
        event(1001, WORKER, EventKind::Got(bio)),
        began(1005, 4, 8),
        issued(1010, bio),
        completed(1020, bio),
        ended(1025, 4),
        ended(1030, APP),
    ];
    let matched = match_events(events.clone(), &LIMITED);
    let [call] = matched.calls[..] else { panic!("{:?}", matched.calls) };
    assert_eq!((call.began_ns, call.queued_ns, call.ended_ns), (5, 1000, 1030));
    assert!(call.held_back);
    assert_eq!((matched.bios[0].call, matched.unclaimed), (Some(0), 0));
    assert!(!match_events(events.clone(), &FREE).calls[0].held_back);
    let strangers = MatchOptions { knows_callers: false, ..LIMITED };
    assert!(match_events(events, &strangers).calls.is_empty());
}

#[test]
fn write_back_belongs_to_no_call() {
    let bio = Span { is_sync: false, ..write(64, 8) };
    let by_worker = EventKind::BioQueued { span: bio, by_worker: true };
    let events = vec![
        began(0, APP, 8),
        event(10, WORKER, by_worker),
        event(11, WORKER, EventKind::Got(bio)),
        issued(12, bio),
        completed(20, bio),
        ended(30, APP),
    ];
    let matched = match_events(events, &LIMITED);
    assert_eq!((matched.bios.len(), matched.calls.len(), matched.unclaimed), (1, 0, 0));
}

#[test]
fn ring_requests_of_one_thread_are_told_apart() {
    let (one, two) = (write(0, 8), write(8, 8));
    let submit =
        |ns, request| event(ns, APP, EventKind::RingSubmitted { request, kind: CallKind::Write });
    let post = |ns, request| event(ns, APP, EventKind::RingCompleted { request });
    let mut events = vec![submit(0, 0xa), queued(3, one), got(4, one), submit(10, 0xb)];
    events.extend([queued(15, two), got(16, two), issued(20, one), issued(21, two)]);
    events.extend([completed(30, two), post(31, 0xb), completed(40, one), post(45, 0xa)]);
    let matched = match_events(events, &FREE);
    let ways: Vec<_> = matched
        .calls
        .iter()
        .map(|call| (call.began_ns, call.queued_ns, call.completed_ns, call.ended_ns))
        .collect();
    assert_eq!(ways, [(0, 3, 40, 45), (10, 15, 30, 31)]);
}

proptest! {
    /// Whatever happens, times go forwards, and nothing is counted twice.
    #[test]
    fn any_events_are_survived(
        raw in prop::collection::vec(
            (0_u64..60, 0_u32..3, 0_u8..14, 0_u64..4, 0_u32..3, any::<bool>()),
            0..80,
        )
    ) {
        let events: Vec<TraceEvent> = raw.into_iter().map(|(ns, tid, what, at, length, flag)| {
            let kind = if flag { RequestKind::Write } else { RequestKind::Read };
            event(ns, tid, any_kind(what, span(kind, at * 8, length * 8), flag))
        }).collect();
        let count = |is_it: fn(&EventKind) -> bool| {
            events.iter().filter(|event| is_it(&event.kind)).count()
        };
        let arrived = count(|kind| matches!(kind, EventKind::BioQueued { .. }));
        let cuts = count(|kind| matches!(kind, EventKind::Split { .. }));
        let matched = match_events(events, &LIMITED);
        prop_assert!(matched.bios.len() <= arrived + cuts);
        for bio in &matched.bios {
            prop_assert!(bio.queued_ns <= bio.issued_ns && bio.issued_ns <= bio.completed_ns);
            prop_assert!(bio.got_ns.is_none_or(|got| bio.queued_ns <= got && got <= bio.issued_ns));
            if let (Some(got), Some(inserted)) = (bio.got_ns, bio.inserted_ns) {
                prop_assert!(got <= inserted && inserted <= bio.issued_ns);
            }
        }
        for call in &matched.calls {
            prop_assert!(call.began_ns <= call.queued_ns && call.queued_ns <= call.completed_ns);
            prop_assert!(call.completed_ns <= call.ended_ns);
        }
    }

    /// Processors are read one after the other, so that events come in blocks.
    #[test]
    fn the_order_of_processors_does_not_matter(count in 1_u64..20, seed in any::<u64>()) {
        let events: Vec<TraceEvent> =
            (0..count).flat_map(|n| simple(n * 100, n % 3 * 8)).collect();
        let in_order = match_events(events.clone(), &FREE);
        let (mut first, second): (Vec<_>, Vec<_>) =
            events.iter().enumerate().partition(|(at, _)| seed >> (at % 64) & 1 == 0);
        first.extend(second);
        let mixed = match_events(first.into_iter().map(|(_, event)| *event).collect(), &FREE);
        prop_assert_eq!(in_order.bios.len() as u64, count);
        prop_assert_eq!(in_order, mixed);
    }
}

fn any_kind(what: u8, span: Span, flag: bool) -> EventKind {
    let kind = if flag { CallKind::Write } else { CallKind::Read };
    match what {
        0 | 1 => EventKind::BioQueued { span, by_worker: what == 0 },
        2 => EventKind::BackMerged(span),
        3 => EventKind::FrontMerged(span),
        4 => EventKind::Split { device: 0, sector: span.sector, at: span.sector + 4 },
        5 => EventKind::Got(span),
        6 => EventKind::Inserted(span),
        7 => EventKind::Issued(span),
        8 => EventKind::Requeued(span),
        9 => EventKind::RequestMerged(span),
        10 => EventKind::Completed(span),
        11 => EventKind::CallBegan { kind, bytes: flag.then_some(4096) },
        12 => EventKind::CallEnded { kind },
        _ if flag => EventKind::RingSubmitted { request: span.sector, kind },
        _ => EventKind::RingCompleted { request: span.sector },
    }
}
