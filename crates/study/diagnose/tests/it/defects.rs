//! One defect at a time: found, sized, and answered with the right advice.

use iostrata_plan::Layer;
use iostrata_run::{Event, FindingKind, ProbeDocument};
use iostrata_stats::Verdict;

use crate::support::{Disk, document, found, host, io_limit, loss_ids, probe, probe_with};

fn settings(document: &ProbeDocument) -> Vec<(&str, &str)> {
    let lines = document.advice.iter().map(|one| (one.setting.as_str(), one.value.as_str()));
    lines.filter(|(setting, _)| !setting.starts_with("innodb_io_capacity")).collect()
}

/// The loss that a factor on one point should show as.
fn assert_effect(document: &ProbeDocument, id: &str, expected_pct: f64) {
    let finding = found(document, id).unwrap_or_else(|| panic!("{id} was not found"));
    let effect = finding.effect_pct.unwrap_or(0.0);
    let [low, high] = finding.effect_pct_ci95.unwrap_or_default();
    assert!((effect - expected_pct).abs() < 6.0, "{id}: {effect} instead of {expected_pct}");
    assert!(low <= effect && effect <= high && finding.effect_pct_n >= 3);
    assert!(document.headline.iter().any(|line| line.contains(&finding.text)));
}

#[test]
fn a_lock_per_file_is_answered_with_files() {
    let disk = Disk::default().with("write_16k_files_1", 0.4).with("write_16k_files_2", 0.7);
    let document = document(&disk, &host(), 1);
    assert_effect(&document, "per_file_write_lock", 60.0);
    assert_eq!(loss_ids(&document), ["per_file_write_lock"]);
    assert_eq!(document.losses.len(), 1);
    assert_eq!(document.losses[0].basis, "paired_rungs");
    assert_eq!(document.losses[0].to, "write_16k_files_1");
    assert_eq!(settings(&document), [("number of data files", "4")]);
}

#[test]
fn a_lock_between_readers_and_writers_is_told_apart() {
    let disk = Disk::default().with("mixed_16k_files_1", 0.5);
    let document = document(&disk, &host(), 2);
    assert_effect(&document, "mixed_file_lock", 50.0);
    assert_eq!(loss_ids(&document), ["mixed_file_lock"]);
    assert_eq!(settings(&document), [("number of data files", "8")]);
}

#[test]
fn inherent_work_that_hurts_is_named() {
    let slow = Disk { write_us: 500.0, ..Disk::default() };
    let unwritten = document(&slow.clone().with("unwritten_16k_files_8", 0.2), &host(), 3);
    assert_effect(&unwritten, "unwritten_extent_cost", 80.0);
    let append = document(&slow.clone().with("append_16k", 0.2), &host(), 4);
    assert_effect(&append, "append_allocation_cost", 80.0);
    let buffered = document(&slow.with("flushed_16k_buffered", 0.2), &host(), 5);
    assert_effect(&buffered, "buffered_write_cost", 80.0);
    assert!(settings(&buffered).is_empty(), "direct I/O is the default already");
}

#[test]
fn a_journal_behind_fsync_is_answered_with_fdatasync() {
    let disk = Disk { flush_us: 150.0, ..Disk::default() }.with("commit_fsync", 0.1);
    let document = document(&disk, &host(), 6);
    assert_effect(&document, "fsync_journal_cost", 90.0);
    assert_eq!(settings(&document), [("innodb_use_fdatasync", "ON")]);
}

#[test]
fn a_durable_write_that_beats_the_flush_is_named() {
    let disk = Disk { flush_us: 400.0, ..Disk::default() }.with("commit_fdatasync", 0.4);
    let document = document(&disk, &host(), 7);
    assert!(found(&document, "dsync_beats_fdatasync").is_some());
    assert!(settings(&document).contains(&("innodb_log_file_write_through", "ON")));
}

#[test]
fn what_one_committer_gains_and_sixteen_lose_is_not_advised() {
    let disk = Disk { flush_us: 400.0, ..Disk::default() }
        .with("commit_fdatasync", 0.4)
        .with("commit_dsync_16", 0.3);
    let document = document(&disk, &host(), 7);
    assert!(found(&document, "dsync_beats_fdatasync").is_some());
    assert!(settings(&document).iter().all(|(name, _)| *name != "innodb_log_file_write_through"));
}

#[test]
fn a_slow_flush_is_the_devices() {
    let disk = Disk { flush_us: 2_000.0, ..Disk::default() };
    let document = document(&disk, &host(), 8);
    assert_effect(&document, "volatile_cache_flush_cost", 98.5);
    assert_eq!(loss_ids(&document), ["volatile_cache_flush_cost"]);
    assert!(settings(&document).is_empty(), "no setting gives it back without durability");
    assert!(found(&document, "no_group_commit_gain").is_none());
}

#[test]
fn flushes_that_are_not_shared_are_a_fact_of_size() {
    let disk = Disk { flush_us: 2_000.0, shares_flushes: false, ..Disk::default() };
    let document = document(&disk, &host(), 9);
    let finding = found(&document, "no_group_commit_gain").unwrap();
    assert!(finding.effect_pct.is_none());
}

#[test]
fn an_api_that_loses_is_named_and_servers_keep_their_own() {
    let disk = Disk::default().with("read_16k_libaio_16", 0.4);
    let document = document(&disk, &host(), 10);
    assert_effect(&document, "api_overhead", 60.0);
    let api: Vec<_> = document.losses.iter().map(|loss| loss.to.as_str()).collect();
    assert_eq!(api, ["read_16k_libaio_16"], "listed once");
    assert!(settings(&document).is_empty(), "threads that read are no alternative of a server");
}

