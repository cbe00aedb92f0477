//! Verifying every structure: walking each tree, comparing each index with its table; and page by
//! page what cannot be opened.
//!
//! Invariants: it changes nothing, and goes on after what it finds. Every page is read through the
//! pool; every page in use must be reached exactly once, and every page reached must be in use.
//! Nothing else changes a page meanwhile: no table is made or dropped, and no commit is admitted,
//! not even one of purge. Writers wait. A page is entered once, so that a cycle ends; keys must lie
//! within the parent's bounds, children one level below, and leaves be linked in the order of their
//! keys. No row is of a commit whose frame would lie beyond the redo's end. What cannot be opened
//! needs no page to be whole: pages in use are read one after the other, each verified by itself;
//! links between pages are not checked.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use iostrata_innodb::{NO_PAGE, PageNo};
use iostrata_io::disk::Aligned;

use crate::catalogue::{Catalogue, Trees};
use crate::cursor::TreeCursor;
use crate::error::EngineError;
use crate::page::{PageKind, PageView};
use crate::pages::{CATALOGUE_TABLE, Pages, SuperPage};
use crate::pool::Shared;
use crate::read::{NEWEST, read_row};
use crate::store::{CutFile, ReadError, Store};
use crate::table_index::TableIndex;
use crate::tree::Tree;
use crate::tree::descend::Direction;

pub(crate) fn check(pages: &Pages, catalogue: &Catalogue) -> Result<CheckReport, EngineError> {
    // Between two frames of it a table may have pages that nothing leads to.
    let _alone = catalogue.one_at_a_time()?;
    pages.admission.paused(|| verify(pages, catalogue))
}

fn verify(pages: &Pages, catalogue: &Catalogue) -> Result<CheckReport, EngineError> {
    let mut report =
        CheckReport { pages_total: pages.storage.store.pages(), ..CheckReport::default() };
    let mut reached = Reached::new();
    reached.insert(0, "the super page".to_owned());
    for map in 0..pages.space.maps() {
        reached.insert(pages.space.map_page(map).0, format!("map {map}"));
    }
    let Trees { live, dropped } = catalogue.trees();
    for tree in live {
        let table = Walk::new(pages, &tree, &tree.name, &mut report, &mut reached).whole()?;
        report.tables.push(table);
    }
    for tree in dropped {
        Walk::new(pages, &tree, "a dropped table", &mut report, &mut reached).remains()?;
    }
    // A damaged tree cannot be read in order.
    if report.is_clean() {
        for (table, index) in catalogue.indexes() {
            compare_index(pages, &table, &index, &mut report)?;
        }
    }
    compare_maps(pages, &mut report, &reached)?;
    for lost in std::mem::take(&mut report.lost).into_values().filter(|lost| lost.below > 0) {
        let UnreachableTable { name, page, below } = lost;
        let what = format!("{below} pages of {name} below what cannot be read cannot be reached");
        report.problem(page, what);
    }
    let data_pages = {
        let front = pages.pin(PageNo(0))?.shared();
        SuperPage::read(&PageView::new(&front))?.data_pages
    };
    compare_lengths(&pages.storage.store, data_pages, &mut report)?;
    Ok(report)
}

/// Compares the data files with what they were when the engine was last closed: they never shrink.
fn compare_lengths(
    store: &Store,
    data_pages: u64,
    report: &mut CheckReport,
) -> Result<(), EngineError> {
    let page_bytes = store.page_size().bytes() as u64;
    for CutFile { name, bytes, wanted_bytes, first_lost } in store.cut_files(data_pages)? {
        let odd = match bytes.is_multiple_of(page_bytes) {
            true => String::new(),
            false => format!(", not a multiple of the page of {page_bytes}"),
        };
        let what = format!(
            "{name} is {bytes} bytes{odd} and shorter than the {wanted_bytes} that it had when the \
             engine was last closed: what cut it took pages from here on; restore {name} from a \
             backup of all files"
        );
        report.problem(first_lost, what);
    }
    Ok(())
}

/// Whether a page that nothing leads to is of a table with pages that cannot be read, or is one
/// itself; it is counted there then.
fn is_below_lost(pages: &Pages, report: &mut CheckReport, page: PageNo) -> bool {
    if report.lost.is_empty() {
        return false;
    }
    let leaf = match report.page(pages, page) {
        Ok(Some(leaf)) => leaf,
        Ok(None) => return true,
        Err(_) => return false,
    };
    match report.lost.get_mut(&PageView::new(&leaf).table().0) {
        Some(lost) => {
            lost.below += 1;
            true
        }
        None => false,
    }
}

