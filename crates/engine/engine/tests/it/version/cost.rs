//! What the calls of a commit and of a reader cost. Run alone: `IOSTRATA_COST=1 cargo test
//! --release -p iostrata-version cost -- --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use crate::version::support::*;

const BATCHES: u64 = 100;
const ROUNDS: u64 = 10_000;

/// The least and the median of many batches: others may use the machine meanwhile.
fn timed(what: &str, mut step: impl FnMut(u64), mut between: impl FnMut()) {
    let mut batch = |from: u64| {
        let start = Instant::now();
        (from..from + ROUNDS).for_each(&mut step);
        let ns = start.elapsed().as_nanos() as f64 / ROUNDS as f64;
        between();
        ns
    };
    let mut ns: Vec<f64> = (0..BATCHES).map(|at| batch(at * ROUNDS)).collect();
    ns.sort_by(f64::total_cmp);
    eprintln!("{what}: least {:.1} ns, median {:.1}", ns[0], ns[ns.len() / 2]);
}

#[test]
fn cost_of_a_call() {
    if std::env::var_os("IOSTRATA_COST").is_none() {
        eprintln!("skipped: a measurement; set IOSTRATA_COST=1");
        return;
    }
    let (versions, _) = versions(1 << 20, u64::MAX);
    timed("snapshot, open and close", |at| drop(black_box(versions.registry.open(at))), || {});
    timed(
        "tick, is_needed",
        |_| _ = black_box(versions.registry.is_any_below(versions.registry.tick())),
        || {},
    );
    let open: Vec<_> = (0..64).map(|at| versions.registry.open(at)).collect();
    let number = versions.registry.now();
    timed(
        "is_needed, 64 slots, none below",
        |_| _ = black_box(versions.registry.is_any_below(number)),
        || {},
    );
    drop(open);
    let value = [7; 200];
    let pass = || versions.finish_purge(versions.take_purge(usize::MAX).unwrap());
    timed(
        "keep, replaced 200 bytes",
        |_| _ = black_box(versions.log.keep().replaced(number, 1, &value)),
        pass,
    );
    let one = versions.log.keep().replaced(number, 1, &value);
    let mut into = Vec::new();
    timed("read 200 bytes", |_| drop(versions.log.read(one, &mut into)), || {});
}
