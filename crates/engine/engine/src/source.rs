//! The store, as the pool asks it for pages.
//!
//! Invariant: nothing is read once the directories were let go: others may own the files by then.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use iostrata_innodb::PageNo;
use iostrata_io::disk::Aligned;

use crate::error::{EngineError, RequestError};
use crate::pool::{PageSource, Wanted};
use crate::store::{PageCopy, ReadError, Store};

/// Pages come from the data files.
#[derive(Debug)]
pub(crate) struct StoreSource {
    store: Arc<Store>,
    /// Shared by those who read; taken alone to end that.
    is_closed: RwLock<bool>,
}

impl StoreSource {
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, is_closed: RwLock::new(false) }
    }

    /// When it returns nobody reads any more.
    pub fn close(&self) {
        *self.is_closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Keeps it open for a reader.
    fn stay_open(&self) -> Result<RwLockReadGuard<'_, bool>, EngineError> {
        let is_closed = self.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        if *is_closed { Err(RequestError::Closed.into()) } else { Ok(is_closed) }
    }
}

impl PageSource for StoreSource {
    fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), EngineError> {
        let _open = self.stay_open()?;
        self.store.read(page, into).map_err(|error| unread(page, error))
    }

    fn read_many(&self, wanted: &mut [Wanted]) {
        let _open = match self.stay_open() {
            Ok(open) => open,
            Err(closed) => {
                wanted.iter_mut().for_each(|one| one.result = Err(closed.clone()));
                return;
            }
        };
        let mut places = HashMap::with_capacity(wanted.len());
        let mut copies = Vec::with_capacity(wanted.len());
        for (place, one) in wanted.iter_mut().enumerate() {
            places.insert(one.page, place);
            // The smallest buffer there is stands in until its own comes back.
            let bytes = std::mem::replace(&mut one.bytes, Aligned::zeroed(1));
            copies.push(PageCopy { page: one.page, bytes });
        }
        self.store.read_many(&mut copies, |copy, result| {
            let Some(place) = places.get(&copy.page) else {
                panic!("page {} was not asked for", copy.page)
            };
            wanted[*place].bytes = copy.bytes;
            wanted[*place].result = result.map_err(|error| unread(copy.page, error));
        });
    }
}

/// Why a page is not there.
fn unread(page: PageNo, error: ReadError) -> EngineError {
    match error {
        ReadError::Disk(error) => EngineError::disk("read a page")(error),
        damage => EngineError::corrupt(page, damage.to_string()),
    }
}
