//! What to measure, as plain data.
//!
//! Purpose: every front end (options, job files, shipped plans) makes an [`IoSpec`]; everything
//! below reads it. Invariant: pure, and a spec that passed [`IoSpec::check`] can be run.
//! It does not know whether the path exists: that is found out where the files are opened.

mod check;
pub mod disk;
pub mod fio;
mod io;
pub mod op_kind;
mod point;
pub mod rung;
mod rw;
pub mod study;
mod tables;
mod transactions;
mod variation;
mod words;

pub use check::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, SpecError, block_range};
pub use io::{
    Access, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Memory, Mix, Pacing,
    Preparation, RangeSteps, RateProcess, SyncWrites, ZipfTheta,
};
pub use op_kind::{OpKind, PerKind};
pub use point::{Better, CurvePlace, Layer, Metric, MetricKind, Point, Stream};
pub use rw::Rw;
pub use transactions::{Overload, TransactionPacing, TransactionSpec};
pub use variation::{
    BlockShare, BlockSizes, Blocks, Distribution, FileCall, FileOrder, Flow, MinimumRate,
    MinimumRates, Pause, Replay, RequestLog, Sharing, Steady, SteadyLimit, SteadyOf, Step, Strides,
    Variation, Verify, Zone,
};
pub use words::{ValueError, Word, Words};
