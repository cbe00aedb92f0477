//! The block devices between a file system and its disks, from the top down.

use serde::{Deserialize, Serialize};

use super::DeviceNumber;

/// One block device on the way down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockLayer {
    /// Kernel name, such as `sda1` or `dm-0`.
    pub name: String,
    /// Device number.
    pub device_number: Option<DeviceNumber>,
    /// What it is.
    pub kind: LayerKind,
    /// Steps below the file system; the top is 0.
    pub depth: u32,
    /// Names of the devices directly below it; empty for a disk.
    pub below: Vec<String>,
    /// Size, in bytes.
    pub size_bytes: Option<u64>,
    /// Bytes from the device's start to the next boundary of a physical block of the disk below, as
    /// the kernel reports it (`alignment_offset`): 0 is aligned, -1 cannot be.
    pub alignment_offset_bytes: Option<i64>,
}

/// What a block device is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LayerKind {
    /// Part of a disk.
    Partition {
        /// Number on its disk.
        number: Option<u32>,
        /// First byte on its disk.
        start_bytes: Option<u64>,
    },
    /// A logical volume.
    Lvm {
        /// Mapper name, `group-volume`.
        name: Option<String>,
    },
    /// An encrypted device (dm-crypt).
    Crypt {
        /// Mapper name.
        name: Option<String>,
    },
    /// Several paths to one disk.
    Multipath {
        /// Mapper name.
        name: Option<String>,
    },
    /// Another device of the mapper.
    DeviceMapper {
        /// Mapper name.
        name: Option<String>,
    },
    /// Software RAID.
    Md {
        /// `raid0`, `raid1`, `raid5`, `linear`, ...
        level: Option<String>,
        /// Devices that it consists of when complete.
        disks: Option<u32>,
        /// Bytes written to one disk before the next is used.
        chunk_bytes: Option<u64>,
    },
    /// A file served as a device.
    Loop {
        /// The file, as the kernel names it.
        backing_file: Option<String>,
        /// Whether it bypasses the page cache of the file's file system.
        direct_io: Option<bool>,
        /// First byte of the file that belongs to the device.
        offset_bytes: Option<u64>,
        /// File system that holds the file; absent where the file is itself a device.
        backing_file_system: Option<String>,
        /// Block size of that file system, in bytes.
        backing_block_bytes: Option<u64>,
    },
    /// A cache in front of another device.
    Bcache,
    /// Compressed memory.
    Zram,
    /// A disk, real or virtual: nothing is known below it.
    Disk,
}
