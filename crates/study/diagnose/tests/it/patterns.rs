//! Causes that show as patterns over rate and over time: caps, falls.

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_plan::{Layer, OpKind};
use iostrata_run::host::{DeviceFacts, DirectIoBehaviour, LayerKind};
use iostrata_run::{DevicePause, Event, FindingKind, ProbeDocument, Replicate, Series};
use iostrata_stats::{Verdict, Verdicts};

use crate::support::{
    Disk, document, found, host, io_limit, layer, loss_ids, only, probe, probe_over_time,
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
fn a_cap_that_eight_writers_do_not_reach_is_named() {
    // 8 writers at a millisecond make 8,000 writes per second and prove nothing about 16,000.
    let far = Disk { read_us: 1_000.0, write_us: 1_000.0, noise: 0.004, ..volume() };
    let high = Disk { volume_iops: Some(16_000.0), ..far.clone() };
    let capped = document(&high, &host(), 5);
    let cap = found(&capped, "volume_cap").unwrap().evidence["cap_iops"].as_f64().unwrap();
    assert!((cap / 16_000.0 - 1.0).abs() < 0.02, "{cap}");
    // Writes that go beyond the rate at which reads end are no cap's.
    let beyond = Disk { write_us: 100.0, volume_iops: None, channels: 16.0, ..far };
    assert!(found(&document(&beyond, &host(), 5), "volume_cap").is_none());
}

#[test]
fn requests_and_bytes_may_be_capped_apart() {
    // 16,000 requests/s are paid for, and 125 MB/s come with the volume.
    let disk = Disk {
        read_us: 500.0,
        write_us: 500.0,
        noise: 0.004,
        volume_iops: Some(16_000.0),
        volume_bytes_per_s: Some(125e6),
        ..volume()
    };
    let capped = document(&disk, &host(), 6);
    let evidence = &found(&capped, "volume_cap").unwrap().evidence;
    assert!((evidence["cap_iops"].as_f64().unwrap() / 16_000.0 - 1.0).abs() < 0.02);
    assert!((evidence["also_cap_bytes_per_s"].as_f64().unwrap() / 125e6 - 1.0).abs() < 0.02);
    let settings: Vec<&str> = capped.advice.iter().map(|one| one.setting.as_str()).collect();
    assert_eq!(settings[..2], ["IOPS of the volume", "throughput of the volume"]);
    // A drive of this machine that its link binds looks the same, and that cannot be raised.
    let mut sata = host();
    sata.path.devices[0].transport = Some("ata".to_owned());
    assert!(found(&document(&disk, &sata, 6), "volume_cap").is_none());
    // Two gates at once are believed at three depths, even where writes end there, too.
    let late = Disk { read_us: 2_000.0, ..disk };
    assert!(found(&document(&late, &host(), 6), "volume_cap").is_none());
    let one_gate = Disk { volume_bytes_per_s: None, write_us: 400.0, ..late };
    assert!(found(&document(&one_gate, &host(), 6), "volume_cap").is_some());
}

#[test]
fn writes_may_have_a_cap_of_their_own() {
    // Reads are served by the host's cache.
    let disk =
        Disk { noise: 0.004, volume_iops: Some(12_000.0), writes_iops: Some(3_200.0), ..volume() };
    let capped = document(&disk, &host(), 7);
    let finding = found(&capped, "volume_cap").unwrap();
    assert!((finding.evidence["cap_iops"].as_f64().unwrap() / 12_000.0 - 1.0).abs() < 0.02);
    assert!((finding.evidence["writes_cap_iops"].as_f64().unwrap() / 3_200.0 - 1.0).abs() < 0.02);
    assert!(finding.text.contains("Writes end at 3.2 K/s"), "{}", finding.text);
    // Eight writers at two milliseconds make 4,000 a second, and so may many: no cap is near.
    let alone = Disk { write_us: 2_000.0, writes_iops: None, ..disk };
    let many = alone.clone().with("sustained_16k", 0.25);
    let rises = alone.with("write_16k_files_8", 0.5).with("sustained_16k", 0.2);
    for disk in [many, rises] {
        let finding = document(&disk, &host(), 7);
        let finding = found(&finding, "volume_cap").unwrap();
        assert!(!finding.evidence.contains_key("writes_cap_iops"), "{finding:?}");
    }
}

#[test]
fn a_slow_capped_volume_has_no_arm_and_an_array_has_several() {
    let arm = Disk { read_us: 8_000.0, write_us: 1_500.0, channels: 1.5, ..Disk::default() };
    let slow = Disk { channels: 64.0, noise: 0.004, volume_iops: Some(450.0), ..arm.clone() };
    let capped = document(&slow, &host(), 8);
    assert!(found(&capped, "volume_cap").is_some());
    assert!(found(&capped, "seek_cost").is_none());
    let array = Disk { channels: 6.0, ..arm };
    assert!(found(&document(&array, &host(), 8), "seek_cost").is_none(), "one disk gains less");
    let mut raid = host();
    let below = ["sda", "sdb", "sdc", "sdd"];
    let level = Some("raid10".to_owned());
    let md = LayerKind::Md { level, disks: Some(4), chunk_bytes: None };
    raid.path.block_stack = vec![layer("md0", md, 0, &below)];
    raid.path.block_stack.extend(below.map(|name| layer(name, LayerKind::Disk, 1, &[])));
    for name in below {
        let device = DeviceFacts { rotational_flag: Some(true), ..DeviceFacts::named(name) };
        raid.path.devices.push(device);
    }
    assert!(found(&document(&array, &raid, 8), "seek_cost").is_some());
}

#[test]
fn a_gate_above_the_device_is_told_from_one_in_it() {
    let disk = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    let document = document(&disk, &host(), 3);
    let finding = found(&document, "volume_cap").unwrap();
    assert_eq!(finding.layer, Layer::Limit);
    assert!(finding.text.starts_with("Capped above the device"), "{}", finding.text);
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

#[test]
fn a_cap_shows_although_the_hypervisor_holds_some_windows_up() {
    let caps: Vec<f64> = (0..20)
        .filter_map(|seed| {
            let capped = document(&Disk { steal_pct: 17.0, ..volume() }, &host(), seed);
            found(&capped, "volume_cap")?.evidence["cap_iops"].as_f64()
        })
        .collect();
    // Now and then all windows of a confirming depth are held up.
    assert!(caps.len() >= 18, "{caps:?}");
    assert!(caps.iter().all(|cap| (cap / 3_000.0 - 1.0).abs() < 0.02), "{caps:?}");
    // Without processors to spare the rate may be theirs.
    let busy = Disk { steal_pct: 70.0, ..volume() };
    assert!(found(&document(&busy, &host(), 1), "volume_cap").is_none());
    // An arm is as uneven as without it.
    let arm = Disk { read_us: 5_000.0, write_us: 5_000.0, channels: 1.0, ..Disk::default() };
    for (seed, noise) in (0..60).flat_map(|seed| [(seed, 0.06), (seed, 0.04), (seed, 0.03)]) {
        let uneven = Disk { noise, steal_pct: 17.0, ..arm.clone() };
        let finding = document(&uneven, &host(), seed);
        assert!(found(&finding, "volume_cap").is_none(), "seed {seed}, noise {noise}");
    }
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
        assert!(document.headline.join(" ").contains("I/O stops for"));
    }
    let sound = concluded(&probe(&Disk::default(), &host(), 7));
    assert!(found(&sound, "periodic_pauses").is_none());
}

#[test]
fn pauses_that_are_short_or_of_a_gate_are_no_loss() {
    let named = |every_s: f64, lasts_s: f64, host: &iostrata_run::ProbeHost| {
        let mut events = probe(&Disk::default(), host, 7);
        for event in &mut events {
            if let Event::Replicate(one) = event {
                pausing(one, every_s, lasts_s);
            }
        }
        let document = summarise(host.clone(), &events, ProbeEnd::default());
        found(&document, "periodic_pauses").is_some()
    };
    assert!(named(1.0, 0.05, &host()));
    assert!(!named(2.0, 0.02, &host()), "1 % is worth no line");
    let mut journal = host();
    journal.path.direct_io.behaviour = DirectIoBehaviour::Ignored;
    assert!(!named(1.0, 0.05, &journal), "the page cache writes back in bursts");
}

#[test]
fn a_fall_of_a_quarter_is_no_burst() {
    let events = |share: f64| {
        let mut events = probe(&Disk::default(), &host(), 9);
        for event in &mut events {
            let Event::Replicate(one) = event else { continue };
            if one.point.id == "sustained_16k" {
                let fell = |at: u32| if at < 60 { 2_000 } else { (2_000.0 * share) as u32 };
                let counts = (0..120).map(|at| fell(at) + at % 7).collect();
                let counts = [(OpKind::Write, counts)].into_iter().collect();
                one.streams[0].series = Series { width_s: 0.1, counts, ..Series::default() };
            }
        }
        concluded(&events)
    };
    assert!(found(&events(0.5), "burst_limit").is_some());
    assert!(found(&events(0.77), "burst_limit").is_none());
}

fn paused(pauses: &[(f64, f64)]) -> ProbeDocument {
    let mut events = probe(&Disk::default(), &host(), 11);
    let pauses = pauses.iter().map(|&(at_s, lasts_s)| DevicePause { at_s, lasts_s }).collect();
    events.push(Event::Paused { watched_s: 100.0, pauses });
    concluded(&events)
}

#[test]
fn pauses_with_a_long_period_are_seen_by_the_watch() {
    let every_20_s = paused(&[(7.0, 0.4), (27.1, 0.4), (46.9, 0.42), (67.0, 0.38), (87.0, 0.4)]);
    let finding = found(&every_20_s, "periodic_pauses").unwrap();
    assert!((finding.evidence["period_s"].as_f64().unwrap() / 20.0 - 1.0).abs() < 0.02);
    assert!((finding.effect_pct.unwrap() - 2.0).abs() < 0.1);
    assert!(found(&every_20_s, "irregular_pauses").is_none());
    // One was missed: it fell between two looks that came late.
    let missed = paused(&[(7.0, 0.6), (27.1, 0.6), (67.0, 0.6), (87.0, 0.6)]);
    assert!(found(&missed, "periodic_pauses").is_some());
    // Two that something else made.
    let beside = paused(&[
        (7.0, 0.4),
        (12.5, 0.3),
        (27.1, 0.4),
        (46.9, 0.4),
        (58.0, 0.4),
        (67.0, 0.4),
        (87.0, 0.4),
    ]);
    let finding = found(&beside, "periodic_pauses").unwrap();
    let said = "every 20 s (5 times in 100 s, and 2 times at other moments)";
    assert!(finding.text.contains(said), "{}", finding.text);
    assert!((finding.effect_pct.unwrap() - 2.0).abs() < 0.1);
    assert!(found(&beside, "irregular_pauses").is_none());
    let at_any_time = paused(&[(7.0, 0.4), (18.0, 0.9), (46.9, 0.2), (53.0, 0.3)]);
    let finding = found(&at_any_time, "irregular_pauses").unwrap();
    assert!(finding.text.contains("4 times in 100 s"), "{}", finding.text);
    assert!(found(&at_any_time, "periodic_pauses").is_none());
    for few in [&[(7.0, 0.9), (27.0, 0.9)][..], &[(7.0, 0.1), (27.0, 0.1), (47.0, 0.1)], &[]] {
        let document = paused(few);
        assert!(found(&document, "periodic_pauses").is_none(), "{few:?}");
        assert!(found(&document, "irregular_pauses").is_none(), "{few:?}");
    }
}

#[test]
fn a_fall_does_not_hide_pauses_of_the_whole_device() {
    let mut events = falling(45.0, 4, |_| Verdicts::none());
    let pauses = [7.0, 27.0, 47.0, 67.0].map(|at_s| DevicePause { at_s, lasts_s: 0.5 }).to_vec();
    events.push(Event::Paused { watched_s: 100.0, pauses });
    let document = concluded(&events);
    assert!(found(&document, "burst_limit").is_some());
    assert!(found(&document, "periodic_pauses").is_some());
    // A cap lets requests through in portions.
    let mut capped = probe(&volume(), &host(), 1);
    capped.extend(events.pop());
    let document = concluded(&capped);
    assert!(found(&document, "volume_cap").is_some());
    assert!(found(&document, "periodic_pauses").is_none());
}

#[test]
fn irregular_pauses_of_a_gate_or_of_a_flush_have_its_name() {
    let named = |disk: &Disk| {
        let mut events = probe(disk, &host(), 1);
        let pauses = [(7.0, 0.4), (18.0, 0.9), (46.9, 0.2), (53.0, 0.3)];
        let pauses = pauses.map(|(at_s, lasts_s)| DevicePause { at_s, lasts_s }).to_vec();
        events.push(Event::Paused { watched_s: 100.0, pauses });
        found(&concluded(&events), "irregular_pauses").is_some()
    };
    assert!(named(&Disk::default()));
    assert!(!named(&volume()));
    assert!(!named(&Disk { flush_us: 2_000.0, ..Disk::default() }));
}
