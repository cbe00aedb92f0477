//! Causes that show as patterns over rate and over time: caps, falls.

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_run::{Event, FindingKind, ProbeDocument, Replicate, Series};
use iostrata_spec::{Layer, OpKind};
use iostrata_stats::{Verdict, Verdicts};

use crate::support::{
    Disk, document, found, host, io_limit, loss_ids, only, probe, probe_over_time,
};

/// A volume far away, of which so much is paid for.
fn volume() -> Disk {
    let disk = Disk { read_us: 600.0, write_us: 800.0, channels: 128.0, ..Disk::default() };
    // Each append takes several requests: without a cap that would be a loss.
    Disk { volume_iops: Some(3_000.0), ..disk }.with("append_16k", 0.3)
}

#[test]
fn a_volume_that_takes_so_many_requests_is_named() {
    let document = document(&volume(), &host(), 1);
    let finding = found(&document, "volume_cap").unwrap();
    assert_eq!((finding.kind, finding.layer), (FindingKind::Loss, Layer::Device));
    let number = |name: &str| finding.evidence[name].as_f64().unwrap();
    assert!(number("cap_iops_low") <= 3_000.0 && 3_000.0 <= number("cap_iops_high"));
    assert!((number("cap_iops") / 3_000.0 - 1.0).abs() < 0.02 && finding.effect_pct_n >= 3);
    assert!(finding.text.contains("read or written"), "{}", finding.text);
    assert_eq!(loss_ids(&document), ["volume_cap"], "an append is only more requests");
    assert!(document.losses.is_empty(), "{:?}", document.losses);
    let line = &document.advice[0];
    assert_eq!((line.setting.as_str(), line.value.as_str()), ("IOPS of the volume", "above 3 K"));
    let text = document.headline.join(" ");
    assert!(text.contains("Raise the IOPS of the volume above 3 K"), "{text}");
    assert!(text.contains("requests/s") && !text.contains("Nothing needs to change"), "{text}");
}

#[test]
fn a_volume_that_takes_so_many_bytes_is_named() {
    let disk = Disk { volume_iops: None, volume_bytes_per_s: Some(30e6), ..volume() };
    let document = document(&disk, &host(), 2);
    let finding = found(&document, "volume_cap").unwrap();
    let bytes = finding.evidence["cap_bytes_per_s"].as_f64().unwrap();
    assert!((bytes / 30e6 - 1.0).abs() < 0.02, "{bytes}");
    assert!(document.advice.iter().any(|one| one.setting == "throughput of the volume"));
}

#[test]
fn a_gate_above_the_device_is_told_from_one_in_it() {
    let disk = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    let document = document(&disk, &host(), 3);
    let finding = found(&document, "volume_cap").unwrap();
    assert_eq!(finding.layer, Layer::Limit);
    assert!(finding.text.starts_with("Something above the device"), "{}", finding.text);
}

#[test]
fn a_busy_device_is_no_cap() {
    // Reads and writes end at the same rate, whatever their size, but not evenly: an arm.
    let arm = Disk { read_us: 5_000.0, write_us: 5_000.0, channels: 1.0, ..Disk::default() };
    let uneven = Disk { noise: 0.06, ..arm };
    let flash = Disk { write_us: 60.0, noise: 0.005, ..Disk::default() };
    for seed in 0..10 {
        for disk in [&uneven, &flash, &Disk { noise: 0.005, ..Disk::default() }] {
            let document = document(disk, &host(), seed);
            assert!(found(&document, "volume_cap").is_none(), "seed {seed}: {disk:?}");
        }
    }
}

#[test]
fn a_rate_of_the_processors_is_no_cap() {
    let events = crate::support::probe_with(&volume(), &host(), 4, |_| only(Verdict::CpuLimited));
    let document = summarise(host(), &events, ProbeEnd::default());
    assert!(found(&document, "volume_cap").is_none());
}

/// A fortieth of the speed.
fn slow() -> Disk {
    let sound = Disk::default();
    Disk { read_us: 40.0 * sound.read_us, write_us: 40.0 * sound.write_us, ..sound }
}

fn falling(at_s: f64, seed: u64, verdicts: impl Fn(&str) -> Verdicts) -> Vec<Event> {
    let disk_at = |now_s: f64| if now_s < at_s { Disk::default() } else { slow() };
    probe_over_time(disk_at, &host(), seed, verdicts)
}

fn concluded(events: &[Event]) -> ProbeDocument {
    summarise(host(), events, ProbeEnd::default())
}

#[test]
fn rates_that_fell_and_stayed_low_are_a_finding_at_any_moment() {
    for at_s in [8.0, 20.0, 45.0, 70.0, 88.0] {
        let document = concluded(&falling(at_s, 1, |_| Verdicts::none()));
        let finding = found(&document, "burst_limit").unwrap_or_else(|| panic!("at {at_s} s"));
        assert_eq!((finding.kind, finding.layer), (FindingKind::Loss, Layer::Device));
        let number = |name: &str| finding.evidence[name].as_f64().unwrap();
        assert!(
            number("after_s") <= at_s + 0.6 && at_s <= number("at_latest_s") + 0.6,
            "{finding:?}"
        );
        assert!((number("fall_pct") - 97.0).abs() < 2.0, "{finding:?}");
        let text = document.headline.join(" ");
        assert!(!text.contains("Nothing needs to change"), "{text}");
    }
}

