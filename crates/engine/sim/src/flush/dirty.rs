//! Dirty pages as a quantity: how many, by the redo of their oldest change and by class of pages
//! that are changed alike.
//!
//! Invariants: the shares of all classes make 1, and their pages the data. Which pages are in the
//! pool is taken from the time that a page stays there unused (Che, Tung and Wang 2002): the same
//! for all pages, and such that the pool is full.
//! Pages that became dirty are those that were written, are being written or are dirty. A page that
//! is dirty already does not become dirty again by another change; one that is being written does.
//! Inside a bucket pages lie evenly, and the oldest go first. Neighbours that are written along are
//! of any age: the old pages of an extent leave with all others of it, so that the oldest change
//! stays where it is until nearly all extents were written.

use std::collections::VecDeque;

use iostrata_innodb::Lsn;

use super::plan::PageAccess;

/// Most classes of a distribution.
const CLASSES_MAX: usize = 32;

/// Pages that are changed alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PageClass {
    /// Share of the changes that fall on it.
    pub share: f64,
    /// Pages.
    pub pages: f64,
    /// Share of them that is in the pool.
    pub cached: f64,
}

/// The classes of a distribution over so many pages, of which the pool holds `frames`.
pub(super) fn classes(access: PageAccess, pages: f64, frames: f64) -> Vec<PageClass> {
    let mut classes = match access {
        PageAccess::Uniform => vec![PageClass { share: 1.0, pages, cached: 1.0 }],
        PageAccess::Zipf(power) => by_rank(power, pages),
        PageAccess::HotSet { data_pct, changes_pct } => {
            let (data, share) = (data_pct / 100.0, changes_pct / 100.0);
            vec![
                PageClass { share, pages: pages * data, cached: 1.0 },
                PageClass { share: 1.0 - share, pages: pages * (1.0 - data), cached: 1.0 },
            ]
        }
    };
    if pages > frames {
        settle(&mut classes, frames);
    }
    classes
}

/// Ranks in groups, each a few times as large as the one before.
fn by_rank(power: f64, pages: f64) -> Vec<PageClass> {
    // The weight of the ranks from a to b: the integral over r to the power of minus `power`.
    let weight = |a: f64, b: f64| {
        let left = 1.0 - power;
        if left.abs() < 1e-9 { (b / a).ln() } else { (b.powf(left) - a.powf(left)) / left }
    };
    let groups = CLASSES_MAX - 2;
    let step = (pages + 1.0).powf(1.0 / groups as f64);
    let all = weight(1.0, pages + 1.0);
    let ends = (0..=groups).map(|at| step.powi(at as i32));
    let pairs: Vec<f64> = ends.collect();
    let class = |pair: &[f64]| PageClass {
        share: weight(pair[0], pair[1]) / all,
        pages: pair[1] - pair[0],
        cached: 1.0,
    };
    pairs.windows(2).map(class).collect()
}

/// Finds how long a page stays unused in a full pool, in changes.
fn settle(classes: &mut [PageClass], frames: f64) {
    let cached = |class: &PageClass, stay: f64| 1.0 - (-class.share * stay / class.pages).exp();
    let held =
        |stay: f64| -> f64 { classes.iter().map(|class| class.pages * cached(class, stay)).sum() };
    let (mut low, mut high) = (0.0, 1.0);
    while high < 1e18 && held(high) < frames {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if held(middle) < frames { low = middle } else { high = middle }
    }
    let shares: Vec<f64> = classes.iter().map(|class| cached(class, low)).collect();
    for (class, cached) in classes.iter_mut().zip(shares) {
        class.cached = cached;
    }
}

/// Less than this is no page.
const NOTHING: f64 = 1e-6;
/// Other pages of a page's extent.
const EXTENT_OTHERS: f64 = 63.0;

/// Pages whose oldest change lies in one stretch of the redo.
#[derive(Clone, Debug)]
struct Stretch {
    /// Number of the stretch: its first LSN over the bytes of a stretch.
    key: u64,
    /// The oldest change in it, and the newest.
    first: f64,
    last: f64,
    by_class: [f64; CLASSES_MAX],
    pages: f64,
}