#[test]
fn a_limit_shows_as_time_above_the_device() {
    let disk = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    let mut limited = host();
    limited.path.limits = vec![io_limit(1_500, 1_500)];
    let document = document(&disk, &limited, 11);
    let finding = found(&document, "limit_above_device").unwrap();
    assert!(finding.effect_pct.unwrap() > 80.0, "{finding:?}");
    assert!(finding.text.contains("1.5 K reads/s"), "{}", finding.text);
    assert!(document.losses.iter().any(|loss| loss.basis == "device_counters"));
    assert!(settings(&document).contains(&("io.max of /db", "254:0 riops=max wiops=max")));
}

#[test]
fn a_limit_is_confirmed_first_and_seen_beside_foreign_requests() {
    let disk = Disk { limit_iops: Some(1_500.0), ..Disk::default() }.with("write_16k_files_1", 0.3);
    let throttled = || [Verdict::Throttled, Verdict::ForeignIo].into_iter().collect();
    let events = probe_with(&disk, &host(), 19, |_| throttled());
    let ids: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Suspected { id, .. } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.first(), Some(&"limit_above_device"), "{ids:?}");
    let document = iostrata_diagnose::summarise(host(), &events, Default::default());
    assert!(found(&document, "limit_above_device").is_some());
    let text = document.headline.join(" ");
    assert!(!text.contains("Nothing needs to change"), "{text}");
}

#[test]
fn a_limit_out_of_sight_is_found_too() {
    let disk = Disk { limit_iops: Some(1_500.0), ..Disk::default() };
    let document = document(&disk, &host(), 12);
    assert!(found(&document, "limit_above_device").is_some());
    assert!(settings(&document).is_empty(), "nothing is known that could be lifted");
}

#[test]
fn an_arm_is_found_by_its_seeks() {
    let disk = Disk { read_us: 8_000.0, write_us: 100.0, channels: 1.5, ..Disk::default() };
    let document = document(&disk, &host(), 13);
    assert!(found(&document, "seek_cost").is_some());
    assert!(settings(&document).contains(&("innodb_flush_neighbors", "1")));
}

#[test]
fn a_distant_volume_is_no_arm() {
    let disk = Disk { read_us: 8_000.0, write_us: 100.0, channels: 64.0, ..Disk::default() };
    let document = document(&disk, &host(), 14);
    assert!(found(&document, "seek_cost").is_none());
}

#[test]
fn a_burst_that_runs_out_is_seen_in_the_sustained_point() {
    let disk = Disk { burst_s: Some(6.0), ..Disk::default() };
    let document = document(&disk, &host(), 15);
    let finding = found(&document, "burst_limit").unwrap();
    let fall = finding.evidence["fall_pct"].as_f64().unwrap();
    assert!((fall - 66.7).abs() < 3.0, "{fall}");
    assert!(document.headline.iter().any(|line| line.contains("burst credit")));
}

#[test]
fn a_buffer_that_fills_up_is_no_loss_and_bounds_what_is_advised() {
    let disk =
        Disk { write_us: 6_000.0, burst_s: Some(0.6), pages_per_s_max: 1e6, ..Disk::default() };
    let document = document(&disk, &host(), 15);
    assert!(found(&document, "burst_limit").is_none());
    let finding = found(&document, "write_buffer").unwrap();
    assert_eq!((finding.kind, finding.layer), (FindingKind::Sizing, Layer::Device));
    let lasting = finding.evidence["lasting_writes_per_s"].as_f64().unwrap();
    let line = document.advice.iter().find(|one| one.setting == "innodb_io_capacity_max").unwrap();
    let advised: f64 = line.value.parse().unwrap();
    assert!(advised <= lasting / 2.0 && advised > lasting / 2.5, "{advised} of {lasting}");
    assert!(line.text.contains("pages/s last"), "{}", line.text);
    assert_eq!(line.default.as_deref(), Some("MySQL 2000; 20000 from 8.4. MariaDB 2000"));
    assert_eq!(line.versions, None, "every server has it");
    let sized = found(&document, "flush_capacity").unwrap();
    assert!(sized.text.contains("last: after the first writes"), "{}", sized.text);
}

#[test]
fn what_the_confirming_replicates_do_not_show_is_dropped() {
    let limping = Disk::default().with("write_16k_files_1", 0.5);
    let events = probe(&limping, &host(), 16);
    let at = events.iter().position(|event| matches!(event, Event::Suspected { .. })).unwrap();
    let mut cleared = events[..=at].to_vec();
    let healthy = probe(&Disk::default(), &host(), 17);
    cleared.extend(healthy.into_iter().filter_map(|event| match event {
        Event::Replicate(mut one) if one.point.id.starts_with("write_16k_files_") => {
            one.replicate += 4;
            Some(Event::Replicate(one))
        }
        _ => None,
    }));
    let document = iostrata_diagnose::summarise(host(), &cleared, Default::default());
    assert!(found(&document, "per_file_write_lock").is_none());
    assert!(document.losses.is_empty(), "{:?}", document.losses);
}

#[test]
fn an_unconfirmed_loss_needs_a_wide_margin() {
    let limping = Disk::default().with("write_16k_files_1", 0.5);
    let events = probe(&limping, &host(), 18);
    let at = events.iter().position(|event| matches!(event, Event::Suspected { .. })).unwrap();
    let document = iostrata_diagnose::summarise(host(), &events[..at], Default::default());
    assert!(loss_ids(&document).is_empty(), "a finding needs its confirmation");
    assert_eq!(document.losses.len(), 1, "half is beyond any doubt");
}