/// Compares what was reached with what is in use by the maps.
fn compare_maps(
    pages: &Pages,
    report: &mut CheckReport,
    reached: &Reached,
) -> Result<(), EngineError> {
    let bits = pages.space.bits();
    for map in 0..pages.space.maps() {
        let no = pages.space.map_page(map);
        let Some(page) = report.page(pages, no)? else { continue };
        let view = PageView::new(&page);
        if view.kind() != PageKind::Space {
            report.problem(no, format!("it is no map but {:?}", view.kind()));
            continue;
        }
        for bit in 0..bits {
            let is_used = view.bit(bit as u32);
            let page = PageNo(map * bits + bit);
            report.pages_used += u64::from(is_used);
            match (is_used, reached.get(&page.0)) {
                (true, None) if is_below_lost(pages, report, page) => {}
                (true, None) => report.problem(page, "it is in use, but nothing leads to it"),
                (false, Some(by)) => {
                    report.problem(page, format!("{by} uses it, but it is free in the map"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Problems that are listed one by one; further ones are only counted.
const PROBLEMS_MAX: usize = 1000;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The page it was found on.
    pub page: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "page {}: {}", self.page, self.what)
    }
}

/// What was found of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableReport {
    /// Its name; "catalogue" for the table of tables.
    pub name: String,
    /// Its pages.
    pub pages: u64,
    /// Its rows.
    pub rows: u64,
    /// Deleted rows that are still in its leaves, until purge takes them away.
    pub tombstones: u64,
    /// Bytes of keys and values with their overhead.
    pub used_bytes: u64,
    /// Levels of its tree; 0 when its root cannot be read.
    pub levels: u32,
    /// Pages of it that cannot be read: they are not counted, nor what lies below them.
    pub lost_pages: u64,
}

/// What cannot be reached of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UnreachableTable {
    pub name: String,
    /// The first of its pages that cannot be read.
    pub page: PageNo,
    /// Pages that only such ones lead to.
    pub below: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Pages that the data files have room for.
    pub pages_total: u64,
    /// Pages in use.
    pub pages_used: u64,
    /// Every table.
    pub tables: Vec<TableReport>,
    /// The first of the problems.
    pub problems: Vec<Problem>,
    /// All problems.
    pub problems_total: u64,
    /// Tables with pages that cannot be read, by number.
    lost: BTreeMap<u32, UnreachableTable>,
}

impl CheckReport {
    /// Whether everything is as it should be.
    pub fn is_clean(&self) -> bool {
        self.problems_total == 0
    }

    /// The page, or nothing where it is damaged, which is a problem then.
    fn page<'p>(
        &mut self,
        pages: &'p Pages,
        no: PageNo,
    ) -> Result<Option<Shared<'p>>, EngineError> {
        match pages.pin(no) {
            Ok(pin) => Ok(Some(pin.shared())),
            Err(EngineError::Corrupt { problem, .. }) => {
                self.problem(no, problem);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn problem(&mut self, page: PageNo, what: impl Into<String>) {
        self.problems_total += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { page: page.0, what: what.into() });
        }
    }
}

/// Pages that were reached, and from where.
type Reached = BTreeMap<u64, String>;

#[derive(Clone, Debug, Default)]
struct KeyBounds {
    /// None for the root, whose level is read from its own page.
    level: Option<u8>,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

struct Walk<'w> {
    pages: &'w Pages,
    tree: &'w Tree,
    report: &'w mut CheckReport,
    reached: &'w mut Reached,
    table: TableReport,
    /// The leaf before, and the right neighbour that it links to.
    last_leaf: Option<(PageNo, PageNo)>,
}

impl<'w> Walk<'w> {
    pub fn new(
        pages: &'w Pages,
        tree: &'w Tree,
        name: &str,
        report: &'w mut CheckReport,
        reached: &'w mut Reached,
    ) -> Self {
        let table = TableReport { name: name.to_owned(), ..TableReport::default() };
        Self { pages, tree, report, reached, table, last_leaf: None }
    }

    pub fn whole(mut self) -> Result<TableReport, EngineError> {
        self.enter(self.tree.root, KeyBounds::default())?;
        if let Some((leaf, right)) = self.last_leaf
            && right != NO_PAGE
        {
            self.report.problem(leaf, format!("the last leaf has page {right} to its right"));
        }
        Ok(self.table)
    }

    /// Notes the pages that a dropped table still has.
    pub fn remains(mut self) -> Result<(), EngineError> {
        let mut next = vec![self.tree.root];
        while let Some(no) = next.pop() {
            if !self.reach(no) {
                continue;
            }
            let Some(page) = self.report.page(self.pages, no)? else { continue };
            let view = PageView::new(&page);
            if view.level() > 0 {
                next.extend((0..view.count()).map(|slot| view.child(slot)));
            }
        }
        Ok(())
    }

    fn reach(&mut self, no: PageNo) -> bool {
        if let Some(other) = self.reached.get(&no.0) {
            let what = format!("{:?} and {other:?} both lead to it", self.table.name);
            self.report.problem(no, what);
            return false;
        }
        self.reached.insert(no.0, self.table.name.clone());
        true
    }

    fn enter(&mut self, no: PageNo, expected: KeyBounds) -> Result<(), EngineError> {
        if !self.reach(no) {
            return Ok(());
        }
        let Some(page) = self.report.page(self.pages, no)?.map(|page| page.to_vec()) else {
            self.table.lost_pages += 1;
            let name = self.table.name.clone();
            let lost = || UnreachableTable { name, page: no, below: 0 };
            self.report.lost.entry(self.tree.id.0).or_insert_with(lost);
            return Ok(());
        };
        let view = PageView::new(&page);
        self.table.pages += 1;
        self.judge(no, &view, &expected);
        if view.level() == 0 {
            self.leaf(no, &view);
            return Ok(());
        }
        self.table.levels = self.table.levels.max(u32::from(view.level()) + 1);
        for slot in 0..view.count() {
            let low = if slot == 0 { expected.low.clone() } else { Some(view.key(slot).to_vec()) };
            let high = if slot + 1 < view.count() {
                Some(view.key(slot + 1).to_vec())
            } else {
                expected.high.clone()
            };
            let level = view.level().checked_sub(1);
            self.enter(view.child(slot), KeyBounds { level, low, high })?;
        }
        Ok(())
    }

    fn judge(&mut self, no: PageNo, view: &PageView<'_>, expected: &KeyBounds) {
        if let Err(fault) = view.verify_structure() {
            self.report.problem(no, fault.to_string());
        }
        let kind = if view.level() == 0 { PageKind::Leaf } else { PageKind::Inner };
        if view.kind() != kind || view.table() != self.tree.id {
            let what = format!(
                "a page of {:?} is {:?} of table {}",
                self.table.name,
                view.kind(),
                view.table()
            );
            self.report.problem(no, what);
        }
        if expected.level.is_some_and(|level| level != view.level()) {
            self.report
                .problem(no, format!("its level is {}, not {:?}", view.level(), expected.level));
        }
        if view.lsn() > self.pages.storage.redo.lsn() {
            let end = self.pages.storage.redo.lsn();
            self.report
                .problem(no, format!("its LSN {} is beyond the redo's end {end}", view.lsn()));
        }
        // The first key of an inner page stands for everything smaller.
        let first = usize::from(view.level() > 0);
        if view.level() > 0 && view.count() == 0 {
            self.report.problem(no, "an inner page without children");
        }
        if view.count() > first {
            let (least, most) = (view.key(first), view.key(view.count() - 1));
            let is_low = expected.low.as_deref().is_some_and(|low| least < low);
            let is_high = expected.high.as_deref().is_some_and(|high| most >= high);
            if is_low || is_high {
                self.report.problem(no, "it holds keys outside of its parent's bounds");
            }
        }
    }

    /// Counts rows and tombstones. That a tombstone has nothing but a version was judged with the
    /// page's structure.
    fn cells(&mut self, no: PageNo, view: &PageView<'_>) {
        let end = self.pages.storage.redo.lsn().0;
        for slot in 0..view.count() {
            let cell = view.cell(slot);
            self.table.tombstones += u64::from(cell.is_tombstone());
            self.table.rows += u64::from(!cell.is_tombstone());
            if let Some(version) = cell.version().filter(|version| version.number > end) {
                let number = version.number;
                let what =
                    format!("slot {slot} is of commit {number}, beyond the redo's end {end}");
                self.report.problem(no, what);
            }
        }
    }

    fn leaf(&mut self, no: PageNo, view: &PageView<'_>) {
        self.cells(no, view);
        self.table.used_bytes += view.used_bytes() as u64;
        self.table.levels = self.table.levels.max(1);
        match self.last_leaf {
            None if view.left() != NO_PAGE => {
                self.report
                    .problem(no, format!("the first leaf has page {} to its left", view.left()));
            }
            Some((left, right)) if right != no || view.left() != left => {
                let what = format!(
                    "leaf {left} has {right} to its right, this one has {} to its left",
                    view.left()
                );
                self.report.problem(no, what);
            }
            _ => {}
        }
        self.last_leaf = Some((no, view.right()));
    }
}

/// Every row must have the entry that the index's function gives it, and no entry may be left.
/// What is not known cannot be compared.
fn compare_index(
    pages: &Pages,
    table: &Arc<Tree>,
    index: &TableIndex,
    report: &mut CheckReport,
) -> Result<(), EngineError> {
    if index.extract.is_none() {
        return Ok(());
    }
    let (root, name) = (index.tree.root, &index.tree.name);
    let all = || (Bound::Unbounded, Bound::Unbounded);
    let mut wanted = 0_u64;
    let mut rows = TreeCursor::new(pages, table, all(), (Direction::Forward, NEWEST));
    while let Some((key, value)) = rows.next_row()? {
        let Some(entry) = index.entry(key, value)? else { continue };
        wanted += 1;
        if read_row(pages, &index.tree, &entry, NEWEST, |_value| ())?.0.is_none() {
            let what = format!("index {name} has no entry for the row {}", key.escape_ascii());
            report.problem(root, what);
        }
    }
    let mut found = 0_u64;
    let mut entries = TreeCursor::new(pages, &index.tree, all(), (Direction::Forward, NEWEST));
    while entries.next_row()?.is_some() {
        found += 1;
    }
    if found != wanted {
        let what = format!("index {name} has {found} entries, its table needs {wanted}");
        report.problem(root, what);
    }
    Ok(())
}

struct Pass<'s> {
    store: &'s Store,
    report: CheckReport,
    tables: BTreeMap<u32, TableReport>,
    names: BTreeMap<u32, String>,
    /// The damaged page at which opening failed; it is in the report already.
    known: PageNo,
    buffer: Aligned,
}

