//! Causes that show in facts of the host: limits, quotas, queues, file systems, places.

use std::fs;
use std::path::Path;

use super::ground::{Ground, run};
use super::setting::{Beside, Setting};
use super::{Planted, check, finding, probe, probe_in, runs};
use crate::harness::{document, stderr};

const SMALL: &str = "--size 256M";
/// Tables that are written behind the probe's back would be foreign I/O.
pub(super) const EXT4: &str = "mkfs.ext4 -q -N 512 -J size=64 -E nodiscard,lazy_itable_init=0";

fn ext4(bytes: u64, options: &[&str]) -> Ground {
    Ground::on_loop(bytes, EXT4, options)
}

#[test]
fn a_bandwidth_limit_is_named_with_its_group() {
    const TEST: &str = "a_bandwidth_limit_is_named_with_its_group";
    if !runs(TEST) {
        return;
    }
    let mut ground = Ground::on_disk();
    let Some(group) = ground.group("blkio", TEST) else { return };
    let file = group.join("blkio.throttle.write_bps_device");
    let limit = |bytes_per_s: u64| {
        fs::write(&file, format!("{} {bytes_per_s}", ground.device_number())).unwrap();
    };
    limit(30 << 20);
    let planted = Planted {
        found: &[("limit_above_device", "limit")],
        words: &["30 MiB/s written", "blkio.throttle.write_bps_device"],
        absent: &["Nothing needs to change", "innodb_io_capacity_max ="],
    };
    check(&probe_in(&ground, SMALL, Some(&group)), &planted);
    limit(0);
    let cured = Planted { absent: &["limit_above_device"], ..Planted::default() };
    check(&probe_in(&ground, SMALL, Some(&group)), &cured);
}

#[test]
fn a_processor_quota_is_no_busy_processor() {
    const TEST: &str = "a_processor_quota_is_no_busy_processor";
    if !runs(TEST) {
        return;
    }
    let mut ground = Ground::on_disk();
    let Some(group) = ground.group("cpu", TEST) else { return };
    let quota = |us: &str| fs::write(group.join("cpu.cfs_quota_us"), us).unwrap();
    quota("20000");
    let planted = Planted {
        found: &[("cpu_quota", "limit")],
        words: &["20 % of a processor's time", "cpu.cfs_quota_us"],
        absent: &["innodb_io_capacity_max ="],
    };
    check(&probe_in(&ground, SMALL, Some(&group)), &planted);
    quota("-1");
    let cured = Planted { absent: &["cpu_quota"], ..Planted::default() };
    check(&probe_in(&ground, SMALL, Some(&group)), &cured);
}

#[test]
fn a_queue_of_four_is_no_container_limit() {
    if !runs("a_queue_of_four_is_no_container_limit") {
        return;
    }
    let ground = ext4(2 << 30, &[]);
    let name = ground.device().trim_start_matches("/dev/");
    let file = format!("/sys/block/{name}/queue/nr_requests");
    let queue = Setting::set(&file, "4");
    let planted = Planted {
        found: &[("small_queue", "block")],
        words: &["advice nr_requests of"],
        absent: &["container", "Nothing needs to change"],
    };
    check(&probe(&ground, SMALL), &planted);
    drop(queue);
    let cured = Planted { absent: &["small_queue"], ..Planted::default() };
    check(&probe(&ground, SMALL), &cured);
}

#[test]
fn btrfs_with_checksums_does_no_direct_writes() {
    if !runs("btrfs_with_checksums_does_no_direct_writes") {
        return;
    }
    let ground = Ground::on_loop(4 << 30, "mkfs.btrfs -q", &[]);
    let planted = Planted {
        found: &[("direct_io_ignored", "filesystem")],
        words: &["checksum"],
        absent: &["limit_above_device", "container", "innodb_io_capacity_max ="],
    };
    check(&probe(&ground, SMALL), &planted);
}

#[test]
fn data_in_the_journal_is_answered_with_ordered_data() {
    if !runs("data_in_the_journal_is_answered_with_ordered_data") {
        return;
    }
    let ground = ext4(2 << 30, &["-o", "data=journal"]);
    let planted = Planted {
        found: &[("direct_io_ignored", "filesystem")],
        words: &["advice data = ordered"],
        absent: &["innodb_flush_method", "random 4 KiB reads/s", "innodb_io_capacity_max ="],
    };
    check(&probe(&ground, SMALL), &planted);
    drop(ground);
    let cured = Planted { absent: &["direct_io_ignored"], ..Planted::default() };
    check(&probe(&ext4(2 << 30, &["-o", "data=ordered"]), SMALL), &cured);
}

