//! Colours of data: one per layer everywhere, and a row of others for lines that have no layer.
//!
//! Invariant: each is readable on white and on near-black, and neighbours differ for readers who
//! see few colours.

use iostrata_run::host::{KernelLayer, PathSegment};
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

/// The colour of a layer of the kernel: that of the ladder's layer where there is one.
pub(crate) fn kernel_colour(layer: KernelLayer) -> &'static str {
    match layer {
        KernelLayer::User => "#d9822b",
        KernelLayer::OtherPrograms => "#9aa5b1",
        KernelLayer::SystemCall => "#e3b04b",
        KernelLayer::Vfs => "#82aee8",
        KernelLayer::Filesystem => "#3f7fd1",
        KernelLayer::Journal => "#274f9c",
        KernelLayer::PageCache => "#6f66d8",
        KernelLayer::Limit => "#9a62cf",
        KernelLayer::Block => "#a58b1f",
        KernelLayer::Scheduler => "#77731a",
        KernelLayer::Driver => "#57b8a4",
        KernelLayer::Device => "#1f9e89",
        KernelLayer::Interrupt => "#8a5a3c",
        KernelLayer::Lock => "#cf3f4f",
        KernelLayer::TaskSwitch => "#d884a8",
        KernelLayer::Idle => "#b9c0c9",
        KernelLayer::Other => "#7d8ba1",
    }
}

/// The colour of a part of a request's way.
pub(crate) fn segment_colour(segment: PathSegment) -> &'static str {
    match segment {
        PathSegment::Limit => "#9a62cf",
        PathSegment::Filesystem => "#3f7fd1",
        PathSegment::Queue => "#a58b1f",
        PathSegment::Device => "#1f9e89",
        PathSegment::Completion => "#d9822b",
    }
}

/// What is there and does not matter: no measurable difference.
pub(crate) const GREY: &str = "#9aa1ab";
