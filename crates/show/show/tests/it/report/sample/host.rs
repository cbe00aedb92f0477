//! The sample's machine.

use iostrata_run::ProbeHost;
use serde_json::json;

pub fn host() -> ProbeHost {
    serde_json::from_value(json!({
        "machine": {
            "kernel": "6.12.8-sample", "architecture": "x86_64",
            "cpu_model": "Sample Processor 8-Core", "cpus": 8, "cpus_allowed": 8,
            "memory_bytes": 34_359_738_368_u64, "virtualisation": "kvm",
            "clock_source": "tsc", "clock_sources_available": ["tsc", "hpet"],
            "mitigations_active": [], "cgroup": {}, "user_is_root": false,
            "memlock_limit_bytes": 8_388_608, "memlock_unlimited": false
        },
        "path": {
            "path": "/var/lib/mysql", "mount_point": "/var/lib/mysql", "file_system": "ext4",
            "mount_source": "/dev/sdb1", "mount_options": ["rw", "relatime", "errors=remount-ro"],
            "read_only": false, "block_bytes": 4096, "total_bytes": 515_396_075_520_u64,
            "free_bytes": 412_316_860_416_u64, "kind": {"type": "disk"},
            "block_stack": [
                {"name": "sdb1", "kind": {"type": "partition", "number": 1}, "depth": 0,
                 "below": ["sdb"], "size_bytes": 515_396_075_520_u64},
                {"name": "sdb", "kind": {"type": "disk"}, "depth": 1, "below": []}
            ],
            "devices": [{
                "name": "sdb", "model": "SAMPLE SSD 512", "transport": "ata",
                "size_bytes": 515_396_075_520_u64, "logical_block_bytes": 512,
                "physical_block_bytes": 4096, "rotational_flag": false,
                "write_cache": "write back", "fua": false, "scheduler": "mq-deadline",
                "schedulers_available": ["none", "mq-deadline"], "nr_requests": 64,
                "read_ahead_kib": 128, "queues": 1
            }],
            "limits": [],
            "direct_io": {"behaviour": "honoured", "reason": "ext4 on a disk"},
            "notes": []
        }
    }))
    .unwrap()
}
