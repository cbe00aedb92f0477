//! One tree: ordered keys and values in pages, and how an empty one is filled with sorted rows.
//!
//! Invariants: the root's page number never changes. Inner pages change only under the tree's
//! structure lock, which is held for moments; leaves change under their own latch. Latches are
//! taken down the tree, leaves of one level by page number, map pages last; nothing but a latch is
//! waited for while one is held: a page that is absent is loaded after everything was let go. When
//! an empty tree is filled keys rise strictly; each full leaf is put behind the last one by a
//! mini-transaction of its own, so that after a crash a prefix of the rows is there and the tree is
//! whole. It is independent of table names and batches.

pub(crate) mod descend;
pub(crate) mod structure;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use iostrata_innodb::{NO_PAGE, PageNo, TableId};

use crate::error::{EngineError, TableError};
use crate::mtr::Mtr;
use crate::page::{PageEdit, PageKind, PageView, Record, cells_of, row_bytes, shortest_separator};
use crate::pages::{CATALOGUE_TABLE, NewPage, Pages};
use crate::pool::Pin;
use structure::{Obstacle, Promise, RowToFit, Step, has_room_for_separator, needed};

#[derive(Debug)]
pub(crate) struct Tree {
    /// Written into each of its pages.
    pub id: TableId,
    pub root: PageNo,
    pub name: String,
    structure: Mutex<()>,
    is_dropped: AtomicBool,
    /// Indexes of the table: a writer has to know all of them.
    indexes: AtomicUsize,
}

impl Tree {
    pub fn new(id: TableId, root: PageNo, name: impl Into<String>) -> Self {
        let (structure, is_dropped) = (Mutex::new(()), AtomicBool::new(false));
        let indexes = AtomicUsize::new(0);
        Self { id, root, name: name.into(), structure, is_dropped, indexes }
    }

    /// Changes how many indexes the table has. When it returns, no thread that uses another number
    /// of them changes the tree any more, or begins to.
    pub fn set_indexes(&self, pages: &Pages, indexes: usize) {
        if self.indexes.swap(indexes, Ordering::SeqCst) != indexes {
            // As with a drop: a thread that looked before has appended now.
            pages.admission.paused(|| ());
        }
    }

    /// Fails for a caller that expects another number of indexes than the table has.
    pub fn check_indexes(&self, known: usize) -> Result<(), EngineError> {
        match self.indexes.load(Ordering::SeqCst) == known {
            true => Ok(()),
            false => {
                let name = self.name.clone();
                Err(EngineError::Table(TableError::IndexMade { name }))
            }
        }
    }

    /// Whether rows carry versions: those of tables do, those of the catalogue do not.
    pub fn keeps_versions(&self) -> bool {
        self.id != CATALOGUE_TABLE
    }

    /// Marks the table as dropped. When it returns no thread changes the tree any more, or begins
    /// to; readers find out by the mark.
    pub fn begin_drop(&self, pages: &Pages) {
        self.is_dropped.store(true, Ordering::SeqCst);
        // A thread that looked before the mark was promised room, and has appended its changes now.
        // One that is promised room after sees the mark.
        pages.admission.paused(|| ());
    }

    /// Takes the mark away, when nothing came of the drop.
    pub fn cancel_drop(&self) {
        self.is_dropped.store(false, Ordering::SeqCst);
    }

    pub fn check_not_dropped(&self) -> Result<(), EngineError> {
        match self.is_dropped.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(EngineError::Table(TableError::Dropped)),
        }
    }

    pub fn empty_root(id: TableId) -> Record<'static> {
        let (left, right) = (NO_PAGE, NO_PAGE);
        Record::Init { kind: PageKind::Leaf, level: 0, table: id, left, right }
    }
}

/// A leaf that is being filled, outside the pool.
pub(crate) struct Filling {
    bytes: Vec<u8>,
    /// Free bytes that stay free in each leaf.
    reserve_bytes: usize,
}

impl Filling {
    /// An empty leaf of a tree; `fill_pct` of a page is used.
    pub fn new(pages: &Pages, tree: &Tree, fill_pct: usize) -> Self {
        let mut bytes = vec![0; pages.storage.page_size.bytes()];
        let reserve_bytes = pages.storage.page_size.bytes() * (100 - fill_pct.min(100)) / 100;
        empty(&mut bytes, tree);
        Self { bytes, reserve_bytes }
    }

    pub fn is_empty(&self) -> bool {
        PageView::new(&self.bytes).count() == 0
    }

