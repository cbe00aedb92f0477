//! Making a new engine.
//!
//! Invariant: a mark is in each directory, durably, before the first file of ours there, and goes
//! after the settings file has come; files are removed only where the mark is and the settings file
//! is not.

use iostrata_innodb::{Lsn, NO_PAGE, PageNo, Settings, TableId};
use iostrata_io::disk::{Disk, FileMode, FileName};

use crate::error::{EngineError, OpenError};
use crate::mtr::Mtr;
use crate::page::{PageKind, Record};
use crate::pages::{CATALOGUE_ROOT, CATALOGUE_TABLE, FORMAT, MAGIC, Pages, SuperField};
use crate::redo::{Redo, RedoSettings};
use crate::settings_file;
use crate::settings_file::name;
use crate::storage::Disks;
use crate::store::{Store, StoreSettings};
use crate::tree::Tree;

/// Where the log of a new engine begins.
pub(crate) const FIRST_LSN: Lsn = Lsn(8192);

const MARK: &str = "engine.creating";
const OURS: [&str; 4] = ["data-", "doublewrite-", "redo-", "engine."];
/// What may be there before: it holds no data.
const HARMLESS: [&str; 2] = ["engine.lock", "engine.status"];

/// Makes all files, once the disks are empty.
pub(crate) fn files(disks: &Disks, settings: &Settings) -> Result<(), EngineError> {
    for disk in [&disks.data, &disks.redo] {
        let mark = disk.open(&name(MARK), FileMode::Create)?;
        disk.close(mark);
        disk.sync_dir()?;
    }
    let stored = Store::create(std::sync::Arc::clone(&disks.data), &StoreSettings::of(settings));
    stored?;
    Redo::create(std::sync::Arc::clone(&disks.redo), &RedoSettings::of(settings), FIRST_LSN)?;
    Ok(())
}

/// Refuses disks without the room that the files take. Two that have the same room are taken for
/// one.
pub(crate) fn check_room(disks: &Disks, settings: &Settings) -> Result<(), EngineError> {
    let kept = settings_file::content(settings).len() as u64;
    let data = Store::bytes_to_make(&StoreSettings::of(settings)) + kept;
    let redo = Redo::bytes_to_make(&RedoSettings::of(settings))?;
    let (of_data, of_redo) = (disks.data.free_bytes(), disks.redo.free_bytes());
    let all = if of_data == of_redo { data + redo } else { data };
    for (needed_bytes, free) in [(all, of_data), (redo, of_redo)] {
        if let Some(free_bytes) = free.filter(|free| *free < needed_bytes) {
            return Err(OpenError::NoRoom { needed_bytes, free_bytes }.into());
        }
    }
    Ok(())
}

/// Removes everything that a making which failed has left. An engine that is there stays.
pub(crate) fn undo(disks: &Disks) -> Result<(), EngineError> {
    if settings_file::exists(&*disks.data)? {
        return Ok(());
    }
    clear(disks)?;
    finish(disks)
}

/// Removes what a making that was cut off has left, but for its marks.
pub(crate) fn clear(disks: &Disks) -> Result<(), EngineError> {
    for disk in [&disks.data, &disks.redo] {
        let leftovers = leftovers(&**disk, "the directory")?;
        for file in &leftovers {
            disk.remove(file)?;
        }
        if !leftovers.is_empty() {
            disk.sync_dir()?;
        }
    }
    Ok(())
}

/// The files that a making which was cut off has left in a directory without an engine. Each
/// directory must carry the mark itself: the redo of another engine is none of ours.
pub(crate) fn leftovers(disk: &dyn Disk, directory: &str) -> Result<Vec<FileName>, EngineError> {
    let mut files = disk.list()?;
    let is_marked = files.contains(&name(MARK));
    files.retain(|file| {
        let text = file.as_str();
        let may_stay = HARMLESS.contains(&text) || (is_marked && text == MARK);
        !may_stay
    });
    let is_ours = |file: &FileName| OURS.iter().any(|start| file.as_str().starts_with(start));
    match files.iter().find(|file| !(is_marked && is_ours(file))) {
        None => Ok(files),
        Some(file) => {
            let (directory, found) = (directory.to_owned(), file.to_string());
            Err(EngineError::Open(OpenError::NotOurs { directory, found }))
        }
    }
}

/// The pages that every engine has, durably in the redo.
pub(crate) fn first_pages(pages: &Pages, settings: &Settings) -> Result<(), EngineError> {
    let (storage, space) = (&*pages.storage, &pages.space);
    storage.store.ensure(CATALOGUE_ROOT.0 + 1)?;
    let _room = pages.admit_structure()?;
    let pins = [PageNo(0), space.map_page(0), CATALOGUE_ROOT].map(|page| storage.create(page));
    let [front, map, root] = pins;
    let (front, map, root) = (front?, map?, root?);
    let mut mtr = Mtr::begin(storage);
    let (front, root, map) = (mtr.latch(front), mtr.latch(root), mtr.latch(map));
    let (left, right) = (NO_PAGE, NO_PAGE);
    let kind = PageKind::Super;
    mtr.change(front, &Record::Init { kind, level: 0, table: TableId(0), left, right })?;
    mtr.change(front, &SuperField::Magic.set(&MAGIC.to_le_bytes()))?;
    mtr.change(front, &SuperField::Format.set(&FORMAT.to_le_bytes()))?;
    mtr.change(front, &SuperField::PageBytes.set(&settings.page_size.to_le_bytes()))?;
    mtr.change(front, &SuperField::DataFiles.set(&settings.data_files.to_le_bytes()))?;
    let identity = storage.redo.identity();
    mtr.change(front, &SuperField::Identity.set(&identity.to_le_bytes()))?;
    let next_table = CATALOGUE_TABLE.0 + 1;
    mtr.change(front, &SuperField::NextTable.set(&next_table.to_le_bytes()))?;
    mtr.change(front, &SuperField::Maps.set(&1_u64.to_le_bytes()))?;
    mtr.change(front, &SuperField::CatalogueRoot.set(&CATALOGUE_ROOT.0.to_le_bytes()))?;
    space.format_map(&mut mtr, map)?;
    mtr.change(map, &Record::SetBits { from: 0, count: 1, set: true })?;
    mtr.change(map, &Record::SetBits { from: CATALOGUE_ROOT.0 as u32, count: 1, set: true })?;
    mtr.change(root, &Tree::empty_root(CATALOGUE_TABLE))?;
    let end = mtr.commit();
    storage.redo.make_durable(end)
}

/// Takes the marks away, once the settings file is there: that of the data last, so that an opening
/// that was cut off here goes on.
pub(crate) fn finish(disks: &Disks) -> Result<(), EngineError> {
    for disk in [&disks.redo, &disks.data] {
        if disk.list()?.contains(&name(MARK)) {
            disk.remove(&name(MARK))?;
            disk.sync_dir()?;
        }
    }
    Ok(())
}