#[test]
fn a_loop_device_that_begins_at_byte_512_is_off_the_blocks() {
    if !runs("a_loop_device_that_begins_at_byte_512_is_off_the_blocks") {
        return;
    }
    let at = |offset: &str| Ground::on_loop_at(offset, 2 << 30, EXT4, &[]);
    let planted = Planted {
        found: &[("misaligned_start", "block")],
        words: &["advice first byte of loop", "512 B beyond"],
        ..Planted::default()
    };
    check(&probe(&at("512"), SMALL), &planted);
    let cured = Planted { absent: &["misaligned_start"], ..Planted::default() };
    check(&probe(&at("1048576"), SMALL), &cured);
}

#[test]
fn a_disk_with_500_mb_left_is_nearly_full() {
    if !runs("a_disk_with_500_mb_left_is_nearly_full") {
        return;
    }
    let ground = ext4(4 << 30, &[]);
    let filler = ground.dir().join("filler");
    let free = rustix::fs::statvfs(ground.dir()).unwrap();
    let size = (free.f_bavail * free.f_frsize - (500 << 20)).to_string();
    run("fallocate", &["-l", &size, filler.to_str().unwrap()]);
    let planted = Planted {
        found: &[("nearly_full", "filesystem")],
        words: &["temporary tables find no room"],
        ..Planted::default()
    };
    check(&probe(&ground, ""), &planted);
    fs::remove_file(filler).unwrap();
    let cured = Planted { absent: &["nearly_full"], ..Planted::default() };
    check(&probe(&ground, SMALL), &cured);
}

#[test]
fn a_megabyte_of_dirty_pages_is_named_with_its_setting() {
    if !runs("a_megabyte_of_dirty_pages_is_named_with_its_setting") {
        return;
    }
    let ground = ext4(2 << 30, &[]);
    let ratio = fs::read_to_string("/proc/sys/vm/dirty_ratio").unwrap();
    let put_back = Setting("/proc/sys/vm/dirty_ratio".to_owned(), ratio.trim().to_owned());
    fs::write("/proc/sys/vm/dirty_bytes", "1048576").unwrap();
    let planted = Planted {
        found: &[("small_dirty_limit", "filesystem")],
        words: &["vm.dirty_bytes is 1048576", "advice vm.dirty_bytes = 268435456"],
        ..Planted::default()
    };
    check(&probe(&ground, "--size 256M --max-time 40"), &planted);
    drop(put_back);
    let cured = Planted { absent: &["small_dirty_limit"], ..Planted::default() };
    check(&probe(&ground, SMALL), &cured);
}

#[test]
fn memory_below_a_loop_device_sizes_nothing() {
    if !runs("memory_below_a_loop_device_sizes_nothing") {
        return;
    }
    let ground = Ground::in_memory(1 << 30, EXT4);
    let planted = Planted {
        found: &[("not_a_local_disk", "host")],
        words: &["in memory (tmpfs)"],
        absent: &["innodb_io_capacity_max =", "virtual disk"],
    };
    check(&probe(&ground, "--size 128M"), &planted);
}

#[test]
fn an_overlay_is_the_first_sentence() {
    if !runs("an_overlay_is_the_first_sentence") {
        return;
    }
    let planted = Planted {
        found: &[("file_system_between", "filesystem")],
        words: &["a volume of its own"],
        absent: &["number of data files", "api_overhead", "innodb_io_capacity_max ="],
    };
    let document = probe(&Ground::overlay(2 << 30, EXT4), "--size 256M --max-time 40");
    check(&document, &planted);
    let first = document["headline"][0].as_str().unwrap();
    assert!(first.contains("is an overlay"), "{first}");
    let cured = Planted { absent: &["file_system_between"], ..Planted::default() };
    check(&probe(&ext4(2 << 30, &[]), "--size 256M --max-time 40"), &cured);
}

