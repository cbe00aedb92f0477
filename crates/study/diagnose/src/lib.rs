//! From measured points to suspicions, findings, losses and advice.
//!
//! Purpose: read a probe's event log and conclude what the storage can do, which layer loses how
//! much, what to change and why. Invariant: pure; it runs nothing and reads nothing. What it
//! suspects it returns with the points that would confirm it, and concludes from those alone. A
//! wrong diagnosis is worse than none: whatever is inherent, disturbed or small is not raised.

mod above_device;
mod advice;
mod below;
mod bound;
mod cap;
mod case;
mod cause;
mod compared;
mod curve;
mod database;
mod disturbed;
mod figure;
mod finding;
mod headline;
mod lasting;
mod loss;
mod observed;
mod pair;
mod rules;
mod rung;
mod server_setting;
mod simulate;
mod stalls;
mod statement;
mod study;
mod summary;
mod verify;
mod watch;
mod withheld;

pub use figure::metric_of;
pub use rules::{Subject, Suspicion, catalogue, diagnose_watch, suspect};
pub use server_setting::{Family, Release, SERVER_SETTINGS, ServerSetting};
pub use simulate::{QUEUE_POST_ROWS, conclude_flush, conclude_queue};
pub use study::{is_lost_to_steal, summarise_study};
pub use summary::{ProbeEnd, summarise};
pub use verify::verify_points;
pub use watch::{
    CommitTimes, ModelBasis, WatchTrial, expected_effect, judge_expected, modelled_advice,
    modelled_together, not_expected, tuned_figures,
};
