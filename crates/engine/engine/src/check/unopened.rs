//! Verifying page by page what cannot be opened.
//!
//! Invariant: it changes nothing and needs no page to be whole. Pages in use are read one after the
//! other, each verified by itself; what leads to what is not looked at.

use std::collections::BTreeMap;

use iostrata_innodb::PageNo;
use iostrata_io::disk::Aligned;

use crate::check::{CheckReport, TableReport, compare_lengths};
use crate::error::EngineError;
use crate::page::{PageKind, PageView};
use crate::pages::{CATALOGUE_TABLE, SuperPage};
use crate::store::{ReadError, Store};

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
