//! Causes that show in facts of the host: each is named, and nothing else is.

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_plan::{Layer, OpKind};
use iostrata_run::host::{
    CgroupVersion, DeviceFacts, DirectIoBehaviour, ForeignIo, IoControl, IoControlKind, IoLimit,
    LayerKind, LimitedRate, NetworkKind, PathKind, ProcessIo, ThrottleEvidence,
};
use iostrata_run::{Event, FindingKind, ProbeDocument, ProbeHost, Replicate};
use iostrata_stats::Verdict;

use crate::support::{Disk, found, host, io_limit, layer, loss_ids, only, probe, probe_with};

/// The document of a log in which something was seen during every replicate.
fn beside(
    mut events: Vec<Event>,
    host: &ProbeHost,
    see: impl Fn(usize, &mut Replicate),
) -> ProbeDocument {
    for (number, event) in events.iter_mut().enumerate() {
        if let Event::Replicate(replicate) = event {
            see(number, replicate);
        }
    }
    summarise(host.clone(), &events, ProbeEnd::default())
}

fn throttle(replicate: &mut Replicate) -> &mut ThrottleEvidence {
    let evidence = replicate.evidence.as_mut().unwrap();
    evidence.throttle.get_or_insert_default()
}

fn setting<'d>(document: &'d ProbeDocument, name: &str) -> Option<&'d str> {
    let line = document.advice.iter().find(|one| one.setting == name)?;
    Some(line.value.as_str())
}

fn is_sized(document: &ProbeDocument) -> bool {
    setting(document, "innodb_io_capacity_max").is_some() || !document.redo_table.is_empty()
}

fn loop_over(file_system: Option<&str>, offset_bytes: u64) -> LayerKind {
    LayerKind::Loop {
        backing_file: Some("/srv/image".to_owned()),
        direct_io: Some(true),
        offset_bytes: Some(offset_bytes),
        backing_file_system: file_system.map(str::to_owned),
        backing_block_bytes: file_system.map(|_| 4096),
    }
}

fn bandwidth_limit() -> IoLimit {
    IoLimit {
        version: CgroupVersion::V1,
        read_iops: None,
        write_iops: None,
        write_bytes_per_s: Some(30 << 20),
        ..io_limit(0, 0)
    }
}

#[test]
fn a_limit_that_is_used_up_needs_no_confirming_point() {
    let mut limited = host();
    limited.path.limits = vec![bandwidth_limit()];
    let mut events = probe(&Disk::default(), &limited, 1);
    events.retain(|event| !matches!(event, Event::Suspected { .. }));
    let seen = |used: f64| {
        beside(events.clone(), &limited, |number, replicate| {
            *throttle(replicate) = ThrottleEvidence {
                io_limit_used_pct: Some(if number % 4 == 0 { used } else { 20.0 }),
                io_limit: Some(bandwidth_limit()),
                io_limit_rate: Some(LimitedRate::WriteBytes),
                ..ThrottleEvidence::default()
            };
        })
    };
    let document = seen(97.0);
    let finding = found(&document, "limit_above_device").unwrap();
    assert_eq!((finding.kind, finding.layer), (FindingKind::Loss, Layer::Limit));
    assert!(finding.text.contains("/db allows 30 MiB/s written on vda"), "{}", finding.text);
    let lift = "\"254:0 0\" to blkio.throttle.write_bps_device";
    assert!(finding.text.contains(lift), "{}", finding.text);
    assert_eq!(setting(&document, "blkio.throttle.write_bps_device of /db"), Some("254:0 0"));
    assert!(!is_sized(&document), "{:?}", document.advice);
    assert!(document.headline.join(" ").contains("30 MiB/s"), "{:?}", document.headline);
    let unused = seen(60.0);
    assert!(found(&unused, "limit_above_device").is_none());
    assert!(unused.advice.iter().all(|one| !one.setting.contains("throttle")));
}

#[test]
fn a_wait_behind_an_ignored_direct_flag_is_the_page_caches() {
    let disk = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    let mut cached = host();
    cached.path.file_system = Some("btrfs".to_owned());
    cached.path.direct_io.behaviour = DirectIoBehaviour::Ignored;
    cached.path.direct_io.reason =
        Some("btrfs writes checksummed data through the page cache".to_owned());
    let document = crate::support::document(&disk, &cached, 2);
    assert!(found(&document, "limit_above_device").is_none());
    assert!(document.losses.iter().all(|loss| loss.basis != "device_counters"));
    assert!(found(&document, "direct_io_ignored").unwrap().text.contains("checksummed"));
    assert!(!is_sized(&document));
}

