//! `describe_path` and `describe_host` on machines that were built for it.

use std::path::Path;

use iostrata_linux::host::{HostError, Root, describe_host, describe_path};
use iostrata_run::host::{
    CgroupVersion, DirectIoBehaviour, LayerKind, LimitScope, NetworkKind, PathFacts, PathKind,
};

use crate::host::tree::{Tree, device_dir};

fn describe(tree: &Tree, path: &str) -> PathFacts {
    let facts = describe_path(&tree.root(), Path::new(path)).unwrap();
    let names: Vec<&str> = facts.devices.iter().map(|device| device.name.as_str()).collect();
    let queued: Vec<&str> = facts
        .block_stack
        .iter()
        .filter(|layer| !matches!(layer.kind, LayerKind::Partition { .. }))
        .map(|layer| layer.name.as_str())
        .collect();
    assert_eq!(names, queued, "every layer with a queue has its facts, in the same order");
    facts
}

fn stack(facts: &PathFacts) -> Vec<(&str, u32)> {
    facts.block_stack.iter().map(|layer| (layer.name.as_str(), layer.depth)).collect()
}

fn partitioned() -> Tree {
    Tree::new()
        .disk("sda", "8:0")
        .partition("sda", 1, "8:1")
        .mount("8:1 / / rw,relatime shared:1 - ext4 /dev/root rw,errors=remount-ro")
        .place("/", "8:1")
}

