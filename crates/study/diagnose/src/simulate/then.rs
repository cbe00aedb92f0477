//! What the post prints, compared with the model's figures at equally many rows.
//!
//! Invariant: only printed figures stand here; what the post does not print is left out, and what
//! was not simulated stays blank.

use iostrata_run::{KernelThen, QueuePoint, QueueReplicate, QueueRun, QueueThenRow, ThenRow};
use iostrata_stats::units::grouped;
use iostrata_stats::{Measured, Verdicts, combine};

use super::Cast;
use super::wording::rows as rows_words;

/// Rows in the table when the post printed figures.
pub const QUEUE_POST_ROWS: [u64; 3] = [13_000_000, 41_000_000, 77_000_000];

/// The post in words.
pub(super) const SOURCE: &str = "Linux I/O scheduler queue size and MyISAM performance, 2009";
/// Its machine.
pub(super) const MACHINE: &str = "Two SAS disks of 15,000 turns a minute in RAID 1 with the write \
     cache on; MySQL 5.1.33, MyISAM with three random indexes, key buffer 2 GB, page cache up to 5 \
     GB, ext3, deadline, Linux 2.6.18";

/// A column of a moment: how it is read off a replicate.
type Column = (&'static str, &'static str, fn(&QueueReplicate) -> Option<f64>);

/// The columns that the post prints at each moment, with their units.
const COLUMNS: [Column; 11] = [
    ("time to so many rows", "h", |one| one.reached_h),
    ("rrqm/s, reads merged", "/s", |one| Some(one.iostat.reads_merged_per_s)),
    ("wrqm/s, writes merged", "/s", |one| Some(one.iostat.writes_merged_per_s)),
    ("r/s, reads", "/s", |one| Some(one.iostat.reads_per_s)),
    ("w/s, writes", "/s", |one| Some(one.iostat.writes_per_s)),
    ("wMB/s, written", "MiB/s", |one| Some(one.iostat.write_kib_per_s / 1024.0)),
    ("avgrq-sz, size of a request", "sectors", |one| Some(2.0 * one.iostat.request_kib()?)),
    ("avgqu-sz, requests in the queue", "", |one| Some(one.iostat.queue_size)),
    ("await, time of a request", "ms", |one| one.iostat.await_ms()),
    ("svctm, device time per request", "ms", |one| one.iostat.service_ms()),
    ("%util, device busy", "percent", |one| Some(one.iostat.util_pct)),
];

/// A moment at which the post prints figures: its queue size, its rows, its columns in the order of
/// [`COLUMNS`].
struct Moment {
    nr_requests: u64,
    rows: u64,
    printed: [f64; 11],
}

const MOMENTS: [Moment; 3] = [
    Moment {
        nr_requests: 128,
        rows: QUEUE_POST_ROWS[0],
        printed: [12.0, 0.0, 0.87, 0.0, 575.60, 2.25, 8.01, 142.44, 247.03, 1.74, 100.0],
    },
    Moment {
        nr_requests: 100_000,
        rows: QUEUE_POST_ROWS[1],
        printed: [
            1.5, 0.0, 2487.33, 0.0, 2042.60, 35.11, 35.20, 84_402.36, 43_582.33, 0.49, 100.01,
        ],
    },
    Moment {
        nr_requests: 100_000,
        rows: QUEUE_POST_ROWS[2],
        printed: [12.0, 0.0, 9.03, 1.70, 756.03, 5.56, 15.04, 31_981.72, 127_560.45, 1.32, 100.0],
    },
];

/// The index with the most rows that the post names: 4.5 GB.
const PRINTED_INDEX_BYTES: f64 = 4.5e9;

/// One row per printed figure; nothing when the post's device and kernel were not simulated.
pub(super) fn rows(cast: &Cast<'_>) -> Vec<QueueThenRow> {
    let Some(disk) = cast.disk else { return Vec::new() };
    let runs = cast.of_device(disk, KernelThen::Y2009);
    if runs.is_empty() {
        return Vec::new();
    }
    MOMENTS.iter().flat_map(|moment| of_moment(moment, &runs)).collect()
}

fn of_moment(moment: &Moment, runs: &[&QueueRun]) -> Vec<QueueThenRow> {
    let run = runs.iter().find(|run| run.nr_requests == moment.nr_requests);
    let found = run.and_then(|run| {
        let point = run.points.iter().find(|point| point.rows == moment.rows)?;
        Some((*run, point))
    });
    let named = format!(
        "nr_requests {}, {:.1} h, {}",
        grouped(moment.nr_requests),
        moment.printed[0],
        rows_words(moment.rows)
    );
    let named = named.replace(".0 h", " h");
    let row = |row: ThenRow| QueueThenRow {
        moment: named.clone(),
        nr_requests: moment.nr_requests,
        rows: moment.rows,
        row,
    };
    let columns = COLUMNS.iter().zip(moment.printed);
    let mut all: Vec<QueueThenRow> = columns
        .map(|((text, unit, of), printed)| {
            row(compare(text, unit, printed, found, |point| mean(point, *of)))
        })
        .collect();
    if moment.rows == QUEUE_POST_ROWS[2] {
        let index = |point: &QueuePoint| {
            let bytes = point.index_bytes as f64 / 1e9;
            Some(Measured::new(bytes, [bytes, bytes], 1, Verdicts::none()))
        };
        all.push(row(compare("size of the index", "GB", PRINTED_INDEX_BYTES / 1e9, found, index)));
    }
    all
}

fn compare(
    text: &str,
    unit: &str,
    printed: f64,
    found: Option<(&QueueRun, &QueuePoint)>,
    of: impl Fn(&QueuePoint) -> Option<Measured>,
) -> ThenRow {
    let now = found.and_then(|(_, point)| of(point));
    let point = found.map(|(run, point)| name(run, point));
    ThenRow {
        verdicts: found.map(|(_, point)| point.verdicts.clone()).unwrap_or_default(),
        ..ThenRow::of(text, unit, printed, printed, now, point)
    }
}

/// Where a figure comes from: kernel, device, queue size, rows.
fn name(run: &QueueRun, point: &QueuePoint) -> String {
    format!("{}/{}/{}/{}", run.kernel, run.device, run.nr_requests, point.rows)
}

/// The mean of a column over the replicates, with the interval between them.
fn mean(point: &QueuePoint, of: fn(&QueueReplicate) -> Option<f64>) -> Option<Measured> {
    let values: Option<Vec<Measured>> = point
        .replicates
        .iter()
        .map(|replicate| Some(Measured::without_interval(of(replicate)?, 1, Verdicts::none())))
        .collect();
    combine(&values?)
}
