//! A quiet machine with one flash disk.

use iostrata_run::ProbeHost;
use iostrata_run::host::{
    BlockLayer, CgroupVersion, DeviceFacts, DeviceNumber, DirectIo, DirectIoBehaviour, HostFacts,
    IoLimit, LayerKind, LimitScope, PathFacts, PathKind,
};

/// A virtual machine with a write-back disk that is rightly called flash.
pub fn host() -> ProbeHost {
    let device = DeviceFacts {
        rotational_flag: Some(false),
        write_cache: Some("write through".to_owned()),
        scheduler: Some("none".to_owned()),
        nr_requests: Some(256),
        ..DeviceFacts::named("vda")
    };
    let path = PathFacts {
        path: "/data".to_owned(),
        mount_point: Some("/".to_owned()),
        file_system: Some("ext4".to_owned()),
        mount_source: None,
        mount_options: vec!["rw".to_owned(), "relatime".to_owned()],
        read_only: Some(false),
        device_number: None,
        block_bytes: Some(4096),
        total_bytes: None,
        free_bytes: None,
        inodes_total: None,
        inodes_free: None,
        kind: PathKind::Disk,
        block_stack: Vec::new(),
        devices: vec![device],
        limits: Vec::new(),
        io_controls: Vec::new(),
        direct_io: DirectIo {
            behaviour: DirectIoBehaviour::Honoured,
            reason: None,
            memory_align_bytes: None,
            offset_align_bytes: None,
        },
        notes: Vec::new(),
    };
    ProbeHost { machine: HostFacts { cpus: Some(8), ..HostFacts::default() }, path }
}

/// A limit of the process's control group.
pub fn io_limit(read_iops: u64, write_iops: u64) -> IoLimit {
    IoLimit {
        cgroup: "/db".to_owned(),
        version: CgroupVersion::V2,
        scope: LimitScope::Process,
        device: "vda".to_owned(),
        device_number: DeviceNumber { major: 254, minor: 0 },
        read_bytes_per_s: None,
        write_bytes_per_s: None,
        read_iops: Some(read_iops),
        write_iops: Some(write_iops),
    }
}

/// A layer of blocks.
pub fn layer(name: &str, kind: LayerKind, depth: u32, below: &[&str]) -> BlockLayer {
    BlockLayer {
        name: name.to_owned(),
        device_number: None,
        kind,
        depth,
        below: below.iter().map(|&name| name.to_owned()).collect(),
        size_bytes: None,
        alignment_offset_bytes: None,
    }
}