    /// Adds a row at the end; false when it is full.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        let view = PageView::new(&self.bytes);
        let count = view.count();
        let reserve = if count == 0 { 0 } else { self.reserve_bytes };
        if view.free_bytes() < row_bytes(key.len(), value.len()) + reserve {
            return false;
        }
        let row = Record::Insert { slot: count, flags: 0, key, value };
        let applied = row.apply(&mut PageEdit::new(&mut self.bytes), PageNo(0));
        assert!(applied.is_ok(), "a row for which there is room fits");
        true
    }
}

fn empty(bytes: &mut [u8], tree: &Tree) {
    let mut page = PageEdit::new(bytes);
    page.format(PageKind::Leaf, 0, tree.id, PageNo(0), NO_PAGE, NO_PAGE);
}

impl Tree {
    /// Whether the root is a leaf without rows or tombstones: only then is it open which keys
    /// belong where.
    pub fn is_bare(&self, pages: &Pages) -> Result<bool, EngineError> {
        self.unless_dropped(|| {
            let root = pages.pin(self.root)?.shared();
            let view = PageView::new(&root);
            Ok(self.check(root.page_no(), &view, None)? == 0 && view.is_empty())
        })
    }

    /// Puts the filled leaf behind the last one and empties it. False, and nothing is done, when
    /// another thread has put rows there.
    pub fn append_leaf(&self, pages: &Pages, filling: &mut Filling) -> Result<bool, EngineError> {
        let filled = PageView::new(&filling.bytes);
        let outcome = loop {
            let promise = Promise::wait(pages)?;
            let appended =
                self.restructure(pages, &promise, |new| self.append_step(pages, &filled, new))?;
            if let Some(is_appended) = appended {
                break is_appended;
            }
        };
        if outcome {
            empty(&mut filling.bytes, self);
        }
        Ok(outcome)
    }

    /// One step towards it: None when only the way for it was made.
    fn append_step(
        &self,
        pages: &Pages,
        filled: &PageView<'_>,
        new: Option<&NewPage<'_>>,
    ) -> Result<Option<bool>, Obstacle> {
        let first = filled.key(0);
        let Some(mut path) = self.path(pages, first, 0)? else { panic!("every tree has leaves") };
        if PageView::new(&path.end.clone().shared()).count() == 0 {
            return Ok(self.fill_last(pages, path.end, filled)?);
        }
        let new = needed(new)?;
        match path.steps.pop() {
            Some(parent) if has_room_for_separator(pages, &parent) => {
                Ok(Some(self.append_behind(pages, (parent, path.end), filled, new)?))
            }
            Some(parent) => {
                path.end = parent.pin;
                self.split_step(pages, &RowToFit::anyway(first), path, new)?;
                Ok(None)
            }
            None => {
                self.grow_root(pages, &RowToFit::anyway(first), path.end, new)?;
                Ok(None)
            }
        }
    }

    /// Puts the rows into the last leaf, which was empty; None when it is not any more.
    fn fill_last(
        &self,
        pages: &Pages,
        last: Pin<'_>,
        filled: &PageView<'_>,
    ) -> Result<Option<bool>, EngineError> {
        let mut mtr = Mtr::begin(&pages.storage);
        let leaf = mtr.latch(last);
        if !is_edge(&mtr.page(leaf), filled.key(0)) {
            return Ok(Some(false));
        }
        if mtr.page(leaf).count() > 0 {
            return Ok(None);
        }
        let mut buffer = Vec::new();
        let cells = cells_of(filled, 0..filled.count(), &mut buffer);
        mtr.change(leaf, &Record::Splice { at: 0, cells })?;
        mtr.commit();
        Ok(Some(true))
    }

    fn append_behind(
        &self,
        pages: &Pages,
        (parent, last): (Step<'_>, Pin<'_>),
        filled: &PageView<'_>,
        new: &NewPage<'_>,
    ) -> Result<bool, EngineError> {
        let first = filled.key(0);
        let mut mtr = Mtr::begin(&pages.storage);
        let above = mtr.latch(parent.pin);
        let last = mtr.latch(last);
        let created = mtr.latch(new.pin.clone());
        let view = mtr.page(last);
        if !is_edge(&view, first) {
            return Ok(false);
        }
        let greatest = view.count().checked_sub(1).map(|slot| view.key(slot));
        let separator = greatest.map_or(first, |key| shortest_separator(key, first));
        let (left, mut buffer) = (mtr.page(last).page_no(), Vec::new());
        let image = Record::image_of_part(filled, 0..filled.count(), left, NO_PAGE, &mut buffer);
        mtr.change(created, &image)?;
        mtr.change(last, &Record::SetRight(new.reserved.page))?;
        let (slot, child) = (parent.slot + 1, new.reserved.page.0.to_le_bytes());
        mtr.change(above, &Record::Insert { slot, flags: 0, key: separator, value: &child })?;
        new.bit.clone().change(&mut mtr, true)?;
        mtr.moved(last);
        mtr.moved(created);
        mtr.commit();
        Ok(true)
    }
}