#[test]
fn a_short_queue_is_named_before_limits() {
    // Four requests of 165 us at a time; more of them wait above the device.
    let disk = Disk { read_us: 160.0, limit_iops: Some(24_200.0), ..Disk::default() };
    let mut queued = host();
    queued.path.devices[0].nr_requests = Some(4);
    let document = crate::support::document(&disk, &queued, 3);
    let finding = found(&document, "small_queue").unwrap();
    assert_eq!((finding.kind, finding.layer), (FindingKind::Loss, Layer::Block));
    assert!(finding.effect_pct.unwrap() > 60.0, "{finding:?}");
    assert!(found(&document, "limit_above_device").is_none());
    assert_eq!(setting(&document, "nr_requests of vda"), Some("256"));
    assert!(document.losses.iter().all(|loss| loss.layer == Layer::Block), "{:?}", document.losses);
    let text = document.headline.join(" ");
    assert!(text.contains("the queue of vda holds 4 requests"), "{text}");
    assert!(!text.contains("container"), "{text}");
    // Where throughput does not show it, what waits above the device does, with the same cure.
    let mut events = probe(&disk, &queued, 3);
    let is_twice =
        |event: &Event| matches!(event, Event::Replicate(one) if one.point.id == "read_4k_depth_8");
    events.retain(|event| !is_twice(event));
    let document = summarise(queued.clone(), &events, ProbeEnd::default());
    assert!(found(&document, "small_queue").is_none());
    let finding = found(&document, "limit_above_device").unwrap();
    assert!(finding.text.contains("holds 4 requests (nr_requests)"), "{}", finding.text);
    assert_eq!(setting(&document, "nr_requests of vda"), Some("256"));
    queued.path.devices[0].nr_requests = Some(256);
    let document = crate::support::document(&disk, &queued, 3);
    assert!(found(&document, "small_queue").is_none());
    assert_eq!(setting(&document, "nr_requests of vda"), None);
}

#[test]
fn a_process_in_user_space_is_named_and_nothing_is_sized_by_it() {
    let disk = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    let mut served = host();
    served.path.file_system = Some("fuseblk".to_owned());
    let document = crate::support::document(&disk, &served, 4);
    let finding = found(&document, "file_system_between").unwrap();
    assert_eq!(finding.layer, Layer::Filesystem);
    assert!(finding.text.contains("user space"), "{}", finding.text);
    assert!(found(&document, "limit_above_device").is_none(), "one cause is named once");
    assert!(!is_sized(&document));
    let mut plain = host();
    plain.path.kind = PathKind::Network { protocol: NetworkKind::Fuse };
    assert!(!is_sized(&crate::support::document(&Disk::default(), &plain, 4)));
}

#[test]
fn an_unknown_cause_is_called_unknown() {
    let disk = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    let document = crate::support::document(&disk, &host(), 5);
    let text = &found(&document, "limit_above_device").unwrap().text;
    assert!(text.contains("The cause is not known"), "{text}");
}

#[test]
fn a_processor_quota_is_not_called_busy_processors() {
    let mut slowed = host();
    slowed.machine.cgroup.cpu_quota_cpus = Some(0.5);
    slowed.machine.cgroup.cpu_quota_group = Some("/db".to_owned());
    slowed.machine.cgroup.cpu_quota_version = Some(CgroupVersion::V1);
    let events = probe_with(&Disk::default(), &slowed, 6, |_| only(Verdict::CpuLimited));
    let count = events.iter().filter(|one| matches!(one, Event::Replicate(_))).count() as u64;
    let document = beside(events, &slowed, |_, replicate| {
        *throttle(replicate) = ThrottleEvidence {
            cpu_periods: Some(4),
            cpu_periods_throttled: Some(3),
            ..ThrottleEvidence::default()
        };
    });
    let finding = found(&document, "cpu_quota").unwrap();
    let counted = format!("{} of {} periods", 3 * count, 4 * count);
    assert!(finding.text.contains(&counted), "{}", finding.text);
    assert!(found(&document, "cpu_bound_host").is_none());
    assert_eq!(setting(&document, "cpu.cfs_quota_us of /db"), Some("-1"));
    assert!(!is_sized(&document));
}

