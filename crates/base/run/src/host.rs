//! What the host is and what it did: the facts and the evidence that travel in a run directory.
//!
//! Purpose: one vocabulary for the crate that observes the host and for everything that reads a run
//! afterwards. Invariant: plain data; what the host does not say is absent, never zero.
//! It reads nothing itself, and it holds nothing that identifies a machine's owner (no serial
//! numbers, no passwords, no environment).

mod counters;
mod device;
mod evidence;
mod facts;
mod limit;
mod number;
mod path;
mod stack;

pub use counters::{DeviceCounters, DeviceDelta, Iostat};
pub use device::{DeviceFacts, PcieLink};
pub use evidence::{
    CpuShares, DeviceSeries, Evidence, ForeignIo, NamedIostat, OwnIo, PressureShare,
    PressureShares, ProcessIo, QuietCheck, Switches, ThrottleEvidence,
};
pub use facts::{CgroupFacts, HostFacts};
pub use limit::{CgroupVersion, IoLimit, LimitScope};
pub use number::{DeviceNumber, DeviceNumberError};
pub use path::{DirectIo, DirectIoBehaviour, NetworkKind, PathFacts, PathKind};
pub use stack::{BlockLayer, LayerKind};