/// Whether a leaf is the last one and all of its keys lie below this one.
fn is_edge(leaf: &PageView<'_>, first: &[u8]) -> bool {
    let is_below = leaf.count() == 0 || leaf.key(leaf.count() - 1) < first;
    leaf.right() == NO_PAGE && is_below
}

/// Changes of trees: what they take, and what they do without.
#[cfg(test)]
mod tests {
    use iostrata_innodb::flush::AdmitRule;
    use iostrata_innodb::{Counter, PageNo};
    use iostrata_io::disk::{Disk, MemDisk};

    use crate::concurrency_tests::stress::{mixed, rounds};
    use crate::mtr::Mtr;
    use crate::page::{Hunks, PageKind, PageView, Record, cells_of};
    use crate::tests::open;
    use crate::tree::descend::UpperFence;
    use crate::tree::structure::RowToFit;
    use crate::{Engine, EngineError, Table};

    const ROWS: u16 = 300;

    fn key(row: u16) -> [u8; 2] {
        row.to_be_bytes()
    }

    /// A table of some leaves.
    fn filled(engine: &Engine) -> Table {
        let table = engine.create_table("t").unwrap();
        for row in 0..ROWS {
            let mut batch = engine.batch();
            batch.put(&table, &key(row), &[7; 90]).unwrap();
            batch.commit().unwrap();
        }
        table
    }

    /// Deletes rows without any look at what is left of their leaves.
    fn delete(engine: &Engine, table: &Table, rows: std::ops::Range<u16>) {
        engine.set("merge_threshold", "1").unwrap();
        for row in rows {
            let mut batch = engine.batch();
            batch.delete(table, &key(row)).unwrap();
            batch.commit().unwrap();
        }
        engine.set("merge_threshold", "50").unwrap();
    }

    fn merges(engine: &Engine) -> u64 {
        engine.parts().storage.counts.get(Counter::IndexPageMergeSuccessful)
    }

    #[test]
    fn a_merge_is_left_out_where_writers_are_stopped() {
        let engine = open(&MemDisk::new());
        let table = filled(&engine);
        let (pages, tree) = (&*engine.parts().pages, table.tree());
        pages.admission.publish(AdmitRule::wall(0));
        tree.merge_leaf(pages, &key(5)).unwrap();
        pages.admission.publish(AdmitRule::wall(u64::MAX));
        // All but a few rows of the first leaves.
        for row in (0..ROWS).filter(|row| row % 30 != 0) {
            delete(&engine, &table, row..row + 1);
        }
        let before = merges(&engine);
        pages.admission.publish(AdmitRule::wall(0));
        tree.merge_leaf(pages, &key(120)).unwrap();
        assert_eq!(merges(&engine), before);
        let delaying =
            AdmitRule { delay_age: 0, span_us: u64::MAX >> 20, ..AdmitRule::wall(1 << 40) };
        pages.admission.publish(delaying);
        tree.merge_leaf(pages, &key(120)).unwrap();
        assert_eq!(merges(&engine), before, "a leaf with rows can wait");
        pages.admission.publish(AdmitRule::wall(u64::MAX));
        tree.merge_leaf(pages, &key(120)).unwrap();
        assert!(merges(&engine) > before);
        assert!(engine.check().unwrap().is_clean());
    }

    #[test]
    fn leaves_that_were_left_empty_are_joined_later() {
        let engine = open(&MemDisk::new());
        let table = filled(&engine);
        let admission = &engine.parts().pages.admission;
        let leaves = |engine: &Engine| {
            let report = engine.check().unwrap();
            assert!(report.is_clean(), "{:?}", report.problems);
            report.tables.iter().find(|table| table.name == "t").unwrap().pages
        };
        let all = leaves(&engine);
        // Every merge is left out.
        let pins = admission.pins(engine.parts().storage.pool.frames.len() / 2);
        for row in 0..200 {
            let mut batch = engine.batch();
            batch.delete(&table, &key(row)).unwrap();
            batch.commit().unwrap();
        }
        assert_eq!(leaves(&engine), all);
        drop(pins);
        for row in 200..ROWS {
            let mut batch = engine.batch();
            batch.delete(&table, &key(row)).unwrap();
            batch.commit().unwrap();
        }
        assert_eq!(leaves(&engine), 1);
    }

