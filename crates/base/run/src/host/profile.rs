//! Where the processors were, and where threads waited, while something was measured.
//!
//! Purpose: the profile of one window as plain data: shares by kernel layer, top symbols, folded
//! stacks, waits. Invariant: `layers` adds up to `samples`, idle and programs included, so a share
//! is always one of all processor time sampled. It takes no sample itself and draws nothing.

use serde::{Deserialize, Serialize};

/// Most symbols that a profile lists.
pub const PROFILE_SYMBOLS_MAX: usize = 25;
/// Most stacks that a profile lists.
pub const PROFILE_STACKS_MAX: usize = 300;
/// Most wait reasons that a profile lists.
pub const PROFILE_WAITS_MAX: usize = 50;
/// Module of the symbols that are part of the kernel image.
pub const KERNEL_MODULE: &str = "[kernel]";

/// Part of the way of an I/O through the kernel, or what a processor did instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KernelLayer {
    /// The measuring program; as a wait: what it chose to wait for (a lock of its own, a timer).
    User,
    /// Programs that do not belong to the measurement.
    OtherPrograms,
    /// Entry and exit of system calls, io_uring and libaio included.
    SystemCall,
    /// What all file systems share.
    Vfs,
    /// ext4, XFS, btrfs and the direct I/O code they share.
    Filesystem,
    /// Their journals and logs.
    Journal,
    /// Cached pages, write-back, reclaim.
    PageCache,
    /// Control group limits and write-back throttling.
    Limit,
    /// Bios, requests, queues.
    Block,
    /// I/O schedulers.
    Scheduler,
    /// Device drivers.
    Driver,
    /// The device answering a request; only as a wait.
    Device,
    /// Interrupts and what is done right after them.
    Interrupt,
    /// Locks of the kernel: spinning, taking, releasing; as a wait: asleep on one.
    Lock,
    /// Switching between tasks; as a wait: ready to run, without a processor.
    TaskSwitch,
    /// Processors with nothing to do.
    Idle,
    /// Everything else.
    Other,
}

impl KernelLayer {
    /// Every layer, from the program down to the device, then what is no step of the way.
    pub const ALL: [Self; 17] = [
        Self::User,
        Self::OtherPrograms,
        Self::SystemCall,
        Self::Vfs,
        Self::Filesystem,
        Self::Journal,
        Self::PageCache,
        Self::Limit,
        Self::Block,
        Self::Scheduler,
        Self::Driver,
        Self::Device,
        Self::Interrupt,
        Self::Lock,
        Self::TaskSwitch,
        Self::Idle,
        Self::Other,
    ];

    /// How a view names it.
    pub fn title(self) -> &'static str {
        match self {
            Self::User => "program",
            Self::OtherPrograms => "other programs",
            Self::SystemCall => "system call",
            Self::Vfs => "VFS",
            Self::Filesystem => "file system",
            Self::Journal => "journal",
            Self::PageCache => "page cache",
            Self::Limit => "limit",
            Self::Block => "block",
            Self::Scheduler => "I/O scheduler",
            Self::Driver => "driver",
            Self::Device => "device",
            Self::Interrupt => "interrupt",
            Self::Lock => "lock",
            Self::TaskSwitch => "task switching",
            Self::Idle => "idle",
            Self::Other => "other",
        }
    }
}

/// What the processors did in a window, by sampling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// Samples per second and processor, as requested.
    pub hz: u32,
    /// What drove the sampling: `cpu-clock` (time, idle included) or `cycles` (hardware).
    pub clock: String,
    /// Length of the window, in seconds; of all windows in a merged profile.
    pub seconds: f64,
    /// Processors that were sampled.
    pub cpus: u32,
    /// All samples, those on idle processors included.
    pub samples: u64,
    /// Samples that the kernel could not store.
    pub lost: u64,
    /// Samples by layer, in the order of [`KernelLayer::ALL`], without empty ones; they add up to
    /// `samples`.
    pub layers: Vec<LayerShare>,
    /// The symbols with most samples of their own, largest first, at most
    /// [`PROFILE_SYMBOLS_MAX`].
    pub symbols: Vec<SymbolShare>,
    /// The stacks with most samples, largest first, at most [`PROFILE_STACKS_MAX`].
    pub stacks: Vec<FoldedStack>,
    /// Samples of the stacks that are not listed.
    pub stacks_rest_samples: u64,
    /// Where threads of this process waited; absent when that was not traced.
    pub off_cpu: Option<OffCpu>,
    /// What limits the profile's meaning; one sentence each.
    pub notes: Vec<String>,
}

