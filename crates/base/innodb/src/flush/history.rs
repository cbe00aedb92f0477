//! The policies of InnoDB's history, each with the limits, the roundings and the weaknesses of its
//! time.
//!
//! Purpose: what those servers did can be played and compared. Invariant: formulas are theirs, and
//! so are the integer divisions; what a generation's users had to do is in the rule of admission.
//! What the engine has no counterpart of (the insert buffer, several instances of the pool) is left
//! out. docs/flushing.md compares them.

mod adaptive;
mod averages;
mod cleaner_loop;
mod estimate;
mod fixed;
mod generation;
mod keep_average;
mod lsn_age;
mod mariadb;
mod master_loop;
mod mysql_56;
mod mysql_57;
mod percent;
mod reflex;
mod strategy;

use adaptive::Adaptive;
use cleaner_loop::CleanerLoop;
use estimate::Estimate;
use fixed::Fixed;
use keep_average::KeepAverage;
use lsn_age::LsnAge;
use mariadb::Mariadb;
use master_loop::MasterLoop;
use mysql_56::Mysql56;
use mysql_57::{Mysql57, Version};
use percent::AgeFactor;
use reflex::Reflex;

use crate::flush::FlushPolicy;

/// Pages per second of MySQL 5.0 and 5.1.
const FIXED_IO: u64 = 100;

/// MySQL 5.0 and 5.1: 100 pages per second, whatever the device can do.
#[must_use]
pub fn fixed_100() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(Fixed { io: Some(FIXED_IO) }))
}

/// Google's patch of 2008: the same loop with `io_capacity`.
#[must_use]
pub fn io_capacity() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(Fixed { io: None }))
}

/// XtraDB 5.1: shares of `io_capacity` by steps of the age.
#[must_use]
pub fn reflex() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(Reflex))
}

/// XtraDB 5.1 and 5.5: each page at the rate at which its room in the redo shrinks, without a cap.
#[must_use]
pub fn estimate() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(Estimate::default()))
}

/// XtraDB: ten looks a second, less what others have flushed.
#[must_use]
pub fn keep_average() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(KeepAverage::default()))
}

/// InnoDB plugin 1.0.4 and MySQL 5.5: adaptive flushing, capped by `io_capacity`.
#[must_use]
pub fn adaptive() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(Adaptive::default()))
}

/// The patch of 2010 to MySQL 5.5.4: the tail of the redo is freed as fast as the head grows.
#[must_use]
pub fn lsn_age() -> Box<dyn FlushPolicy> {
    Box::new(MasterLoop::new(LsnAge::default()))
}

/// MySQL 5.6's page cleaner.
#[must_use]
pub fn page_cleaner_56() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mysql56::new(AgeFactor::Legacy)))
}

/// MySQL 5.7's.
#[must_use]
pub fn page_cleaner_57() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mysql57::new(Version::V57)))
}

/// That of MySQL 8.0.30 and 8.4.
#[must_use]
pub fn page_cleaner_84() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mysql57::new(Version::V84)))
}

/// MariaDB's from 10.5 on.
#[must_use]
pub fn mariadb() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mariadb::default()))
}

/// Percona Server 5.6's page cleaner with its default way of weighing the age.
#[must_use]
pub fn percona_high_checkpoint() -> Box<dyn FlushPolicy> {
    Box::new(CleanerLoop::new(Mysql56::new(AgeFactor::HighCheckpoint)))
}