/// Verifies every page that is in use, or may be. `page` has kept the engine from being opened, for
/// `problem`.
pub(crate) fn check_pages(
    store: &Store,
    (page, problem): (u64, String),
) -> Result<CheckReport, EngineError> {
    let mut report = CheckReport { pages_total: store.pages(), ..CheckReport::default() };
    report.problem(PageNo(page), format!("the engine cannot be opened: {problem}"));
    let buffer = Aligned::zeroed(store.page_size().bytes());
    let (tables, names, known) = (BTreeMap::new(), BTreeMap::new(), PageNo(page));
    let mut pass = Pass { store, report, tables, names, known, buffer };
    let bits = u64::from(store.page_size().space_bits());
    for first in (0..store.pages()).step_by(bits as usize) {
        pass.part(first, (first + bits).min(store.pages()))?;
    }
    if pass.read(PageNo(0))?.is_some()
        && let Ok(front) = SuperPage::read(&PageView::new(&pass.buffer))
    {
        compare_lengths(store, front.data_pages, &mut pass.report)?;
    }
    let Pass { mut report, tables, mut names, .. } = pass;
    names.insert(CATALOGUE_TABLE.0, "catalogue".to_owned());
    report.tables = tables
        .into_iter()
        .map(|(number, table)| {
            let name = names.remove(&number).unwrap_or_else(|| format!("table {number}"));
            TableReport { name, ..table }
        })
        .collect();
    Ok(report)
}

