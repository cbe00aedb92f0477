//! How a run is kept: progress to the display, events and histograms to the run directory.

use iostrata_load::{Histograms, kind_index};
use iostrata_run::{Event, LatencyKind, Replicate, RunWriteError, StreamHistogram};
use iostrata_spec::OpKind;
use iostrata_study::{Listener, StudyError};

use crate::display::Display;
use crate::run_dir::RunDir;

/// Passes progress to the display and events to the run directory.
pub struct Keeper<'a> {
    /// Where progress is shown.
    pub display: &'a Display,
    /// Where events are kept.
    pub run_dir: &'a mut RunDir,
    /// Whether the run goes on when they cannot be kept any more.
    pub goes_on: bool,
}

impl Keeper<'_> {
    fn written(&mut self, written: Result<(), RunWriteError>) -> Result<(), StudyError> {
        match written {
            Err(error) if self.goes_on => {
                self.display.note(&format!("{error}; going on without the run directory"));
                self.run_dir.lose(error);
                Ok(())
            }
            written => Ok(written?),
        }
    }
}

impl Listener for Keeper<'_> {
    fn progress(&mut self, share: f64, text: &str) {
        self.display.progress(share, text);
    }

    fn note(&mut self, text: &str) {
        self.display.note(text);
    }

    fn store(&mut self, event: &Event) -> Result<(), StudyError> {
        let written = self.run_dir.writer.as_mut().map_or(Ok(()), |writer| writer.append(event));
        self.written(written)
    }

    fn store_replicate(
        &mut self,
        replicate: &Replicate,
        histograms: &[Histograms],
    ) -> Result<(), StudyError> {
        let parts = histogram_parts(replicate, histograms);
        let writer = self.run_dir.writer.as_mut();
        let written = writer.map_or(Ok(()), |writer| writer.append_replicate(replicate, &parts));
        self.written(written)
    }
}

/// The histograms of a replicate as they are kept.
pub fn histogram_parts<'a>(
    replicate: &'a Replicate,
    histograms: &'a [Histograms],
) -> Vec<StreamHistogram<'a>> {
    let mut parts = Vec::new();
    for (stream, histograms) in replicate.streams.iter().zip(histograms) {
        for op in [OpKind::Read, OpKind::Write, OpKind::Sync] {
            let Some(latency) = &histograms.kinds[io_index(op)] else { continue };
            let part =
                |kind, histogram| StreamHistogram { stream: &stream.name, op, kind, histogram };
            parts.push(part(LatencyKind::Service, &latency.service));
            if let Some(response) = &latency.response {
                parts.push(part(LatencyKind::Response, response));
            }
        }
    }
    parts
}

fn io_index(op: OpKind) -> usize {
    kind_index(match op {
        OpKind::Read => iostrata_io::OpKind::Read,
        OpKind::Write => iostrata_io::OpKind::Write,
        OpKind::Sync => iostrata_io::OpKind::Sync,
    })
}
