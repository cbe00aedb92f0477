//! Random operations of one thread against a plain model of what must hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use iostrata_engine::pool::{PageFlush, Pin, Pool};
use iostrata_innodb::{Lsn, PageNo};
use proptest::prelude::*;

use crate::pool::support::*;

const PAGES: u64 = 20;
const FRAMES: usize = 8;

#[derive(Clone, Debug)]
enum Step {
    Read(u64),
    Change(u64),
    ChangeEarlier(u64, u64),
    Hold(u64),
    LetGo(usize),
    Create(u64),
    Prefetch(u64),
    Evict(usize),
    TakeOldest(usize, u64),
    TakeCold(usize),
    Written(usize),
    NotWritten(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = 0..PAGES;
    prop::collection::vec(
        prop_oneof![
            4 => page.clone().prop_map(Step::Read),
            6 => page.clone().prop_map(Step::Change),
            1 => (page.clone(), 0..60_u64).prop_map(|(page, back)| Step::ChangeEarlier(page, back)),
            1 => page.clone().prop_map(Step::Hold),
            2 => (0..4_usize).prop_map(Step::LetGo),
            1 => page.clone().prop_map(Step::Create),
            1 => page.prop_map(Step::Prefetch),
            1 => (0..5_usize).prop_map(Step::Evict),
            2 => (0..5_usize, 0..200_u64).prop_map(|(max, back)| Step::TakeOldest(max, back)),
            2 => (0..5_usize).prop_map(Step::TakeCold),
            2 => (0..5_usize).prop_map(Step::Written),
            1 => (0..5_usize).prop_map(Step::NotWritten),
        ],
        0..250,
    )
}

/// What is known of one page.
#[derive(Clone, Copy, Default)]
struct PageModel {
    number: u64,
    dirty: Option<u64>,
    flying: Option<u64>,
}

struct Run {
    pool: Arc<Pool>,
    source: Arc<MemorySource>,
    known: BTreeMap<u64, PageModel>,
    taken: Vec<PageFlush>,
    lsn: u64,
}

impl Run {
    fn known(&mut self, page: u64) -> &mut PageModel {
        self.known.entry(page).or_default()
    }

    fn change(&mut self, page: u64, at: u64) {
        let pool = Arc::clone(&self.pool);
        // With everything dirty and no writer, a pool of 8 may be exhausted.
        if let Ok(pin) = pool.pin(PageNo(page)) {
            self.format(pin, at);
        }
    }

    fn format(&mut self, pin: Pin<'_>, at: u64) {
        let page = pin.page_no().0;
        let mut bytes = pin.exclusive();
        bytes.mark_dirty(Lsn(at));
        self.lsn += 8;
        fill(&mut bytes, self.lsn, self.lsn);
        drop(bytes);
        let number = self.lsn;
        let known = self.known(page);
        known.dirty = Some(known.dirty.map_or(at, |since| since.min(at)));
        known.number = number;
    }

    fn take(&mut self, from: usize, until: u64) {
        for at in from..self.taken.len() {
            let (page, lsn) = (self.taken[at].page.0, self.taken[at].lsn.0);
            let number = stamp(&self.taken[at].bytes);
            let known = self.known(page);
            assert!(known.flying.is_none(), "page {page} is written twice at once");
            assert_eq!((number, lsn), (known.number, known.number));
            known.flying = Some(known.dirty.take().expect("only dirty pages are taken"));
            assert!(known.flying.unwrap() / 16 * 16 < until);
        }
    }

    fn land(&mut self, max: usize, is_written: bool) {
        let landing: Vec<_> = self.taken.drain(..max.min(self.taken.len())).collect();
        for one in &landing {
            let known = self.known.get_mut(&one.page.0).unwrap();
            let flying = known.flying.take();
            if is_written {
                self.source.write(one.page, &one.bytes);
            } else {
                known.dirty = flying.into_iter().chain(known.dirty).min();
            }
        }
        if is_written { self.pool.flushed(landing) } else { self.pool.not_flushed(landing) }
    }

