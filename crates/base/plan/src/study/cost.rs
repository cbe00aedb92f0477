//! What running a plan would cost.
//!
//! Invariant: pure, so that it can be shown before anything is touched. What the device decides is
//! assumed, and the assumption is a named constant.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::pacing::{Pacing as Pace, TRACED_S};
use super::setting::ENGINE;
use super::{Cell, StudyPlan, Volume, VolumeKind};
use crate::{IoSpec, Mix, Pacing, Preparation, TransactionSpec};
use iostrata_stats::units::parse_size;

/// Making and mounting one volume.
const VOLUME_S: f64 = 1.0;
/// Filling goes at least at this speed on anything but one disk.
const FILL_BYTES_PER_S: f64 = 400.0 * 1024.0 * 1024.0;
/// And at this on an emulated one; the model of a disk that turns sets the pace.
const FILL_EMULATED_BYTES_PER_S: f64 = 80.0 * 1024.0 * 1024.0;
/// Making and mounting one emulated volume.
const EMULATED_VOLUME_S: f64 = 2.0;
/// A device faster than this writes more than the bound.
const REQUESTS_PER_S_MAX: f64 = 300_000.0;
/// And one request after the other, faster than this.
const REQUESTS_PER_S_EACH_MAX: f64 = 100_000.0;
/// The largest requests of a database, and the most that it writes.
const DATABASE_WRITE_BYTES: f64 = 1024.0 * 1024.0;
const DATABASE_BYTES_PER_S_MAX: f64 = 400.0 * 1024.0 * 1024.0;
const WRITTEN_BYTES_PER_S_MAX: f64 = 2.0 * 1024.0 * 1024.0 * 1024.0;

/// A server's data directory before there is any table of ours in it, with what grows of it.
const SERVER_BYTES: u64 = 400 << 20;
/// Bytes of a warehouse of TPC-C, with what a study adds to it.
const WAREHOUSE_BYTES: u64 = 160 << 20;
/// Bytes of an object of `stress` with its history.
const OBJECT_BYTES: u64 = 3_000;
/// Making a server's data directory, starting and ending it for the load.
const SERVER_S: f64 = 12.0;
/// Loading a warehouse.
const WAREHOUSE_S: f64 = 4.0;
/// Bytes of a row with its share of the indexes, of pages that are not full and of what grows.
const ROW_BYTES: u64 = 400;
/// The redo of a database where it is not set.
const REDO_BYTES: u64 = 128 << 20;
/// What MySQL calls it.
const SERVER_REDO: &str = "server.innodb_redo_log_capacity";
/// Everything else that a database keeps: doublewrite files, versions, room to grow.
const DATABASE_BYTES: u64 = 128 << 20;

/// What a plan costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanCost {
    /// Points.
    pub points: usize,
    /// Replicates of every point that the plan requires.
    pub replicates_asked: u32,
    /// Replicates of every point, on average, that fit into the time; at least one. A point that is
    /// precise before gets those that the plan requires, and others its time.
    pub replicates: f64,
    /// Length of a window, in seconds: the text's, or a shorter one for which there is time.
    pub window_s: f64,
    /// Seconds for all of it.
    pub duration_s: f64,
    /// The same where every warm-up takes as long as it may, within the budget.
    pub duration_s_max: f64,
    /// Seconds of that for volumes and files.
    pub preparation_s: f64,
    /// Seconds at a fixed 60 s per point, once each.
    pub fixed_minute_s: f64,
    /// Different volumes.
    pub volumes: usize,
    /// Bytes written to make the file sets; raw volumes are written whole, emulated ones not.
    pub prepared_bytes: u64,
    /// Bytes that the windows write at most, on a device of up to 2 GiB/s and 300,000 requests/s.
    pub written_bytes_max: u64,
}

