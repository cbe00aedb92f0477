//! Flushing in virtual time: the engine's policies on a model of its pool, redo and device.
//!
//! Purpose: what a policy does to a load in an hour, in a second. Method: dirty pages are a
//! quantity by class and age, since an hour has millions of page writes; users, writes of redo and
//! batches of pages are events. The policies, the sample that they see and the rule that users obey
//! are the engine's own. Invariant: pure; the same plan gives the same outcome.
//! Left out: latches, row locks, the shape of trees, the growth of files, and reads beside those
//! of the pages that are changed.

mod access;
mod cleaner;
mod commits;
mod curve;
mod dirty;
mod fit;
#[cfg(test)]
mod fit_tests;
mod outcome;
mod plan;
mod plant;
mod simulate;
mod state;
mod tasks;
#[cfg(test)]
mod tests;
mod users;
mod volume;
mod window;

pub use fit::{FitFreedom, FlushFit, fit};
pub use outcome::{FlushOutcome, FlushSecond};
pub use plan::{
    Demand, FOLLOWED, FlushChange, FlushLoad, FlushPlan, FlushPlanError, PageAccess, SPAN_S_MAX,
    USERS_MAX,
};
pub use plant::{FlushPlant, PlantView};
pub use simulate::run;
pub use volume::{DeviceError, FlushDevice};
pub use window::{RecordedWindow, steady};