#[test]
fn a_loop_device_through_the_page_cache_is_memory() {
    if !runs("a_loop_device_through_the_page_cache_is_memory") {
        return;
    }
    let planted = Planted {
        found: &[("loop_without_direct_io", "block")],
        words: &["advice direct I/O of loop"],
        absent: &["random 4 KiB reads/s", "innodb_io_capacity_max ="],
    };
    let ground = Ground::on_buffered_loop(2 << 30, EXT4);
    check(&probe(&ground, "--size 256M --max-time 40"), &planted);
    drop(ground);
    let cured = Planted { absent: &["loop_without_direct_io"], ..Planted::default() };
    check(&probe(&ext4(2 << 30, &[]), "--size 256M --max-time 40"), &cured);
}

#[test]
fn a_mount_that_syncs_every_write_is_named() {
    if !runs("a_mount_that_syncs_every_write_is_named") {
        return;
    }
    let planted = Planted {
        found: &[("sync_mount", "filesystem")],
        words: &["advice sync = off"],
        absent: &["append_allocation_cost", "buffered_write_cost", "Nothing needs to change"],
    };
    check(&probe(&ext4(2 << 30, &["-o", "sync"]), "--size 256M --max-time 40"), &planted);
    let cured = Planted { absent: &["sync_mount"], ..Planted::default() };
    check(&probe(&ext4(2 << 30, &[]), "--size 256M --max-time 40"), &cured);
}

#[test]
fn a_group_that_may_use_256_mib_of_memory() {
    const TEST: &str = "a_group_that_may_use_256_mib_of_memory";
    if !runs(TEST) {
        return;
    }
    let mut ground = ext4(2 << 30, &[]);
    let Some(group) = ground.group("memory", TEST) else { return };
    let limit = |bytes: &str| fs::write(group.join("memory.limit_in_bytes"), bytes).unwrap();
    limit("268435456");
    let planted = Planted {
        found: &[("memory_limit", "limit")],
        words: &["may use 256 MiB of memory"],
        ..Planted::default()
    };
    check(&probe_in(&ground, "--size 64M --max-time 40", Some(&group)), &planted);
    limit("-1");
    let cured = Planted { absent: &["memory_limit"], ..Planted::default() };
    check(&probe_in(&ground, "--size 64M --max-time 40", Some(&group)), &cured);
}

#[test]
fn a_reader_that_is_always_there_is_named_first() {
    if !runs("a_reader_that_is_always_there_is_named_first") {
        return;
    }
    let ground = ext4(4 << 30, &[]);
    let _reader = reader(&ground, &[]);
    let document = probe(&ground, SMALL);
    let planted = Planted {
        found: &[("foreign_io", "host")],
        absent: &["innodb_io_capacity_max ="],
        ..Planted::default()
    };
    check(&document, &planted);
    let named = &finding(&document, "foreign_io").unwrap()["evidence"]["processes"];
    assert_eq!(named[0], "fio", "{named}");
}

#[test]
fn what_a_reader_that_goes_first_leaves_is_not_called_sound() {
    if !runs("what_a_reader_that_goes_first_leaves_is_not_called_sound") {
        return;
    }
    let ground = ext4(4 << 30, &[]);
    let name = ground.device().trim_start_matches("/dev/");
    let _bfq = Setting::set(&format!("/sys/block/{name}/queue/scheduler"), "bfq");
    let _reader = reader(&ground, &["ionice", "-c", "1", "-n", "0"]);
    let line = format!("probe {} --json --quiet --max-time 60", ground.dir().display());
    let output = ground.bench().line(&line);
    // A write that the kernel does not let through cannot be taken back, and nothing is measured.
    if output.status.code() == Some(3) {
        let said = stderr(&output);
        assert!(said.contains("took too long") && said.contains("fio"), "{said}");
        return;
    }
    let document = document(&output, "probe");
    check(&document, &Planted { absent: &["Nothing needs to change"], ..Planted::default() });
}

/// fio, reading during a probe for as long as it is kept.
fn reader(ground: &Ground, before: &[&str]) -> Beside {
    let file = ground.dir().join("read");
    let name = format!("--filename={}", file.to_str().unwrap());
    let fill = ["--name=fill", &name, "--rw=write", "--bs=1M", "--size=512M", "--direct=1"];
    run("fio", &fill);
    assert!(Path::new(&file).exists());
    let words = [
        "fio",
        "--name=read",
        "--thread",
        &name,
        "--rw=randread",
        "--bs=16k",
        "--size=512M",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=32",
        "--time_based",
        "--runtime=200",
    ];
    let all = [before, &words[..]].concat();
    Beside::start(all[0], &all[1..])
}