#[test]
fn busy_processors_size_nothing() {
    let document = |verdict| {
        let events = probe_with(&Disk::default(), &host(), 7, |id| match id {
            "database_level_4" => only(verdict),
            _ => Default::default(),
        });
        summarise(host(), &events, ProbeEnd::default())
    };
    use Verdict::{CpuLimited, ForeignIo, Steal, Throttled};
    for verdict in [CpuLimited, ForeignIo, Steal, Throttled] {
        let document = document(verdict);
        assert!(!is_sized(&document), "{verdict:?}");
        let text = &found(&document, "flush_capacity").unwrap().text;
        assert!(text.contains("It bounds no setting"), "{text}");
    }
    assert!(is_sized(&document(Verdict::NotSteady)));
}

#[test]
fn slow_reads_beside_flushing_are_the_storages_only_where_the_capacity_is() {
    let document = |quota: Option<f64>| {
        let mut slowed = host();
        slowed.machine.cgroup.cpu_quota_cpus = quota;
        slowed.machine.cgroup.cpu_quota_group = quota.map(|_| "/db".to_owned());
        let events = probe_with(&Disk::default(), &slowed, 9, |_| only(Verdict::NotSteady));
        beside(events, &slowed, |_, replicate| {
            if quota.is_some() {
                *throttle(replicate) = ThrottleEvidence {
                    cpu_periods: Some(4),
                    cpu_periods_throttled: Some(3),
                    ..ThrottleEvidence::default()
                };
            }
            let place = replicate.point.curve.as_ref();
            if place.is_some_and(|place| place.curve == "database" && place.x > 0.0) {
                let readers = replicate.streams.iter_mut().filter(|one| one.name == "readers");
                for read in readers.filter_map(|one| one.ops.get_mut(OpKind::Read)) {
                    read.latency_us.mean += 5_000.0;
                    read.response_us.iter_mut().for_each(|response| response.mean += 5_000.0);
                }
            }
        })
    };
    assert!(found(&document(None), "flush_read_interference").is_some());
    let limited = document(Some(0.5));
    assert!(found(&limited, "cpu_quota").is_some(), "{:?}", limited.headline);
    assert!(found(&limited, "flush_read_interference").is_none());
}

#[test]
fn the_process_that_is_always_there_comes_first() {
    let process = |comm: &str, bytes_per_s: f64| ProcessIo {
        pid: 7,
        comm: comm.to_owned(),
        read_bytes_per_s: bytes_per_s,
        write_bytes_per_s: 0.0,
    };
    let events = probe_with(&Disk::default(), &host(), 8, |_| only(Verdict::ForeignIo));
    let document = beside(events, &host(), |number, replicate| {
        let processes = match number {
            9 => vec![process("bash", 9e9), process("fio", 1e8)],
            _ => vec![process("fio", 1e8), process("cron", 1e3)],
        };
        replicate.evidence.as_mut().unwrap().foreign =
            Some(ForeignIo { raised: true, processes, ..ForeignIo::default() });
    });
    let finding = found(&document, "foreign_io").unwrap();
    assert_eq!(finding.evidence["processes"][0], "fio");
    assert!(finding.text.contains("(fio in "), "{}", finding.text);
}

#[test]
fn a_start_off_the_blocks_below_is_found_through_the_stack() {
    let stack = |start_bytes, offset_bytes, file_system: Option<&str>| {
        let mut host = host();
        let start = LayerKind::Partition { number: Some(1), start_bytes: Some(start_bytes) };
        host.path.block_stack = vec![
            layer("loop3", loop_over(file_system, offset_bytes), 0, &["sda1"]),
            layer("sda1", start, 1, &["sda"]),
            layer("sda", LayerKind::Disk, 2, &[]),
        ];
        host.path.devices = ["loop3", "sda"].map(DeviceFacts::named).to_vec();
        host.path.devices[1].physical_block_bytes = Some(4096);
        host
    };
    let starts = |host: &ProbeHost| {
        let document = crate::support::document(&Disk::default(), host, 9);
        let finding = found(&document, "misaligned_start").cloned();
        let device = finding.map(|one| one.evidence["device"].as_str().unwrap().to_owned())?;
        assert_eq!(setting(&document, &format!("first byte of {device}")), Some("1048576"));
        Some(device)
    };
    assert_eq!(starts(&stack(1 << 20, 0, Some("ext4"))), None);
    assert_eq!(starts(&stack(1 << 20, 512, Some("ext4"))).as_deref(), Some("loop3"));
    assert_eq!(starts(&stack(63 * 512, 0, None)).as_deref(), Some("sda1"), "the one that is off");
    assert_eq!(starts(&stack(63 * 512, 512, None)), None, "and may cancel out at the disk");
    let mut alone = stack(63 * 512, 0, None);
    alone.path.block_stack.remove(0);
    alone.path.block_stack.iter_mut().for_each(|layer| layer.depth -= 1);
    assert_eq!(starts(&alone).as_deref(), Some("sda1"));
}

