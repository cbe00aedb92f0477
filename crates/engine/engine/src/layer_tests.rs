//! The lower layers alone: no tree, no table, no thread.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use iostrata_innodb::flush::{
    Action, ActionOutcome, AdmitRule, FlushPolicy, FlushSample, RedoPace, UserWork,
};
use iostrata_innodb::{Lsn, PageNo, Settings};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{Disk, MemDisk};

use crate::admission::Admission;
use crate::cleaner::Cleaner;
use crate::counts::Common;
use crate::flusher::{Flusher, FrameSupply};
use crate::pages::Pages;
use crate::redo::{Redo, RedoSettings};
use crate::storage::Storage;
use crate::store::{Store, StoreSettings};

/// The lower layers alone, on a disk in memory.
pub(crate) fn on_memory() -> Arc<Flusher> {
    on_disk(&MemDisk::new(), &crate::tests::small())
}

/// The lower layers alone, on this disk.
pub(crate) fn on_disk(disk: &MemDisk, settings: &Settings) -> Arc<Flusher> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let (of_store, of_redo) = (StoreSettings::of(settings), RedoSettings::of(settings));
    let common = Common::default();
    Store::create(Arc::clone(&disk), &of_store).unwrap();
    Redo::create(Arc::clone(&disk), &of_redo, Lsn(8192)).unwrap();
    let store = Store::open(Arc::clone(&disk), &of_store, &common).unwrap();
    store.repair().unwrap();
    let (redo, scan) = Redo::open(disk, of_redo, common.clone()).unwrap();
    redo.start(scan).unwrap();
    let supply = Arc::new(FrameSupply::default());
    let storage =
        Storage::new(settings.clone(), (store, redo), common, None, Arc::clone(&supply) as Arc<_>);
    let flusher = Arc::new(Flusher::new(Arc::new(storage)));
    supply.is_met_by(&flusher);
    flusher.allow_checkpoints();
    flusher
}

#[test]
fn one_pause_does_not_end_another() {
    let admission = Admission::new(on_memory());
    let (begun, over) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (admission, begun, over) = (&admission, &begun, &over);
        scope.spawn(move || {
            begun.wait();
            admission.paused(|| assert!(over.load(Ordering::SeqCst), "two at once"));
        });
        admission.paused(|| {
            begun.wait();
            for _ in 0..1000 {
                assert!(admission.is_paused(), "ended by the other");
                std::thread::yield_now();
            }
            over.store(true, Ordering::SeqCst);
        });
    });
    assert!(!admission.is_paused());
}

#[test]
fn a_rule_is_read_as_it_was_published() {
    let admission = Admission::new(on_memory());
    let rule = |age: u64| AdmitRule {
        delay_age: age,
        wait_age: age,
        span_us: age,
        flush_age: age,
        flush_wait_age: age,
        wait_excess: age,
        checkpoint_age: age,
        work: UserWork::Nothing,
        pace: RedoPace { lsn: Lsn(age), at_us: age, bytes_per_s: age, step_us: age },
    };
    admission.publish(rule(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (admission, is_over) = (&admission, &is_over);
        let reader = scope.spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                let read = admission.rule();
                assert_eq!(read, rule(read.wait_age), "of two rules");
            }
        });
        for age in 1..200_000 {
            admission.publish(rule(age));
        }
        is_over.store(true, Ordering::Release);
        reader.join().unwrap();
    });
}

#[test]
fn pages_are_given_out_once_while_others_wait_for_a_map() {
    let pages = Pages::new(&on_memory());
    let map = pages.space.map_page(0);
    let storage = &*pages.storage;
    storage.store.ensure(map.0 + 1).unwrap();
    let mut mtr = crate::mtr::Mtr::begin(storage);
    let held = mtr.latch(storage.pool.create(map).unwrap());
    pages.space.format_map(&mut mtr, held).unwrap();
    mtr.commit();
    let first = pages.space.reserve(storage).unwrap();
    assert_eq!(first.page, PageNo(0));
    // The map is latched, as a reader does: pages can be given back meanwhile.
    let latched = storage.pool.pin(map).unwrap().exclusive();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pages.space.reserve(storage).unwrap().page);
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(first);
        assert_eq!(pages.space.maps(), 1);
        drop(latched);
        assert_eq!(waiting.join().unwrap(), PageNo(0), "the page that was given back");
    });
    let many: Vec<_> = (0..100).map(|_| pages.space.reserve(storage).unwrap()).collect();
    let numbers: BTreeSet<u64> = many.iter().map(|one| one.page.0).collect();
    assert_eq!(numbers.len(), 100);
    assert!(!numbers.contains(&map.0), "the map itself is in use");
}

/// Does one action and then sleeps.
#[derive(Debug)]
struct Once {
    action: Option<Action>,
    wait_age: u64,
    /// The outcomes of actions that it got.
    told: Arc<Mutex<Vec<ActionOutcome>>>,
}

impl Once {
    fn new(action: Option<Action>, wait_age: u64) -> Self {
        Self { action, wait_age, told: Arc::default() }
    }
}

impl FlushPolicy for Once {
    fn next(&mut self, now: &FlushSample<'_>, last: ActionOutcome) -> Action {
        self.told.lock().unwrap().push(last);
        self.action.take().unwrap_or(Action::Sleep { until_us: now.now_us + 7, firm: false })
    }

    fn admit(&self) -> AdmitRule {
        AdmitRule::wall(self.wait_age)
    }
}

#[test]
fn a_policy_is_replaced_while_an_action_of_the_last_one_goes_on() {
    let disk = MemDisk::new();
    let flusher = on_disk(&disk, &crate::tests::small());
    let admission = Arc::new(Admission::new(Arc::clone(&flusher)));
    let first = Once::new(Some(Action::SyncRedo), 11);
    let cleaner = Cleaner::new(
        Arc::clone(&flusher),
        (Arc::clone(&admission), Box::new(|| Ok(false))),
        Box::new(first),
    );
    let next = Once::new(None, 13);
    let told = Arc::clone(&next.told);
    flusher.storage.redo.append(b"to be synced");
    let (begun, has_begun) = channel();
    let (go_on, may_go_on) = channel();
    disk.before_each(move |call| {
        if call.kind == CallKind::Sync {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
            // So that the action takes time.
            std::thread::sleep(Duration::from_millis(2));
        }
        Fault::None
    });
    std::thread::scope(|scope| {
        let cleaner = &cleaner;
        let acting = scope.spawn(move || cleaner.step(5, true).unwrap());
        has_begun.recv().unwrap();
        assert_eq!(admission.rule(), AdmitRule::wall(11));
        let (replaced, is_replaced) = channel();
        scope.spawn(move || {
            cleaner.set_policy(Box::new(next));
            replaced.send(()).unwrap();
        });
        let replaced = is_replaced.recv_timeout(Duration::from_secs(20));
        go_on.send(()).unwrap();
        replaced.expect("it waits for the action");
        assert_eq!(acting.join().unwrap(), 5, "an action: again at once");
    });
    assert_eq!(admission.rule(), AdmitRule::wall(11), "until the new one was asked");
    assert_eq!(cleaner.step(6, true).unwrap(), 13);
    assert_eq!(admission.rule(), AdmitRule::wall(13));
    assert_eq!(
        *told.lock().unwrap(),
        [ActionOutcome::default()],
        "what became of another's action"
    );
}
