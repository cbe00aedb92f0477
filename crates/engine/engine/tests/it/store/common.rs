//! Pages whose every sector contains its page and version, and a history of writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use iostrata_engine::page::{PageEdit, PageKind, PageSize};
use iostrata_engine::store::{PageCopy, ReadError, Repair, Store, StoreSettings};
use iostrata_innodb::FlushMethod;
use iostrata_innodb::{Lsn, NO_PAGE, PageNo, TableId};
use iostrata_io::disk::{Aligned, Disk, MemDisk, TraceDisk};

pub fn small(flush_method: FlushMethod) -> StoreSettings {
    let settings = StoreSettings::new(PageSize::MIN);
    StoreSettings { data_files: 2, extend_pages: 4, doublewrite_pages: 4, flush_method, ..settings }
}

/// A page of this version, not sealed.
pub fn page(page: u64, version: u64, size: PageSize) -> PageCopy {
    let mut bytes = Aligned::zeroed(size.bytes());
    let mut edit = PageEdit::new(&mut bytes);
    edit.format(PageKind::Space, 0, TableId(0), PageNo(page), NO_PAGE, NO_PAGE);
    edit.set_lsn(Lsn(version));
    for (at, word) in bytes[64..].chunks_exact_mut(8).enumerate() {
        let number = (page << 40 | version << 20 | at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        word.copy_from_slice(&number.to_le_bytes());
    }
    PageCopy { page: PageNo(page), bytes }
}

/// The page as it lies in its place.
pub fn sealed(number: u64, version: u64, size: PageSize) -> Aligned {
    let mut bytes = page(number, version, size).bytes;
    PageEdit::new(&mut bytes).seal();
    bytes
}

pub fn create(disk: impl Disk + 'static, settings: &StoreSettings) {
    Store::create(Arc::new(disk), settings).unwrap();
}

pub fn open(disk: impl Disk + 'static, settings: &StoreSettings) -> (Store, Repair) {
    let store = Store::open(Arc::new(disk), settings, &Default::default()).unwrap();
    let repair = store.repair().unwrap();
    (store, repair)
}

/// The version that a page holds, `None` when it was never written.
pub fn version(store: &Store, number: u64) -> Result<Option<u64>, ReadError> {
    let mut bytes = Aligned::zeroed(store.page_size().bytes());
    match store.read(PageNo(number), &mut bytes) {
        Ok(()) => {}
        Err(ReadError::Zero { .. }) => return Ok(None),
        Err(error) => return Err(error),
    }
    let version = u64::from_le_bytes(*bytes[16..].first_chunk().unwrap());
    assert_eq!(bytes[..], sealed(number, version, store.page_size())[..], "page {number}");
    Ok(Some(version))
}

/// One call of `write`: its number is the version of all its pages.
#[derive(Clone, Debug)]
pub struct Round {
    pub version: u64,
    pub pages: Vec<u64>,
}

impl Round {
    pub fn new(version: u64, pages: &[u64]) -> Self {
        Self { version, pages: pages.to_vec() }
    }

    pub fn copies(&self, size: PageSize) -> Vec<PageCopy> {
        self.pages.iter().map(|number| page(*number, self.version, size)).collect()
    }

    /// Writes the round and records when it began and when it was durable.
    pub fn write(&self, store: &Store, disk: &TraceDisk) {
        disk.ack(self.version * 2);
        let mut copies = self.copies(store.page_size());
        store.write(&mut copies).unwrap();
        assert_eq!(copies.len(), self.pages.len());
        disk.ack(self.version * 2 + 1);
    }
}

/// Every page's versions that a crash may leave, the rounds in order: the newest durable one, and
/// what was begun after.
pub fn allowed(rounds: &[Round], acknowledged: &[u64]) -> BTreeMap<u64, Vec<Option<u64>>> {
    let mut allowed = BTreeMap::new();
    for Round { version, pages } in rounds {
        for page in pages {
            let versions: &mut Vec<_> = allowed.entry(*page).or_insert_with(|| vec![None]);
            if acknowledged.contains(&(version * 2 + 1)) {
                versions.clear();
            }
            if acknowledged.contains(&(version * 2)) {
                versions.push(Some(*version));
            }
        }
    }
    allowed
}

/// Opens what a crash left and compares every page with what is allowed. Returns what is wrong.
pub fn judge(
    image: MemDisk,
    settings: &StoreSettings,
    allowed: &BTreeMap<u64, Vec<Option<u64>>>,
) -> Result<Repair, String> {
    let (store, repair) = open(image.clone(), settings);
    let unrestorable = &repair.torn_unrestorable;
    if !unrestorable.is_empty() {
        return Err(format!("not restorable: {unrestorable:?}"));
    }
    judge_pages(&store, allowed)?;
    drop(store);
    let (store, again) = open(image, settings);
    if !again.restored.is_empty() || !again.torn_unrestorable.is_empty() {
        return Err(format!("the second repair found {again:?}"));
    }
    judge_pages(&store, allowed)?;
    Ok(repair)
}

fn judge_pages(store: &Store, allowed: &BTreeMap<u64, Vec<Option<u64>>>) -> Result<(), String> {
    for number in 0..store.pages() {
        let found = version(store, number).map_err(|error| error.to_string())?;
        let may_be = allowed.get(&number).cloned().unwrap_or(vec![None]);
        if !may_be.contains(&found) {
            return Err(format!("page {number} is of {found:?}, not of {may_be:?}"));
        }
    }
    Ok(())
}
