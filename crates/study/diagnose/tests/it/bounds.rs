//! Transactions compared with what the storage below them allows, with hand-made figures.

use iostrata_diagnose::{ProbeEnd, metric_of, summarise};
use iostrata_plan::{MetricKind, OpKind, TransactionSpec, rung};
use iostrata_run::{
    Event, Loss, ProbeDocument, Replicate, Resource, ResourceUse, StreamFigures, TransactionFigures,
};
use iostrata_stats::{Measured, Verdicts};

use crate::support::{Disk, host, probe};

const SECONDS: f64 = 2.0;

/// A window of transactions at so many per second, each of which used so much.
fn window(id: &str, disk: &Replicate, per_s: f64, per_txn: ResourceUse) -> Event {
    let done = per_s * SECONDS;
    let all = |of: Option<f64>| of.map(|of| of * done);
    let used = ResourceUse {
        redo_bytes: all(per_txn.redo_bytes),
        redo_and_data_syncs: None,
        redo_syncs: all(per_txn.redo_syncs),
        binlog_syncs: all(per_txn.binlog_syncs),
        page_writes: all(per_txn.page_writes),
        doublewrite_pages: all(per_txn.doublewrite_pages),
        page_reads: all(per_txn.page_reads),
        cpu_us: all(per_txn.cpu_us),
    };
    let mut one = disk.clone();
    one.point.id = id.to_owned();
    one.point.metric.kind = MetricKind::TotalIops;
    one.point.transactions = Some(TransactionSpec::new("commits", "engine:/data"));
    let mut op = disk.streams[0].ops[OpKind::Write].clone().unwrap();
    op.ios = done.round() as u64;
    let mut stream = StreamFigures { name: "commits".to_owned(), ..StreamFigures::default() };
    stream.ops.insert(OpKind::Transaction, op);
    stream.total = Some(Measured::new(per_s, [per_s * 0.98, per_s * 1.02], 60, Verdicts::none()));
    stream.transactions =
        Some(TransactionFigures { used: Some(used), ..TransactionFigures::default() });
    one.streams = vec![stream];
    Event::Replicate(Box::new(one))
}

/// A probe of a sound disk, then four rounds: the disk's commits, those of a database that brings
/// `share` of them, and perhaps those without syncs, each of so many microseconds.
fn document(share: f64, per_txn: ResourceUse, unsynced_us: Option<f64>) -> ProbeDocument {
    let mut events = probe(&Disk::default(), &host(), 7);
    let end = events.pop().unwrap();
    let is_commit = |event: &&Event| match event {
        Event::Replicate(one) => one.point.id == rung::COMMIT_FDATASYNC,
        _ => false,
    };
    let known: Vec<Replicate> = events
        .iter()
        .filter(is_commit)
        .filter_map(|event| match event {
            Event::Replicate(one) => Some((**one).clone()),
            _ => None,
        })
        .collect();
    for (number, one) in known.iter().take(4).enumerate() {
        let disk = Replicate { replicate: 20 + number as u32, ..one.clone() };
        let rate = metric_of(&disk).unwrap().value;
        events.push(window(rung::COMMITS_1, &disk, share * rate, per_txn));
        if let Some(us) = unsynced_us {
            let nothing = ResourceUse::default();
            events.push(window(rung::COMMITS_1_UNSYNCED, &disk, 1e6 / us, nothing));
        }
        events.push(Event::Replicate(Box::new(disk)));
    }
    events.push(end);
    summarise(host(), &events, ProbeEnd::of(&events))
}

fn one_sync() -> ResourceUse {
    let none = Some(0.0);
    ResourceUse { redo_syncs: Some(1.0), binlog_syncs: none, ..ResourceUse::default() }
}

fn database_loss(document: &ProbeDocument) -> Option<&Loss> {
    document.losses.iter().find(|loss| loss.basis == "computed_bound")
}