#[test]
fn little_room_is_a_caution_and_a_small_volume_is_not() {
    let room = |free_mib: u64, total_mib: u64| {
        let mut host = host();
        (host.path.free_bytes, host.path.total_bytes) =
            (Some(free_mib << 20), Some(total_mib << 20));
        let document = crate::support::document(&Disk::default(), &host, 10);
        assert!(loss_ids(&document).is_empty());
        found(&document, "nearly_full").is_some()
    };
    assert!(room(500, 4096) && room(500, 200 << 10) && room(20 << 10, 252 << 10));
    assert!(!room(900, 1024) && !room(74 << 10, 252 << 10) && !room(1 << 20, 64 << 20));
}

#[test]
fn few_dirty_bytes_are_named_with_the_setting() {
    let mut small = host();
    small.machine.dirty_bytes = Some(1 << 20);
    let document = crate::support::document(&Disk::default(), &small, 11);
    let finding = found(&document, "small_dirty_limit").unwrap();
    assert!(finding.text.starts_with("vm.dirty_bytes is 1048576"), "{}", finding.text);
    assert_eq!(setting(&document, "vm.dirty_bytes"), Some("268435456"));
    let mut usual = host();
    usual.machine.dirty_bytes = Some(0);
    (usual.machine.dirty_ratio_pct, usual.machine.memory_available_bytes) =
        (Some(20), Some(8 << 30));
    let document = crate::support::document(&Disk::default(), &usual, 11);
    assert!(found(&document, "small_dirty_limit").is_none());
}

#[test]
fn a_journal_for_data_is_answered_with_ordered_data() {
    let mut journal = host();
    journal.path.mount_options.push("data=journal".to_owned());
    journal.path.direct_io.behaviour = DirectIoBehaviour::Ignored;
    let cached = || [Verdict::Cached, Verdict::DirectIgnored].into_iter().collect();
    let events = probe_with(&Disk::default(), &journal, 12, |id| match id.starts_with("read") {
        true => cached(),
        false => Default::default(),
    });
    let document = summarise(journal, &events, ProbeEnd::default());
    assert_eq!(setting(&document, "data"), Some("ordered"));
    assert_eq!(setting(&document, "innodb_flush_method"), None);
    let text = document.headline.join(" ");
    assert!(!text.contains("reads/s"), "{text}");
}

#[test]
fn memory_is_found_below_a_loop_device_and_sizes_nothing() {
    let mut memory = host();
    memory.path.block_stack = vec![layer("loop0", loop_over(Some("tmpfs"), 0), 0, &[])];
    memory.path.devices[0].write_cache = Some("write back".to_owned());
    let document = crate::support::document(&Disk::default(), &memory, 13);
    assert!(found(&document, "not_a_local_disk").unwrap().text.contains("in memory (tmpfs)"));
    // No flush makes a commit durable there, and there is no credit or flash cache to run out.
    assert!(document.headline[0].contains("commits/s"), "{:?}", document.headline);
    assert!(!document.headline[0].contains("durable"), "{:?}", document.headline);
    assert!(!found(&document, "commit_rate").unwrap().text.contains("durable"));
    assert!(found(&document, "lasting_rate").is_none());
    assert!(!is_sized(&document));
    let mut zram = host();
    zram.path.block_stack = vec![layer("zram0", LayerKind::Zram, 0, &[])];
    let document = crate::support::document(&Disk::default(), &zram, 13);
    assert!(found(&document, "not_a_local_disk").is_some() && !is_sized(&document));
}

