//! What a hit costs. Run alone: `cargo test --release -p iostrata-pool cost -- --ignored
//! --nocapture`.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use iostrata_page::{Lsn, PageNo};

use crate::support::*;

const ROUNDS: u64 = 4_000_000;

fn timed(what: &str, mut step: impl FnMut(u64)) {
    let start = Instant::now();
    (0..ROUNDS).for_each(&mut step);
    eprintln!("{what}: {:.1} ns", start.elapsed().as_nanos() as f64 / ROUNDS as f64);
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
    let mut taken = Vec::new();
    let start = Instant::now();
    pool.collect_oldest(1000, Lsn(u64::MAX), &mut taken);
    let copied = start.elapsed();
    let count = taken.len() as f64;
    pool.flushed(taken);
    let all = start.elapsed();
    let ns = |time: std::time::Duration| time.as_nanos() as f64 / count;
    eprintln!("take and copy: {:.0} ns a page; report: {:.0}", ns(copied), ns(all - copied));
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
