//! The committed JSON schemas are those of the types. `UPDATE_SCHEMA=1` writes them again.

use std::path::Path;

use iostrata_plan::fio::FioPlan;
use iostrata_run::{
    CheckDocument, CrashTestDocument, DiskFaultDocument, DiskListDocument, DiskStartDocument,
    DiskStopDocument, EngineCheckDocument, EngineStatsDocument, Event, FioDocument, FlushDocument,
    IoDocument, Manifest, PrepareDocument, ProbeDocument, QueueDocument, ServerSummaryDocument,
    StudyDiffDocument, StudyDocument, TransactionDocument, WatchDocument, WatchSample,
};
use schemars::{JsonSchema, schema_for};

fn check<T: JsonSchema>(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../../docs/schema/{name}.schema.json"));
    let schema = serde_json::to_string_pretty(&schema_for!(T)).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some_and(|value| value == "1") {
        std::fs::write(&path, &schema).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == schema,
        "{} differs from the type; run UPDATE_SCHEMA=1 cargo test -p iostrata-run",
        path.display()
    );
}

#[test]
fn probe() {
    check::<ProbeDocument>("probe");
}

#[test]
fn io() {
    check::<IoDocument>("io");
}

#[test]
fn event() {
    check::<Event>("event");
}

#[test]
fn manifest() {
    check::<Manifest>("manifest");
}

#[test]
fn study() {
    check::<StudyDocument>("study");
}

#[test]
fn simulate_queue() {
    check::<QueueDocument>("simulate-queue");
    check::<FlushDocument>("simulate-flush");
}

#[test]
fn tpcc_check() {
    check::<CheckDocument>("tpcc-check");
}

#[test]
fn prepare() {
    check::<PrepareDocument>("prepare");
}

#[test]
fn watch() {
    check::<WatchDocument>("watch");
    check::<WatchSample>("watch-sample");
}

#[test]
fn fio() {
    check::<FioDocument>("fio");
    check::<FioPlan>("fio_plan");
}

#[test]
fn transactions() {
    check::<TransactionDocument>("tpcc");
}

#[test]
fn study_diff() {
    check::<StudyDiffDocument>("study-diff");
}

#[test]
fn disk() {
    check::<DiskStartDocument>("disk-start");
    check::<EngineCheckDocument>("engine-check");
    check::<EngineStatsDocument>("engine-stats");
    check::<CrashTestDocument>("engine-crash-test");
    check::<DiskListDocument>("disk-list");
    check::<DiskFaultDocument>("disk-fault");
    check::<DiskStopDocument>("disk-stop");
}

#[test]
fn server_summary() {
    check::<ServerSummaryDocument>("server-summary");
}
