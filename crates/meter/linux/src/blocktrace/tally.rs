//! From the times of requests to distributions by segment. Pure.
//!
//! Invariant: the times of one call are counted in every segment or in none, so that the means of
//! the segments add up to the mean of the calls where every call is one request.

use iostrata_run::host::{
    ApplicationLatency, BlockLatency, PathSegment, QueueStep, QueueStepLatency, ReadsWrites,
    SegmentLatency, SegmentTimes,
};
use iostrata_stats::LatencyHistogram;

use crate::blocktrace::event::{CallKind, RequestKind};
use crate::blocktrace::matching::{BioTimes, CallTimes, MatchedRequests};

/// Share of the requests that must be the calls' own for only those to count.
const OWN_SHARE_MIN: f64 = 0.5;

/// Times of one direction.
struct Direction {
    segments: Vec<(PathSegment, LatencyHistogram)>,
    steps: Vec<(QueueStep, LatencyHistogram)>,
    calls: LatencyHistogram,
    /// Requests that were left out because the calls' own are the most.
    others: u64,
}

/// The distributions of everything that was matched. Window, devices and losses are the caller's.
pub(crate) fn tally(
    matched: &MatchedRequests,
    application: Option<ApplicationLatency>,
) -> BlockLatency {
    let reads = direction(matched, CallKind::Read);
    let writes = direction(matched, CallKind::Write);
    let segments = PathSegment::ALL.into_iter().map(|segment| SegmentLatency {
        segment,
        reads: find(&reads.segments, segment),
        writes: find(&writes.segments, segment),
    });
    let steps = QueueStep::ALL.into_iter().map(|step| QueueStepLatency {
        step,
        reads: find(&reads.steps, step),
        writes: find(&writes.steps, step),
    });
    let mut latency = BlockLatency {
        requests: matched.bios.len() as u64,
        unmatched: matched.unmatched + out_of_order(matched),
        merged: matched.merged,
        requeued: matched.requeued,
        calls: matched.calls.len() as u64,
        held_back: matched.calls.iter().filter(|call| call.held_back).count() as u64,
        segments: segments.filter(|s| s.reads.is_some() || s.writes.is_some()).collect(),
        queue_steps: steps.filter(|s| s.reads.is_some() || s.writes.is_some()).collect(),
        flushes: times(&histogram(matched.flushes_ns.iter().copied())),
        call_latency: ReadsWrites { reads: times(&reads.calls), writes: times(&writes.calls) },
        application,
        ..BlockLatency::default()
    };
    latency.unexplained = application.map(|application| unexplained(application, &latency));
    latency.notes = notes(matched, reads.others + writes.others);
    latency
}

fn find<K: PartialEq>(all: &[(K, LatencyHistogram)], key: K) -> Option<SegmentTimes> {
    all.iter().find(|(found, _)| *found == key).and_then(|(_, histogram)| times(histogram))
}

fn times(histogram: &LatencyHistogram) -> Option<SegmentTimes> {
    Some(SegmentTimes { count: histogram.count(), latency_us: histogram.summary()? })
}

fn histogram(times_ns: impl Iterator<Item = u64>) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    times_ns.for_each(|ns| histogram.record_ns(ns));
    histogram
}

fn out_of_order(matched: &MatchedRequests) -> u64 {
    let moved = |bio: &&BioTimes| bio.kind != RequestKind::Flush && !is_in_order(bio);
    matched.bios.iter().filter(moved).count() as u64
}

/// Whether the stations of a bio follow each other. Two requests for the same sector at the same
/// time cannot be distinguished, and one of them may have been given the other's station.
fn is_in_order(bio: &BioTimes) -> bool {
    let got = bio.got_ns.unwrap_or(bio.queued_ns);
    let inserted = bio.inserted_ns.filter(|_| bio.got_ns.is_some()).unwrap_or(got);
    bio.queued_ns <= got
        && got <= inserted
        && inserted <= bio.issued_ns
        && bio.issued_ns <= bio.completed_ns
}

/// The same for a call.
fn is_call_in_order(call: &CallTimes) -> bool {
    call.began_ns <= call.queued_ns
        && call.queued_ns <= call.completed_ns
        && call.completed_ns <= call.ended_ns
}

fn direction(matched: &MatchedRequests, kind: CallKind) -> Direction {
    let asked = match kind {
        CallKind::Read => RequestKind::Read,
        _ => RequestKind::Write,
    };
    let all: Vec<&BioTimes> =
        matched.bios.iter().filter(|bio| bio.kind == asked && is_in_order(bio)).collect();
    let own: Vec<&BioTimes> = all.iter().copied().filter(|bio| bio.call.is_some()).collect();
    let only_own = !own.is_empty() && own.len() as f64 >= all.len() as f64 * OWN_SHARE_MIN;
    let others = if only_own { (all.len() - own.len()) as u64 } else { 0 };
    let bios = if only_own { own } else { all };
    let own_calls = matched.calls.iter().filter(|call| call.kind == kind);
    let calls: Vec<&CallTimes> = own_calls.filter(|call| is_call_in_order(call)).collect();
    let mut segments = before_the_queue(&calls);
    let queue = bios.iter().map(|bio| bio.issued_ns - bio.queued_ns);
    segments.push((PathSegment::Queue, histogram(queue)));
    let device = bios.iter().map(|bio| bio.completed_ns - bio.issued_ns);
    segments.push((PathSegment::Device, histogram(device)));
    let completion = calls.iter().map(|call| call.ended_ns - call.completed_ns);
    segments.push((PathSegment::Completion, histogram(completion)));
    Direction {
        segments,
        steps: queue_steps(&bios),
        calls: histogram(calls.iter().map(|call| call.ended_ns - call.began_ns)),
        others,
    }
}

