//! The rows of the short ladder: the same in every run, side by side only where the same number of
//! requests is in flight.
//!
//! Invariant: selects, never computes. A rung that is not known, or was not measured, keeps its
//! row.

use iostrata_plan::{Layer, rung};
use iostrata_run::{ProbeDocument, Rung, Unknown};

/// Rungs with equally many requests in flight, which may be compared at a glance.
pub(super) struct Depth {
    /// Short name for ids.
    pub(super) name: &'static str,
    /// What they have in common.
    pub(super) title: &'static str,
    /// The unit that they share: `/s` for requests, else that of their rungs.
    pub(super) unit: &'static str,
    /// The rows from the device up.
    rows: &'static [(&'static str, Layer, &'static str)],
}

use Layer::{Device, FileApi, Filesystem};

/// Every row.
pub(super) const LADDER: [Depth; 5] = [
    Depth {
        name: "one",
        title: "One request in flight",
        unit: "/s",
        rows: &[
            (rung::READ_4K_DEPTH_1, Device, "4 KiB random reads"),
            (rung::READ_16K_DEPTH_1, Device, "16 KiB random reads"),
            (rung::OVERWRITE_16K, Filesystem, "16 KiB overwrites in order"),
            (rung::COMMIT_FDATASYNC, FileApi, "4 KiB write + fdatasync"),
            (rung::COMMIT_DSYNC, FileApi, "4 KiB write with O_DSYNC"),
        ],
    },
    Depth {
        name: "eight",
        title: "8 threads",
        unit: "/s",
        rows: &[
            (rung::WRITE_16K_FILES_1, Filesystem, "16 KiB overwrites of 1 file"),
            (rung::WRITE_16K_FILES_8, Filesystem, "16 KiB overwrites of 8 files"),
            ("unwritten_16k_files_8", Filesystem, "16 KiB first writes, 8 files"),
        ],
    },
    Depth {
        name: "sixteen",
        title: "16 in flight",
        unit: "/s",
        rows: &[
            (rung::READ_16K_SYNC_16, FileApi, "16 KiB reads, threads"),
            (rung::READ_16K_LIBAIO_16, FileApi, "16 KiB reads, libaio"),
            (rung::READ_16K_IO_URING_16, FileApi, "16 KiB reads, io_uring"),
            (rung::COMMIT_FDATASYNC_16, FileApi, "4 KiB write + fdatasync"),
        ],
    },
    Depth {
        name: "thirty-two",
        title: "32 in flight",
        unit: "/s",
        rows: &[
            (rung::READ_4K_DEPTH_32, Device, "4 KiB random reads"),
            (rung::READ_16K_DEPTH_32, Device, "16 KiB random reads"),
            (rung::SUSTAINED_16K, Device, "16 KiB random writes, long"),
        ],
    },
    Depth {
        name: "in-order",
        title: "In order, 8 in flight",
        unit: "MiB/s",
        rows: &[
            (rung::SEQUENTIAL_READ_1M, Device, "1 MiB reads"),
            (rung::SEQUENTIAL_WRITE_1M, Device, "1 MiB writes"),
        ],
    },
];

/// One row with what is known of it.
pub(super) struct Row<'a> {
    /// The layer.
    pub(super) layer: Layer,
    /// What is measured, without what the rows of its depth share.
    pub(super) title: &'static str,
    /// The rung, where its figure is known.
    pub(super) rung: Option<&'a Rung>,
    /// Why it is not known, where it was measured.
    pub(super) unknown: Option<&'a Unknown>,
}

impl Depth {
    /// The rows of a run.
    pub(super) fn rows<'a>(&self, probe: &'a ProbeDocument) -> impl Iterator<Item = Row<'a>> {
        self.rows.iter().map(|&(name, layer, title)| Row {
            layer,
            title,
            rung: probe.known(name),
            unknown: probe.unknown_of(name),
        })
    }
}
