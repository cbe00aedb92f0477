//! One block device and its request queue, as sysfs describes them.

use serde::{Deserialize, Serialize};

use super::DeviceNumber;

/// A block device that has a request queue: a disk, or a device made of others (md, dm, loop).
///
/// Everything except the name is absent where the kernel does not report it. Flags are what the
/// kernel claims, not what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    /// Kernel name, such as `nvme0n1`.
    pub name: String,
    /// Device number.
    pub device_number: Option<DeviceNumber>,
    /// Vendor string of the device, trimmed.
    pub vendor: Option<String>,
    /// Model string of the device, trimmed.
    pub model: Option<String>,
    /// How it is attached: `nvme`, `virtio`, `scsi`, `ata`, `usb`, `mmc`, `xen` or `virtual`.
    pub transport: Option<String>,
    /// Capacity, in bytes.
    pub size_bytes: Option<u64>,
    /// Smallest addressable unit, in bytes.
    pub logical_block_bytes: Option<u64>,
    /// Smallest unit written without read-modify-write, in bytes, as claimed.
    pub physical_block_bytes: Option<u64>,
    /// Preferred smallest request, in bytes.
    pub io_bytes_min: Option<u64>,
    /// Preferred request, in bytes; absent when the device states none.
    pub io_bytes_optimal: Option<u64>,
    /// The kernel's rotational flag; often wrong for virtual disks.
    pub rotational_flag: Option<bool>,
    /// Whether the device may be removed.
    pub removable: Option<bool>,
    /// Whether the device refuses writes.
    pub read_only: Option<bool>,
    /// `write back` (a flush means something) or `write through`.
    pub write_cache: Option<String>,
    /// Whether a write can bypass the cache by itself (forced unit access).
    pub fua: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// The I/O schedulers that the kernel offers for this device.
    pub schedulers_available: Vec<String>,
    /// Requests that the queue may hold, per hardware queue and direction.
    pub nr_requests: Option<u64>,
    /// Read-ahead window, in KiB.
    pub read_ahead_kib: Option<u64>,
    /// 0 merges all, 1 only simple ones, 2 never merges.
    pub nomerges: Option<u64>,
    /// 0 completes anywhere, 1 on the submitter's group, 2 on the submitter's processor.
    pub rq_affinity: Option<u64>,
    /// Target latency of write-back throttling, in microseconds; 0 is off.
    pub wbt_latency_us: Option<u64>,
    /// Largest request in use, in KiB.
    pub request_kib_max: Option<u64>,
    /// Largest request of the hardware, in KiB.
    pub request_kib_max_hardware: Option<u64>,
    /// Whether polled completion is available.
    pub io_poll: Option<bool>,
    /// Whether requests feed the entropy pool.
    pub add_random: Option<bool>,
    /// Whether the kernel counts I/O of this device; false means every counter stands still.
    pub iostats: Option<bool>,
    /// Whether files can be mapped straight to the medium.
    pub dax: Option<bool>,
    /// Discard granularity, in bytes; 0 means no discard.
    pub discard_granularity_bytes: Option<u64>,
    /// Largest discard, in bytes; 0 means no discard.
    pub discard_bytes_max: Option<u64>,
    /// Smallest write that is atomic through a power cut, in bytes; 0 means none is promised.
    pub atomic_write_bytes_min: Option<u64>,
    /// Largest write that is atomic through a power cut, in bytes; 0 means none is promised.
    pub atomic_write_bytes_max: Option<u64>,
    /// `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
    /// Hardware queues.
    pub queues: Option<u32>,
    /// NUMA node of the device.
    pub numa_node: Option<u32>,
    /// PCI Express link of the device or its controller.
    pub pcie_link: Option<PcieLink>,
}

/// A PCI Express link: what it runs at and what it could.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PcieLink {
    /// Speed in use, as the kernel prints it.
    pub speed: Option<String>,
    /// Highest speed of the device.
    pub speed_max: Option<String>,
    /// Lanes in use.
    pub width: Option<u32>,
    /// Most lanes of the device.
    pub width_max: Option<u32>,
}

impl DeviceFacts {
    /// Facts of a device of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}