#[test]
fn what_is_known_of_a_cheap_flush_depends_on_who_answers_it() {
    let kept_by = |change: &dyn Fn(&mut ProbeHost)| {
        let mut host = host();
        host.path.devices[0].write_cache = Some("write back".to_owned());
        change(&mut host);
        let document = crate::support::document(&Disk::default(), &host, 14);
        let finding = found(&document, "flush_suspiciously_cheap").unwrap().clone();
        finding.evidence["kept_by"].as_str().unwrap().to_owned()
    };
    assert_eq!(kept_by(&|_| ()), "drive");
    assert_eq!(kept_by(&|host| host.machine.virtualisation = Some("kvm".into())), "hypervisor");
    let over = |file_system: &'static str| {
        move |host: &mut ProbeHost| {
            host.machine.virtualisation = Some("kvm".into());
            host.path.block_stack = vec![layer("loop0", loop_over(Some(file_system), 0), 0, &[])];
        }
    };
    assert_eq!(kept_by(&over("tmpfs")), "memory");
    assert_eq!(kept_by(&over("fuse.x")), "process");
}

#[test]
fn a_file_system_that_passes_requests_on_is_the_first_sentence() {
    // What FUSE does to native AIO and to one file, and an overlay perhaps to none.
    let disk = Disk { noise: 0.01, ..Disk::default() }
        .with("read_16k_libaio_16", 0.16)
        .with("write_16k_files_1", 0.4)
        .with("commit_fsync", 0.1);
    let mut fuse = host();
    fuse.path.file_system = Some("fuse.bindfs".to_owned());
    let mut overlay = host();
    overlay.path.file_system = Some("overlay".to_owned());
    overlay.path.kind =
        PathKind::Overlay { lower: Vec::new(), upper: None, upper_file_system: None };
    let mut nfs = host();
    nfs.path.kind = PathKind::Network { protocol: NetworkKind::Nfs };
    for (host, word) in [(fuse, "user space"), (overlay, "an overlay"), (nfs, "over NFS")] {
        let document = crate::support::document(&disk, &host, 15);
        assert!(document.headline[0].contains(word), "{:?}", document.headline);
        assert!(document.headline[0].contains("a volume of its own"));
        assert_eq!(setting(&document, "data directory"), Some("a volume of its own"));
        let text = document.headline.join(" ");
        assert!(text.contains("Give the data a volume of its own"), "{text}");
        assert!(loss_ids(&document).is_empty() && document.losses.is_empty(), "{text}");
        assert_eq!(setting(&document, "number of data files"), None);
        assert_eq!(setting(&document, "innodb_use_fdatasync"), None);
        assert_eq!(text.matches(word).count(), 1, "{text}");
    }
    let plain = crate::support::document(&disk, &host(), 15);
    assert!(found(&plain, "file_system_between").is_none());
    assert!(loss_ids(&plain).len() == 3, "{:?}", loss_ids(&plain));
}

#[test]
fn whose_a_dear_flush_is() {
    let disk = Disk { flush_us: 2_000.0, ..Disk::default() };
    let said = |change: &dyn Fn(&mut ProbeHost)| {
        let mut host = host();
        change(&mut host);
        let document = crate::support::document(&disk, &host, 16);
        let finding = found(&document, "volatile_cache_flush_cost").unwrap().clone();
        let whose = finding.evidence["flushed_by"].as_str().unwrap().to_owned();
        (whose, finding.layer, finding.text.contains("drive with power-loss protection"))
    };
    assert_eq!(said(&|_| ()), ("drive".to_owned(), Layer::Device, true));
    type Change = fn(&mut ProbeHost);
    let others: [(&str, Layer, Change); 7] = [
        ("network", Layer::Filesystem, |host| {
            host.path.kind = PathKind::Network { protocol: NetworkKind::Nfs };
        }),
        ("zfs", Layer::Filesystem, |host| host.path.file_system = Some("zfs".to_owned())),
        ("remote", Layer::Device, |host| {
            host.path.devices[0].transport = Some("iscsi".to_owned());
        }),
        ("remote", Layer::Device, |host| {
            host.path.block_stack = vec![layer("rbd0", LayerKind::Disk, 0, &[])];
        }),
        ("hypervisor", Layer::Device, |host| {
            host.path.devices[0].transport = Some("virtio".to_owned());
        }),
        ("layers", Layer::Block, |host| {
            let md =
                LayerKind::Md { level: Some("raid1".into()), disks: Some(2), chunk_bytes: None };
            host.path.block_stack = vec![layer("md0", md, 0, &[])];
        }),
        ("layers", Layer::Block, |host| {
            let crypt = LayerKind::Crypt { name: Some("data".to_owned()) };
            host.path.block_stack = vec![layer("dm-0", crypt, 0, &[])];
        }),
    ];
    for (whose, layer, change) in others {
        assert_eq!(said(&change), (whose.to_owned(), layer, false), "{whose}");
    }
}

