//! A disk that fails at every call in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_engine::EngineError;
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{Disk, MemDisk};

use crate::common::{first_failure, is_damage};
use crate::redo::common::{commit, create, fresh, long, reopen, smallest};

const EIO: Fault = Fault::Errno(5);
const ENOSPC: Fault = Fault::Errno(28);
const FAULTS: [Fault; 4] = [EIO, ENOSPC, Fault::Short(0), Fault::Short(700)];

/// Fails the `at`th call of the wanted kinds from now on, once.
fn fail_once(
    disk: &MemDisk,
    at: u64,
    fault: Fault,
    wanted: fn(CallKind) -> bool,
) -> Arc<AtomicBool> {
    let (happened, calls) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let seen = Arc::clone(&happened);
    disk.before_each(move |call| {
        if wanted(call.kind) && calls.fetch_add(1, Ordering::Relaxed) == at {
            seen.store(true, Ordering::Relaxed);
            return fault;
        }
        Fault::None
    });
    happened
}

fn is_change(kind: CallKind) -> bool {
    matches!(kind, CallKind::Write | CallKind::Sync)
}

#[test]
fn after_a_failed_write_or_sync_nothing_succeeds() {
    for fault in FAULTS {
        for at in 0.. {
            let memory = MemDisk::new();
            let disk: Arc<dyn Disk> = Arc::new(memory.clone());
            let redo = fresh(&disk, &smallest());
            let happened = fail_once(&memory, at, fault, is_change);
            let (mut appended, mut acked, mut first) = (Vec::new(), 0, None);
            for index in 0..60 {
                let (lsn, checkpoint) = (redo.lsn(), redo.checkpoint_lsn());
                let result = commit(&redo, &long(1, index));
                if redo.checkpoint_lsn() != checkpoint {
                    (appended, acked) = (Vec::new(), 0);
                }
                if redo.lsn() != lsn {
                    appended.push(long(1, index));
                }
                match result {
                    Ok(_) if first.is_none() => acked = appended.len(),
                    Ok(end) => panic!("acknowledged {end} after {first:?}"),
                    Err(cause) => {
                        let cause = first_failure(&cause);
                        assert_eq!(*first.get_or_insert(cause.clone()), cause);
                        assert!(cause.contains("the redo log"), "{cause}");
                        assert!(redo.take_checkpoint(redo.lsn(), false).is_err());
                        assert!(redo.make_written(redo.lsn()).is_err());
                        let kept = redo.poison.check().unwrap_err();
                        assert_eq!(first_failure(&kept), cause);
                        if redo.lsn().0 - redo.checkpoint_lsn().0 > redo.limits().max_age {
                            break;
                        }
                    }
                }
            }
            if !happened.load(Ordering::Relaxed) {
                assert!(at > 100 && first.is_none());
                break;
            }
            assert!(first.is_some(), "the fault at {at} was not noticed");
            drop(redo);
            let (_, found) = reopen(&disk, &smallest()).unwrap();
            // The checkpoint that failed, at the last acknowledged, may be there all the same.
            let whole = appended.starts_with(&found) && found.len() >= acked;
            let rest = appended[acked..].starts_with(&found);
            assert!(whole || rest, "{} found, {acked} of {} kept", found.len(), appended.len());
        }
    }
}

#[test]
fn a_buffer_that_cannot_be_written_does_not_block() {
    let memory = MemDisk::new();
    let redo = fresh(&(Arc::new(memory.clone()) as Arc<dyn Disk>), &smallest());
    fail_once(&memory, 0, EIO, is_change);
    assert!(commit(&redo, b"failed").is_err());
    while redo.lsn().0 - redo.checkpoint_lsn().0 < redo.limits().max_age {
        redo.append(&[7; 5000]);
    }
    assert!(redo.make_durable(redo.lsn()).is_err());
}

#[test]
fn who_cannot_create_can_try_again() {
    for fault in FAULTS {
        for at in 0.. {
            let memory = MemDisk::new();
            let disk: Arc<dyn Disk> = Arc::new(memory.clone());
            let happened = fail_once(&memory, at, fault, |_| true);
            let made = create(&disk, &smallest());
            if !happened.load(Ordering::Relaxed) {
                assert!(at > 10 && made.is_ok());
                break;
            }
            if let Err(error) = create(&disk, &smallest()) {
                assert!(is_damage(&error, &["already"]), "{error}");
            }
            assert!(reopen(&disk, &smallest()).unwrap().1.is_empty());
        }
    }
    let full: Arc<dyn Disk> = Arc::new(MemDisk::with_capacity(50_000));
    let cause = create(&full, &smallest()).unwrap_err();
    let is_full = matches!(cause, EngineError::NoSpace { .. });
    assert!(is_full && cause.to_string().contains("61440"), "{cause}");
    assert!(full.list().unwrap().is_empty(), "what was made is removed");
}

#[test]
fn who_cannot_open_can_try_again() {
    for at in 0.. {
        let memory = MemDisk::new();
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        let redo = fresh(&disk, &smallest());
        commit(&redo, b"kept").unwrap();
        drop(redo);
        let happened = fail_once(&memory, at, EIO, |_| true);
        let opened = reopen(&disk, &smallest()).map(|_| ());
        if !happened.load(Ordering::Relaxed) {
            assert!(at > 5 && opened.is_ok());
            break;
        }
        assert!(opened.is_err());
        assert_eq!(reopen(&disk, &smallest()).unwrap().1, [b"kept"]);
    }
}