/// The cost of a plan.
pub fn cost(plan: &StudyPlan) -> PlanCost {
    let volumes: BTreeSet<&Volume> = plan.cells.iter().map(|cell| &cell.volume).collect();
    let prepared_bytes = volumes.iter().map(|volume| prepared(plan, volume)).sum();
    let preparation_s = volumes.iter().map(|volume| preparation_s(plan, volume)).sum();
    let points = plan.cells.len();
    let pace = pace(plan, preparation_s);
    let traced_s = if plan.measuring.traced { TRACED_S + pace.overhead_s() } else { 0.0 };
    let once_s = preparation_s + pace.traced_s();
    let (window_s, replicates) = (pace.window_s(), pace.replicates_fitting());
    PlanCost {
        points,
        replicates_asked: plan.measuring.replicates,
        replicates,
        window_s,
        duration_s: once_s + pace.rounds_s(),
        duration_s_max: once_s + pace.rounds_s_max(),
        preparation_s,
        fixed_minute_s: plan.fixed_minute_s(),
        volumes: volumes.len(),
        prepared_bytes,
        written_bytes_max: written(plan, replicates * window_s + traced_s),
    }
}

/// Whether a cell's transactions run on a server.
pub fn is_on_server(cell: &Cell) -> bool {
    cell.transactions.as_ref().is_some_and(|load| load.target != ENGINE)
}

/// What decides the length of windows and the replicates that the budget leaves room for.
fn pace(plan: &StudyPlan, preparation_s: f64) -> Pace {
    let measuring = &plan.measuring;
    Pace {
        points: plan.cells.len(),
        warmed_points: plan.cells.iter().filter(|cell| cell.transactions.is_some()).count(),
        server_points: plan.cells.iter().filter(|cell| is_on_server(cell)).count(),
        replicates: measuring.replicates,
        replicates_max: measuring.replicates_max,
        traced: measuring.traced,
        point_time_s: measuring.point_time.as_secs_f64(),
        left_s: measuring.budget.map(|budget| budget.as_secs_f64() - preparation_s),
    }
}

/// Bytes that the databases of some cells take on their volume: cells with equal tables share one,
/// whatever else they set. A second database shares none with a first.
pub fn database_bytes<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> u64 {
    let mut largest: BTreeMap<(bool, TablesKey<'_>), u64> = BTreeMap::new();
    let both = |cell: &'a Cell| {
        let first = cell.transactions.iter().map(|spec| (false, spec));
        first.chain(cell.second.iter().map(|spec| (true, spec)))
    };
    for (is_second, spec) in cells.into_iter().flat_map(both) {
        let bytes = largest.entry((is_second, tables_key(spec))).or_default();
        *bytes = (*bytes).max(bytes_of(spec));
    }
    largest.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// What loads share that have the same tables.
type TablesKey<'a> = [Option<&'a str>; 9];

fn tables_key(spec: &TransactionSpec) -> TablesKey<'_> {
    let text = |name: &str| spec.settings.get(name).map(String::as_str);
    [
        Some(&spec.workload),
        Some(&spec.target),
        text("rows"),
        text("warehouses"),
        text("objects"),
        text("storage_engine"),
        text("engine.page_size"),
        text("database.page_size"),
        text("server.innodb_page_size"),
    ]
}