#[test]
fn a_protected_drive_is_no_caution_in_the_headline() {
    let headline = |change: &dyn Fn(&mut ProbeHost)| {
        let mut host = host();
        host.path.devices[0].write_cache = Some("write back".to_owned());
        change(&mut host);
        let document = crate::support::document(&Disk::default(), &host, 17);
        assert!(found(&document, "flush_suspiciously_cheap").is_some());
        document.headline.join(" ")
    };
    assert!(!headline(&|_| ()).contains("power cut"));
    let guest = headline(&|host| host.machine.virtualisation = Some("kvm".to_owned()));
    assert!(guest.contains("survives a power cut is not known"), "{guest}");
}

#[test]
fn a_loop_device_through_the_page_cache_reads_memory() {
    let over = |direct: bool| {
        let mut host = host();
        let mut kind = loop_over(Some("ext4"), 0);
        if let LayerKind::Loop { direct_io, .. } = &mut kind {
            *direct_io = Some(direct);
        }
        host.path.block_stack = vec![layer("loop0", kind, 0, &[])];
        crate::support::document(&Disk::default(), &host, 18)
    };
    let buffered = over(false);
    assert!(found(&buffered, "loop_without_direct_io").is_some());
    let text = buffered.headline.join(" ");
    assert!(!text.contains("random 4 KiB reads/s") && text.contains("memory answers"), "{text}");
    assert_eq!(setting(&buffered, "direct I/O of loop0"), Some("on"));
    assert!(!is_sized(&buffered));
    let direct = over(true);
    assert!(found(&direct, "loop_without_direct_io").is_none());
    assert!(direct.headline[0].contains("random 4 KiB reads/s"));
}

#[test]
fn caches_below_that_hold_the_files_are_a_caution() {
    let found_on = |disk: &Disk, change: &dyn Fn(&mut ProbeHost)| {
        let mut host = host();
        change(&mut host);
        found(&crate::support::document(disk, &host, 19), "cache_below").is_some()
    };
    let found_for = |change: &dyn Fn(&mut ProbeHost)| found_on(&Disk::default(), change);
    assert!(!found_for(&|_| ()));
    assert!(found_for(&|host| host.path.devices[0].model = Some("PERC H740P".to_owned())));
    // A host's cache shows by reads that no disk does.
    let virtual_disk = |host: &mut ProbeHost| {
        host.path.devices[0].transport = Some("virtio".to_owned());
    };
    assert!(!found_for(&virtual_disk));
    assert!(found_on(&Disk { read_us: 20.0, ..Disk::default() }, &virtual_disk));
    assert!(found_for(&|host| host.path.file_system = Some("zfs".to_owned())));
    let protocol = NetworkKind::Nfs;
    assert!(found_for(&|host| host.path.kind = PathKind::Network { protocol }));
    assert!(found_for(&|host| host.path.devices[0].transport = Some("iscsi".to_owned())));
    let stack = |name: &str| vec![layer(name, LayerKind::Disk, 0, &[])];
    assert!(found_for(&|host| host.path.block_stack = stack("rbd0")));
    assert!(!found_for(&|host| host.path.block_stack = stack("rbdisk")));
}

#[test]
fn a_mount_that_syncs_every_write_is_the_cause() {
    let disk = Disk { write_us: 500.0, ..Disk::default() }
        .with("append_16k", 0.2)
        .with("flushed_16k_buffered", 0.2);
    let mut sync = host();
    sync.path.mount_options.push("sync".to_owned());
    let document = crate::support::document(&disk, &sync, 20);
    assert!(found(&document, "sync_mount").is_some());
    assert!(found(&document, "append_allocation_cost").is_none());
    assert!(found(&document, "buffered_write_cost").is_none());
    assert_eq!(setting(&document, "sync"), Some("off"));
    assert!(document.headline.join(" ").contains("mounted with sync"));
    let plain = crate::support::document(&disk, &host(), 20);
    assert!(found(&plain, "sync_mount").is_none());
    assert!(found(&plain, "append_allocation_cost").is_some());
}

