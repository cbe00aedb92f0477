//! A wave of jobs as a point, and what measuring it brought.

use iostrata_run::{FioJobDocument, FioWaveDocument, Replicate, StreamFigures};
use iostrata_spec::fio::{FioJob, FioStream, FioWave};
use iostrata_spec::{Better, Layer, Metric, MetricKind, OpKind, Point, Stream};

use crate::io_parts::io_document;

/// The point of a wave.
pub fn point(number: usize, wave: &FioWave) -> Point {
    let streams: Vec<Stream> = wave
        .jobs
        .iter()
        .flat_map(|job| &job.streams)
        .map(|stream| Stream { name: stream.name.clone(), spec: stream.spec.clone() })
        .collect();
    let reads = streams.first().is_none_or(|stream| stream.spec.mix.reads());
    let names: Vec<&str> = wave.jobs.iter().map(|job| job.name.as_str()).collect();
    Point {
        id: format!("wave_{}", number + 1),
        title: names.join(", "),
        layer: Layer::FileApi,
        streams,
        metric: Metric {
            stream: 0,
            op: if reads { OpKind::Read } else { OpKind::Write },
            kind: MetricKind::TotalIops,
            unit: "requests/s".to_owned(),
            better: Better::Higher,
        },
        curve: None,
        block: "fio".to_owned(),
        levels: Vec::new(),
        transactions: None,
    }
}

/// What one wave brought.
pub struct MeasuredWave {
    /// Which.
    pub number: usize,
    /// Its figures.
    pub replicate: Replicate,
}

/// One stream of a wave with its figures.
#[derive(Clone, Copy)]
pub struct MeasuredStream<'a> {
    /// The job it belongs to.
    pub job: &'a FioJob,
    /// The workload.
    pub stream: &'a FioStream,
    /// Its figures.
    pub figures: &'a StreamFigures,
}

impl MeasuredStream<'_> {
    /// The job's name, with the clone's number where clones are apart.
    fn title(&self) -> String {
        match self.job.streams.len() {
            1 => self.job.name.clone(),
            _ => format!("{}.{}", self.job.name, self.stream.first_clone),
        }
    }
}

impl MeasuredWave {
    /// Every stream of the wave with its figures.
    pub fn streams<'a>(&'a self, wave: &'a FioWave) -> Vec<MeasuredStream<'a>> {
        let planned =
            wave.jobs.iter().flat_map(|job| job.streams.iter().map(move |one| (job, one)));
        planned
            .zip(&self.replicate.streams)
            .map(|((job, stream), figures)| MeasuredStream { job, stream, figures })
            .collect()
    }

    /// Its part of the document.
    pub fn document(&self, wave: &FioWave) -> FioWaveDocument {
        let jobs = self.streams(wave).into_iter().map(|one| {
            let mut verdicts = self.replicate.verdicts.clone();
            verdicts.merge(&one.figures.verdicts);
            FioJobDocument {
                name: one.title(),
                description: one.job.description.clone(),
                group: one.job.group,
                clones: one.stream.spec.jobs,
                figures: io_document(one.figures, self.replicate.duration_s, &verdicts),
            }
        });
        FioWaveDocument { duration_s: self.replicate.duration_s, jobs: jobs.collect() }
    }
}