impl Pass<'_> {
    /// The pages of one map; all of them where the map cannot be read.
    fn part(&mut self, first: u64, end: u64) -> Result<(), EngineError> {
        let map = (first + 1 < self.store.pages()).then_some(PageNo(first + 1));
        let is_read = match map {
            Some(map) => self.read(map)?.is_some(),
            None => false,
        };
        let view = PageView::new(&self.buffer);
        let used: Option<Vec<bool>> = (is_read && view.kind() == PageKind::Space)
            .then(|| (0..end - first).map(|bit| view.bit(bit as u32)).collect());
        for page in first..end {
            let is_used = used.as_ref().is_none_or(|used| used[(page - first) as usize]);
            self.report.pages_used += u64::from(is_used && used.is_some());
            if is_used {
                self.page(PageNo(page), used.is_some())?;
            }
        }
        Ok(())
    }

    fn page(&mut self, no: PageNo, is_known_used: bool) -> Result<(), EngineError> {
        match self.read(no)? {
            Some(()) => {}
            None => return Ok(()),
        }
        let view = PageView::new(&self.buffer);
        if let Err(fault) = view.verify_structure() {
            self.report.problem(no, fault.to_string());
            return Ok(());
        }
        if !matches!(view.kind(), PageKind::Leaf | PageKind::Inner) {
            return Ok(());
        }
        self.report.pages_used += u64::from(!is_known_used);
        let table = self.tables.entry(view.table().0).or_default();
        table.pages += 1;
        table.levels = table.levels.max(u32::from(view.level()) + 1);
        if view.kind() == PageKind::Inner {
            return Ok(());
        }
        table.used_bytes += view.used_bytes() as u64;
        for slot in 0..view.count() {
            let cell = view.cell(slot);
            table.tombstones += u64::from(cell.is_tombstone());
            table.rows += u64::from(!cell.is_tombstone());
            if let Some(number) =
                cell.value.first_chunk().filter(|_| view.table() == CATALOGUE_TABLE)
            {
                let name = String::from_utf8_lossy(cell.key).into_owned();
                self.names.insert(u32::from_le_bytes(*number), name);
            }
        }
        Ok(())
    }

    /// Reads a page into the buffer; none where it was never written or is damaged, which is noted.
    fn read(&mut self, no: PageNo) -> Result<Option<()>, EngineError> {
        match self.store.read(no, &mut self.buffer) {
            Ok(()) => Ok(Some(())),
            Err(ReadError::Disk(error)) => Err(error.into()),
            Err(ReadError::Zero { .. }) => Ok(None),
            Err(error) => {
                // Maps and page 0 are read twice.
                let is_told = self.report.problems.iter().any(|told| told.page == no.0);
                if no != self.known && !is_told {
                    self.report.problem(no, error.to_string());
                }
                Ok(None)
            }
        }
    }
}

