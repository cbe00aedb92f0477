//! How a replicate's histograms are handed to the run directory.

use iostrata_load::{Histograms, kind_index};
use iostrata_run::{LatencyKind, Replicate, StreamHistogram};
use iostrata_spec::OpKind;

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
