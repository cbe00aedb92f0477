//! A machine that disturbs its own measurement: warned about, not diagnosed.

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_plan::OpKind;
use iostrata_run::host::{PressureShare, PressureShares};
use iostrata_run::{Event, FindingKind, ProbeDocument, Replicate, Series};
use iostrata_stats::{Verdict, Verdicts};

use crate::support::{Disk, found, host, loss_ids, only, probe_with};

fn with_verdicts(disk: &Disk, verdicts: impl Fn(&str) -> Verdicts) -> ProbeDocument {
    let events = probe_with(disk, &host(), 1, verdicts);
    summarise(host(), &events, ProbeEnd::default())
}

#[test]
fn busy_processors_excuse_an_api() {
    let disk = Disk::default().with("read_16k_sync_16", 0.5);
    let document = with_verdicts(&disk, |id| match id {
        "read_16k_sync_16" => only(Verdict::CpuLimited),
        _ => Verdicts::none(),
    });
    assert!(loss_ids(&document).is_empty(), "{:?}", loss_ids(&document));
    assert!(document.losses.is_empty());
}

#[test]
fn busy_processors_excuse_slow_commits_that_the_device_did_not_cause() {
    let mut disk = Disk { noise: 0.05, ..Disk::default() };
    for id in ["commit_fdatasync", "commit_fsync", "append_fdatasync", "append_fsync"] {
        disk = disk.with(id, 0.03);
    }
    let document = with_verdicts(&disk, |_| only(Verdict::CpuLimited));
    assert!(found(&document, "volatile_cache_flush_cost").is_none(), "the device flushes fast");
    assert!(found(&document, "cpu_bound_host").is_some());
}

#[test]
fn other_processes_are_named_as_a_caution() {
    let document = with_verdicts(&Disk::default(), |_| only(Verdict::ForeignIo));
    let finding = found(&document, "foreign_io").unwrap();
    assert_eq!(finding.kind, FindingKind::Caution);
    assert!(document.verdicts.has(Verdict::ForeignIo));
    assert!(document.headline.iter().any(|line| line.contains("other processes")));
}

#[test]
fn steal_and_unsteady_rates_are_named() {
    let stolen = with_verdicts(&Disk::default(), |_| only(Verdict::Steal));
    assert!(found(&stolen, "steal").is_some());
    assert!(found(&stolen, "not_steady_device").is_none());
    let unsteady = |drift: f64, cpu_pct: f64| {
        let mut events = probe_with(&Disk::default(), &host(), 1, |_| only(Verdict::NotSteady));
        for event in &mut events {
            let Event::Replicate(one) = event else { continue };
            drift_by(one, drift);
            let waited = PressureShare { some_pct: cpu_pct, ..PressureShare::default() };
            let pressure = PressureShares { cpu: Some(waited), ..PressureShares::default() };
            one.evidence.as_mut().unwrap().pressure = Some(pressure);
        }
        summarise(host(), &events, ProbeEnd::default())
    };
    assert!(found(&unsteady(0.5, 0.0), "not_steady_device").is_some());
    assert!(found(&unsteady(0.1, 0.0), "not_steady_device").is_none(), "a size that matters");
    assert!(found(&unsteady(0.5, 40.0), "not_steady_device").is_none(), "processors were short");
}

/// Lets the rate of a replicate rise evenly by so much of its mean.
fn drift_by(one: &mut Replicate, share: f64) {
    let slice = |at: u32| (10_000.0 * (1.0 + share * (f64::from(at) / 100.0 - 0.5))) as u32;
    let counts: Vec<u32> = (0..100).map(slice).collect();
    for stream in &mut one.streams {
        let counts = OpKind::OF_FILES.map(|kind| (kind, counts.clone())).into_iter().collect();
        stream.series = Series { width_s: 0.005, counts, ..Series::default() };
    }
}

#[test]
fn one_disturbed_point_is_no_disturbed_machine() {
    let document = with_verdicts(&Disk::default(), |id| match id {
        "read_4k_depth_2" => only(Verdict::ForeignIo),
        _ => Verdicts::none(),
    });
    assert!(found(&document, "foreign_io").is_none());
}

#[test]
fn figures_of_the_page_cache_are_not_compared() {
    let disk = Disk::default().with("write_16k_files_1", 0.3);
    let document = with_verdicts(&disk, |id| match id {
        "write_16k_files_8" => only(Verdict::DirectIgnored),
        _ => Verdicts::none(),
    });
    assert!(document.losses.is_empty());
    assert!(found(&document, "direct_io_ignored").is_some());
    let line = document.advice.iter().find(|one| one.setting == "innodb_flush_method").unwrap();
    assert_eq!(line.value, "fsync");
    assert_eq!(line.versions.as_deref(), Some("MySQL, MariaDB before 11.0"));
    let newer = document.advice.iter().find(|one| one.setting == "innodb_data_file_buffering");
    assert_eq!(newer.unwrap().where_, "my.cnf [mariadb]");
}