/// What a check reports about versions and tombstones.
#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use iostrata_io::disk::MemDisk;

    use crate::mtr::Mtr;
    use crate::page::layout::{
        CELL_AT_FLAGS, CELL_HEADER_BYTES, FLAG_TOMBSTONE, FLAG_VERSIONED, VERSION_BYTES,
    };
    use crate::page::{Record, Version};
    use crate::tests::{open, small};
    use crate::{Background, CheckReport, Disks, Engine, Isolation, Table};

    /// Puts one cell into the root of an empty table.
    fn lay(engine: &Engine, table: &Table, flags: u8, value: &[u8]) {
        let storage = &engine.parts().storage;
        let mut mtr = Mtr::begin(storage);
        let root = mtr.latch(storage.pool.pin(table.tree().root).unwrap());
        mtr.change(root, &Record::Insert { slot: 0, flags, key: b"the key", value }).unwrap();
        mtr.commit();
    }

    /// Changes the flags of that cell behind the back of everybody.
    fn set_flags(engine: &Engine, table: &Table, flags: u8) {
        let pin = engine.parts().storage.pool.pin(table.tree().root).unwrap();
        let mut page = pin.exclusive();
        let key = b"the key";
        let at = page.windows(key.len()).rposition(|bytes| bytes == key).unwrap();
        page[at - CELL_HEADER_BYTES + CELL_AT_FLAGS] = flags;
    }

    fn report(engine: &Engine, table: &Table) -> (u64, u64, CheckReport) {
        let report = engine.check().unwrap();
        let found = report.tables.iter().find(|found| found.name == table.name()).unwrap();
        (found.rows, found.tombstones, report.clone())
    }

    #[test]
    fn rows_and_tombstones_are_counted_apart() {
        let engine = open(&MemDisk::new());
        let table = engine.create_table("t").unwrap();
        let write = |key: &[u8], value: Option<&[u8]>| {
            let mut batch = engine.batch();
            match value {
                Some(value) => batch.put(&table, key, value).unwrap(),
                None => batch.delete(&table, key).unwrap(),
            }
            batch.commit().unwrap();
        };
        for key in [b"a", b"b", b"c"] {
            write(key, Some(b"1"));
        }
        let reader = engine.begin(Isolation::Snapshot).unwrap();
        write(b"a", None);
        write(b"b", Some(b"2"));
        let (rows, tombstones, found) = report(&engine, &table);
        assert!(found.is_clean(), "{:?}", found.problems);
        assert_eq!((rows, tombstones), (2, 1));
        drop(reader);
        engine.step(0).unwrap();
        let (rows, tombstones, _) = report(&engine, &table);
        assert_eq!((rows, tombstones), (2, 0));
    }

    #[test]
    fn a_version_beyond_the_redo_is_a_problem() {
        for flags in [FLAG_VERSIONED, FLAG_VERSIONED | FLAG_TOMBSTONE] {
            let engine = open(&MemDisk::new());
            let table = engine.create_table("t").unwrap();
            let number = engine.parts().storage.redo.lsn().0 + 100_000;
            lay(&engine, &table, flags, &Version { number, older: 0 }.to_bytes());
            let (_, _, found) = report(&engine, &table);
            assert_eq!(found.problems_total, 1, "{:?}", found.problems);
            assert_eq!(found.problems[0].page, table.tree().root.0);
            assert!(found.problems[0].what.contains(&number.to_string()), "{:?}", found.problems);
        }
    }

    #[test]
    fn a_tombstone_with_more_or_less_than_a_version_is_a_problem() {
        let version = Version { number: 1, older: 0 }.to_bytes();
        for (flags, len, damaged) in [
            (FLAG_VERSIONED, VERSION_BYTES + 1, FLAG_VERSIONED | FLAG_TOMBSTONE),
            (FLAG_VERSIONED | FLAG_TOMBSTONE, VERSION_BYTES, FLAG_TOMBSTONE),
            (0, VERSION_BYTES - 1, FLAG_VERSIONED),
            (0, 0, FLAG_TOMBSTONE),
        ] {
            let engine = open(&MemDisk::new());
            let table = engine.create_table("t").unwrap();
            let value = [&[7; 1][..], &version].concat();
            lay(&engine, &table, flags, &value[value.len() - len..]);
            assert!(report(&engine, &table).2.is_clean());
            set_flags(&engine, &table, damaged);
            let (_, _, found) = report(&engine, &table);
            assert!(found.problems_total > 0, "{flags} became {damaged}");
            assert_eq!(found.problems[0].page, table.tree().root.0);
        }
    }

    #[test]
    fn a_check_beside_purge_and_writers_finds_nothing() {
        let disks = Disks::one(MemDisk::new());
        let engine = Engine::open_on(disks, small(), Background::Threads).unwrap();
        let table = engine.create_table("t").unwrap();
        table.bulk_load((0..4_000_u32).map(|row| (row.to_be_bytes(), [7; 90]))).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (engine, is_over) = (&engine, &is_over);
            // Tables come and go, too.
            scope.spawn(move || {
                while !is_over.load(Ordering::Acquire) {
                    let other = engine.create_table("other").unwrap();
                    other.bulk_load((0..300_u32).map(|row| (row.to_be_bytes(), [1; 60]))).unwrap();
                    engine.drop_table("other").unwrap();
                }
            });
            for round in 0..4_u32 {
                let reader = engine.begin(Isolation::Snapshot).unwrap();
                for row in (round..4_000).step_by(4) {
                    let mut batch = engine.batch();
                    batch.delete(&table, &row.to_be_bytes()).unwrap();
                    let _unsettled = batch.commit_async().unwrap();
                }
                // From here on purge takes the rows away and joins their leaves.
                drop(reader);
                loop {
                    let report = engine.check().unwrap();
                    if !report.is_clean() {
                        is_over.store(true, Ordering::Release);
                    }
                    assert!(report.is_clean(), "{round}: {:?}", report.problems);
                    let left = report.tables.iter().find(|found| found.name == "t").unwrap();
                    if left.tombstones == 0 {
                        break;
                    }
                }
            }
            is_over.store(true, Ordering::Release);
        });
        assert_eq!(table.iter().count(), 0);
        engine.close().unwrap();
    }
}
