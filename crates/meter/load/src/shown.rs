//! What a worker shows of itself while the window is open.
//!
//! Purpose: workers keep their histograms to themselves, and some are processes; who prints figures
//! meanwhile asks, and each worker copies what it has into shared words at its next slice.
//! Invariants: what is shown covers whole slices, so that it agrees with the tallies that are
//! posted; copying allocates nothing, and happens only when somebody asked.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use iostrata_plan::OpKind;
use iostrata_stats::{Latencies, LatencyHistogram};

use crate::detail::{CLASSES, RequestDetail};
use crate::segment::{KindSegment, Segment};
use crate::usage::ThreadUse;

/// Odd while the words are written.
const SEQUENCE: usize = 0;
/// How many slices of the window are covered.
const SLICES: usize = 1;
const USED: usize = 2;
const PACING: usize = 7;
const CLASSED: usize = 8;
const KINDS: usize = CLASSED + 3 * CLASSES;
/// Words of a kind: its bytes, and histograms of service, submission and completion.
const KIND_WORDS: usize = 1 + 3 * LatencyHistogram::WORDS;
/// How often a reader begins again when a worker wrote meanwhile.
const READS_MAX: usize = 1_000;

/// Words of a worker that does these kinds of operations.
pub(crate) fn words_of(kinds: usize) -> usize {
    KINDS + kinds * KIND_WORDS
}

/// Copies what segments of a worker hold, which cover so many slices.
pub(crate) fn write(words: &[AtomicU64], kinds: &[OpKind], slices: usize, segments: &[Segment]) {
    let sequence = words[SEQUENCE].load(Relaxed);
    words[SEQUENCE].store(sequence + 1, Relaxed);
    fence(Release);
    words[SLICES..].iter().for_each(|word| word.store(0, Relaxed));
    words[SLICES].store(slices as u64, Relaxed);
    let mut used = ThreadUse::default();
    for segment in segments {
        used.add(segment.cpu);
        add(&words[PACING], segment.pacing_ns);
        if let Some(detail) = &segment.detail {
            let counts = detail.depths.iter().chain(&detail.submissions).chain(&detail.completions);
            words[CLASSED..].iter().zip(counts).for_each(|(word, count)| add(word, *count));
        }
        for (words, kind) in words[KINDS..].chunks_exact(KIND_WORDS).zip(kinds) {
            let Some(of_kind) = &segment.kinds[*kind] else { continue };
            add(&words[0], of_kind.bytes);
            let detail = segment.detail.as_deref();
            let histograms = [
                Some(&of_kind.latencies.service),
                detail.and_then(|detail| detail.submission[*kind].as_ref()),
                detail.and_then(|detail| detail.completion[*kind].as_ref()),
            ];
            let areas = words[1..].chunks_exact(LatencyHistogram::WORDS);
            areas.zip(histograms).for_each(|(area, one)| add_histogram(area, one));
        }
    }
    for (word, value) in words[USED..].iter().zip([
        used.user_s.to_bits(),
        used.sys_s.to_bits(),
        used.context_switches,
        used.major_faults,
        used.minor_faults,
    ]) {
        word.store(value, Relaxed);
    }
    words[SEQUENCE].store(sequence + 2, Release);
}

fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Relaxed) + more, Relaxed);
}

fn add_histogram(area: &[AtomicU64], histogram: Option<&LatencyHistogram>) {
    for (index, value) in histogram.into_iter().flat_map(LatencyHistogram::words) {
        match index {
            LatencyHistogram::MAX_WORD => {
                area[index].store(area[index].load(Relaxed).max(value), Relaxed);
            }
            _ => add(&area[index], value),
        }
    }
}

