//! What lies under a directory, and what the machine does meanwhile.
//!
//! Purpose: read `/proc`, `/sys` and the file system calls into the plain facts and evidence of
//! [`iostrata_run::host`]. Invariant: it only observes; it changes no setting, writes no file and
//! prints nothing. Every reader takes a [`Root`], so that a directory can stand in for the machine.
//! What the host does not say stays absent; odd input is skipped, never a panic.

mod below;
mod cgroup;
mod controls;
mod cpu;
mod device;
mod direct;
mod diskstats;
mod error;
mod facts;
mod foreign;
mod found_process;
mod held_back;
#[cfg(test)]
mod iostat_tests;
mod judge;
mod kernel_log;
mod kind;
mod limits;
mod location;
mod mountinfo;
mod mounts;
mod path;
mod pause_watch;
mod pressure;
mod processes;
mod quiet;
mod root;
mod sampler;
mod scope;
mod series;
mod snapshot;
mod stack;
mod sysfs;
mod throttle;
mod usage;
mod virtualisation;
mod watch;

pub use below::DevicesBelow;
pub use cpu::CpuTimes;
pub use device::device_facts;
pub use diskstats::{delta, device_counters, parse_diskstats, parse_stat};
pub use error::HostError;
pub use facts::describe_host;
pub use foreign::{FlushCost, foreign_io};
pub use found_process::ProcessPlace;
pub use held_back::{FindProcess, HeldBack};
pub use kernel_log::KernelLog;
pub use location::Location;
pub use mountinfo::mounts;
pub use path::describe_path;
pub use pause_watch::PauseWatch;
pub use pressure::{PressureTotals, StallTotal};
pub use quiet::quiet_check;
pub use root::Root;
pub use scope::Scope;
pub use watch::{BlindObserver, HostObserver, Observer, ObserverOptions};
