//! A wave of jobs as a point, and what measuring it brought.

use iostrata_load::StreamDetail;
use iostrata_plan::fio::{FioJob, FioStream, FioWave};
use iostrata_plan::{Better, Layer, Metric, MetricKind, OpKind, Point, Stream};
use iostrata_run::host::DeviceDelta;
use iostrata_run::{FioJobDocument, FioWaveDocument, Replicate, StreamFigures};
use iostrata_stats::Verdicts;

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

/// What a device did while a wave ran.
pub struct DeviceUse {
    /// The device.
    pub name: String,
    /// The differences of its counters.
    pub delta: DeviceDelta,
}

/// What one wave brought.
pub struct MeasuredWave {
    /// Which.
    pub number: usize,
    /// When it began, in milliseconds since 1970.
    pub began_ms: i64,
    /// Its figures.
    pub replicate: Replicate,
    /// Further figures of each stream.
    pub details: Vec<StreamDetail>,
    /// The devices that its files lie on.
    pub devices: Vec<DeviceUse>,
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
    /// Further figures.
    pub detail: &'a StreamDetail,
}

impl MeasuredStream<'_> {
    /// The depth that was measured, which a target of latency may have chosen.
    pub fn depth(&self, wave: &MeasuredWave) -> u32 {
        let mut measured = wave.replicate.point.streams.iter();
        let of_name = measured.find(|stream| stream.name == self.stream.name);
        of_name.map_or(self.stream.spec.depth, |stream| stream.spec.depth)
    }

    /// It in our own document.
    pub fn document(&self, wave: &MeasuredWave) -> FioJobDocument {
        let mut verdicts = wave.replicate.verdicts.clone();
        verdicts.merge(&self.figures.verdicts);
        FioJobDocument {
            name: self.title(),
            description: self.job.description.clone(),
            group: self.job.group,
            clones: self.stream.spec.jobs,
            figures: io_document(self.figures, wave.replicate.duration_s, &verdicts),
        }
    }

    /// The job's name, with the clone's number where clones are apart.
    fn title(&self) -> String {
        match self.job.streams.len() {
            1 => self.job.name.clone(),
            _ => format!("{}.{}", self.job.name, self.stream.first_clone),
        }
    }
}

impl MeasuredWave {
    /// A wave that made its files and measured nothing on them: its number and when it began.
    pub fn of_none(
        point: Point,
        (number, began_ms): (usize, i64),
        started_s: f64,
        devices: Vec<DeviceUse>,
    ) -> Self {
        let streams = vec![StreamFigures::default(); point.streams.len()];
        let details = vec![StreamDetail::default(); point.streams.len()];
        let (evidence, verdicts) = (None, Verdicts::none());
        let replicate = Replicate {
            point,
            replicate: 0,
            started_s,
            duration_s: 0.0,
            streams,
            evidence,
            verdicts,
        };
        Self { number, began_ms, replicate, details, devices }
    }

    /// Every stream of the wave with its figures.
    pub fn streams<'a>(&'a self, wave: &'a FioWave) -> Vec<MeasuredStream<'a>> {
        let planned =
            wave.jobs.iter().flat_map(|job| job.streams.iter().map(move |one| (job, one)));
        planned
            .zip(self.replicate.streams.iter().zip(&self.details))
            .map(|((job, stream), (figures, detail))| MeasuredStream {
                job,
                stream,
                figures,
                detail,
            })
            .collect()
    }

    /// Its part of the document.
    pub fn document(&self, wave: &FioWave) -> FioWaveDocument {
        let jobs = self.streams(wave).into_iter().map(|one| one.document(self));
        FioWaveDocument { duration_s: self.replicate.duration_s, jobs: jobs.collect() }
    }
}
