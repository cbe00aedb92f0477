//! The store, as the pool asks it for pages.

use std::collections::HashMap;
use std::sync::Arc;

use iostrata_io::disk::Aligned;
use iostrata_page::PageNo;
use iostrata_pool::{PageSource, SourceError, Wanted};
use iostrata_store::{PageCopy, Store};

/// Pages come from the data files.
#[derive(Debug)]
pub(crate) struct StoreSource(pub Arc<Store>);

impl PageSource for StoreSource {
    fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), SourceError> {
        self.0.read(page, into).map_err(SourceError::new)
    }

    fn read_many(&self, wanted: &mut [Wanted]) {
        let mut places = HashMap::with_capacity(wanted.len());
        let mut copies = Vec::with_capacity(wanted.len());
        for (place, one) in wanted.iter_mut().enumerate() {
            places.insert(one.page, place);
            // The smallest buffer there is stands in until its own comes back.
            let bytes = std::mem::replace(&mut one.bytes, Aligned::zeroed(1));
            copies.push(PageCopy { page: one.page, bytes });
        }
        self.0.read_many(&mut copies, |copy, result| {
            let Some(place) = places.get(&copy.page) else {
                panic!("page {} was not asked for", copy.page)
            };
            wanted[*place].bytes = copy.bytes;
            wanted[*place].result = result.map_err(SourceError::new);
        });
    }
}