#[test]
fn nothing_is_pooled_across_a_fall() {
    // In the middle of the first curve: two of its three rounds were fast.
    let document = concluded(&falling(13.5, 2, |_| Verdicts::none()));
    let rung = |name: &str| document.rungs.iter().find(|rung| rung.name == name).unwrap();
    let slow_iops = 1e6 / (40.0 * 80.0 + 5.0);
    for name in ["read_4k_depth_1", "read_16k_depth_1"] {
        assert!((rung(name).value / slow_iops - 1.0).abs() < 0.1, "{:?}", rung(name));
        assert!(!rung(name).verdicts.has(Verdict::BurstLimited));
    }
    let curve = document.curves.iter().find(|curve| curve.name == "read_4k").unwrap();
    assert!(curve.points.iter().all(|point| point.value < 6_000.0), "{curve:?}");
}

#[test]
fn appends_after_a_fall_are_only_more_requests() {
    let three_requests = |disk: Disk| disk.with("append_fdatasync", 0.3);
    let events = |at_s: f64| {
        let disk_at =
            |now_s: f64| three_requests(if now_s < at_s { Disk::default() } else { slow() });
        probe_over_time(disk_at, &host(), 1, |_| Verdicts::none())
    };
    let never_fast = concluded(&events(0.0));
    assert!(found(&never_fast, "append_allocation_cost").is_some());
    let fell = concluded(&events(20.0));
    assert!(found(&fell, "burst_limit").is_some());
    assert!(found(&fell, "append_allocation_cost").is_none());
    assert!(fell.losses.is_empty(), "{:?}", fell.losses);
}

#[test]
fn what_was_measured_only_before_a_fall_is_marked_and_measured_again() {
    let events = falling(70.0, 3, |_| Verdicts::none());
    let confirm = events.iter().find_map(|event| match event {
        Event::Suspected { id, confirm } if id == "burst_limit" => Some(confirm.clone()),
        _ => None,
    });
    assert!(confirm.unwrap().contains(&"read_4k_depth_16".to_owned()));
    let document = concluded(&events);
    let rung = |name: &str| document.rungs.iter().find(|rung| rung.name == name).unwrap();
    assert!(rung("read_4k_depth_2").verdicts.has(Verdict::BurstLimited));
    let again = rung("read_4k_depth_16");
    assert!(again.value < 10_000.0 && !again.verdicts.has(Verdict::BurstLimited), "{again:?}");
    let points = document.curves.iter().filter(|curve| curve.name == "read_4k");
    assert!(points.flat_map(|curve| &curve.points).all(|point| point.value < 10_000.0));
}

#[test]
fn a_limit_that_was_set_meanwhile_is_named() {
    let mut events = falling(45.0, 4, |_| Verdicts::none());
    let limits = vec![io_limit(300, 300)];
    events.push(Event::Limits { at_s: 50.0, limits });
    let document = concluded(&events);
    let finding = found(&document, "limit_set_meanwhile").unwrap();
    assert_eq!(finding.layer, Layer::Limit);
    assert!(finding.text.contains("/db was limited to 300 reads/s"), "{}", finding.text);
    assert!(found(&document, "burst_limit").is_none());
    assert!(document.advice.iter().any(|one| one.setting == "io.max of /db"));
}

#[test]
fn a_rate_that_came_back_did_not_fall() {
    let dip = |now_s: f64| if (30.0..60.0).contains(&now_s) { slow() } else { Disk::default() };
    let events = probe_over_time(dip, &host(), 5, |_| Verdicts::none());
    assert!(found(&concluded(&events), "burst_limit").is_none());
}

#[test]
fn what_others_disturbed_did_not_fall() {
    let document = concluded(&falling(45.0, 6, |_| only(Verdict::ForeignIo)));
    assert!(found(&document, "burst_limit").is_none());
}

#[test]
fn noise_is_no_fall_and_no_cap() {
    for seed in 0..40 {
        let disk = Disk { noise: 0.15, ..Disk::default() };
        let document = concluded(&probe(&disk, &host(), seed));
        for id in ["burst_limit", "volume_cap", "limit_set_meanwhile"] {
            assert!(found(&document, id).is_none(), "seed {seed}: {id}");
        }
    }
}

/// Counts by slice of a window that begins at `started_s`, empty while the storage pauses.
fn pausing(one: &mut Replicate, every_s: f64, lasts_s: f64) {
    let (width_s, started_s) = (0.005, one.started_s);
    let count = |at: usize| {
        let from_s = (started_s + at as f64 * width_s).rem_euclid(every_s);
        if from_s < lasts_s { 0 } else { 25 }
    };
    let counts: Vec<u32> = (0..100).map(count).collect();
    for stream in &mut one.streams {
        let counts = [(OpKind::Read, counts.clone())].into_iter().collect();
        stream.series = Series { width_s, counts, ..Series::default() };
    }
}

#[test]
fn pauses_are_named_with_their_period_and_length() {
    for (every_s, lasts_s) in [(1.0, 0.05), (0.43, 0.03)] {
        let mut events = probe(&Disk::default(), &host(), 7);
        for event in &mut events {
            if let Event::Replicate(one) = event {
                pausing(one, every_s, lasts_s);
            }
        }
        let document = concluded(&events);
        let finding = found(&document, "periodic_pauses").unwrap();
        let number = |name: &str| finding.evidence[name].as_f64().unwrap();
        assert!((number("period_s") / every_s - 1.0).abs() < 0.01, "{finding:?}");
        assert!((number("lasts_ms") - 1e3 * lasts_s).abs() < 6.0, "{finding:?}");
        assert_eq!(finding.layer, Layer::Device);
        assert!(document.headline.join(" ").contains("nothing is answered"));
    }
    let sound = concluded(&probe(&Disk::default(), &host(), 7));
    assert!(found(&sound, "periodic_pauses").is_none());
}
