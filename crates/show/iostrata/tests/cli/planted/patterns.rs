//! Causes that show as patterns over time or over rate.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::ground::Ground;
use super::{Planted, check, finding, probe, probe_in, runs};

fn number(document: &Value, id: &str, name: &str) -> Option<f64> {
    finding(document, id)?["evidence"][name].as_f64()
}

/// Lets a group do so many reads and writes per second on the device below the ground; 0 lifts it.
fn limit(ground: &Ground, group: &Path, iops: u32) {
    for what in ["read", "write"] {
        let file = group.join(format!("blkio.throttle.{what}_iops_device"));
        std::fs::write(file, format!("{} {iops}", ground.device_number())).unwrap();
    }
}

#[test]
fn a_control_group_that_holds_requests_back() {
    const TEST: &str = "a_control_group_that_holds_requests_back";
    if !runs(TEST) {
        return;
    }
    let mut ground = Ground::on_disk();
    let Some(group) = ground.group("blkio", TEST) else { return };
    limit(&ground, &group, 2_000);
    let planted = Planted {
        found: &[("limit_above_device", "limit")],
        words: &["blkio.throttle", "2 K reads/s"],
        absent: &["Nothing needs to change"],
    };
    check(&probe_in(&ground, "--size 256M", Some(&group)), &planted);
    limit(&ground, &group, 0);
    let cured = Planted { absent: &["limit_above_device"], ..Planted::default() };
    check(&probe_in(&ground, "--size 256M", Some(&group)), &cured);
}

#[test]
fn a_limit_that_is_set_while_the_probe_runs() {
    const TEST: &str = "a_limit_that_is_set_while_the_probe_runs";
    if !runs(TEST) {
        return;
    }
    let mut ground = Ground::on_disk();
    let Some(group) = ground.group("blkio", TEST) else { return };
    let document = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(45));
            limit(&ground, &group, 500);
        });
        probe_in(&ground, "--size 256M", Some(&group))
    });
    let planted = Planted {
        found: &[("limit_set_meanwhile", "limit")],
        words: &["blkio.throttle", "was limited to 500 reads/s", "stayed there"],
        absent: &["Nothing needs to change", "Burst credit"],
    };
    check(&document, &planted);
}

#[test]
fn a_volume_that_takes_so_many_requests() {
    if !runs("a_volume_that_takes_so_many_requests") {
        return;
    }
    let capped = probe(&Ground::emulated("cloud-burst", "100G"), "--size 512M");
    let planted = Planted {
        found: &[("volume_cap", "device")],
        words: &["is capped at", "only latency grows", "IOPS of the volume"],
        absent: &["append_allocation_cost", "not_steady_device", "seek_cost", "periodic_pauses"],
    };
    check(&capped, &planted);
    let cap = number(&capped, "volume_cap", "cap_iops").unwrap();
    assert!((cap / 3_000.0 - 1.0).abs() < 0.03, "{cap}");
    // The cure: a volume of twice the promise. Its cap is twice as high, or out of reach.
    let larger = probe(&Ground::emulated("cloud-burst", "2T"), "--size 512M");
    let raised = number(&larger, "volume_cap", "cap_iops").unwrap_or(f64::INFINITY);
    assert!(raised > 1.8 * cap, "{raised}");
}

#[test]
fn a_burst_allowance_that_runs_out_on_the_way() {
    if !runs("a_burst_allowance_that_runs_out_on_the_way") {
        return;
    }
    let ground = Ground::emulated("cloud-burst,credits=20000", "100G");
    let document = probe(&ground, "--size 256M");
    let planted = Planted {
        found: &[("burst_limit", "device")],
        words: &["Burst credit", "heat", "neighbour", "stayed there"],
        absent: &["Nothing needs to change", "append_allocation_cost", "periodic_pauses"],
    };
    check(&document, &planted);
    // Nothing of before: reads that last run at the baseline of 300 per second.
    let rungs = document["rungs"].as_array().unwrap();
    let lasting = rungs.iter().filter(|rung| {
        let marked = rung["verdicts"].as_array().unwrap().iter().any(|one| one == "burst_limited");
        rung["name"].as_str().unwrap().starts_with("read_4k_depth_") && !marked
    });
    for rung in lasting {
        assert!(rung["value"].as_f64().unwrap() < 600.0, "{rung}");
    }
}

