//! A device that was probed.

use super::{Model, Origin, parameter};

pub(super) fn model() -> Model {
    let rungs = |names: &'static str| parameter("rungs of the probe", names, "", Origin::Source);
    Model {
        name: "probe:FILE",
        real_drive: "the device under the directory that `iostrata probe --json` measured",
        power_cut: "Done writes since the last flush when the device says that its cache writes \
                    back (32 MiB are assumed), else nothing",
        parameters: vec![
            rungs("read_4k_depth_N, read_16k_depth_N"),
            rungs("overwrite_16k (depth 1), write_16k_files_8 (8), sustained_16k (32)"),
            rungs("commit_fdatasync (1 thread), commit_fdatasync_4, commit_fdatasync_16"),
            rungs("flush_empty"),
            parameter(
                "commands at a time",
                1024,
                "",
                Origin::Estimated("beyond the deepest rung the rate stays"),
            ),
        ],
        sources: &[],
    }
}