fn number(spec: &TransactionSpec, name: &str) -> u64 {
    spec.settings.get(name).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn bytes_of(spec: &TransactionSpec) -> u64 {
    let size = |name: &str| spec.settings.get(name).and_then(|text| parse_size(text).ok());
    let redo = ["engine.redo_log_capacity", "database.redo_log_capacity", SERVER_REDO]
        .into_iter()
        .filter_map(size)
        .max();
    let own = if spec.target == ENGINE { DATABASE_BYTES } else { DATABASE_BYTES + SERVER_BYTES };
    let rows = number(spec, "rows").saturating_mul(ROW_BYTES);
    let warehouses = number(spec, "warehouses").saturating_mul(WAREHOUSE_BYTES);
    let objects = number(spec, "objects").saturating_mul(OBJECT_BYTES);
    let tables = rows.saturating_add(warehouses).saturating_add(objects);
    tables.saturating_add(redo.unwrap_or(REDO_BYTES)).saturating_add(own)
}

/// Seconds for the data of every database of a volume, in addition to the writing of its bytes.
fn databases_s<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> f64 {
    let loads = cells.into_iter().filter_map(|cell| cell.transactions.as_ref());
    let each: BTreeMap<TablesKey<'_>, f64> = loads
        .map(|load| {
            let server_s = if load.target == ENGINE { 0.0 } else { SERVER_S };
            let warehouses_s = WAREHOUSE_S * number(load, "warehouses") as f64;
            (tables_key(load), server_s + warehouses_s)
        })
        .collect();
    each.values().sum()
}

fn preparation_s(plan: &StudyPlan, volume: &Volume) -> f64 {
    let (each_s, bytes_per_s) = match volume.disk {
        Some(_) => (EMULATED_VOLUME_S, FILL_EMULATED_BYTES_PER_S),
        None if volume.kind == VolumeKind::Here => (0.0, FILL_BYTES_PER_S),
        None => (VOLUME_S, FILL_BYTES_PER_S),
    };
    let on_it = plan.cells.iter().filter(|cell| cell.volume == *volume);
    let written_s = prepared(plan, volume) as f64 / bytes_per_s;
    f64::from(volume.count) * each_s + written_s + databases_s(on_it)
}

/// File sets of one shape are shared by the cells of a volume.
fn prepared(plan: &StudyPlan, volume: &Volume) -> u64 {
    let cells = || plan.cells.iter().filter(|cell| cell.volume == *volume);
    let specs = cells().flat_map(Cell::on_files);
    if volume.kind == VolumeKind::Raw {
        if volume.disk.is_some() {
            return 0;
        }
        let largest = specs.map(|spec| spec.size_bytes).max().unwrap_or(0);
        let whole = volume.bytes.unwrap_or(0).saturating_mul(u64::from(volume.count));
        return largest.max(whole);
    }
    let written = specs.filter(|spec| spec.preparation == Preparation::Written);
    let shapes: BTreeSet<(u32, u64)> = written.map(|spec| (spec.files, spec.size_bytes)).collect();
    let files = shapes.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
    files.saturating_add(database_bytes(cells()))
}

fn written(plan: &StudyPlan, windows_s: f64) -> u64 {
    let each = |cell: &Cell| {
        let limits = &cell.conditions.io_limits;
        let most = limits.write_bytes_per_s.map_or(f64::INFINITY, |limit| limit as f64);
        let writes = limits.write_iops.map_or(f64::INFINITY, |limit| limit as f64);
        let rate = match cell.requests() {
            Some(spec) => write_rate(spec, writes),
            None => (writes * DATABASE_WRITE_BYTES).min(DATABASE_BYTES_PER_S_MAX),
        };
        rate.min(most) * windows_s
    };
    let bytes: f64 = plan.cells.iter().map(each).sum();
    let most = plan.measuring.write_bytes_max.unwrap_or(u64::MAX);
    (bytes as u64).min(most)
}

/// Bytes written per second at most.
fn write_rate(spec: &IoSpec, limit_iops: f64) -> f64 {
    if !spec.mix.writes() {
        return 0.0;
    }
    let in_flight = f64::from(spec.jobs) * f64::from(spec.depth);
    let asked = match spec.pacing {
        Pacing::Closed | Pacing::Directions { .. } => in_flight * REQUESTS_PER_S_EACH_MAX,
        Pacing::Open { rate_iops, .. } => rate_iops * f64::from(spec.jobs),
    };
    let share = match spec.mix {
        Mix::Both { read_pct } => 1.0 - f64::from(read_pct) / 100.0,
        _ => 1.0,
    };
    let writes = (asked.min(REQUESTS_PER_S_MAX) * share).min(limit_iops);
    (writes * f64::from(spec.block_bytes)).min(WRITTEN_BYTES_PER_S_MAX)
}