#[test]
fn the_first_touch_of_a_thin_volume_is_the_volumes() {
    let disk = Disk { write_us: 500.0, ..Disk::default() }.with("append_16k", 0.2);
    let found_on = |disk: &Disk, stack: &[iostrata_run::host::BlockLayer], id: &str| {
        let mut host = host();
        host.path.block_stack = stack.to_vec();
        host.machine.virtualisation = Some("kvm".to_owned());
        let document = crate::support::document(disk, &host, 21);
        let finding = found(&document, id).unwrap();
        (finding.layer, finding.text.clone())
    };
    let lvm = |name: &str| LayerKind::Lvm { name: Some(name.to_owned()) };
    let thin = vec![
        layer("dm-4", lvm("vg-data"), 0, &["dm-3"]),
        layer("dm-3", lvm("vg-pool-tpool"), 1, &[]),
    ];
    let (whose, text) = found_on(&disk, &thin, "append_allocation_cost");
    assert_eq!(whose, Layer::Block);
    assert!(text.contains("takes room in dm-3"), "{text}");
    let plain = [layer("dm-4", lvm("vg-data"), 0, &[])];
    let (whose, text) = found_on(&disk, &plain, "append_allocation_cost");
    assert_eq!(whose, Layer::Filesystem);
    // A virtual machine does not see whether its host's volume is thin.
    assert!(text.contains("or a thin image, pays for its first touch"), "{text}");
    let slow = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    let (_, text) = found_on(&slow, &thin, "limit_above_device");
    assert!(text.contains("a thin volume"), "{text}");
}

#[test]
fn a_wait_of_one_request_alone_is_of_idle_processors() {
    let said = |disk: &Disk, change: &dyn Fn(&mut ProbeHost)| {
        let mut host = host();
        host.machine.idle_exit_us_max = Some(133);
        change(&mut host);
        let document = crate::support::document(disk, &host, 22);
        let finding = found(&document, "limit_above_device").unwrap();
        (finding.evidence["cause"].as_str().unwrap().to_owned(), finding.layer)
    };
    let idle = Disk { idle_us: 180.0, ..Disk::default() };
    assert_eq!(said(&idle, &|_| ()), ("idle".to_owned(), Layer::Host));
    // What holds every request back is no idle processor.
    let limited = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    assert_eq!(said(&limited, &|_| ()).0, "unknown");
    let shared = said(&limited, &|host| {
        host.path.io_controls = vec![IoControl {
            cgroup: "/other".to_owned(),
            version: CgroupVersion::V2,
            kind: IoControlKind::Latency,
            device: Some("vda".to_owned()),
            value: "target=10000".to_owned(),
        }];
    });
    assert_eq!(shared, ("control".to_owned(), Layer::Limit));
    let encrypted = said(&limited, &|host| {
        let crypt = LayerKind::Crypt { name: Some("data".to_owned()) };
        host.path.block_stack = vec![layer("dm-0", crypt, 0, &[])];
    });
    assert_eq!(encrypted, ("layers".to_owned(), Layer::Block));
    let weight = said(&limited, &|host| {
        host.path.io_controls = vec![IoControl {
            cgroup: "/db".to_owned(),
            version: CgroupVersion::V2,
            kind: IoControlKind::Weight,
            device: None,
            value: "50".to_owned(),
        }];
    });
    assert_eq!(weight.0, "unknown", "nothing here goes by weights");
}

#[test]
fn a_group_that_may_use_little_memory_is_named_and_bounds_dirty_data() {
    let limited = |bytes: u64, version| {
        let mut host = host();
        host.machine.memory_bytes = Some(16 << 30);
        (host.machine.dirty_ratio_pct, host.machine.memory_available_bytes) =
            (Some(20), Some(12 << 30));
        host.machine.cgroup.memory_limit_bytes = Some(bytes);
        host.machine.cgroup.memory_limit_version = Some(version);
        host.machine.cgroup.memory_limit_group = Some("/db".to_owned());
        let document = crate::support::document(&Disk::default(), &host, 23);
        let is_found = |id| found(&document, id).is_some();
        (is_found("memory_limit"), is_found("small_dirty_limit"))
    };
    assert_eq!(limited(256 << 20, CgroupVersion::V2), (true, true));
    assert_eq!(limited(256 << 20, CgroupVersion::V1), (true, false));
    assert_eq!(limited(12 << 30, CgroupVersion::V2), (false, false));
}
