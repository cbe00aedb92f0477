//! Every engine of this build for a moment: what it acknowledged is there when it is reopened.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_peers::bench::Bench;
use iostrata_peers::drive::Window;
use iostrata_peers::engines::Engine;
use iostrata_peers::error::PeerError;
use iostrata_peers::keys::{self, Row, RowSet};
use iostrata_peers::plan::{Choice, Plan, Workload};
use iostrata_peers::scratch::Scratch;
use iostrata_peers::store::{Setup, Store};
use iostrata_peers::table;

const SET: RowSet = RowSet { count: 1_000, value_bytes: 24 };
const SETUP: Setup = Setup { cache_bytes: 4 << 20, writers: 2, is_direct: false };

fn open(engine: Engine, dir: &Path) -> Box<dyn Store> {
    engine.open(dir, SETUP).unwrap()
}

fn rows(store: &dyn Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut reader = store.reader().unwrap();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    reader.scan(&mut visit).unwrap();
    found
}

#[test]
fn what_is_loaded_and_committed_is_there_after_reopening() {
    for engine in Engine::built() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(engine, dir.path());
        store.load(&mut SET.rows()).unwrap();
        store.close().unwrap();
        let store = open(engine, dir.path());
        let mut update = vec![Row::default(); 3];
        for (at, row) in update.iter_mut().enumerate() {
            row.fill(SET.key(at as u64 * 100), 5, 24);
        }
        let mut new = Row::default();
        new.fill(u64::MAX, 6, 24);
        let mut writer = store.writer().unwrap();
        writer.commit(&update).unwrap();
        writer.commit(std::slice::from_ref(&new)).unwrap();
        drop(writer);
        store.close().unwrap();
        let store = open(engine, dir.path());
        assert!(!store.version().is_empty());
        let found = rows(&*store);
        assert_eq!(found.len() as u64, SET.count + 1, "{engine}");
        assert!(found.is_sorted(), "{engine}");
        for (key, value) in &found {
            let key = u64::from_be_bytes(key.as_slice().try_into().unwrap());
            assert!(keys::is_value_of(key, value), "{engine}");
        }
        let mut reader = store.reader().unwrap();
        for row in update.iter().chain([&new]) {
            let mut is_same = false;
            assert!(reader.get(&row.key, &mut |value| is_same = value == row.value).unwrap());
            assert!(is_same, "{engine}");
        }
        assert!(!reader.get(&[1; 8], &mut |_| ()).unwrap(), "{engine}");
        drop(reader);
        store.close().unwrap();
    }
}

#[test]
fn a_scan_ends_when_it_is_told_to() {
    for engine in Engine::built() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(engine, dir.path());
        store.load(&mut SET.rows()).unwrap();
        let mut seen = 0;
        let mut visit = |_: &[u8], _: &[u8]| {
            seen += 1;
            if seen == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.reader().unwrap().scan(&mut visit).unwrap();
        assert_eq!(seen, 10, "{engine}");
        store.close().unwrap();
    }
}

fn plan(workload: Workload) -> Plan {
    let choice = Choice {
        engines: Engine::built(),
        workloads: vec![workload],
        is_recovering: false,
        is_ordering: false,
        soak: None,
        rounds: 1,
        window: Duration::from_secs(1),
        update_window: Duration::from_secs(1),
        space_window: Duration::from_secs(1),
        is_quick: true,
    };
    let mut plan = choice.plans().remove(0);
    plan.set.count = 5_000;
    plan.window = Window { warmup: Duration::from_millis(10), length: Duration::from_millis(100) };
    plan.is_direct = false;
    plan.cache_bytes = 4 << 20;
    // The one with the most threads or rows.
    plan.cases.drain(..plan.cases.len() - 1);
    plan.cases[0].batch = plan.cases[0].batch.min(10);
    plan
}

fn run(plan: &Plan, stop: bool) -> Result<String, PeerError> {
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::make(parent.path()).unwrap();
    let engines = Engine::built();
    let stop = AtomicBool::new(stop);
    let mut note = |_: &str| ();
    let mut bench = Bench { scratch: &scratch, engines: &engines, stop: &stop, note: &mut note };
    let table = bench.run(plan)?;
    assert_eq!(table.versions.len(), engines.len());
    assert!(table.cases.iter().all(|case| case.lines.len() == engines.len()));
    Ok(table::text(&table))
}

#[test]
fn every_workload_runs_and_checks_its_data() {
    for workload in Workload::ALL {
        let text = run(&plan(workload), false).unwrap();
        for engine in Engine::built() {
            assert!(text.contains(engine.name()), "{text}");
        }
    }
}

#[test]
fn a_signal_ends_a_run() {
    assert!(matches!(run(&plan(Workload::Reads), true), Err(PeerError::Interrupted)));
}