    /// Makes tables until the disk is full; gives the last one.
    fn fill_up(engine: &Engine, disk: &MemDisk) -> Table {
        let files = disk.list().unwrap();
        let used: usize = files.iter().map(|file| disk.content(file).unwrap().len()).sum();
        disk.set_capacity(Some(used as u64));
        let mut last = None;
        for number in 0.. {
            match engine.create_table(&format!("empty {number}")) {
                Ok(table) => last = Some(table),
                Err(EngineError::NoSpace { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        last.unwrap()
    }

    #[test]
    fn on_a_full_disk_what_needs_no_new_page_works() {
        let disk = MemDisk::new();
        let engine = open(&disk);
        let table = filled(&engine);
        let empty = fill_up(&engine, &disk);
        assert_eq!(empty.bulk_load([(b"a", b"1"), (b"b", b"2")]).unwrap(), 2);
        // The leaf has been split by another thread since it was found.
        let pages = &*engine.parts().pages;
        table.tree().split_leaf(pages, &RowToFit::anyway(&key(5)), u32::MAX).unwrap();
        assert!(engine.check().unwrap().is_clean());
    }

    /// Keys of which no two neighbours have a separator that is shorter than the second: each
    /// leaf's low fence is the first key that it was made with. So long that inner pages have few.
    fn dense_key(row: u16) -> Vec<u8> {
        [&[b'k'; 400][..], &row.to_be_bytes()].concat()
    }

    fn put_dense(engine: &Engine, table: &Table, row: u16, value_bytes: usize) {
        let mut batch = engine.batch();
        batch.put(table, &dense_key(row), &vec![7; value_bytes]).unwrap();
        batch.commit().unwrap();
    }

    /// The leaves of a table as ranges of its rows.
    fn leaves_of(engine: &Engine, table: &Table) -> Vec<std::ops::Range<u16>> {
        let pages = &*engine.parts().pages;
        let leaf = |row: u16| {
            let key = dense_key(row);
            table.tree().locate(pages, &key, &mut UpperFence::default()).unwrap().pin.page_no()
        };
        let mut firsts: Vec<u16> = (1..ROWS).filter(|row| leaf(row - 1) != leaf(*row)).collect();
        firsts.insert(0, 0);
        let ends = firsts.iter().skip(1).copied().chain([ROWS]);
        firsts.iter().copied().zip(ends).map(|(first, end)| first..end).collect()
    }

    /// A commit finds a leaf without room for a larger first row. Before it splits the leaf, others
    /// take the rows of the leaf away: all but the first, or all. `needed_bytes` is what it found
    /// to be needed.
    fn split_what_was_emptied(keeps_first: bool, needed_bytes: usize) {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        (0..ROWS).for_each(|row| put_dense(&engine, &table, row, 90));
        let (pages, tree) = (&*engine.parts().pages, table.tree());
        for leaf in leaves_of(&engine, &table) {
            let first = dense_key(leaf.start);
            let seen = tree.locate(pages, &first, &mut UpperFence::default()).unwrap().page_version;
            // No leaf is joined meanwhile.
            let pins = pages.admission.pins(engine.parts().storage.pool.frames.len() / 2);
            for row in leaf.clone().skip(usize::from(keeps_first)) {
                let mut batch = engine.batch();
                batch.delete(&table, &dense_key(row)).unwrap();
                batch.commit().unwrap();
            }
            drop(pins);
            let splits = || engine.counters()[Counter::IndexPageSplits];
            let before = splits();
            tree.split_leaf(
                pages,
                &RowToFit { key: &first, value_bytes: 1500, needed_bytes },
                seen,
            )
            .unwrap();
            assert!(splits() == before || needed_bytes == usize::MAX, "{leaf:?} has room by now");
            assert_eq!(table.get(&first).unwrap().is_some(), keeps_first, "{leaf:?}");
            put_dense(&engine, &table, leaf.start, 1500);
            assert_eq!(table.get(&first).unwrap(), Some(vec![7; 1500]), "{leaf:?}");
        }
        let report = engine.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }

    #[test]
    fn a_leaf_that_was_emptied_before_its_split_stays_whole() {
        for needed_bytes in [1410, usize::MAX] {
            split_what_was_emptied(true, needed_bytes);
            split_what_was_emptied(false, needed_bytes);
        }
    }

    /// What a page shows to a reader.
    fn shown(page: &PageView<'_>) -> (PageKind, u8, [PageNo; 2], Vec<u8>) {
        let mut content = Vec::new();
        if page.kind() == PageKind::Space {
            content.extend_from_slice(page.body());
        } else {
            cells_of(page, 0..page.count(), &mut content);
        }
        (page.kind(), page.level(), [page.left(), page.right()], content)
    }

    /// A record of any kind, of which many do not fit the page.
    fn any_record(page: &PageView<'_>, seed: u64, step: u64, change: impl FnOnce(&Record<'_>)) {
        let chance = |of: u64, bound: usize| mixed(seed, 97 * step + of) as usize % bound.max(1);
        let (count, number) = (page.count(), PageNo(chance(1, 1000) as u64));
        let (slot, value) = (chance(2, count), vec![step as u8; chance(3, 700)]);
        let key = dense_key(chance(4, usize::from(ROWS)) as u16);
        let mut buffer = Vec::new();
        let (from, set) = (chance(5, 100) as u32, chance(6, 2) == 0);
        let (left, right) = (number, number);
        let is_inner = page.level() > 0;
        change(&match chance(7, 10) {
            _ if page.kind() == PageKind::Space => Record::SetBits { from, count: 1, set },
            0 | 1 => {
                let slot = page.find(&key).unwrap_or_else(|slot| slot);
                let value = if is_inner { &[1; 8][..] } else { &value[..] };
                Record::Insert { slot, flags: 0, key: &key, value }
            }
            2 => Record::Delete { slot },
            3 if !is_inner && count > 0 => {
                let hunks = Hunks::between(page.value(slot), [&value[..], &[]], &mut buffer);
                Record::Revise { slot, flags: 0, len: value.len(), hunks }
            }
            4 => Record::Truncate { from: slot },
            5 => Record::SetLeft(number),
            6 => Record::SetRight(number),
            7 => Record::image_of_part(page, 0..slot, left, right, &mut buffer),
            8 => {
                let (kind, table) = (page.kind(), page.table());
                Record::Init { kind, level: page.level(), table, left, right }
            }
            _ => Record::Replace { slot, value: &value },
        });
    }

    #[test]
    fn a_mini_transaction_that_fails_leaves_every_page_as_it_was() {
        for seed in 0..rounds(40) {
            let engine = open(&MemDisk::new());
            let table = engine.create_table("t").unwrap();
            (0..ROWS).step_by(2).for_each(|row| put_dense(&engine, &table, row, 90));
            let (storage, pages) = (&*engine.parts().storage, &*engine.parts().pages);
            let root = table.tree().root;
            let leaf =
                table.tree().locate(pages, &dense_key(100), &mut UpperFence::default()).unwrap();
            let numbers = [root, leaf.pin.page_no(), pages.space.map_page(0)];
            drop(leaf);
            let before: Vec<_> = numbers
                .map(|page| shown(&PageView::new(&storage.pool.pin(page).unwrap().shared())))
                .into();
            let all: Vec<_> = table.iter().map(Result::unwrap).collect();
            let mut mtr = Mtr::begin(storage);
            let held = numbers.map(|page| mtr.latch(storage.pool.pin(page).unwrap()));
            for step in 0..30 {
                let held = held[mixed(seed, step) as usize % held.len()];
                let copy = mtr.page(held).bytes().to_vec();
                any_record(&PageView::new(&copy), seed, step, |record| {
                    let _may_not_fit = mtr.change(held, record);
                });
            }
            drop(mtr);
            for (page, before) in numbers.into_iter().zip(before) {
                let page = storage.pool.pin(page).unwrap().shared();
                assert!(shown(&PageView::new(&page)) == before, "{seed}: {page:?}");
            }
            assert!(table.iter().map(Result::unwrap).eq(all), "{seed}: reads go on");
            assert!(engine.check().unwrap().is_clean(), "{seed}");
            let mut batch = engine.batch();
            batch.put(&table, b"k", b"v").unwrap();
            assert!(matches!(batch.commit(), Err(EngineError::Poisoned { .. })));
        }
    }
}
