//! Random calls of one thread against a plain model of what must hold.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use iostrata_engine::version::{PurgeBatch, Snapshot, Versions};
use proptest::prelude::*;

use crate::version::support::*;

/// What a commit does to a row: key, bytes of the value, whether it deletes.
type Change = (u64, usize, bool);

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Change>),
    /// Takes its number now and applies after the next commit.
    Overtaken(Vec<Change>),
    Open,
    Close(usize),
    Take(usize),
    Finish(usize),
    PutBack(usize),
    Spill {
        fails: bool,
    },
    FailingTake(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![8 => 16..300_usize, 1 => 300..3000_usize];
    let changes = prop::collection::vec((0..6_u64, len, prop::bool::weighted(0.3)), 1..5);
    prop::collection::vec(
        prop_oneof![
            10 => changes.clone().prop_map(Step::Commit),
            2 => changes.prop_map(Step::Overtaken),
            3 => Just(Step::Open),
            3 => (0..9_usize).prop_map(Step::Close),
            3 => (0..9_usize).prop_map(Step::Take),
            3 => (0..4_usize).prop_map(Step::Finish),
            1 => (0..4_usize).prop_map(Step::PutBack),
            4 => prop::bool::weighted(0.2).prop_map(|fails| Step::Spill { fails }),
            1 => (1..9_usize).prop_map(Step::FailingTake),
        ],
        0..200,
    )
}

struct KeptVersion {
    pointer: u64,
    by: u64,
    flags: u8,
    value: Vec<u8>,
}

/// A key that is to be purged: in the order of keeping, with what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Waits,
    Handed,
    PutBack,
    Purged,
}

#[derive(Default)]
struct Model {
    kept: Vec<KeptVersion>,
    deleted: Vec<(u64, u64, Fate)>,
    open: Vec<Snapshot>,
    batches: Vec<PurgeBatch>,
    overtaken: Option<(u64, Vec<Change>)>,
    commits: u64,
}

impl Model {
    fn oldest(&self, versions: &Versions) -> u64 {
        self.open.iter().map(Snapshot::at).min().unwrap_or(versions.registry.now())
    }

    fn commit(&mut self, versions: &Versions, number: u64, changes: &[Change]) {
        let is_needed = self.open.iter().any(|snapshot| snapshot.at() < number);
        assert_eq!(versions.registry.is_any_below(number), is_needed);
        let mut keeper = versions.log.keep();
        for (at, &(key, len, is_delete)) in changes.iter().enumerate() {
            // A commit changes a row once, and each change has a number of its own in the value.
            let key = key * 8 + at as u64;
            let (value, flags) = (value_of(number * 8 + at as u64, key, len), at as u8);
            let pointer = if is_delete {
                self.deleted.push((number, key, Fate::Waits));
                keeper.deleted(number, 3, &key.to_be_bytes(), flags, &value)
            } else {
                keeper.replaced(number, flags, &value)
            };
            self.kept.push(KeptVersion { pointer, by: number, flags, value });
        }
        self.commits += 1;
    }

    /// A batch was handed out: new keys first, in their order, then some that were put back.
    fn handed(&mut self, batch: PurgeBatch, oldest: u64) {
        let mut last = None;
        let mut has_old = false;
        for item in &batch.items {
            assert!(item.number <= oldest && item.table == 3);
            let key = u64::from_be_bytes(item.key[..].try_into().unwrap());
            let is_it = |(number, of, fate): &(u64, u64, Fate)| {
                (*number, *of) == (item.number, key) && matches!(fate, Fate::Waits | Fate::PutBack)
            };
            let at = self.deleted.iter().position(is_it).expect("handed out once");
            if self.deleted[at].2 == Fate::Waits {
                assert!(!has_old && last < Some(at), "out of order");
                let waits = |(_, _, fate): &(u64, u64, Fate)| *fate == Fate::Waits;
                assert!(!self.deleted[..at].iter().any(waits), "one before it was left out");
                last = Some(at);
            } else {
                has_old = true;
            }
            self.deleted[at].2 = Fate::Handed;
        }
        if !batch.is_empty() {
            self.batches.push(batch);
        }
    }

