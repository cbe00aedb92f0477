//! What lies under a directory, and what the machine does meanwhile.
//!
//! Purpose: read `/proc`, `/sys` and the file system calls into the plain facts and evidence of
//! [`iostrata_run::host`]. Invariant: it only observes; it changes no setting, writes no file and
//! prints nothing. Every reader takes a [`Root`], so that a directory can stand in for the machine.
//! What the host does not report stays absent; odd input is skipped, never a panic.

mod cgroup;
mod cpu;
mod device;
mod diskstats;
mod facts;
mod held_back;
mod judge;
mod kernel_log;
mod mounts;
mod path;
mod pressure;
mod processes;
mod root;
mod sampler;
mod watch;

pub use cpu::CpuTimes;
pub use device::device_facts;
pub use diskstats::{
    DevicesBelow, PauseWatch, delta, device_counters, parse_diskstats, parse_stat,
};
pub use facts::describe_host;
pub use held_back::{FindProcess, HeldBack, ProcessPlace, TaskWaits};
pub use judge::{FlushCost, foreign_io};
pub use kernel_log::KernelLog;
pub use mounts::mounts;
pub use path::{Scope, describe_path};
pub use pressure::{PressureTotals, StallTotal};
pub use root::{HostError, Location, Root};
pub use watch::{BlindObserver, HostObserver, Observer, ObserverOptions, quiet_check};
