//! Sources that fail: every waiter gets the error, nothing stays behind.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use iostrata_engine::EngineError;
use iostrata_engine::pool::{PageSource, Pool};
use iostrata_innodb::PageNo;
use iostrata_io::disk::Aligned;
use rustix::thread::gettid;

use crate::pool::support::*;

fn bad_page(error: &EngineError) -> Option<u64> {
    match error {
        EngineError::Corrupt { page, .. } => Some(*page),
        _ => None,
    }
}

#[test]
fn a_failed_read_leaves_the_page_absent() {
    let (pool, source, _) = pool(8);
    source.bad.lock().unwrap().insert(3);
    for _ in 0..20 {
        assert_eq!(bad_page(&pool.pin(PageNo(3)).unwrap_err()), Some(3));
    }
    assert_eq!(pool.queues.free(), 8);
    pool.prefetch(&[PageNo(2), PageNo(3), PageNo(4)]);
    assert_eq!(pool.queues.free(), 6);
    assert!(pool.try_pin(PageNo(3)).is_none() && pool.try_pin(PageNo(4)).is_some());
    assert!(pool.create(PageNo(3)).is_ok(), "what needs no read does not fail");
    source.bad.lock().unwrap().clear();
    assert!(pool.pin(PageNo(3)).is_ok());
}

/// Fails, but only when everybody waits.
struct SlowlyFailing {
    may_end: AtomicBool,
    reads: AtomicU64,
}

impl PageSource for SlowlyFailing {
    fn read(&self, page: PageNo, _: &mut Aligned) -> Result<(), EngineError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        while !self.may_end.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        Err(bad_sector(page))
    }
}

/// Those of the threads that sleep, with how often each has gone to sleep so far.
fn asleep(threads: &[i32]) -> Vec<(i32, String)> {
    let look = |thread: &i32| {
        let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
        let line = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let is_asleep = line("State:").trim_start().starts_with('S');
        is_asleep.then(|| (*thread, line("voluntary_ctxt_switches:").to_owned()))
    };
    threads.iter().filter_map(look).collect()
}

#[test]
fn everyone_who_waits_for_one_load_gets_its_error() {
    let source = Arc::new(SlowlyFailing { may_end: false.into(), reads: 0.into() });
    let as_source: Arc<dyn PageSource> = Arc::clone(&source) as _;
    let pool = Pool::new(settings(8), Arc::default(), as_source, Arc::new(NoSupply));
    let (together, threads) = (Barrier::new(9), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                threads.lock().unwrap().push(gettid().as_raw_nonzero().get());
                together.wait();
                assert_eq!(bad_page(&pool.pin(PageNo(5)).unwrap_err()), Some(5));
            });
        }
        together.wait();
        while pool.read_waits.load(std::sync::atomic::Ordering::Relaxed) < 7 {
            thread::yield_now();
        }
        // One that is still awake then reads by itself. Who sleeps at two looks and has not run
        // between them slept all the time, and with all of them at once none is on its way.
        let (threads, mut before) = (threads.lock().unwrap(), Vec::new());
        loop {
            let now = asleep(&threads);
            if now.len() == 7 && now == before {
                break;
            }
            before = now;
            thread::sleep(Duration::from_millis(1));
        }
        source.may_end.store(true, Ordering::Relaxed);
    });
    assert_eq!(pool.queues.free(), 8);
    assert_eq!(source.reads.load(Ordering::Relaxed), 1, "all had the error of one read");
}

struct Broken;

impl PageSource for Broken {
    fn read(&self, _: PageNo, _: &mut Aligned) -> Result<(), EngineError> {
        panic!("a broken source")
    }
}

#[test]
fn broken_sources_break_nothing_else() {
    let pool = Pool::new(settings(8), Arc::default(), Arc::new(Broken), Arc::new(NoSupply));
    let panicked = thread::scope(|scope| scope.spawn(|| drop(pool.pin(PageNo(1)))).join());
    assert!(panicked.is_err());
    assert!(matches!(pool.pin(PageNo(u64::MAX)), Err(EngineError::Corrupt { .. })));
    assert_eq!(pool.queues.free(), 8);
    assert!(pool.create(PageNo(1)).is_ok());
}
