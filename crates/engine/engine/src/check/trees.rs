//! Walking one tree, and setting an index beside its table.
//!
//! Invariant: a page is entered once, so that a cycle ends; keys must lie between what the parent
//! says, children one level below, and leaves be linked in the order of their keys. No row is of a
//! commit whose frame would lie beyond the redo's end.

use std::ops::Bound;
use std::sync::Arc;

use iostrata_innodb::{NO_PAGE, PageNo};

use crate::check::{CheckReport, Lost, Reached, TableReport};
use crate::cursor::TreeCursor;
use crate::error::EngineError;
use crate::page::{PageKind, PageView};
use crate::pages::Pages;
use crate::read::{NEWEST, read_row};
use crate::table_index::TableIndex;
use crate::tree::Tree;
use crate::tree::descend::Direction;

#[derive(Clone, Debug, Default)]
struct Expected {
    /// None for the root, which says its level itself.
    level: Option<u8>,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

pub(super) struct Walk<'w> {
    pages: &'w Pages,
    tree: &'w Tree,
    report: &'w mut CheckReport,
    reached: &'w mut Reached,
    table: TableReport,
    /// The leaf before, and what it says is its right neighbour.
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
        self.enter(self.tree.root, Expected::default())?;
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

    fn enter(&mut self, no: PageNo, expected: Expected) -> Result<(), EngineError> {
        if !self.reach(no) {
            return Ok(());
        }
        let Some(page) = self.report.page(self.pages, no)?.map(|page| page.to_vec()) else {
            self.table.lost_pages += 1;
            let name = self.table.name.clone();
            let lost = || Lost { name, page: no, below: 0 };
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
            self.enter(view.child(slot), Expected { level, low, high })?;
        }
        Ok(())
    }

    fn judge(&mut self, no: PageNo, view: &PageView<'_>, expected: &Expected) {
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
                self.report.problem(no, "it holds keys outside of what its parent says");
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
                    "leaf {left} says {right} is to its right, this one says {} is to its left",
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
pub(super) fn compare_index(
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
