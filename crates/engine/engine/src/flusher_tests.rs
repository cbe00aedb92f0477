//! Checkpoints: how far they wait, and what they say of an engine that has failed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use iostrata_innodb::{NO_PAGE, PageNo, TableId, flush::Cause};
use iostrata_io::disk::MemDisk;
use iostrata_io::disk::memory::{CallKind, Fault};

use crate::error::EngineError;
use crate::flusher::Flusher;
use crate::layer_tests::{on_disk, on_memory};
use crate::mtr::Mtr;
use crate::page::{PageKind, Record};
use crate::pool::Flushing;
use crate::tests::small;

/// Changes a page that is in the pool.
fn change(flusher: &Flusher, page: PageNo) {
    let storage = &flusher.storage;
    let mut mtr = Mtr::begin(storage);
    let held = mtr.latch(storage.pool.pin(page).unwrap());
    let (left, right) = (NO_PAGE, NO_PAGE);
    let init = Record::Init { kind: PageKind::Leaf, level: 0, table: TableId(7), left, right };
    mtr.change(held, &init).unwrap();
    mtr.commit();
}

/// Brings pages into the pool that are not dirty.
fn make(flusher: &Flusher, pages: u64) {
    flusher.storage.store.ensure(pages).unwrap();
    for page in (0..pages).map(PageNo) {
        drop(flusher.storage.pool.create(page).unwrap());
        change(flusher, page);
    }
    flusher.sharp_checkpoint(false).unwrap();
}

/// Takes a page for writing, as another thread does.
fn take(flusher: &Flusher, page: PageNo) -> Vec<Flushing> {
    change(flusher, page);
    let mut taken = Vec::new();
    assert!(flusher.storage.pool.collect_page(page, &mut taken));
    taken
}

#[test]
fn a_checkpoint_waits_for_what_was_dirty_when_it_began_and_no_more() {
    const OTHERS: u64 = 4;
    const CALLS: usize = 300;
    let mut settings = small();
    // All changes lie in one bucket of the redo.
    settings.set("redo_log_capacity", "64M").unwrap();
    let disk = MemDisk::new();
    let flusher = on_disk(&disk, &settings);
    make(&flusher, 1 + OTHERS);
    change(&flusher, PageNo(0));
    // Others always have some pages on their way, the oldest of them since before the turn began.
    let flying = (1..=OTHERS).map(|page| take(&flusher, PageNo(page))).collect();
    let flying: Mutex<std::collections::VecDeque<Vec<Flushing>>> = Mutex::new(flying);
    let calls = Arc::new(AtomicUsize::new(0));
    let (of_hook, seen) = (Arc::clone(&flusher), Arc::clone(&calls));
    disk.before_each(move |call| {
        if call.kind != CallKind::Write || !call.name.starts_with("data-") {
            return Fault::None;
        }
        let mut flying = flying.lock().unwrap();
        let number = seen.fetch_add(1, Ordering::Relaxed);
        if number >= CALLS {
            flying.drain(..).for_each(|taken| of_hook.storage.pool.flushed(taken));
            return Fault::None;
        }
        change(&of_hook, PageNo(0));
        if number % 2 == 0 {
            let oldest = flying.pop_front().unwrap();
            let page = oldest[0].page;
            of_hook.storage.pool.flushed(oldest);
            flying.push_back(take(&of_hook, page));
        }
        Fault::None
    });
    flusher.sharp_checkpoint(false).unwrap();
    let calls = calls.load(Ordering::Relaxed);
    assert!(calls < CALLS, "it ran after the end of the redo");
}

fn fails_as_poisoned(result: Result<(), EngineError>) {
    assert!(matches!(result, Err(EngineError::Poisoned { .. })), "{result:?}");
}

#[test]
fn no_checkpoint_of_a_poisoned_engine_succeeds() {
    let flusher = on_memory();
    make(&flusher, 1);
    let _cause = flusher.storage.poison.broken("a test".to_owned());
    fails_as_poisoned(flusher.checkpoint(false));
    fails_as_poisoned(flusher.sharp_checkpoint(false));
}

#[test]
fn a_checkpoint_ends_when_a_page_was_left_on_its_way_by_a_failure() {
    let flusher = on_memory();
    make(&flusher, 1);
    // The oldest change begins at the checkpoint, so that none can be taken.
    let lost = take(&flusher, PageNo(0));
    let _cause = flusher.storage.poison.broken("a test".to_owned());
    fails_as_poisoned(flusher.sharp_checkpoint(true));
    flusher.storage.pool.not_flushed(lost);
}

#[test]
fn a_panic_while_pages_are_written_poisons() {
    let disk = MemDisk::new();
    let flusher = on_disk(&disk, &small());
    make(&flusher, 1);
    change(&flusher, PageNo(0));
    let mut has_panicked = false;
    disk.before_each(move |call| {
        let is_first =
            call.name.starts_with("data-") && !std::mem::replace(&mut has_panicked, true);
        assert!(!is_first, "a broken invariant");
        Fault::None
    });
    let of_thread = Arc::clone(&flusher);
    assert!(std::thread::spawn(move || of_thread.sharp_checkpoint(false)).join().is_err());
    fails_as_poisoned(flusher.sharp_checkpoint(false));
}

/// Which of six dirty pages are clean after at most so many were flushed.
fn flushed(mode: &str, pages: usize) -> Vec<u64> {
    let mut settings = small();
    settings.set("data_files", "1").unwrap();
    settings.set("flush_neighbors", mode).unwrap();
    settings.set("redo_log_capacity", "64M").unwrap();
    let flusher = on_disk(&MemDisk::new(), &settings);
    make(&flusher, 10);
    for page in [7, 1, 2, 5, 6, 8] {
        change(&flusher, PageNo(page));
    }
    let storage = &flusher.storage;
    let count = flusher.flush_batch(pages, storage.redo.lsn(), (Cause::Sync, false), 8).unwrap();
    let mut dirty = Vec::new();
    storage.pool.collect_oldest(usize::MAX, storage.redo.lsn(), &mut dirty);
    let is_dirty = |page: u64| dirty.iter().any(|one| one.page == PageNo(page));
    let clean: Vec<u64> = [1, 2, 5, 6, 7, 8].into_iter().filter(|page| !is_dirty(*page)).collect();
    assert_eq!(clean.len(), count);
    storage.pool.not_flushed(dirty);
    clean
}

#[test]
fn neighbours_are_among_the_pages_that_were_ordered() {
    // All lie in one bucket of ages, whose pages go in any order: so the last page is not known.
    for mode in ["0", "1", "2"] {
        for pages in [1, 2, 3, 5] {
            assert_eq!(flushed(mode, pages).len(), pages, "mode {mode}");
        }
        assert_eq!(flushed(mode, 6), [1, 2, 5, 6, 7, 8], "mode {mode}");
    }
}

#[test]
fn neighbours_go_with_their_page() {
    // Whichever page is the first, the second and third are of its run.
    let beside = flushed("1", 2);
    assert_eq!(beside[1] - beside[0], 1, "{beside:?}");
    let run = flushed("1", 4);
    assert!(run == [5, 6, 7, 8] || run.starts_with(&[1, 2]), "{run:?}");
}