/// Pages that are being written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InFlightPages {
    /// How many.
    pub pages: f64,
    /// Their oldest change.
    pub oldest: u64,
    pub(super) key: u64,
}

/// The dirty pages of one pool.
pub(super) struct DirtyPages {
    classes: Vec<PageClass>,
    /// Dirty pages of each class.
    dirty: [f64; CLASSES_MAX],
    stretches: VecDeque<Stretch>,
    stretch_bytes: u64,
    flying: Vec<InFlightPages>,
    /// Changes that are not spread yet, and where the first of them is.
    waiting: Option<(f64, u64)>,
    /// The end of the redo when the extents began to be written that are being written now: what
    /// was changed after that lies in extents that are done, and is not written along.
    sweep_end: u64,
    /// Pages that ever became dirty, and those that were written.
    pub dirtied: f64,
    pub written: f64,
}

impl DirtyPages {
    pub fn new(classes: Vec<PageClass>, stretch_bytes: u64) -> Self {
        Self {
            classes,
            dirty: [0.0; CLASSES_MAX],
            stretches: VecDeque::new(),
            stretch_bytes: stretch_bytes.max(1),
            flying: Vec::new(),
            waiting: None,
            sweep_end: 0,
            dirtied: 0.0,
            written: 0.0,
        }
    }

    /// Changes of pages at this place of the redo.
    pub fn change(&mut self, changes: f64, at: u64) {
        match &mut self.waiting {
            Some((sum, from)) if at / self.stretch_bytes == *from / self.stretch_bytes => {
                *sum += changes;
            }
            _ => {
                self.spread(at);
                self.waiting = Some((changes, at));
            }
        }
    }

    /// Spreads what waits over the classes; `end` is the redo's.
    pub fn spread(&mut self, end: u64) {
        let Some((changes, from)) = self.waiting.take() else { return };
        let key = from / self.stretch_bytes;
        if self.stretches.back().is_none_or(|last| last.key != key) {
            let first = from as f64;
            let by_class = [0.0; CLASSES_MAX];
            self.stretches.push_back(Stretch { key, first, last: first, by_class, pages: 0.0 });
        }
        let Some(stretch) = self.stretches.back_mut() else { return };
        let limit = ((key + 1) * self.stretch_bytes - 1).min(end.max(from));
        stretch.last = limit as f64;
        for (at, class) in self.classes.iter().enumerate() {
            let hits = changes * class.share;
            let held = class.pages * class.cached;
            let clean = (held - self.dirty[at]).max(0.0);
            let known = clean * (1.0 - (-hits * class.cached / held.max(NOTHING)).exp());
            let fresh = (known + hits * (1.0 - class.cached)).min(clean);
            self.dirty[at] += fresh;
            stretch.by_class[at] += fresh;
            stretch.pages += fresh;
            self.dirtied += fresh;
        }
    }

    /// Takes up to `most` of the oldest pages out of stretches that begin below `until`, and their
    /// `neighbors` with them as the setting has it: they are being written from now on.
    pub fn take_oldest(&mut self, most: f64, until: u64, neighbors: u32) -> InFlightPages {
        if neighbors == 0 {
            let taken = self.take_front(most, until);
            return self.fly(taken);
        }
        self.begin_sweep(until);
        let beside = self.beside_each(neighbors);
        let mut taken = self.take_front(most / (1.0 + beside), until);
        if beside > 0.0 && taken.pages > 0.0 {
            taken.pages += self.thin(taken.pages * beside, self.sweep_end);
        }
        self.fly(taken)
    }

    /// Starts over with all extents where the oldest page was changed since the last time.
    fn begin_sweep(&mut self, until: u64) {
        let (Some(oldest), Some(newest)) = (self.stretches.front(), self.stretches.back()) else {
            return;
        };
        if oldest.key * self.stretch_bytes < until && oldest.first as u64 >= self.sweep_end {
            self.sweep_end = newest.last as u64 + 1;
        }
    }