#[test]
fn an_ext4_partition() {
    let facts = describe(&partitioned(), "/srv/db");
    assert_eq!(facts.path, "/srv/db");
    assert_eq!(facts.kind, PathKind::Disk);
    assert_eq!(facts.file_system.as_deref(), Some("ext4"));
    assert_eq!(facts.mount_point.as_deref(), Some("/"));
    assert_eq!(facts.mount_options, ["rw", "relatime", "errors=remount-ro"]);
    assert_eq!(facts.read_only, Some(false));
    assert_eq!(facts.direct_io.behaviour, DirectIoBehaviour::Honoured);
    assert_eq!(stack(&facts), [("sda1", 0), ("sda", 1)]);
    let partition = LayerKind::Partition { number: Some(1), start_bytes: Some(1 << 20) };
    assert_eq!(facts.block_stack[0].kind, partition);
    assert_eq!(facts.block_stack[0].below, ["sda"]);
    assert_eq!(facts.block_stack[1].kind, LayerKind::Disk);
    assert_eq!(facts.block_stack[1].size_bytes, Some(1 << 30));
    let disk = &facts.devices[0];
    assert_eq!(disk.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!((disk.nr_requests, disk.rotational_flag), (Some(256), Some(false)));
    assert_eq!(disk.transport.as_deref(), Some("virtio"));
    assert_eq!(disk.read_ahead_kib, None);
    assert_eq!(facts.notes, [""; 0]);
}

#[test]
fn lvm_on_md_on_two_disks() {
    let tree = Tree::new()
        .disk("sda", "8:0")
        .partition("sda", 1, "8:1")
        .disk("sdb", "8:16")
        .partition("sdb", 1, "8:17")
        .disk("md0", "9:0")
        .file(&format!("{}/md/level", device_dir("md0")), "raid1\n")
        .file(&format!("{}/md/raid_disks", device_dir("md0")), "2\n")
        .mapped("dm-0", "253:0", "vg-data", "LVM-abc")
        .on("md0", "sda1")
        .on("md0", "sdb1")
        .on("dm-0", "md0")
        .mount("253:0 / /data rw - xfs /dev/mapper/vg-data rw,noquota")
        .place("/data", "253:0");
    let facts = describe(&tree, "/data/x");
    let expected = [("dm-0", 0), ("md0", 1), ("sda1", 2), ("sdb1", 2), ("sda", 3), ("sdb", 3)];
    assert_eq!(stack(&facts), expected);
    assert_eq!(facts.block_stack[0].kind, LayerKind::Lvm { name: Some("vg-data".into()) });
    let md = LayerKind::Md { level: Some("raid1".into()), disks: Some(2), chunk_bytes: None };
    assert_eq!(facts.block_stack[1].kind, md);
    assert_eq!(facts.block_stack[1].below, ["sda1", "sdb1"]);
}

#[test]
fn a_disk_below_two_partitions_comes_once() {
    let tree = Tree::new()
        .disk("sda", "8:0")
        .partition("sda", 1, "8:1")
        .partition("sda", 2, "8:2")
        .mapped("dm-0", "253:0", "vg-data", "LVM-abc")
        .on("dm-0", "sda1")
        .on("dm-0", "sda2")
        .mount("253:0 / /data rw - xfs /dev/mapper/vg-data rw,noquota")
        .place("/data", "253:0");
    let facts = describe(&tree, "/data");
    assert_eq!(stack(&facts), [("dm-0", 0), ("sda1", 1), ("sda2", 1), ("sda", 2)]);
}

#[test]
fn an_encrypted_disk() {
    let tree = Tree::new()
        .disk("nvme0n1", "259:0")
        .mapped("dm-1", "253:1", "secret-home", "CRYPT-LUKS2-0123-home")
        .on("dm-1", "nvme0n1")
        .mount("253:1 / /home rw - ext4 /dev/mapper/secret-home rw,data=journal")
        .place("/home", "253:1");
    let facts = describe(&tree, "/home");
    assert_eq!(stack(&facts), [("dm-1", 0), ("nvme0n1", 1)]);
    let kind = LayerKind::Crypt { name: Some("secret-home".into()) };
    assert_eq!(facts.block_stack[0].kind, kind);
    assert_eq!(facts.direct_io.behaviour, DirectIoBehaviour::Ignored);
}

fn btrfs_on_two() -> Tree {
    Tree::new()
        .disk("vdb", "254:16")
        .disk("vdc", "254:32")
        .disk("vdd", "254:48")
        .file("/sys/fs/btrfs/0aa/devices/vdd", "")
        .file("/sys/fs/btrfs/1bb/devices/vdb", "")
        .file("/sys/fs/btrfs/1bb/devices/vdc", "")
        .mount("254:0 / / rw - ext4 /dev/vda rw")
        .mount("0:45 /@data /mnt rw - btrfs /dev/vdb rw,space_cache=v2,subvol=/@data")
        // A subvolume's files have a number that no mount has.
        .place("/mnt", "0:52")
}

#[test]
fn btrfs_with_an_anonymous_number_on_two_disks() {
    let tree = btrfs_on_two();
    let facts = describe(&tree, "/mnt/sub/file");
    assert_eq!(facts.file_system.as_deref(), Some("btrfs"));
    assert_eq!(facts.kind, PathKind::Disk);
    assert_eq!(stack(&facts), [("vdb", 0), ("vdc", 0)]);
    assert_eq!(facts.direct_io.behaviour, DirectIoBehaviour::Ignored);
    assert_eq!(facts.device_number.unwrap().to_string(), "0:52");
}

#[test]
fn btrfs_without_its_sysfs() {
    let tree = btrfs_on_two();
    tree.remove("/sys/fs/btrfs");
    let facts = describe(&tree, "/mnt/x");
    assert_eq!(stack(&facts), [("vdb", 0)]);
    assert_eq!(facts.notes.len(), 1, "{:?}", facts.notes);
}

fn overlaid() -> Tree {
    partitioned()
        .file("/var/up/db", "")
        .mount(
            "0:60 / /merged rw - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/var/up,workdir=/w",
        )
        .place("/merged", "0:60")
}

#[test]
fn an_overlay_on_ext4() {
    let facts = describe(&overlaid(), "/merged/db");
    let PathKind::Overlay { lower, upper, upper_file_system } = &facts.kind else {
        panic!("{:?}", facts.kind)
    };
    assert_eq!(lower, &["/l1", "/l2"]);
    assert_eq!(upper.as_deref(), Some("/var/up"));
    assert_eq!(upper_file_system.as_deref(), Some("ext4"));
    assert_eq!(facts.file_system.as_deref(), Some("overlay"));
    assert_eq!(stack(&facts), [("sda1", 0), ("sda", 1)]);
    assert_eq!(facts.direct_io.behaviour, DirectIoBehaviour::Honoured);
}

fn container() -> Tree {
    Tree::new()
        .disk("sda", "8:0")
        .partition("sda", 1, "8:1")
        .mount("0:60 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/docker/u,workdir=/w")
        .mount("8:2 /boot /boot rw - ext4 /dev/sda2 rw")
        .mount("8:1 /docker/hosts /etc/hosts rw - xfs /dev/sda1 rw")
        .place_sized("/", "0:60", 1 << 30, 5000)
        .place_sized("/boot", "8:2", 1 << 30, 77)
        .file("/.dockerenv", "")
}

#[test]
fn an_overlay_whose_upper_directory_is_out_of_sight() {
    let tree = container().place_sized("/etc/hosts", "8:1", 1 << 29, 5000);
    let facts = describe(&tree, "/data/x");
    assert!(matches!(&facts.kind, PathKind::Overlay { upper_file_system: None, .. }));
    assert_eq!((facts.block_stack.len(), facts.limits.len()), (0, 0));
    assert!(facts.notes[0].contains("/var/lib/docker/u"), "{:?}", facts.notes);
    assert_eq!(describe_host(&tree.root()).container.as_deref(), Some("docker"));
}

#[test]
fn an_overlay_is_recognised_by_the_size_of_what_is_below() {
    let tree = container().place_sized("/etc/hosts", "8:1", 1 << 30, 5000);
    let facts = describe(&tree, "/data/x");
    let PathKind::Overlay { upper_file_system, .. } = &facts.kind else { panic!() };
    assert_eq!(upper_file_system.as_deref(), Some("xfs"));
    assert_eq!(stack(&facts), [("sda1", 0), ("sda", 1)]);
    assert!(facts.notes[1].contains("/etc/hosts"), "{:?}", facts.notes);
}

#[test]
fn memory_and_network() {
    let tree = Tree::new()
        .mount("0:21 / /tmp rw - tmpfs tmpfs rw,size=1G")
        .mount("0:50 / /nfs rw,noatime - nfs4 ann@server:/export rw,vers=4.2,sec=sys")
        .mount("0:51 / /smb rw - cifs //server/share rw,username=ann,password=hunter2")
        .place("/tmp", "0:21")
        .place("/nfs", "0:50")
        .place("/smb", "0:51");
    let memory = describe(&tree, "/tmp/x");
    assert_eq!(memory.kind, PathKind::Tmpfs);
    assert_eq!(memory.direct_io.behaviour, DirectIoBehaviour::Ignored);
    let nfs = describe(&tree, "/nfs/x");
    assert_eq!(nfs.kind, PathKind::Network { protocol: NetworkKind::Nfs });
    assert_eq!(nfs.mount_source.as_deref(), Some("server:/export"));
    let smb = describe(&tree, "/smb");
    assert_eq!(smb.mount_options, ["rw", "username=...", "password=..."]);
}

#[test]
fn a_file_system_on_a_loop_device_leads_to_the_disk() {
    let tree = partitioned()
        .file("/srv/image", "")
        .disk("loop3", "7:3")
        .file(&format!("{}/loop/backing_file", device_dir("loop3")), "/srv/image\n")
        .file(&format!("{}/loop/dio", device_dir("loop3")), "1\n")
        .file(&format!("{}/loop/offset", device_dir("loop3")), "512\n")
        .file(&format!("{}/alignment_offset", device_dir("sda")), "3584\n")
        .mount("7:3 / /mnt rw - xfs /dev/loop3 rw")
        .place("/mnt", "7:3");
    let facts = describe(&tree, "/mnt/x");
    assert_eq!(stack(&facts), [("loop3", 0), ("sda1", 1), ("sda", 2)]);
    let kind = LayerKind::Loop {
        backing_file: Some("/srv/image".into()),
        direct_io: Some(true),
        offset_bytes: Some(512),
        backing_file_system: Some("ext4".into()),
        backing_block_bytes: None,
    };
    assert_eq!(facts.block_stack[0].kind, kind);
    assert_eq!(facts.block_stack[0].below, ["sda1"]);
    assert_eq!(facts.block_stack[2].alignment_offset_bytes, Some(3584));
}

#[test]
fn a_loop_of_files_ends() {
    let tree = Tree::new()
        .file("/mnt/image", "")
        .disk("loop0", "7:0")
        .file(&format!("{}/loop/backing_file", device_dir("loop0")), "/mnt/image\n")
        .mount("7:0 / /mnt rw - ext4 /dev/loop0 rw")
        .place("/mnt", "7:0");
    assert_eq!(stack(&describe(&tree, "/mnt")), [("loop0", 0)]);
}

#[test]
fn a_block_device_itself() {
    let tree = partitioned().place_device("/dev/sda1", "8:1");
    let facts = describe(&tree, "/dev/sda1");
    assert_eq!(facts.kind, PathKind::BlockDevice);
    assert_eq!(stack(&facts), [("sda1", 0), ("sda", 1)]);
    assert_eq!(facts.file_system, None);
}

const V2: &str = "0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";

#[test]
fn limits_of_version_2_hold_from_every_group_above() {
    let tree = partitioned()
        .mount(V2)
        .file("/proc/self/cgroup", "0::/db/mysql\n")
        .file("/sys/fs/cgroup/db/mysql/io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max\n")
        .file(
            "/sys/fs/cgroup/db/io.max",
            "8:0 rbps=max wbps=max riops=1500 wiops=max\n9:9 riops=1\n",
        )
        .file("/sys/fs/cgroup/db/cpu.max", "150000 100000\n")
        .file("/sys/fs/cgroup/db/mysql/cpu.max", "max 100000\n")
        .file("/sys/fs/cgroup/db/memory.max", "max\n")
        .file("/sys/fs/cgroup/db/mysql/memory.max", "1073741824\n");
    let limits = describe(&tree, "/srv").limits;
    assert_eq!(limits.len(), 2, "a limit on another device is not ours");
    assert_eq!(
        (limits[0].cgroup.as_str(), limits[0].write_bytes_per_s),
        ("/db/mysql", Some(1 << 20))
    );
    assert_eq!((limits[1].cgroup.as_str(), limits[1].read_iops), ("/db", Some(1500)));
    assert_eq!(limits[1].write_iops, None);
    assert!(limits.iter().all(|limit| limit.device == "sda" && limit.version == CgroupVersion::V2));
    let cgroup = describe_host(&tree.root()).cgroup;
    assert_eq!(cgroup.cpu_quota_cpus, Some(1.5));
    assert_eq!(cgroup.cpu_quota_group.as_deref(), Some("/db"), "the group that sets it");
    assert_eq!(cgroup.cpu_quota_version, Some(CgroupVersion::V2));
    assert_eq!(cgroup.memory_limit_bytes, Some(1 << 30));
    assert_eq!(cgroup.path_v2.as_deref(), Some("/db/mysql"));
}

#[test]
fn limits_of_version_1_hold_in_the_own_group_and_for_write_back() {
    let blkio = "/sys/fs/cgroup/blkio";
    let tree = partitioned()
        .mount("0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio")
        .file("/proc/self/cgroup", "7:blkio:/a/b\n4:memory:/m\n")
        .file(&format!("{blkio}/a/b/blkio.throttle.read_iops_device"), "8:0 1500\n")
        .file(&format!("{blkio}/a/b/blkio.throttle.write_bps_device"), "8:0 1048576\n")
        .file(&format!("{blkio}/a/blkio.throttle.write_iops_device"), "8:0 1\n")
        .file(&format!("{blkio}/blkio.throttle.write_iops_device"), "8:0 300\n");
    let limits = describe(&tree, "/srv").limits;
    assert_eq!(limits.len(), 2, "a group in between does not count in version 1: {limits:?}");
    assert_eq!((limits[0].cgroup.as_str(), limits[0].scope), ("/a/b", LimitScope::Process));
    assert_eq!((limits[0].read_iops, limits[0].write_bytes_per_s), (Some(1500), Some(1 << 20)));
    assert_eq!((limits[1].cgroup.as_str(), limits[1].scope), ("/", LimitScope::WriteBack));
    assert_eq!((limits[1].write_iops, limits[1].version), (Some(300), CgroupVersion::V1));
}

#[test]
fn a_container_sees_only_its_part_of_the_tree() {
    let tree = partitioned()
        .mount("0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw")
        .file("/proc/self/cgroup", "0::/docker/abc/db\n")
        .file("/sys/fs/cgroup/io.max", "8:0 rbps=max wbps=max riops=max wiops=100\n")
        .file("/sys/fs/cgroup/db/io.max", "8:0 rbps=max wbps=max riops=max wiops=50\n");
    let limits = describe(&tree, "/srv").limits;
    assert_eq!(limits.len(), 2);
    assert_eq!((limits[0].cgroup.as_str(), limits[0].write_iops), ("/db", Some(50)));
    assert_eq!((limits[1].cgroup.as_str(), limits[1].write_iops), ("/", Some(100)));
    tree.rewrite("/proc/self/cgroup", "0::/../../elsewhere\n");
    assert_eq!(describe(&tree, "/srv").limits.len(), 1, "only the top is known to hold for it");
}

#[test]
fn missing_files_leave_facts_absent() {
    let tree = partitioned();
    tree.remove("/sys");
    let facts = describe(&tree, "/srv");
    assert_eq!(facts.file_system.as_deref(), Some("ext4"));
    assert_eq!(facts.kind, PathKind::Unknown);
    assert!(facts.block_stack.is_empty());
    assert!(facts.notes[0].contains("8:1"), "{:?}", facts.notes);
    tree.remove("/proc");
    let facts = describe(&tree, "/srv");
    assert_eq!((facts.file_system, facts.mount_point), (None, None));
    let host = describe_host(&tree.root());
    assert_eq!((host.kernel, host.cpus, host.memory_bytes), (None, None, None));
    assert!(!host.user_is_root);
}

#[test]
fn a_path_that_is_not_there() {
    let root = Root::system();
    let missing = Path::new("/nowhere-at-all/x");
    assert!(matches!(describe_path(&root, missing), Err(HostError::NoSuchPath { .. })));
    let dir = tempfile::tempdir().unwrap();
    let to_be_made = describe_path(&root, &dir.path().join("new-file")).unwrap();
    assert!(to_be_made.path.ends_with("/new-file") && to_be_made.mount_point.is_some());
}