/// What a worker showed last, as one segment that begins at slice 0, and the slices it covers.
/// `None` before it showed anything.
pub(crate) fn read(words: &[AtomicU64], kinds: &[OpKind]) -> Option<(usize, Segment)> {
    for _ in 0..READS_MAX {
        let sequence = words[SEQUENCE].load(Acquire);
        if sequence == 0 {
            return None;
        }
        let shown = segment(words, kinds);
        fence(Acquire);
        if sequence.is_multiple_of(2) && words[SEQUENCE].load(Relaxed) == sequence {
            return Some((words[SLICES].load(Relaxed) as usize, shown));
        }
    }
    None
}

fn segment(words: &[AtomicU64], kinds: &[OpKind]) -> Segment {
    let word = |at: usize| words[at].load(Relaxed);
    let mut detail = RequestDetail::default();
    let RequestDetail { depths, submissions, completions, .. } = &mut detail;
    let counts = depths.iter_mut().chain(submissions).chain(completions);
    counts.zip(CLASSED..).for_each(|(count, at)| *count = word(at));
    let mut shown = Segment {
        cpu: ThreadUse {
            user_s: f64::from_bits(word(USED)),
            sys_s: f64::from_bits(word(USED + 1)),
            context_switches: word(USED + 2),
            major_faults: word(USED + 3),
            minor_faults: word(USED + 4),
        },
        pacing_ns: word(PACING),
        ..Segment::default()
    };
    for (words, kind) in words[KINDS..].chunks_exact(KIND_WORDS).zip(kinds) {
        let mut areas = words[1..].chunks_exact(LatencyHistogram::WORDS);
        let mut next = || {
            let area = areas.next().unwrap_or_default();
            LatencyHistogram::of_words(|at| area[at].load(Relaxed))
        };
        let [service, submission, completion] = [next(), next(), next()];
        let latencies = Latencies { service, response: None };
        shown.kinds.insert(*kind, KindSegment { latencies, bytes: words[0].load(Relaxed) });
        if !submission.is_empty() {
            detail.submission.insert(*kind, submission);
            detail.completion.insert(*kind, completion);
        }
    }
    shown.detail = Some(Box::new(detail));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Recorded;

    #[test]
    fn what_was_written_is_read_whatever_was_there_before() {
        let kinds = [OpKind::Read, OpKind::Write];
        let words: Vec<AtomicU64> = (0..words_of(kinds.len())).map(|_| AtomicU64::new(0)).collect();
        assert!(read(&words, &kinds).is_none());
        let recorded =
            Recorded { kinds: kinds.to_vec(), scheduled: false, detail: true, is_apart: true };
        let mut segments = [Segment::new(0, &recorded), Segment::new(5, &recorded)];
        for (at, segment) in segments.iter_mut().enumerate() {
            segment.record(OpKind::Read, 1_000 + at as u64, 0);
            segment.add_bytes(OpKind::Read, 512);
            segment.pacing_ns = 3;
            segment.cpu.context_switches = 7;
            let detail = segment.detail.as_mut().unwrap();
            detail.record(OpKind::Read, 400, 600);
            detail.depths[2] += 1;
        }
        write(&words, &kinds, 9, &segments);
        write(&words, &kinds, 11, &segments);
        let (slices, shown) = read(&words, &kinds).unwrap();
        let mut sum = Segment::default();
        segments.iter().for_each(|segment| sum.merge(segment));
        assert_eq!((slices, shown.pacing_ns, shown.cpu), (11, 6, sum.cpu));
        let latencies = |segment: &Segment, kind: OpKind| {
            segment.kinds[kind].as_ref().map(|one| (one.latencies.clone(), one.bytes))
        };
        for kind in kinds {
            assert_eq!(latencies(&shown, kind), latencies(&sum, kind));
        }
        let (shown, sum) = (shown.detail.unwrap(), sum.detail.unwrap());
        assert_eq!(shown.submission[OpKind::Read], sum.submission[OpKind::Read]);
        assert_eq!(shown.completion[OpKind::Read], sum.completion[OpKind::Read]);
        assert_eq!(shown.depths, sum.depths);
    }
}
