//! Reasons to distrust a figure.
//!
//! Invariant: the set is closed and its spelling is the contract's. A verdict travels with its
//! figure from where it was measured to the last view.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// One reason why a figure may not mean what it seems to mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The meter's own cost is a large part of what was measured.
    ToolLimited,
    /// The processors were busy, so the storage was not what set the pace.
    CpuLimited,
    /// The page cache answered part of the requests.
    Cached,
    /// Direct I/O was requested and accepted, but not done.
    DirectIgnored,
    /// The file has holes: reads of them never reach the device.
    Sparse,
    /// The file has extents that were allocated but never written.
    UnwrittenExtents,
    /// The rate drifted, swung or stepped while it was measured.
    NotSteady,
    /// A rate that held for a while fell to a lower one: a burst allowance ran out.
    BurstLimited,
    /// Too few independent samples for the interval to mean much.
    TooFewSamples,
    /// Fewer requests were in flight than configured.
    DepthNotReached,
    /// The loop device, not what lies under it, set the pace.
    LoopLimited,
    /// A limit of the control group held requests back.
    Throttled,
    /// Another process used the device meanwhile.
    ForeignIo,
    /// The time stamp counter could not be trusted; a slower clock was used.
    ClockFallback,
    /// RLIMIT_MEMLOCK or the kernel refused registered buffers.
    MemlockLimited,
    /// The hypervisor took processor time away.
    Steal,
}

impl Verdict {
    /// One sentence for a reader who has never seen the word.
    pub fn explain(self) -> &'static str {
        match self {
            Verdict::ToolLimited => "the meter's own cost is a large part of this figure",
            Verdict::CpuLimited => "the processors were the limit, not the storage",
            Verdict::Cached => "part of the requests was answered from the page cache",
            Verdict::DirectIgnored => "direct I/O was accepted and then not done",
            Verdict::Sparse => "the file has holes, which reads never take to the device",
            Verdict::UnwrittenExtents => "parts of the file were allocated but never written",
            Verdict::NotSteady => "the rate drifted, swung or stepped while it was measured",
            Verdict::BurstLimited => "a burst allowance ran out while it was measured",
            Verdict::TooFewSamples => "too few independent samples",
            Verdict::DepthNotReached => "fewer requests were in flight than configured",
            Verdict::LoopLimited => "the loop device itself was the limit",
            Verdict::Throttled => "a control group limit held requests back",
            Verdict::ForeignIo => "another process used the device meanwhile",
            Verdict::ClockFallback => "the time stamp counter could not be trusted",
            Verdict::MemlockLimited => "registered buffers were refused (RLIMIT_MEMLOCK or kernel)",
            Verdict::Steal => "the hypervisor took processor time away",
        }
    }
}

/// A set of verdicts; empty means sound. Serialises as an array in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Verdicts(BTreeSet<Verdict>);

impl Verdicts {
    /// The empty set.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds one verdict; adding it twice changes nothing.
    pub fn add(&mut self, verdict: Verdict) {
        self.0.insert(verdict);
    }

    /// Adds every verdict of another set.
    pub fn merge(&mut self, other: &Verdicts) {
        self.0.extend(other.0.iter().copied());
    }

    /// Whether the set holds this verdict.
    pub fn has(&self, verdict: Verdict) -> bool {
        self.0.contains(&verdict)
    }

    /// Whether nothing speaks against the figure.
    pub fn is_sound(&self) -> bool {
        self.0.is_empty()
    }

    /// The verdicts in their fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Verdict> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<Verdict> for Verdicts {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Self {
        Self(verdicts.into_iter().collect())
    }
}