#[test]
fn reads_from_the_page_cache_are_named() {
    let document = with_verdicts(&Disk::default(), |id| match id {
        "read_4k_depth_1" => only(Verdict::Cached),
        _ => Verdicts::none(),
    });
    assert!(found(&document, "page_cache_answered").is_some());
}

#[test]
fn wild_figures_raise_no_loss() {
    // Sixteen pairs and forty seeds are 640 comparisons: one of them by chance is what is allowed.
    let mut raised = Vec::new();
    for seed in 0..40 {
        let disk = Disk { noise: 0.4, ..Disk::default() };
        let events = probe_with(&disk, &host(), seed, |_| only(Verdict::NotSteady));
        let document = summarise(host(), &events, ProbeEnd::default());
        for id in ["burst_limit", "limit_set_meanwhile", "periodic_pauses", "volume_cap"] {
            assert!(found(&document, id).is_none(), "seed {seed}: {id}");
        }
        let losses = document.losses.iter().map(|loss| loss.to.clone());
        let ids = loss_ids(&document).into_iter().map(str::to_owned);
        let all: Vec<String> = losses.chain(ids).collect();
        raised.extend((!all.is_empty()).then_some((seed, all)));
    }
    assert!(raised.len() <= 1, "{raised:?}");
}

#[test]
fn an_effect_within_its_interval_is_not_concluded() {
    for seed in 0..20 {
        let disk = Disk { noise: 0.4, ..Disk::default() };
        let document = crate::support::document(&disk, &host(), seed);
        let outside = document.findings.iter().filter_map(|one| one.effect_pct_ci95);
        assert!(outside.clone().all(|[low, _]| low > 0.0), "seed {seed}");
    }
}

#[test]
fn an_unconfirmed_loss_that_may_be_small_is_not_listed() {
    for seed in 0..20 {
        let disk = Disk { noise: 0.1, ..Disk::default() }.with("write_16k_files_1", 0.72);
        let all = probe_with(&disk, &host(), seed, |_| Verdicts::none());
        let before = all.iter().take_while(|one| !matches!(one, Event::Suspected { .. }));
        let events: Vec<Event> = before.cloned().collect();
        let document = summarise(host(), &events, ProbeEnd::default());
        for loss in &document.losses {
            assert!(loss.loss_pct_ci95.is_some_and(|[low, _]| low >= 20.0), "{seed}: {loss:?}");
        }
    }
}

/// A device that stood still during one of the replicates, as a spent burst allowance makes it.
fn with_a_collapsed_replicate() -> Vec<Event> {
    let calm = Disk { noise: 0.0, ..Disk::default() };
    let slow = calm.clone().with("commit_fdatasync", 0.02).with("read_4k_depth_4", 0.02);
    let events = [calm, slow].map(|disk| probe_with(&disk, &host(), 1, |_| Verdicts::none()));
    let [calm, slow] = events;
    let pick = |(calm, slow): (Event, Event)| match &calm {
        Event::Replicate(replicate) if replicate.replicate > 0 => slow,
        _ => calm,
    };
    calm.into_iter().zip(slow).map(pick).collect()
}

#[test]
fn rate_and_latency_of_a_collapsed_point_agree_with_its_depth() {
    let document = summarise(host(), &with_a_collapsed_replicate(), ProbeEnd::default());
    let commit = document.rungs.iter().find(|rung| rung.name == "commit_fdatasync").unwrap();
    let in_flight = commit.value * commit.latency_us.unwrap() * 1e-6;
    assert!((in_flight - 1.0).abs() < 0.05, "one committer, {in_flight} in flight: {commit:?}");
    let reads = document.rungs.iter().find(|rung| rung.name == "read_4k_depth_4").unwrap();
    let in_flight = reads.value * reads.latency_us.unwrap() * 1e-6;
    assert!((in_flight - 4.0).abs() < 0.2, "{in_flight} in flight: {reads:?}");
    // With an interval wider than itself it is no place on a curve.
    let curve = document.curves.iter().find(|curve| curve.name == "read_4k").unwrap();
    assert!(curve.points.len() > 4 && curve.points.iter().all(|point| point.x != 4.0));
}

#[test]
fn a_latency_that_contradicts_its_rate_is_not_shown() {
    let mut events = with_a_collapsed_replicate();
    for event in &mut events {
        if let Event::Replicate(replicate) = event
            && replicate.point.id == "commit_fdatasync"
        {
            let sync = replicate.streams[0].ops.get_mut(OpKind::Sync).unwrap();
            sync.latency_us.mean *= 9.0;
        }
    }
    let document = summarise(host(), &events, ProbeEnd::default());
    let commit = document.rungs.iter().find(|rung| rung.name == "commit_fdatasync").unwrap();
    assert_eq!(commit.latency_us, None, "{commit:?}");
}