    fn check(&mut self) {
        let counted = self.known.values().flat_map(|one| one.dirty.into_iter().chain(one.flying));
        let counted: Vec<u64> = counted.collect();
        let (seen, oldest) = (self.pool.dirty.oldest_seen(), self.pool.dirty.oldest());
        assert_eq!(oldest, counted.iter().min().map(|at| Lsn(*at)));
        assert!(seen <= oldest, "{seen:?} is above {oldest:?}");
        let bucket = |at: Option<Lsn>| at.map(|at| at.0 / 16);
        assert_eq!(bucket(seen), bucket(oldest));
        let held = |one: &&PageModel| one.dirty.is_some() || one.flying.is_some();
        assert_eq!(self.pool.dirty.pages(), self.known.values().filter(held).count());
        assert_eq!(self.pool.dirty.flying(), self.taken.len());
        let mut histogram: BTreeMap<u64, u32> = BTreeMap::new();
        counted.iter().for_each(|at| *histogram.entry(at / 16 * 16).or_default() += 1);
        let found: Vec<_> = self.pool.dirty.histogram();
        let found: BTreeMap<u64, u32> = found.into_iter().map(|(at, n)| (at.0, n)).collect();
        assert_eq!(found, histogram);
        for (page, known) in &self.known {
            match self.pool.try_pin(PageNo(*page)) {
                Some(pin) => {
                    assert_eq!(stamp(&pin.shared()), known.number, "page {page}");
                }
                None => {
                    assert!(!held(&known), "page {page} is forgotten");
                    let is_kept = self.source.stamp(PageNo(*page)) == known.number;
                    assert!(is_kept, "page {page} is lost");
                }
            }
        }
    }
}

fn step<'p>(run: &mut Run, held: &mut Vec<Pin<'p>>, pool: &'p Pool, step: &Step) {
    let from = run.taken.len();
    match *step {
        Step::Read(page) => drop(pool.pin(PageNo(page))),
        Step::Change(page) => run.change(page, run.lsn),
        Step::ChangeEarlier(page, back) => run.change(page, run.lsn.saturating_sub(back)),
        Step::Hold(page) if held.len() < 4 => held.extend(pool.pin(PageNo(page))),
        Step::Hold(_) => {}
        Step::LetGo(which) => drop((which < held.len()).then(|| held.remove(which))),
        Step::Create(page) => {
            if let Ok(pin) = pool.create(PageNo(page)) {
                run.format(pin, run.lsn);
            }
        }
        Step::Prefetch(page) => pool.prefetch(&[PageNo(page), PageNo(page + 1)]),
        Step::Evict(max) => assert!(pool.evict(max) <= max),
        Step::TakeOldest(max, back) => {
            let until = run.lsn.saturating_sub(back);
            pool.collect_oldest(max, Lsn(until), &mut run.taken);
            run.take(from, until);
        }
        Step::TakeCold(max) => {
            pool.collect_cold(max, &mut run.taken);
            run.take(from, u64::MAX);
        }
        Step::Written(max) => run.land(max, true),
        Step::NotWritten(max) => run.land(max, false),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn the_pool_does_what_the_model_does(steps in steps()) {
        let source = Arc::new(MemorySource::default());
        let mut settings = settings(FRAMES);
        settings.tries_max = 2;
        let as_source = Arc::clone(&source) as _;
        let pool = Pool::new(settings, Arc::default(), as_source, Arc::new(NoSupply));
        let pool = Arc::new(pool);
        let held_in = Arc::clone(&pool);
        let known = BTreeMap::new();
        let mut run = Run { pool, source, known, taken: Vec::new(), lsn: 64 };
        let mut held = Vec::new();
        for one in &steps {
            step(&mut run, &mut held, &held_in, one);
            run.check();
        }
        drop(held);
        run.land(usize::MAX, true);
        held_in.collect_oldest(usize::MAX, Lsn(u64::MAX), &mut run.taken);
        run.take(0, u64::MAX);
        run.land(usize::MAX, true);
        run.check();
        assert_eq!(held_in.dirty.oldest(), None);
        held_in.evict(FRAMES);
        assert_eq!(held_in.queues.free(), FRAMES);
        run.check();
    }
}
