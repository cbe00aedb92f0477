//! Random writes on one and on several files: where the file lock bites, and where it does not.

use iostrata_plan::{
    Access, CurvePlace, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Layer, Mix,
    OpKind, Point, Preparation, rung,
};

use super::{Block, alone, point, rate_of, size, spec};
use crate::probe::shape::{PAGE_BYTES, Shape};

/// Threads that write at the same time.
const JOBS: u32 = 8;

pub(super) fn blocks(shape: &Shape) -> Vec<Block> {
    let overwrite = |files| {
        let mut point = over_files("write", "overwrites", shape, files, |_| ());
        point.curve = Some(CurvePlace {
            curve: "write_files".to_owned(),
            axis: "files".to_owned(),
            x: f64::from(files),
        });
        point
    };
    let mixed = |files| {
        over_files("mixed", "reads and writes 70:30", shape, files, |spec| {
            spec.mix = Mix::Both { read_pct: 70 };
        })
    };
    let unwritten = |files| {
        over_files("unwritten", "first writes", shape, files, |spec| {
            (spec.preparation, spec.access) = (Preparation::Fallocated, Access::Coverage);
        })
    };
    let buffered = |files| {
        over_files("buffered", "buffered overwrites", shape, files, |spec| {
            spec.direct = false;
            spec.flush = Some(flush_every(64));
        })
    };
    let block = |points: Vec<Point>| Block { points, replicates: 4 };
    vec![
        block([1, 2, 4, 8].map(overwrite).to_vec()),
        block([1, 8].map(mixed).to_vec()),
        block([1, 8].map(unwritten).to_vec()),
        block([1, 8].map(buffered).to_vec()),
    ]
}

/// Sequential writes of one thread: extending an empty file against overwriting.
pub(super) fn append_blocks(shape: &Shape) -> Vec<Block> {
    let sequential = |id: &str, title: &str, preparation| {
        let mut spec = spec(shape, Mix::Write, IoApi::Sync, 500);
        (spec.access, spec.preparation) = (Access::Sequential, preparation);
        let title = format!("{} {title}, 1 thread", size(PAGE_BYTES));
        let metric = rate_of(OpKind::Write, "writes/s");
        point(id, title, Layer::Filesystem, "append", alone(spec), metric)
    };
    let points = vec![
        sequential(rung::OVERWRITE_16K, "overwrites in order", Preparation::Written),
        sequential(rung::APPEND_16K, "appends", Preparation::Empty),
    ];
    vec![Block { points, replicates: 4 }]
}

fn over_files(
    kind: &str,
    words: &str,
    shape: &Shape,
    files: u32,
    change: impl FnOnce(&mut IoSpec),
) -> Point {
    let mut spec = spec(shape, Mix::Write, IoApi::Sync, 500);
    (spec.jobs, spec.files) = (JOBS, files);
    change(&mut spec);
    let plural = if files == 1 { "file" } else { "files" };
    let title = format!("{} {words}, {JOBS} threads, {files} {plural}", size(PAGE_BYTES));
    let unit = "writes/s";
    point(
        format!("{kind}_16k_files_{files}"),
        title,
        Layer::Filesystem,
        &format!("{kind}_files"),
        alone(spec),
        rate_of(OpKind::Write, unit),
    )
}

pub(super) fn flush_every(every: u32) -> Flush {
    Flush {
        method: FlushMethod::Fdatasync,
        every,
        scope: FlushScope::File,
        count: FlushCount::Writes,
    }
}