#[test]
fn a_drive_that_pauses_once_a_second() {
    if !runs("a_drive_that_pauses_once_a_second") {
        return;
    }
    let ground = Ground::emulated("nvme", "16G");
    ground.fault("--stall 50ms/1s");
    let planted = Planted {
        found: &[("periodic_pauses", "device")],
        words: &["every 1 s"],
        absent: &["Nothing needs to change"],
    };
    let sizes = [(); 2].map(|()| {
        let document = probe(&ground, "--size 512M");
        check(&document, &planted);
        let lasts_ms = number(&document, "periodic_pauses", "lasts_ms").unwrap();
        assert!((40.0..60.0).contains(&lasts_ms), "{lasts_ms}");
        // A commit that meets a pause waits for it, one of twenty: no higher percentile may
        // contradict that.
        let percent = number(&document, "flush_capacity", "commit_percentile");
        let tail_us = number(&document, "flush_capacity", "commit_p99_us")
            .filter(|_| percent.is_some_and(|percent| percent > 95.0));
        assert!(tail_us.is_none_or(|us| us > 20_000.0), "{tail_us:?}");
        let least = number(&document, "flush_capacity", "pages_per_s").unwrap_or(0.0);
        let most = number(&document, "flush_capacity", "pages_per_s_missed");
        [least, most.unwrap_or(f64::INFINITY)]
    });
    let [first, second] = sizes;
    assert!(first[0] <= second[1] && second[0] <= first[1], "{first:?} and {second:?}");
    ground.fault("--none");
    let cured = Planted { absent: &["periodic_pauses"], ..Planted::default() };
    check(&probe(&ground, "--size 512M"), &cured);
}

#[test]
fn a_drive_that_pauses_each_20_seconds() {
    if !runs("a_drive_that_pauses_each_20_seconds") {
        return;
    }
    let ground = Ground::emulated("nvme", "16G");
    ground.fault("--stall 400ms/20s");
    let planted = Planted {
        found: &[("periodic_pauses", "device")],
        words: &["every 20 s"],
        absent: &["Nothing needs to change", "irregular_pauses"],
    };
    check(&probe(&ground, "--size 512M"), &planted);
    ground.fault("--none");
    let cured = Planted { absent: &["_pauses"], ..Planted::default() };
    check(&probe(&ground, "--size 512M"), &cured);
}

#[test]
fn credit_that_outlasts_a_probe_is_found_by_writing_first() {
    if !runs("credit_that_outlasts_a_probe_is_found_by_writing_first") {
        return;
    }
    // Credit for more requests than a probe makes, and for fewer than two GiB of overwrites are.
    let ground = Ground::emulated("cloud-burst,credits=140000", "100G");
    let fresh = probe(&ground, "--size 256M --max-time 40");
    let planted = Planted {
        found: &[("lasting_rate", "device")],
        words: &["was not seen", "--precondition --lasting"],
        absent: &["burst_limit"],
    };
    check(&fresh, &planted);
    drop(ground);
    let ground = Ground::emulated("cloud-burst,credits=140000", "100G");
    let used = probe(&ground, "--size 256M --max-time 400 --precondition --lasting 30s");
    let rate = |document: &Value| {
        let rungs = document["rungs"].as_array().unwrap();
        let rung = rungs.iter().find(|rung| rung["name"] == "read_4k_depth_16").unwrap();
        rung["value"].as_f64().unwrap()
    };
    assert!(rate(&used) < 0.5 * rate(&fresh), "{} and {}", rate(&used), rate(&fresh));
}
