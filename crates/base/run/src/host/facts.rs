//! The machine: kernel, processors, memory, virtualisation, clock, limits of this process.

use serde::{Deserialize, Serialize};

use super::CgroupVersion;

/// Facts about the machine, as far as they can be read without root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// Kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// Processor architecture, such as `x86_64`.
    pub architecture: Option<String>,
    /// The processor's marketing name.
    pub cpu_model: Option<String>,
    /// Logical processors online.
    pub cpus: Option<u32>,
    /// Logical processors that this process may run on.
    pub cpus_allowed: Option<u32>,
    /// Memory of the machine, in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that could be had without swapping when the facts were read, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// The hypervisor (`kvm`, `xen`, `vmware`, `hyperv`, ...); `unknown` when there is one that
    /// does not report its name; absent on bare metal, or when it is not known.
    pub virtualisation: Option<String>,
    /// The container runtime whose marker was found (`docker`, `podman`, `lxc`, ...).
    pub container: Option<String>,
    /// The kernel's clock source in use.
    pub clock_source: Option<String>,
    /// The clock sources that the kernel offers.
    pub clock_sources_available: Vec<String>,
    /// The frequency governor of the first processor; absent where the guest cannot see one.
    pub cpu_governor: Option<String>,
    /// The `mitigations=` option of the kernel command line.
    pub mitigations_option: Option<String>,
    /// Processor weaknesses for which a mitigation is active, each of which may cost time per
    /// system call or interrupt.
    pub mitigations_active: Vec<String>,
    /// The control groups of this process.
    pub cgroup: CgroupFacts,
    /// Whether this process runs as root.
    pub user_is_root: bool,
    /// How much memory this process may lock, in bytes; absent when unlimited or not known.
    pub memlock_limit_bytes: Option<u64>,
    /// Whether the memory lock limit is "unlimited".
    pub memlock_unlimited: Option<bool>,
    /// How many files this process may hold open.
    pub open_files_limit: Option<u64>,
    /// System-wide limit of libaio requests (`fs.aio-max-nr`).
    pub aio_requests_max: Option<u64>,
    /// libaio requests reserved at present (`fs.aio-nr`).
    pub aio_requests_used: Option<u64>,
    /// `kernel.io_uring_disabled`: 0 open to all, 1 to a group, 2 to none.
    pub io_uring_disabled: Option<u64>,
    /// The longest time that an idle processor takes to wake up by the kernel's own account, in
    /// microseconds; absent where the kernel gives none.
    #[serde(default)]
    pub idle_exit_us_max: Option<u64>,
    /// Share of memory that may be dirty before writers must wait, in percent (`vm.dirty_ratio`).
    pub dirty_ratio_pct: Option<u64>,
    /// Share of memory at which background write-back begins, in percent.
    pub dirty_background_ratio_pct: Option<u64>,
    /// Bytes that may be dirty before writers must wait (`vm.dirty_bytes`); 0 where the ratio
    /// holds instead.
    pub dirty_bytes: Option<u64>,
    /// Bytes at which background write-back begins (`vm.dirty_background_bytes`); 0 where the
    /// ratio holds instead.
    pub dirty_background_bytes: Option<u64>,
}

/// Where this process stands in the control groups, and what they allow it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CgroupFacts {
    /// Path in the version 2 hierarchy, as in `/proc/self/cgroup`.
    pub path_v2: Option<String>,
    /// Path in the version 1 `blkio` hierarchy.
    pub path_v1_blkio: Option<String>,
    /// Processor time that the tightest quota allows, in processors (2.5 is two and a half);
    /// absent when there is no quota.
    pub cpu_quota_cpus: Option<f64>,
    /// Path of the group that sets this quota, below the hierarchy's mount point.
    pub cpu_quota_group: Option<String>,
    /// Hierarchy that the group belongs to.
    pub cpu_quota_version: Option<CgroupVersion>,
    /// The tightest memory limit, in bytes; absent when there is none. The page cache of this
    /// process counts against it.
    pub memory_limit_bytes: Option<u64>,
    /// Path of the group that sets it, below the hierarchy's mount point.
    #[serde(default)]
    pub memory_limit_group: Option<String>,
    /// Hierarchy that the group belongs to.
    #[serde(default)]
    pub memory_limit_version: Option<CgroupVersion>,
}