#[test]
fn the_bound_is_what_the_same_rounds_of_the_disk_allow() {
    let document = document(0.8, one_sync(), None);
    let reached = document.known(rung::COMMITS_1).unwrap();
    let bound = reached.bound.as_ref().unwrap();
    assert_eq!((bound.resource, bound.reached_pct_n), (Resource::Syncs, 4));
    assert!((bound.reached_pct - 80.0).abs() < 0.01, "{}", bound.reached_pct);
    let [low, high] = bound.reached_pct_ci95.unwrap();
    assert!(low < 80.0 && high > 80.0 && high - low < 5.0, "{low} {high}");
    assert!((reached.value / bound.value - 0.8).abs() < 0.01);
    let by_name = |name| bound.resources.iter().find(|one| one.name == name).unwrap();
    assert_eq!(by_name(Resource::Syncs).rungs, [rung::COMMIT_FDATASYNC]);
    for name in [Resource::LogWrites, Resource::PageWrites, Resource::PageReads, Resource::Cpu] {
        let one = by_name(name);
        assert_eq!((one.per_txn, one.allows_per_s), (None, None), "{name:?} is not counted");
    }
    let said = document.headline.iter().find(|said| said.contains("The limit")).unwrap();
    assert!(said.contains("(80 %). The limit is syncs: one for each commit."), "{said}");
}

#[test]
fn two_syncs_halve_it_and_the_least_resource_binds() {
    let once = document(0.4, one_sync(), None);
    let twice = document(0.4, ResourceUse { redo_syncs: Some(2.0), ..one_sync() }, None);
    let share = |document: &ProbeDocument| {
        document.known(rung::COMMITS_1).unwrap().bound.as_ref().unwrap().reached_pct
    };
    assert!((share(&twice) / share(&once) - 2.0).abs() < 0.01);
    // Eight processors, of which one connection keeps two busy.
    let busy = document(0.4, ResourceUse { cpu_us: Some(400.0), ..one_sync() }, None);
    let bound = busy.known(rung::COMMITS_1).unwrap().bound.clone().unwrap();
    assert_eq!(bound.resource, Resource::Cpu);
    assert!((bound.value - 5_000.0).abs() < 1.0, "{}", bound.value);
}

#[test]
fn a_loss_is_named_only_where_the_control_explains_it() {
    let rate = document(0.5, one_sync(), None).known(rung::COMMIT_FDATASYNC).unwrap().value;
    // At half of the rate a commit takes twice as long: as long above its sync as in it.
    let above_us = 1e6 / rate;
    assert_eq!(database_loss(&document(0.5, one_sync(), None)), None, "without a control");
    let small = document(0.5, one_sync(), Some(0.1 * above_us));
    assert_eq!(database_loss(&small), None, "commits without syncs are fast");
    let near = document(0.9, one_sync(), Some(above_us));
    assert_eq!(database_loss(&near), None, "below the threshold");
    let explained = document(0.5, one_sync(), Some(0.9 * above_us));
    let loss = database_loss(&explained).unwrap();
    assert!((loss.loss_pct - 50.0).abs() < 0.01, "{loss:?}");
    assert_eq!((loss.to.as_str(), loss.loss_pct_n), (rung::COMMITS_1, 4));
}

#[test]
fn transactions_say_nothing_of_the_storage_by_themselves() {
    let without = summarise(host(), &probe(&Disk::default(), &host(), 7), ProbeEnd::default());
    let with = document(0.1, one_sync(), None);
    let ids = |document: &ProbeDocument| -> Vec<String> {
        document.findings.iter().map(|finding| finding.id.clone()).collect()
    };
    assert_eq!(ids(&with), ids(&without));
    assert_eq!(with.losses, without.losses);
}

#[test]
fn rounds_are_paired_only_where_the_disk_took_turns() {
    let mut events = probe(&Disk::default(), &host(), 7);
    let end = events.pop().unwrap();
    let of_disk = |event: &Event| match event {
        Event::Replicate(one) if one.point.id == rung::COMMIT_FDATASYNC => Some((**one).clone()),
        _ => None,
    };
    // TPC-C has rounds of its own, whose numbers begin at 0 as those of the disk did before.
    let disk: Vec<Replicate> = events.iter().filter_map(of_disk).take(3).collect();
    for one in &disk {
        let rate = metric_of(one).unwrap().value;
        events.push(window(rung::TPCC_4, one, 0.5 * rate, one_sync()));
    }
    events.push(end);
    let apart = summarise(host(), &events, ProbeEnd::of(&events));
    let bound = apart.known(rung::TPCC_4).unwrap().bound.clone().unwrap();
    assert_eq!((bound.resource, bound.basis.as_str()), (Resource::Syncs, "independent"));
    let [low, high] = bound.reached_pct_ci95.unwrap();
    let [least, most] = bound.value_ci95.unwrap();
    assert!(high / low >= most / least, "no narrower than what it is compared with: {bound:?}");
    let turns = document(0.8, one_sync(), None);
    let paired = turns.known(rung::COMMITS_1).unwrap().bound.clone().unwrap();
    assert_eq!(paired.basis, "paired_rounds");
}
