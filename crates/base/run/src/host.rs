//! What the host is and what it did: the facts and the evidence that travel in a run directory.
//!
//! Purpose: one vocabulary for the crate that observes the host and for everything that reads a run
//! afterwards. Invariant: plain data; what the host does not report is absent, never zero. It reads
//! nothing itself, and it holds nothing that identifies a machine's owner (no serial numbers, no
//! passwords, no environment).

mod block_latency;
mod counters;
mod device;
mod emulated;
mod evidence;
mod facts;
mod iostat;
mod limit;
mod number;
mod path;
mod profile;
mod profile_diff;
mod profile_merge;
mod stack;

pub use block_latency::{
    ApplicationLatency, BlockLatency, PathSegment, QueueStep, QueueStepLatency, ReadsWrites,
    SegmentLatency, SegmentTimes,
};
pub use counters::{DeviceCounters, DeviceDelta, Iostat};
pub use device::{DeviceFacts, PcieLink};
pub use emulated::{EmulatedDisk, QueueReadback};
pub use evidence::{
    CpuShares, DeviceSeries, Evidence, ForeignIo, HeldBackShares, NamedIostat, OwnIo,
    PressureShare, PressureShares, ProcessIo, QuietCheck, Switches, ThrottleEvidence,
};
pub use facts::{CgroupFacts, HostFacts};
pub use iostat::{DeviceRequests, DeviceWindow};
pub use limit::{CgroupVersion, IoControl, IoControlKind, IoLimit, LimitScope, LimitedRate};
pub use number::{DeviceNumber, DeviceNumberError};
pub use path::{DirectIo, DirectIoBehaviour, NetworkKind, PathFacts, PathKind};
pub use profile::{
    FoldedStack, FoldedStackTime, KERNEL_MODULE, KernelLayer, LayerSamples, LayerShare, LayerTime,
    OffCpu, OffCpuWait, PROFILE_STACKS_MAX, PROFILE_SYMBOLS_MAX, PROFILE_WAITS_MAX, Profile,
    SymbolShare,
};
pub use profile_diff::{LayerDiff, ProfileDiff, ShareDiff, SymbolDiff};
pub use stack::{BlockLayer, LayerKind};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_tagged_by_name() {
        let text = |kind: &PathKind| serde_json::to_string(kind).unwrap();
        assert_eq!(text(&PathKind::Tmpfs), r#"{"type":"tmpfs"}"#);
        let network = PathKind::Network { protocol: NetworkKind::NineP };
        assert_eq!(text(&network), r#"{"type":"network","protocol":"9p"}"#);
        let kind = LayerKind::Lvm { name: Some("vg-data".to_owned()) };
        let text = serde_json::to_string(&kind).unwrap();
        assert_eq!(text, r#"{"type":"lvm","name":"vg-data"}"#);
        assert_eq!(serde_json::from_str::<LayerKind>(&text).unwrap(), kind);
    }

    #[test]
    fn absent_facts_need_not_be_written() {
        let device: DeviceFacts =
            serde_json::from_str(r#"{"name":"sda","schedulers_available":[]}"#).unwrap();
        assert_eq!(device, DeviceFacts::named("sda"));
        let evidence = Evidence { seconds: 2.5, ..Evidence::default() };
        let text = serde_json::to_string(&evidence).unwrap();
        assert_eq!(serde_json::from_str::<Evidence>(&text).unwrap(), evidence);
    }
}