/// The share of one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerShare {
    /// The layer.
    pub layer: KernelLayer,
    /// Samples whose innermost known function belongs to it.
    pub samples: u64,
    /// In percent of all samples.
    pub pct: f64,
    /// For `lock` only: which layer took the lock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_in: Vec<LayerSamples>,
}

/// Samples of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerSamples {
    /// The layer.
    pub layer: KernelLayer,
    /// Samples.
    pub samples: u64,
}

/// The share of one function, the functions it called not included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SymbolShare {
    /// Function; `user` for a program.
    pub symbol: String,
    /// [`KERNEL_MODULE`], the name of a kernel module, or the name of a program.
    pub module: String,
    /// The layer of the function's samples (of most of them, for a helper that many layers call).
    pub layer: KernelLayer,
    /// Samples.
    pub samples: u64,
    /// In percent of all samples.
    pub pct: f64,
}

/// A stack and its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoldedStack {
    /// Functions from the outermost to the innermost; all frames of a program are one, `user`.
    /// Functions outside the kernel image carry their module: `kfio_destroy_disk [iomemory_vsl]`.
    pub frames: Vec<String>,
    /// The layer that the samples count for.
    pub layer: KernelLayer,
    /// Samples.
    pub samples: u64,
}

impl FoldedStack {
    /// The innermost function and its module; absent for a stack without frames.
    pub fn innermost(&self) -> Option<(&str, &str)> {
        let frame = self.frames.last()?;
        let parts = frame.strip_suffix(']').and_then(|frame| frame.split_once(" ["));
        Some(parts.unwrap_or((frame, KERNEL_MODULE)))
    }
}

/// Where the threads of this process were while they were not running.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffCpu {
    /// Length of the traced window, in seconds.
    pub seconds: f64,
    /// Threads that waited at least once.
    pub threads: u32,
    /// Waits.
    pub count: u64,
    /// Their time, in us, summed over threads.
    pub total_us: f64,
    /// Switches of tasks whose record was lost; waits that they may have cut are not counted.
    pub lost: u64,
    /// Waits that had not ended with the window; they count up to its end.
    pub unfinished: u64,
    /// Time by layer, in the order of [`KernelLayer::ALL`], without empty ones.
    pub layers: Vec<LayerTime>,
    /// By reason, longest total first, at most [`PROFILE_WAITS_MAX`].
    pub waits: Vec<OffCpuWait>,
    /// Time of the reasons that are not listed, in us.
    pub waits_rest_us: f64,
    /// By stack, longest total first, at most [`PROFILE_STACKS_MAX`].
    pub stacks: Vec<FoldedStackTime>,
    /// Time of the stacks that are not listed, in us.
    pub stacks_rest_us: f64,
}

/// Time waited in one layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerTime {
    /// The layer.
    pub layer: KernelLayer,
    /// Waits.
    pub count: u64,
    /// Their time, in us, summed over threads.
    pub total_us: f64,
    /// In percent of all time waited.
    pub pct: f64,
}

/// Waits for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffCpuWait {
    /// The function that waits, as in `rwsem_down_write_slowpath`; `(preempted)` for a thread that
    /// was ready to run.
    pub symbol: String,
    /// Its caller: for a lock the function that takes it, as in `ext4_dio_write_iter`.
    pub caller: Option<String>,
    /// What the wait is for.
    pub layer: KernelLayer,
    /// For a lock: the layer that takes it.
    pub taken_in: Option<KernelLayer>,
    /// Waits.
    pub count: u64,
    /// Their time, in us, summed over threads.
    pub total_us: f64,
    /// `total_us / count`.
    pub mean_us: f64,
    /// The longest, in us.
    pub max_us: f64,
}

/// A stack and the time waited in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoldedStackTime {
    /// Functions from the outermost to the innermost, as in [`FoldedStack`].
    pub frames: Vec<String>,
    /// What the wait is for.
    pub layer: KernelLayer,
    /// Waits.
    pub count: u64,
    /// Their time, in us, summed over threads.
    pub total_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_named_once() {
        let mut titles: Vec<&str> = KernelLayer::ALL.iter().map(|layer| layer.title()).collect();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), KernelLayer::ALL.len());
        assert!(KernelLayer::ALL.is_sorted(), "the order of ALL is the order of the enum");
        let text = serde_json::to_string(&KernelLayer::PageCache).unwrap();
        assert_eq!(text, r#""page_cache""#);
    }
}
