//! A real server on which nothing is wrong: no stall may be found.

use iostrata_database::watch::WatchStep;
use iostrata_plan::study::IoLimits;

use crate::stage::{Stage, is_long_form};
use crate::stalls::{TABLE, fill, stalls};

const ROWS: u64 = 50_000;
const SESSIONS: usize = 4;
/// How long is watched how much the server can do, in seconds.
const FULL_S: u64 = 5;

/// How long is watched that nothing is found, in seconds: ten minutes in the long form.
fn watched_s() -> u64 {
    if is_long_form() { 600 } else { 8 }
}

/// A server whose redo holds all of a long load.
fn begin(test: &str) -> Option<Stage> {
    let options = [
        "--innodb-buffer-pool-size=128M",
        "--innodb-log-file-size=2G",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    let stage = Stage::begin(test, &options, IoLimits::default())?;
    stage.order(&[TABLE, &fill(ROWS)]);
    Some(stage)
}

/// The median of the rates, which every sample except the first must have.
fn usual_tps(all: &[WatchStep]) -> f64 {
    let mut rates: Vec<f64> = all.iter().filter_map(|one| one.sample.tps).collect();
    assert!(rates.len() + 2 > all.len(), "{} of {} samples have no rate", rates.len(), all.len());
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[test]
fn a_load_at_half_of_what_the_server_can_do_raises_nothing() {
    let test = "a_load_at_half_of_what_the_server_can_do_raises_nothing";
    let Some(mut stage) = begin(test) else { return };
    stage.transact(SESSIONS, ROWS, None);
    let full = usual_tps(&stage.watch(FULL_S, None));
    stage.rest();
    stage.transact(SESSIONS, ROWS, Some(full / 2.0));
    // Where others take the processors a stall is a true one: three windows may show that.
    let mut even = stage.watch(watched_s(), None);
    for _ in 0..2 {
        if !stalls(&even).is_empty() {
            even = stage.watch(watched_s(), None);
        }
    }
    let found = stalls(&even);
    assert!(found.is_empty(), "{found:?}");
    let half = usual_tps(&even) / full;
    eprintln!("{full:.0} transactions per second at most, {:.0} % of it watched", 100.0 * half);
    assert!((0.2..0.7).contains(&half), "{half} of {full} per second");
}

#[test]
fn an_idle_server_raises_nothing() {
    let Some(mut stage) = begin("an_idle_server_raises_nothing") else { return };
    let idle = stage.watch(watched_s(), None);
    let found = stalls(&idle);
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(usual_tps(&idle), 0.0, "the sampler itself is no load");
}
