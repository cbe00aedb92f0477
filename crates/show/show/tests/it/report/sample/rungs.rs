//! The sample's rungs: what each is, and its figure.

use iostrata_plan::Layer;
use iostrata_stats::Verdict;

/// One rung in short.
pub struct Row {
    pub name: &'static str,
    pub title: &'static str,
    pub layer: Layer,
    pub value: f64,
    pub unit: &'static str,
    pub depth: f64,
    pub block: &'static str,
    pub curve: Option<(&'static str, &'static str, f64)>,
    pub verdicts: &'static [Verdict],
}

const fn row(
    name: &'static str,
    title: &'static str,
    layer: Layer,
    (value, unit): (f64, &'static str),
    depth: f64,
    block: &'static str,
) -> Row {
    Row { name, title, layer, value, unit, depth, block, curve: None, verdicts: &[] }
}

const fn on(row: Row, curve: &'static str, axis: &'static str, x: f64) -> Row {
    Row { curve: Some((curve, axis, x)), ..row }
}

const fn doubtful(row: Row, verdicts: &'static [Verdict]) -> Row {
    Row { verdicts, ..row }
}

const R: &str = "reads/s";
const W: &str = "writes/s";
const C: &str = "commits/s";
const IN_FLIGHT: &str = "requests in flight";
const FILES: &str = "files";
const PAGES: &str = "pages flushed per second";
use Layer::{Device, FileApi, Filesystem, Host};

pub const RUNGS: [Row; 39] = [
    row("clock_cost", "Reading the clock", Host, (21.4, "ns"), 1.0, "self"),
    row("meter_cost", "The meter's own cost per request", Host, (46.8, "ns"), 1.0, "self"),
    on(
        row(
            "read_4k_depth_1",
            "4 KiB random reads, one at a time",
            Device,
            (9_842.31, R),
            1.0,
            "read_4k",
        ),
        "read_4k",
        IN_FLIGHT,
        1.0,
    ),
    on(
        row(
            "read_4k_depth_2",
            "4 KiB random reads, 2 in flight",
            Device,
            (18_930.2, R),
            2.0,
            "read_4k",
        ),
        "read_4k",
        IN_FLIGHT,
        2.0,
    ),
    on(
        row(
            "read_4k_depth_4",
            "4 KiB random reads, 4 in flight",
            Device,
            (36_204.9, R),
            4.0,
            "read_4k",
        ),
        "read_4k",
        IN_FLIGHT,
        4.0,
    ),
    on(
        row(
            "read_4k_depth_8",
            "4 KiB random reads, 8 in flight",
            Device,
            (61_377.4, R),
            8.0,
            "read_4k",
        ),
        "read_4k",
        IN_FLIGHT,
        8.0,
    ),
    on(
        row(
            "read_4k_depth_16",
            "4 KiB random reads, 16 in flight",
            Device,
            (84_310.6, R),
            16.0,
            "read_4k",
        ),
        "read_4k",
        IN_FLIGHT,
        16.0,
    ),
    on(
        row(
            "read_4k_depth_32",
            "4 KiB random reads, 32 in flight",
            Device,
            (94_877.0, R),
            32.0,
            "read_4k",
        ),
        "read_4k",
        IN_FLIGHT,
        32.0,
    ),
    on(
        row(
            "read_4k_depth_64",
            "4 KiB random reads, 64 in flight",
            Device,
            (96_120.5, R),
            64.0,
            "read_4k",
        ),
        "read_4k",
        IN_FLIGHT,
        64.0,
    ),
    on(
        row(
            "read_16k_depth_1",
            "16 KiB random reads, one at a time",
            Device,
            (7_204.8, R),
            1.0,
            "read_16k",
        ),
        "read_16k",
        IN_FLIGHT,
        1.0,
    ),
    on(
        row(
            "read_16k_depth_4",
            "16 KiB random reads, 4 in flight",
            Device,
            (21_380.0, R),
            4.0,
            "read_16k",
        ),
        "read_16k",
        IN_FLIGHT,
        4.0,
    ),
    on(
        row(
            "read_16k_depth_16",
            "16 KiB random reads, 16 in flight",
            Device,
            (31_940.2, R),
            16.0,
            "read_16k",
        ),
        "read_16k",
        IN_FLIGHT,
        16.0,
    ),
    on(
        row(
            "read_16k_depth_64",
            "16 KiB random reads, 64 in flight",
            Device,
            (33_012.7, R),
            64.0,
            "read_16k",
        ),
        "read_16k",
        IN_FLIGHT,
        64.0,
    ),
    on(
        row(
            "write_16k_files_1",
            "16 KiB random writes on 1 file",
            Filesystem,
            (16_120.4, W),
            16.0,
            "files",
        ),
        "write_16k_files",
        FILES,
        1.0,
    ),
    on(
        row(
            "write_16k_files_2",
            "16 KiB random writes on 2 files",
            Filesystem,
            (16_204.0, W),
            16.0,
            "files",
        ),
        "write_16k_files",
        FILES,
        2.0,
    ),
    on(
        row(
            "write_16k_files_4",
            "16 KiB random writes on 4 files",
            Filesystem,
            (16_187.6, W),
            16.0,
            "files",
        ),
        "write_16k_files",
        FILES,
        4.0,
    ),
    on(
        row(
            "write_16k_files_8",
            "16 KiB random writes on 8 files",
            Filesystem,
            (16_233.1, W),
            16.0,
            "files",
        ),
        "write_16k_files",
        FILES,
        8.0,
    ),
    row(
        "write_16k_prewritten",
        "16 KiB overwrites of a written file",
        Filesystem,
        (16_180.2, W),
        16.0,
        "file_lock",
    ),
    row(
        "write_16k_fallocated",
        "16 KiB writes into a fallocated file",
        Filesystem,
        (4_210.7, W),
        16.0,
        "file_lock",
    ),
    row(
        "write_16k_extending",
        "16 KiB writes that extend a file",
        Filesystem,
        (2_932.4, W),
        16.0,
        "file_lock",
    ),
    row(
        "write_16k_mixed",
        "16 KiB writes with readers on one file",
        Filesystem,
        (15_604.9, W),
        16.0,
        "file_lock",
    ),
    row("api_sync", "sync, 16 threads", FileApi, (31_204.1, R), 16.0, "file_api"),
    row("api_libaio", "libaio, 16 in flight", FileApi, (31_877.0, R), 16.0, "file_api"),
    row("api_io_uring", "io_uring, 16 in flight", FileApi, (31_940.2, R), 16.0, "file_api"),
    row("path_direct", "Direct", FileApi, (15_980.0, W), 16.0, "direct_or_buffered"),
    doubtful(
        row(
            "path_buffered",
            "Buffered with fsync",
            FileApi,
            (8_120.3, W),
            16.0,
            "direct_or_buffered",
        ),
        &[Verdict::NotSteady],
    ),
    row("commit_fsync", "Append and fsync", FileApi, (1_204.2, C), 1.0, "sync_laboratory"),
    row("commit_fdatasync", "Append and fdatasync", FileApi, (1_232.9, C), 1.0, "sync_laboratory"),
    row("commit_dsync", "Append with O_DSYNC", FileApi, (1_228.4, C), 1.0, "sync_laboratory"),
    row(
        "commit_fdatasync_overwrite",
        "Overwrite and fdatasync",
        FileApi,
        (2_410.8, C),
        1.0,
        "sync_laboratory",
    ),
    row(
        "commit_4",
        "Overwrite and fdatasync, 4 committers",
        FileApi,
        (5_120.0, C),
        4.0,
        "sync_laboratory",
    ),
    row(
        "commit_16",
        "Overwrite and fdatasync, 16 committers",
        FileApi,
        (11_873.6, C),
        16.0,
        "sync_laboratory",
    ),
    row("flush_empty", "A flush with nothing to write", Device, (311.52, "us"), 1.0, "flush"),
    on(
        row(
            "database_500",
            "Commits beside 500 pages/s",
            Filesystem,
            (2_280.0, C),
            1.0,
            "database",
        ),
        "database_commits",
        PAGES,
        500.0,
    ),
    on(
        row(
            "database_1000",
            "Commits beside 1,000 pages/s",
            Filesystem,
            (2_102.0, C),
            1.0,
            "database",
        ),
        "database_commits",
        PAGES,
        1_000.0,
    ),
    on(
        row(
            "database_2000",
            "Commits beside 2,000 pages/s",
            Filesystem,
            (1_733.0, C),
            1.0,
            "database",
        ),
        "database_commits",
        PAGES,
        2_000.0,
    ),
    on(
        row(
            "database_4000",
            "Commits beside 4,000 pages/s",
            Filesystem,
            (1_020.0, C),
            1.0,
            "database",
        ),
        "database_commits",
        PAGES,
        4_000.0,
    ),
    on(
        row(
            "database_6000",
            "Commits beside 6,000 pages/s",
            Filesystem,
            (398.0, C),
            1.0,
            "database",
        ),
        "database_commits",
        PAGES,
        6_000.0,
    ),
    doubtful(
        row("sustained_16k", "16 KiB writes for 20 s", Device, (15_844.7, W), 16.0, "sustained"),
        &[Verdict::Steal],
    ),
];
