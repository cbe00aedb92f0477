//! An engine that is open in this process, watched from within and by the page that it publishes.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use iostrata_database::target::{Sampler, Schema, Target, TargetError};
use iostrata_database::watch::{OnHost, TimedSample, Watch};
use iostrata_embedded::{EmbeddedTarget, PublishedSampler};

#[test]
fn both_ways_tell_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let settings = [("buffer_pool_size", "8M"), ("redo_log_capacity", "8M")];
    let settings: Vec<(String, String)> =
        settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let target = EmbeddedTarget::open(&path, &Schema::default(), &settings).unwrap();
    let mut within = target.sampler().unwrap().unwrap();
    let mut published = PublishedSampler::open(&path).unwrap();
    let (own, page) = (within.sample().unwrap(), published.sample().unwrap());
    assert_eq!(own.redo_capacity_bytes, Some(8 << 20));
    assert_eq!(page.redo_capacity_bytes, own.redo_capacity_bytes);
    assert_eq!(page.checkpoint_age_limit_bytes, own.checkpoint_age_limit_bytes);
    assert_eq!(page.pool_pages, own.pool_pages);
    assert!(own.taken_us.is_none() && page.taken_us.is_some());
    assert!(own.started_s.unwrap().abs_diff(page.started_s.unwrap()) <= 2);
    let mut watch = Watch::default();
    let mut last = None;
    for at_s in [0.0, 1.0, 2.0] {
        let sample = published.sample();
        let seen = TimedSample { at_s, sample, sample_us: 1.0, on_host: OnHost::default() };
        last = Some(watch.take(seen).sample);
        sleep(Duration::from_millis(600));
    }
    let last = last.unwrap();
    assert_eq!(last.tps, Some(0.0));
    let marks = [last.checkpoint_age_async_bytes, last.checkpoint_age_sync_bytes];
    assert!(marks[0] < marks[1] && marks[1] <= last.checkpoint_age_limit_bytes, "{last:?}");
    target.close().unwrap();
}

#[test]
fn where_no_engine_is_the_fix_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path| -> TargetError { PublishedSampler::open(path).unwrap_err() };
    let none = refused(&dir.path().join("none")).to_string();
    assert!(none.contains("contains no engine") && none.contains("prepare"), "{none}");
    let empty = refused(dir.path()).to_string();
    assert!(empty.contains("contains no engine"), "{empty}");
}