/// The file system's share of a call that was held back cannot be seen; the median of the others
/// stands for it.
fn before_the_queue(calls: &[&CallTimes]) -> Vec<(PathSegment, LatencyHistogram)> {
    let before = |call: &CallTimes| call.queued_ns - call.began_ns;
    let mut free: Vec<u64> =
        calls.iter().filter(|call| !call.held_back).map(|call| before(call)).collect();
    free.sort_unstable();
    let typical = free.get(free.len() / 2).copied().unwrap_or(0);
    let file_system = |call: &CallTimes| {
        if call.held_back { typical.min(before(call)) } else { before(call) }
    };
    let mut segments =
        vec![(PathSegment::Filesystem, histogram(calls.iter().map(|call| file_system(call))))];
    if calls.iter().any(|call| call.held_back) {
        let limit = calls.iter().map(|call| before(call) - file_system(call));
        segments.push((PathSegment::Limit, histogram(limit)));
    }
    segments
}

/// Only of bios with a request of their own: one that joins a neighbour's has no steps.
fn queue_steps(bios: &[&BioTimes]) -> Vec<(QueueStep, LatencyHistogram)> {
    let own = || bios.iter().filter_map(|bio| bio.got_ns.map(|got| (got, bio)));
    let request = own().map(|(got, bio)| got - bio.queued_ns);
    let plug = own().filter_map(|(got, bio)| bio.inserted_ns.map(|inserted| inserted - got));
    let dispatch = own().map(|(got, bio)| bio.issued_ns - bio.inserted_ns.unwrap_or(got));
    vec![
        (QueueStep::Request, histogram(request)),
        (QueueStep::Plug, histogram(plug)),
        (QueueStep::Dispatch, histogram(dispatch)),
    ]
}

fn unexplained(application: ApplicationLatency, latency: &BlockLatency) -> ApplicationLatency {
    let left = |mean: Option<f64>, of: fn(&SegmentLatency) -> Option<SegmentTimes>| {
        let known = latency.segments.iter().filter_map(of).map(|times| times.latency_us.mean);
        mean.map(|mean| mean - known.sum::<f64>())
    };
    ApplicationLatency {
        read_us_mean: left(application.read_us_mean, |segment| segment.reads),
        write_us_mean: left(application.write_us_mean, |segment| segment.writes),
    }
}

fn notes(matched: &MatchedRequests, others: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let requests = matched.bios.len();
    if requests == 0 {
        notes.push("no read or write reached the device in the traced window".to_owned());
    } else if matched.calls.is_empty() {
        notes.push(
            "no call could be matched to a request (page cache, libaio, or calls are not \
             recorded): the time in the file system and after completion is not known"
                .to_owned(),
        );
    }
    if others > 0 {
        notes.push(format!(
            "{others} of {requests} requests were not the application's own calls (journal, \
             metadata, write-back, others) and are left out"
        ));
    }
    let bios: u64 = matched.calls.iter().map(|call| u64::from(call.bios)).sum();
    if bios > matched.calls.len() as u64 {
        notes.push(format!(
            "{} calls took {bios} device requests: the segments of one call overlap, so their \
             means do not add up to its latency",
            matched.calls.len()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bio(queued_ns: u64, got_ns: Option<u64>, inserted_ns: Option<u64>) -> BioTimes {
        BioTimes {
            kind: RequestKind::Read,
            queued_ns,
            got_ns,
            inserted_ns,
            issued_ns: 300,
            completed_ns: 400,
            call: None,
        }
    }

    #[test]
    fn a_request_that_was_given_anothers_station_is_left_out_and_counted() {
        let sound = bio(100, Some(150), Some(200));
        let bios = vec![
            sound,
            bio(160, Some(150), Some(200)),
            bio(100, Some(150), Some(120)),
            bio(100, Some(150), Some(350)),
            bio(350, None, None),
        ];
        let latency = tally(&MatchedRequests { bios, ..MatchedRequests::default() }, None);
        assert_eq!((latency.requests, latency.unmatched), (5, 4));
        let queue = latency.segment(PathSegment::Queue).and_then(|found| found.reads).unwrap();
        assert_eq!(queue.count, 1);
        assert!((queue.latency_us.mean - 0.2).abs() < 0.01);
    }
}