    fn mark(&mut self, batch: &PurgeBatch, fate: Fate) {
        for item in &batch.items {
            let key = u64::from_be_bytes(item.key[..].try_into().unwrap());
            let is_it = |one: &&mut (u64, u64, Fate)| **one == (item.number, key, Fate::Handed);
            self.deleted.iter_mut().find(is_it).unwrap().2 = fate;
        }
    }

    /// What an open snapshot may read is there, whole.
    fn check(&self, versions: &Versions) {
        let oldest = self.oldest(versions);
        assert_eq!(versions.registry.oldest(), oldest);
        for kept in self.kept.iter().filter(|kept| kept.by > oldest) {
            let found = read(versions, kept.pointer);
            assert_eq!(found, Some((kept.flags, kept.value.clone())), "kept by {}", kept.by);
        }
    }

    fn finish(&mut self, versions: &Versions, at: usize) {
        let batch = self.batches.remove(at);
        self.mark(&batch, Fate::Purged);
        versions.finish_purge(batch);
    }

    fn step(&mut self, versions: &Versions, slots: &Slots, step: Step) {
        match step {
            Step::Commit(changes) => {
                self.commit(versions, versions.registry.tick(), &changes);
                if let Some((number, changes)) = self.overtaken.take() {
                    self.commit(versions, number, &changes);
                }
            }
            Step::Overtaken(changes) if self.overtaken.is_none() => {
                self.overtaken = Some((versions.registry.tick(), changes));
            }
            Step::Open => self.open.push(versions.registry.open(1)),
            Step::Close(at) if at < self.open.len() => drop(self.open.remove(at)),
            Step::Take(most) => {
                let oldest = self.oldest(versions);
                let batch = versions.take_purge(most).unwrap();
                assert!(batch.items.len() <= most);
                self.handed(batch, oldest);
            }
            Step::FailingTake(most) => {
                slots.fails_reads.store(true, Ordering::SeqCst);
                let oldest = self.oldest(versions);
                if let Ok(batch) = versions.take_purge(most) {
                    self.handed(batch, oldest);
                }
                slots.fails_reads.store(false, Ordering::SeqCst);
            }
            Step::Finish(at) if at < self.batches.len() => self.finish(versions, at),
            Step::PutBack(at) if at < self.batches.len() => {
                let batch = self.batches.remove(at);
                self.mark(&batch, Fate::PutBack);
                versions.put_back(batch);
            }
            Step::Spill { fails: false } => spill(versions),
            Step::Spill { fails: true } => {
                slots.fails_writes.store(true, Ordering::SeqCst);
                let _ = versions.log.spill_step();
                slots.fails_writes.store(false, Ordering::SeqCst);
            }
            Step::Overtaken(_) | Step::Close(_) | Step::Finish(_) | Step::PutBack(_) => {}
        }
    }

    /// Ends everything that is open: all is purged, nothing is left.
    fn end(mut self, versions: &Versions) {
        if let Some((number, changes)) = self.overtaken.take() {
            self.commit(versions, number, &changes);
        }
        self.open.clear();
        loop {
            let batch = versions.take_purge(5).unwrap();
            if batch.is_empty() {
                break;
            }
            self.handed(batch, versions.registry.now());
        }
        while !self.batches.is_empty() {
            self.finish(versions, 0);
        }
        assert!(self.deleted.iter().all(|(_, _, fate)| *fate == Fate::Purged));
        let stats = versions.stats();
        assert_eq!((stats.history, stats.purged), (0, self.commits));
        assert_eq!((stats.kept, stats.spilled_bytes), (self.kept.len() as u64, 0));
        assert!(self.kept.iter().all(|kept| read(versions, kept.pointer).is_none()));
        let pointers: BTreeMap<u64, u64> = self.kept.iter().map(|k| (k.pointer, k.by)).collect();
        assert_eq!(pointers.len(), self.kept.len(), "no pointer is given twice");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_does_what_the_model_does(steps in steps(), memory in 0..6_u64) {
        let (versions, slots) = versions(1024, memory * 1024);
        let mut model = Model::default();
        for step in steps {
            model.step(&versions, &slots, step);
            model.check(&versions);
        }
        model.end(&versions);
    }
}
