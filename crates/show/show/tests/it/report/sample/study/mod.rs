//! A made-up study in the shape of the one on the flash card of 2012: raw device, ext4 and XFS,
//! direct and fsync, two block sizes, six levels of workers, one to eight files.

mod evidence;
mod summary;

use std::sync::LazyLock;

use iostrata_plan::OpKind;
use iostrata_plan::study::{FactorLevels, LevelAt};
use iostrata_run::{StudyDocument, StudyOp, StudyPoint};
use iostrata_stats::{Interval, Verdict, Verdicts};

use super::events::{Noise, percentiles};

use evidence::{block_latency, profile};
pub use summary::axes;

/// The workers of the long form.
pub const WORKERS: [u32; 6] = [1, 4, 16, 64, 128, 256];

/// One combination of levels.
#[derive(Clone, Copy)]
pub struct At {
    pub filesystem: &'static str,
    pub rw: &'static str,
    pub bs: &'static str,
    pub workers: u32,
    pub method: &'static str,
    pub files: u32,
}

impl At {
    fn id(&self) -> String {
        let Self { filesystem, rw, bs, workers, method, files } = self;
        format!("{filesystem}_{rw}_{bs}_w{workers}_{method}_f{files}")
    }

    fn levels(&self) -> Vec<LevelAt> {
        let at = |factor: &str, level: &str| LevelAt { factor: factor.into(), level: level.into() };
        let mut levels = vec![
            at("filesystem", self.filesystem),
            at("rw", self.rw),
            at("bs", self.bs),
            at("workers", &self.workers.to_string()),
            at("method", self.method),
        ];
        if self.filesystem != "raw" {
            levels.push(at("files", &self.files.to_string()));
        }
        levels
    }

    fn title(&self) -> String {
        let rw = match self.rw {
            "randread" => "random reads",
            "randwrite" => "random writes",
            _ => "random reads and writes",
        };
        let place = match self.filesystem {
            "raw" => "raw device".to_owned(),
            name => format!("{name}, {}, {} file(s)", self.method, self.files),
        };
        format!("{rw}, {}, {place}, {} workers", self.bs, self.workers)
    }

    /// What the sample device would do.
    pub fn iops(&self) -> f64 {
        let peak = match (self.rw, self.bs) {
            ("randread", "4k") => 182_000.0,
            ("randread", _) => 71_000.0,
            (_, "4k") => 118_000.0,
            _ => 58_000.0,
        };
        let w = f64::from(self.workers);
        let free = peak * w / (w + 5.0);
        if self.filesystem == "raw" || self.rw == "randread" {
            let share = if self.filesystem == "ext4" { 0.93 } else { 0.99 };
            return free * if self.filesystem == "raw" { 1.0 } else { share };
        }
        let files = f64::from(self.files);
        match (self.filesystem, self.method) {
            ("ext4", "direct") => free.min(15_300.0 * files),
            ("ext4", _) => free.min(19_800.0 * files) * 0.8,
            (_, "direct") if w > 4.0 => {
                (52_000.0 * files / (1.0 + 0.16 * w.ln().powi(2))).min(free)
            }
            ("xfs", "direct") => free * 0.97,
            _ => free.min(9_400.0 * files),
        }
    }
}

/// Every combination of the study.
pub fn combinations() -> Vec<At> {
    let mut all = Vec::new();
    for filesystem in ["raw", "ext4", "xfs"] {
        for rw in ["randread", "randwrite", "randrw"] {
            for bs in ["4k", "16k"] {
                for workers in WORKERS {
                    for method in ["direct", "fsync"] {
                        let excluded = filesystem == "raw" || rw == "randread";
                        if method == "fsync" && excluded {
                            continue;
                        }
                        all.push(At { filesystem, rw, bs, workers, method, files: 1 });
                    }
                }
            }
        }
    }
    for filesystem in ["ext4", "xfs"] {
        for bs in ["4k", "16k"] {
            for workers in [4, 16, 64] {
                for files in [2, 4, 8] {
                    let (rw, method) = ("randwrite", "direct");
                    all.push(At { filesystem, rw, bs, workers, method, files });
                }
            }
        }
    }
    all
}

