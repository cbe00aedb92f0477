//! The hot loop allocates nothing: a window six times as long allocates no more.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use iostrata_load::{NoObserver, StreamPlan, Surroundings, WindowFigures, measure};
use iostrata_plan::{IoApi, IoSpec, Mix, OpKind};

use crate::transactions::{Idle, done, measured, spec};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same one.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, and so from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests and allocations of one window; the figures are computed afterwards and not counted.
fn window(millis: u64, detail: bool) -> (u64, u64) {
    let mut spec = IoSpec::new("null");
    (spec.api, spec.mix) = (IoApi::Null, Mix::Both { read_pct: 50 });
    spec.runtime = Some(Duration::from_millis(millis));
    let interrupted = AtomicBool::new(false);
    let surroundings = Surroundings { interrupted: &interrupted, program: None };
    let plan = StreamPlan { name: "main".to_owned(), spec, files: Vec::new(), detail };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let outcome = measure(&[plan], &surroundings, &mut NoObserver).unwrap();
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let figures = WindowFigures::of(&outcome);
    (figures.streams[0].ops[OpKind::Read].as_ref().unwrap().ios, allocations)
}

#[test]
fn the_loop_allocates_nothing() {
    let _turn = crate::one_at_a_time();
    for detail in [false, true] {
        window(20, detail);
        let (few, short) = window(100, detail);
        let (many, long) = window(600, detail);
        assert!(many > few + 10_000, "{few} and {many} requests");
        assert!(long <= short + 20, "{short} allocations in 100 ms, {long} in 600 ms");
    }
}

#[test]
fn the_loop_of_transactions_allocates_nothing() {
    let _turn = crate::one_at_a_time();
    let source = Idle::new(Duration::ZERO);
    let window = |millis: u64| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let figures = measured(&source, &spec(1, millis), &mut NoObserver);
        (done(&figures), ALLOCATIONS.load(Ordering::Relaxed) - before)
    };
    window(20);
    let (few, short) = window(100);
    let (many, long) = window(600);
    eprintln!("driving alone costs {:.0} ns per transaction", 600e6 / many as f64);
    assert!(many > few + 10_000, "{few} and {many} transactions");
    // The figures, which are counted too, are made of as many slices as the window has.
    assert!(
        long <= short + (many - few) / 1_000,
        "{short} allocations in 100 ms, {long} in 600 ms"
    );
}