    /// Neighbours that are written along with a page, by the share of the data that is dirty and
    /// may be: what lies in extents that are done is left out.
    fn beside_each(&self, neighbors: u32) -> f64 {
        let all: f64 = self.classes.iter().map(|class| class.pages).sum();
        let below = |stretch: &&Stretch| stretch.key * self.stretch_bytes < self.sweep_end;
        let dirty: f64 = self.stretches.iter().filter(below).map(|one| one.pages).sum();
        let dirty = (dirty / all.max(NOTHING)).clamp(0.0, 1.0);
        match neighbors {
            0 => 0.0,
            // A run to each side ends at the first clean page, and with the extent.
            1 => (2.0 * dirty / (1.0 - dirty).max(NOTHING)).min(EXTENT_OTHERS * dirty),
            _ => EXTENT_OTHERS * dirty,
        }
    }

    fn take_front(&mut self, most: f64, until: u64) -> InFlightPages {
        let mut taken =
            InFlightPages { oldest: u64::MAX, key: u64::MAX, ..InFlightPages::default() };
        while let Some(stretch) = self.stretches.front_mut()
            && stretch.key * self.stretch_bytes < until
            && taken.pages < most - NOTHING
        {
            let (key, first) = (stretch.key, stretch.first as u64);
            let part = (most - taken.pages).min(stretch.pages);
            let share = if stretch.pages > NOTHING { part / stretch.pages } else { 1.0 };
            for (class, dirty) in stretch.by_class.iter_mut().zip(&mut self.dirty) {
                let gone = *class * share;
                *class -= gone;
                *dirty = (*dirty - gone).max(0.0);
            }
            stretch.first += (stretch.last - stretch.first) * share;
            stretch.pages -= part;
            if stretch.pages <= NOTHING {
                self.stretches.pop_front();
            }
            taken.pages += part;
            (taken.oldest, taken.key) = (taken.oldest.min(first), taken.key.min(key));
        }
        taken
    }

    /// Takes up to `most` dirty pages at the cold end: they come from all ages alike.
    pub fn take_cold(&mut self, most: f64) -> InFlightPages {
        let Some(front) = self.stretches.front() else { return InFlightPages::default() };
        let (oldest, key) = (front.first as u64, front.key);
        let pages = self.thin(most, u64::MAX);
        self.fly(InFlightPages { pages, oldest, key })
    }

    /// Takes up to `most` pages out of the stretches that begin below `until`, of all ages alike;
    /// gives how many.
    fn thin(&mut self, most: f64, until: u64) -> f64 {
        let bytes = self.stretch_bytes;
        let below = |stretch: &&mut Stretch| stretch.key * bytes < until;
        let all: f64 = self.stretches.iter_mut().filter(below).map(|one| one.pages).sum();
        let share = (most / all.max(NOTHING)).min(1.0);
        let mut taken = 0.0;
        for stretch in self.stretches.iter_mut().filter(below) {
            for (class, dirty) in stretch.by_class.iter_mut().zip(&mut self.dirty) {
                *dirty = (*dirty - *class * share).max(0.0);
                *class -= *class * share;
            }
            taken += stretch.pages * share;
            stretch.pages -= stretch.pages * share;
        }
        self.stretches.retain(|stretch| stretch.pages > NOTHING);
        taken
    }

    fn fly(&mut self, flown: InFlightPages) -> InFlightPages {
        if flown.pages > 0.0 {
            self.flying.push(flown);
        }
        flown
    }

    /// What was taken is written.
    pub fn land(&mut self, flown: InFlightPages) {
        let same = |one: &InFlightPages| one.oldest == flown.oldest && one.pages == flown.pages;
        if let Some(at) = self.flying.iter().position(same) {
            self.flying.swap_remove(at);
            self.written += flown.pages;
        }
    }

    /// The oldest change of a dirty page.
    pub fn oldest(&self) -> Option<u64> {
        let flying = self.flying.iter().map(|flown| flown.oldest).min();
        let front = self.stretches.front().map(|stretch| stretch.first as u64);
        let waiting = self.waiting.map(|(_, from)| from);
        [flying, front, waiting].into_iter().flatten().min()
    }