pub fn around(value: f64, share: f64) -> Option<Interval> {
    Some([value * (1.0 - share), value * (1.0 + share)])
}

fn op(iops: f64, mean: f64, share: f64) -> StudyOp {
    StudyOp {
        iops,
        iops_ci95: around(iops, share),
        iops_n: 96,
        latency_us: percentiles(mean),
        latency_us_mean_ci95: around(mean, share),
        latency_percentiles: Vec::new(),
        response_us: None,
        response_percentiles: Vec::new(),
    }
}

fn point(at: &At, noise: &mut Noise) -> StudyPoint {
    let value = at.iops() * (1.0 + 0.012 * noise.next());
    let share = 0.02 + 0.015 * noise.next().abs();
    let (reads, writes) = match at.rw {
        "randread" => (1.0, 0.0),
        "randwrite" => (0.0, 1.0),
        _ => (0.5, 0.5),
    };
    let mean = f64::from(at.workers) * 1e6 / value;
    let part = |of: f64| (of > 0.0).then(|| op(value * of, mean * (0.7 + of * 0.3), share));
    let flushes = (at.method == "fsync").then(|| op(value * writes, mean * 0.6, share));
    let bytes = if at.bs == "4k" { 4096.0 } else { 16384.0 };
    let mut verdicts = Verdicts::none();
    if at.workers == 256 && at.rw == "randrw" {
        verdicts.add(Verdict::NotSteady);
    }
    if at.filesystem == "raw" && at.workers >= 64 {
        verdicts.add(Verdict::CpuLimited);
    }
    StudyPoint {
        id: at.id(),
        title: at.title(),
        levels: at.levels(),
        value,
        value_ci95: around(value, share),
        value_n: 96,
        value_range: None,
        unit: "IOPS".into(),
        bytes_per_s: value * bytes,
        replicates: 3,
        measured_s: 4.5,
        ops: OpKind::OF_FILES
            .into_iter()
            .zip([part(reads), part(writes), flushes])
            .filter_map(|(kind, op)| Some((kind, op?)))
            .collect(),
        depth_mean: f64::from(at.workers) * 0.98,
        cpu_ns_per_io: Some(6_200.0 + f64::from(at.workers) * 11.0),
        switches_per_io: Some(1.02),
        cpu: Some(evidence::cpu(at)),
        device: Some(evidence::iostat(at, value)),
        queue: Vec::new(),
        emulated: None,
        io_pressure_full_pct: Some(41.5),
        io_limit_used_pct: None,
        profile: Some(profile(at, noise)),
        latency_by_layer: Some(block_latency(at, mean)),
        transactions: None,
        verdicts,
    }
}

fn factors() -> Vec<FactorLevels> {
    let factor = |name: &str, levels: &[&str], is_axis: bool| FactorLevels {
        factor: name.into(),
        levels: levels.iter().map(|one| (*one).to_owned()).collect(),
        is_axis,
    };
    vec![
        factor("filesystem", &["raw", "ext4", "xfs"], false),
        factor("rw", &["randread", "randwrite", "randrw"], false),
        factor("bs", &["4k", "16k"], true),
        factor("workers", &["1", "4", "16", "64", "128", "256"], true),
        factor("method", &["direct", "fsync"], false),
        factor("files", &["1", "2", "4", "8"], true),
    ]
}

/// The whole document, made once in a process.
pub fn document() -> StudyDocument {
    static DOCUMENT: LazyLock<StudyDocument> = LazyLock::new(build);
    DOCUMENT.clone()
}

fn build() -> StudyDocument {
    let mut noise = Noise::new(7);
    let points: Vec<StudyPoint> = combinations().iter().map(|at| point(at, &mut noise)).collect();
    let mut document = summary::around_points(points);
    document.factors = factors();
    document.axes = summary::axes(&document);
    document
}
