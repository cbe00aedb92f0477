//! Colours of data: one per layer everywhere, and a row of others for lines that have no layer.
//!
//! Invariant: each is readable on white and on near-black, and neighbours differ for readers who
//! see few colours.

use iostrata_spec::Layer;

/// The colour of a layer.
pub(crate) fn layer_colour(layer: Layer) -> &'static str {
    match layer {
        Layer::Host => "#7d8ba1",
        Layer::Device => "#1f9e89",
        Layer::Block => "#a58b1f",
        Layer::Limit => "#9a62cf",
        Layer::Filesystem => "#3f7fd1",
        Layer::FileApi => "#d9822b",
        Layer::Engine => "#cf5279",
        Layer::Transactions => "#6f66d8",
    }
}

/// The colour of the n-th line.
pub(crate) fn line_colour(n: usize) -> &'static str {
    const LINES: [&str; 6] = ["#3f7fd1", "#d9822b", "#1f9e89", "#cf5279", "#6f66d8", "#a58b1f"];
    LINES[n % LINES.len()]
}
