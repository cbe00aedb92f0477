//! Holds a server's checkpoint age by its dynamic settings.
//!
//! Purpose: a [`Controller`] sees one sample of a server after the other and answers with settings
//! to change, each with its reason. Invariant: pure; the same samples give the same moves, no
//! setting is moved out of its bounds, and none that needs a restart is ever named. It talks to no
//! server, puts nothing back and reads no clock: the program does. docs/tune.md explains it.

mod age_book;
mod auto_raise;
mod budget;
mod config;
mod controller;
mod delay;
mod device;
mod dirty_limit;
mod gain;
mod generation;
mod lever;
mod monitor;
mod need;
mod pace;
mod pinned;
mod steady;

pub use budget::Budget;
pub use config::{Bounds, ConfigError, TuneConfig};
pub use controller::{Controller, Look, TuneMode, Vitals};
pub use generation::{Generation, NotTunable};
pub use lever::{Lever, LeverValues, Move};
pub use monitor::Missing;
pub use need::Rest;
