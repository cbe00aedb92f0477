//! From a recording of a server or an engine to findings and advice.
//!
//! Method: what is concluded needs both a setting and what it did in the recording; a setting that
//! is unusual and did no harm is left alone. Rates carry the interval of the mean over the
//! recording. Invariant: pure. Of a short recording only the necessary length is reported. A value
//! that is set already is never advised, and nothing is advised that could lose data: the
//! doublewrite stays on and commits stay durable; what they cost is reported.

mod advised;
pub(crate) mod cleaner;
pub(crate) mod commit;
pub(crate) mod doublewrite;
mod expected;
pub(crate) mod flushing;
pub(crate) mod pool;
pub(crate) mod purge;
pub(crate) mod recording;
pub(crate) mod redo;
pub(crate) mod traps;
mod trial;
mod tuned;

#[cfg(test)]
mod expected_tests;
#[cfg(test)]
mod made;
#[cfg(test)]
mod tests;

pub use expected::{
    ModelBasis, expected_effect, judge_expected, modelled_advice, modelled_together, not_expected,
};
pub use trial::WatchTrial;
pub use tuned::{CommitTimes, tuned_figures};
