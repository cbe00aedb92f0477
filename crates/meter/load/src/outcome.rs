//! What a window brought back, before figures are made of it.
//!
//! Invariant: histograms, slices and bytes of a stream are sums over its workers. It computes no
//! figure.

use iostrata_run::host::OwnIo;
use iostrata_spec::{IoApi, OpKind, SyncWrites};
use iostrata_stats::Verdicts;

use crate::failure::{Failure, LoadFailure};
use crate::job::{JobOutcome, StreamPlan};
use crate::segment::Segment;
use crate::tally::Slices;

/// What one stream brought back.
#[derive(Clone, Debug)]
pub(crate) struct StreamOutcome {
    /// Its plan.
    pub plan: StreamPlan,
    /// Stretches of the window, merged over its workers.
    pub segments: Vec<Segment>,
    /// Tallies per slice.
    pub slices: Slices,
    /// Requests that failed.
    pub failure: Failure,
    /// What was refused and done otherwise.
    pub notes: Vec<String>,
    /// What the APIs and the clock speak against it.
    pub verdicts: Verdicts,
    /// Bytes written from start to end, counting those outside the window.
    pub written_bytes: u64,
    /// The first slice that counts, after a delay or a ramp.
    pub counted_slice: usize,
    /// Seconds from the start of the window to the end of its last worker.
    pub ended_s: f64,
}

/// What a window brought back.
#[derive(Clone, Debug)]
pub struct WindowOutcome {
    /// One entry per stream.
    pub(crate) streams: Vec<StreamOutcome>,
    /// Seconds of one slice.
    pub(crate) slice_s: f64,
    /// Whether the length was fixed beforehand, so that nothing may be cut.
    pub(crate) exact: bool,
    /// Whether a signal ended it.
    pub(crate) interrupted: bool,
}

impl StreamOutcome {
    /// Adds what one worker brought back.
    pub(crate) fn add(&mut self, outcome: JobOutcome, written_bytes: u64) {
        if self.segments.is_empty() {
            self.segments = outcome.segments;
        } else {
            for (mine, theirs) in self.segments.iter_mut().zip(&outcome.segments) {
                mine.merge(theirs);
            }
        }
        self.failure.merge(&outcome.failure);
        self.verdicts.merge(&outcome.verdicts);
        self.written_bytes += written_bytes;
        for note in outcome.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Bytes that requests of a kind moved: all of them are of the spec's block, or each counted.
    pub(crate) fn moved_bytes<'a>(
        &self,
        kind: OpKind,
        slices: &Slices,
        segments: impl IntoIterator<Item = &'a Segment>,
    ) -> u64 {
        let spec = &self.plan.spec;
        if kind != OpKind::Sync && spec.variation.is_plain_loop() {
            return slices.sum(kind).count * u64::from(spec.block_bytes);
        }
        segments.into_iter().filter_map(|one| Some(one.kinds[kind].as_ref()?.bytes)).sum()
    }

    fn failure(&self) -> Option<LoadFailure> {
        let files = &self.plan.files;
        let path = |file: u32| {
            let file = files.get(file as usize);
            file.map_or_else(|| "a file".to_owned(), |file| file.path.display().to_string())
        };
        if let Some(request) = self.failure.first {
            return Some(LoadFailure::Request { request, path: path(request.file) });
        }
        let gone = files.iter().find(|file| !file.path.exists())?;
        Some(LoadFailure::Removed { path: gone.path.display().to_string() })
    }
}

impl WindowOutcome {
    /// Why it ended early, when a request failed or a file vanished.
    pub(crate) fn failure(&self) -> Option<LoadFailure> {
        self.streams.iter().find_map(StreamOutcome::failure)
    }

    fn touching_files(&self) -> impl Iterator<Item = &StreamOutcome> {
        self.streams.iter().filter(|stream| stream.plan.spec.api != IoApi::Null)
    }

    /// Bytes written to files, counting those outside the window.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.touching_files().map(|stream| stream.written_bytes).sum()
    }

    /// What the window's own requests were, for telling foreign ones from them.
    pub(crate) fn own_io(&self) -> OwnIo {
        let mut own = OwnIo { direct: true, ..OwnIo::default() };
        for stream in self.touching_files() {
            let (spec, slices) = (&stream.plan.spec, &stream.slices);
            let [reads, writes, syncs] = OpKind::OF_FILES.map(|kind| slices.sum(kind).count);
            let bytes = |kind| stream.moved_bytes(kind, slices, &stream.segments);
            own.direct &= spec.direct;
            own.reads += reads;
            own.writes += writes;
            own.read_bytes += bytes(OpKind::Read);
            own.written_bytes += bytes(OpKind::Write);
            own.flushes += syncs + if spec.sync == SyncWrites::None { 0 } else { writes };
        }
        own
    }
}
