//! The store, as the pool asks it for pages.

use std::sync::Arc;

use iostrata_io::disk::Aligned;
use iostrata_page::PageNo;
use iostrata_pool::{PageSource, SourceError, Wanted};
use iostrata_store::Store;

/// Pages come from the data files.
#[derive(Debug)]
pub(crate) struct StoreSource(pub Arc<Store>);

impl PageSource for StoreSource {
    fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), SourceError> {
        self.0.read(page, into).map_err(SourceError::new)
    }

    fn read_many(&self, wanted: &mut [Wanted]) {
        for one in wanted {
            one.result = self.read(one.page, &mut one.bytes);
        }
    }
}