    /// Dirty pages, those being written with them.
    pub fn pages(&self) -> f64 {
        let dirty: f64 = self.stretches.iter().map(|stretch| stretch.pages).sum();
        dirty + self.flying_pages()
    }

    /// Pages that are being written.
    pub fn flying_pages(&self) -> f64 {
        self.flying.iter().map(|flown| flown.pages).sum()
    }

    /// Share of the pages at the cold end that is dirty: the classes in the proportion in which
    /// their pages are dropped.
    pub fn cold_dirty_share(&self) -> f64 {
        let (mut dropped, mut dirty) = (0.0, 0.0);
        for (class, pages) in self.classes.iter().zip(&self.dirty) {
            let flow = class.share * (1.0 - class.cached);
            dropped += flow;
            dirty += flow * (pages / (class.pages * class.cached).max(NOTHING)).min(1.0);
        }
        if dropped > 0.0 { dirty / dropped } else { 0.0 }
    }

    /// Share of the changes that meet a page which is not in the pool.
    pub fn miss_share(&self) -> f64 {
        self.classes.iter().map(|class| class.share * (1.0 - class.cached)).sum()
    }

    /// The pages by the redo of their oldest change, ascending, in whole pages.
    pub fn by_age(&self, into: &mut Vec<(Lsn, u32)>) {
        into.clear();
        let mut flying = self.flying.clone();
        flying.sort_unstable_by_key(|flown| flown.key);
        let mut flying = flying.into_iter().peekable();
        let (mut sum, mut said) = (0.0, 0.0_f64);
        let mut say = |key: u64, pages: f64| {
            sum += pages;
            let whole = sum.round() - said;
            said += whole;
            into.push((Lsn(key * self.stretch_bytes), whole as u32));
        };
        for stretch in &self.stretches {
            while let Some(flown) = flying.next_if(|flown| flown.key < stretch.key) {
                say(flown.key, flown.pages);
            }
            let mut pages = stretch.pages;
            while let Some(flown) = flying.next_if(|flown| flown.key == stretch.key) {
                pages += flown.pages;
            }
            say(stretch.key, pages);
        }
        flying.for_each(|flown| say(flown.key, flown.pages));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of the data, and bytes of redo of a stretch.
    const ALL: f64 = 64_000.0;
    const STRETCH: u64 = 1000;

    /// Ten stretches of redo that made this share of the data dirty.
    fn dirty(share: f64) -> DirtyPages {
        let class = PageClass { pages: ALL, share: 1.0, cached: 1.0 };
        let mut dirty = DirtyPages::new(vec![class], STRETCH);
        change(&mut dirty, 0, share);
        dirty
    }

    /// Ten stretches more, from the one of this number on.
    fn change(dirty: &mut DirtyPages, from: u64, share: f64) {
        let mut made = 0.0;
        for number in from..from + 10 {
            // Of so many changes the fresh pages are these.
            let (fresh, clean) = (share * ALL / 10.0, ALL - dirty.pages());
            dirty.change(-ALL * (1.0 - fresh / clean).ln(), number * STRETCH);
            dirty.spread((number + 1) * STRETCH);
            made += fresh;
        }
        let wrong = (made - share * ALL).abs();
        assert!(wrong < 1.0, "{wrong} pages");
    }

    fn by_stretch(dirty: &DirtyPages) -> Vec<f64> {
        dirty.stretches.iter().map(|stretch| stretch.pages).collect()
    }

    #[test]
    fn what_is_ordered_is_taken_with_its_neighbours_of_all_ages() {
        for (neighbors, beside) in [(0, 0.0), (1, 2.0), (2, 31.5)] {
            let mut pages = dirty(0.5);
            let (before, all) = (by_stretch(&pages), pages.pages());
            let taken = pages.take_oldest(3200.0, u64::MAX, neighbors);
            assert!((taken.pages - 3200.0).abs() < 1.0, "{neighbors}: {} pages", taken.pages);
            let oldest = 3200.0 / (1.0 + beside);
            let others = (3200.0 - oldest) / (all - oldest);
            let after = by_stretch(&pages);
            let skipped = before.len() - after.len();
            for (was, left) in before[skipped..].iter().zip(&after).skip(1) {
                assert!((1.0 - left / was - others).abs() < 1e-3, "{neighbors}: {left} of {was}");
            }
        }
    }

    #[test]
    fn the_oldest_change_stays_until_nearly_all_extents_were_written() {
        let oldest_when_half_is_written = |neighbors: u32| {
            let mut pages = dirty(0.5);
            let all = pages.pages();
            while pages.pages() > all / 2.0 {
                let taken = pages.take_oldest(128.0, u64::MAX, neighbors);
                pages.land(taken);
            }
            pages.oldest().unwrap() as f64 / (10 * STRETCH) as f64
        };
        let [none, run, extent] = [0, 1, 2].map(oldest_when_half_is_written);
        assert!((0.45..0.55).contains(&none), "{none}");
        assert!(run < none && run > extent, "{none} {run} {extent}");
        assert!(extent < 0.1, "{extent}");
    }

    #[test]
    fn a_run_is_shorter_than_an_extent_at_any_density_between() {
        for share in [0.1, 0.3, 0.6, 0.9] {
            let mut pages = dirty(share);
            pages.begin_sweep(u64::MAX);
            let (run, extent) = (pages.beside_each(1), pages.beside_each(2));
            assert!(run < extent * 0.6 && run > 0.2, "{share}: {run} and {extent}");
        }
    }

    #[test]
    fn pages_of_extents_that_are_done_are_neither_taken_nor_counted() {
        let takes = |share_since: f64| {
            let mut pages = dirty(0.1);
            let first = pages.take_oldest(10.0, u64::MAX, 2);
            pages.land(first);
            if share_since > 0.0 {
                change(&mut pages, 10, share_since);
            }
            let taken = pages.take_oldest(1000.0, u64::MAX, 2);
            (taken.pages, pages.stretches[0].first, pages.stretches[0].pages)
        };
        assert_eq!(takes(0.0), takes(0.4));
    }

    #[test]
    fn neighbours_may_be_switched_off_while_extents_are_being_written() {
        let mut pages = dirty(0.5);
        for neighbors in [1, 0, 1, 0] {
            let taken = pages.take_oldest(500.0, u64::MAX, neighbors);
            assert!((taken.pages - 500.0).abs() < 1.0, "{neighbors}: {}", taken.pages);
            pages.land(taken);
            assert!((pages.dirtied - pages.written - pages.pages()).abs() < 1e-6);
        }
        let (before, oldest) = (by_stretch(&pages), pages.oldest());
        let taken = pages.take_oldest(before[0] / 2.0, u64::MAX, 0);
        assert_eq!(by_stretch(&pages)[1..], before[1..], "only the oldest go");
        pages.land(taken);
        assert!(pages.oldest() > oldest);
    }

    #[test]
    fn classes_make_a_whole() {
        let hot = PageAccess::HotSet { data_pct: 10.0, changes_pct: 90.0 };
        for access in [PageAccess::Uniform, PageAccess::Zipf(0.9), PageAccess::Zipf(1.0), hot] {
            let all = classes(access, 500_000.0, 1e9);
            let share: f64 = all.iter().map(|class| class.share).sum();
            let pages: f64 = all.iter().map(|class| class.pages).sum();
            assert!((share - 1.0).abs() < 1e-9, "{access:?}: {share}");
            assert!((pages - 500_000.0).abs() < 1.0, "{access:?}: {pages}");
            assert!(all.len() <= CLASSES_MAX);
        }
    }

    #[test]
    fn a_small_pool_is_full_and_holds_what_is_changed_often() {
        let all = classes(PageAccess::Zipf(1.0), 1e6, 1e5);
        let held: f64 = all.iter().map(|class| class.pages * class.cached).sum();
        assert!((held / 1e5 - 1.0).abs() < 1e-6, "{held}");
        assert!(all.windows(2).all(|pair| pair[0].cached >= pair[1].cached));
        let misses: f64 = all.iter().map(|class| class.share * (1.0 - class.cached)).sum();
        assert!((0.05..0.5).contains(&misses), "{misses}");
    }
}
