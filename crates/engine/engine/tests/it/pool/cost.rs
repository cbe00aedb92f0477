//! What a hit costs. Run alone: `cargo test --release -p iostrata-pool cost -- --ignored
//! --nocapture`.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use iostrata_innodb::{Lsn, PageNo};

use crate::pool::support::*;

const BATCHES: u64 = 100;
const ROUNDS: u64 = 40_000;

/// The least and the median of many batches: others may use the machine meanwhile.
fn timed(what: &str, mut step: impl FnMut(u64)) {
    let mut batch = |from: u64| {
        let start = Instant::now();
        (from..from + ROUNDS).for_each(&mut step);
        start.elapsed().as_nanos() as f64 / ROUNDS as f64
    };
    let mut ns: Vec<f64> = (0..BATCHES).map(|at| batch(at * ROUNDS)).collect();
    ns.sort_by(f64::total_cmp);
    eprintln!("{what}: least {:.1} ns, median {:.1}", ns[0], ns[ns.len() / 2]);
}

#[test]
fn cost_of_a_hit() {
    if std::env::var_os("IOSTRATA_COST").is_none() {
        eprintln!("skipped: a measurement; set IOSTRATA_COST=1");
        return;
    }
    let (pool, _, _) = pool(1024);
    for page in 0..1000 {
        drop(pool.pin(PageNo(page)).unwrap());
    }
    timed("pin, unpin, one page", |_| drop(pool.pin(PageNo(5))));
    timed("pin, shared, unlatch, unpin, one page", |_| {
        black_box(pool.pin(PageNo(5)).unwrap().shared()[0]);
    });
    timed("pin, shared, unlatch, unpin, 1000 pages", |round| {
        black_box(pool.pin(PageNo(round * 617 % 1000)).unwrap().shared()[0]);
    });
    timed("pin, exclusive, mark dirty again, unlatch, unpin, 1000 pages", |round| {
        pool.pin(PageNo(round * 617 % 1000)).unwrap().exclusive().mark_dirty(Lsn(100));
    });
    let (mut least, mut lsn) = ([u128::MAX; 2], 200);
    for _ in 0..BATCHES {
        let start = Instant::now();
        let mut taken = Vec::new();
        pool.collect_oldest(200, Lsn(u64::MAX), &mut taken);
        let copied = start.elapsed();
        let pages: Vec<PageNo> = taken.iter().map(|one| one.page).collect();
        let start = Instant::now();
        pool.flushed(taken);
        let reported = start.elapsed();
        least = [least[0].min(copied.as_nanos()), least[1].min(reported.as_nanos())];
        for page in pages {
            lsn += 1;
            pool.pin(page).unwrap().exclusive().mark_dirty(Lsn(lsn));
        }
    }
    let [copied, reported] = least.map(|ns| ns as f64 / 200.0);
    eprintln!("take and copy 4 KiB: least {copied:.0} ns a page; report: {reported:.0} ns");
    let mut rest = Vec::new();
    pool.collect_oldest(usize::MAX, Lsn(u64::MAX), &mut rest);
    pool.flushed(rest);
    timed("miss with eviction, from memory", |round| drop(pool.pin(PageNo(round % 100_000))));
    let together = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                together.wait();
                timed("two threads, shared, one page", |_| {
                    black_box(pool.pin(PageNo(5)).unwrap().shared()[0]);
                });
            });
        }
    });
}
