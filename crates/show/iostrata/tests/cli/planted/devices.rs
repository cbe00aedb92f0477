//! Causes that lie in what a device is, what it reports or how it is configured.

use std::time::Duration;

use serde_json::Value;

use super::ground::Ground;
use super::setting::{Beside, Setting};
use super::{Planted, check, probe, runs};
use crate::harness::stderr;

fn queue_file(ground: &Ground, name: &str) -> String {
    format!("/sys/block/{}/queue/{name}", ground.device().trim_start_matches("/dev/"))
}

#[test]
fn a_disk_that_turns_pays_for_seeks_and_flushes() {
    if !runs("a_disk_that_turns_pays_for_seeks_and_flushes") {
        return;
    }
    let planted = Planted {
        found: &[("seek_cost", "device"), ("volatile_cache_flush_cost", "device")],
        words: &["innodb_flush_neighbors = 1"],
        absent: &["rotational_flag_wrong", "Nothing needs to change", "container"],
    };
    check(&probe(&Ground::emulated("hdd-7k2", "64G"), "--size 256M"), &planted);
}

#[test]
fn a_flash_drive_that_is_said_to_turn() {
    if !runs("a_flash_drive_that_is_said_to_turn") {
        return;
    }
    let ground = Ground::emulated("nvme", "16G");
    let said = Setting::set(&queue_file(&ground, "rotational"), "1");
    let planted = Planted {
        found: &[("rotational_flag_wrong", "device")],
        words: &["innodb_flush_neighbors = 0"],
        absent: &["seek_cost"],
    };
    check(&probe(&ground, "--size 256M"), &planted);
    drop(said);
    let cured = Planted { absent: &["rotational_flag_wrong"], ..Planted::default() };
    check(&probe(&ground, "--size 256M"), &cured);
}

#[test]
fn a_drive_that_flushes_slowly_is_told_from_the_file_system() {
    if !runs("a_drive_that_flushes_slowly_is_told_from_the_file_system") {
        return;
    }
    let planted = Planted {
        found: &[("volatile_cache_flush_cost", "device")],
        words: &["power-loss protection"],
        absent: &["Nothing needs to change", "container"],
    };
    check(&probe(&Ground::emulated("nvme-no-plp", "16G"), "--size 256M"), &planted);
}

#[test]
fn a_mount_without_barriers_is_no_quick_disk() {
    if !runs("a_mount_without_barriers_is_no_quick_disk") {
        return;
    }
    let ground = Ground::on_loop(4 << 30, super::causes::EXT4, &["-o", "nobarrier"]);
    let planted = Planted {
        found: &[("barriers_off", "filesystem")],
        words: &["do not survive a power cut"],
        ..Planted::default()
    };
    check(&probe(&ground, "--size 256M --max-time 40"), &planted);
}

#[test]
fn a_scheduler_in_front_of_a_quick_drive_is_hinted_at() {
    if !runs("a_scheduler_in_front_of_a_quick_drive_is_hinted_at") {
        return;
    }
    let ground = Ground::emulated("nvme", "16G");
    let bfq = Setting::set(&queue_file(&ground, "scheduler"), "bfq");
    let planted = Planted { found: &[("scheduler_cost", "block")], ..Planted::default() };
    check(&probe(&ground, "--size 256M"), &planted);
    drop(bfq);
    let cured = Planted { absent: &["scheduler_cost"], ..Planted::default() };
    check(&probe(&ground, "--size 256M"), &cured);
}

#[test]
fn processors_that_others_use_size_nothing() {
    if !runs("processors_that_others_use_size_nothing") {
        return;
    }
    let ground = Ground::on_disk();
    let busy: Vec<Beside> =
        (0..8).map(|_| Beside::start("sh", &["-c", "while :; do :; done"])).collect();
    let planted = Planted {
        found: &[("cpu_bound_host", "host")],
        absent: &["innodb_io_capacity_max =", "Nothing needs to change", "container"],
        ..Planted::default()
    };
    check(&probe(&ground, "--size 256M"), &planted);
    drop(busy);
    let cured = Planted { absent: &["cpu_bound_host"], ..Planted::default() };
    check(&probe(&ground, "--size 256M"), &cured);
}

#[test]
fn a_disk_that_gives_errors_is_the_first_sentence() {
    if !runs("a_disk_that_gives_errors_is_the_first_sentence") {
        return;
    }
    let ground = Ground::emulated("nvme", "16G");
    let line = format!("probe {} --json --quiet --size 256M --max-time 60", ground.dir().display());
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(20));
            ground.fault("--eio-rate 20000");
        });
        ground.bench().line(&line)
    });
    ground.fault("--none");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = document["headline"][0].as_str().unwrap();
    assert!(first.starts_with("The storage failed"), "{first}");
    assert!(first.contains("error") && first.contains("The kernel:"), "{first}");
    check(&document, &Planted { absent: &["Nothing needs to change"], ..Planted::default() });
}
