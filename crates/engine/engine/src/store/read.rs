//! Pages out of their places.
//!
//! Invariant: bytes handed out as good are those of the page that was asked for: its number is
//! checked always, its checksum unless that is turned off.

use iostrata_innodb::{Counter, PageNo};
use iostrata_io::disk::{Aligned, Batch, DiskError, Finished};

use crate::page::{PageFault, PageView};
use crate::store::Store;
use crate::store::data::PageCopy;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadError {
    #[error("page {page} lies beyond the end: the store has {pages} pages")]
    BeyondEnd { page: PageNo, pages: u64 },
    /// All bytes are zero: the page was never written.
    #[error("page {page} was never written")]
    Zero { page: PageNo },
    /// The bytes are not those of a page of that number.
    #[error("{fault}")]
    Torn { page: PageNo, fault: PageFault },
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Most reads in flight of one call.
const DEPTH: usize = 128;

impl Store {
    /// Reads a page.
    ///
    /// # Panics
    /// When `into` is not as long as a page.
    pub fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), ReadError> {
        let place = self.place_to_read(page, into)?;
        self.count_read();
        let _pending = self.data.counts.pending(Counter::DataPendingReads, 1);
        let read = self.data.disk.read(self.data.files[place.0].id, place.1, into);
        self.judge(page, into, read)
    }

    /// Reads many pages, in any order, with many reads in flight. `wanted` is emptied; each of its
    /// buffers comes back through `done` with what became of it.
    ///
    /// # Panics
    /// When a buffer is not as long as a page.
    pub fn read_many(
        &self,
        wanted: &mut Vec<PageCopy>,
        mut done: impl FnMut(PageCopy, Result<(), ReadError>),
    ) {
        let in_flight = wanted.len() as u64;
        let _pending = self.data.counts.pending(Counter::DataPendingReads, in_flight);
        let mut batch = self.data.batches.take();
        let mut hand_out = |page, bytes, result| done(PageCopy { page, bytes }, result);
        let mut queued = 0;
        for PageCopy { page, bytes } in wanted.drain(..) {
            match self.place_to_read(page, &bytes) {
                Ok((file, at)) => {
                    self.count_read();
                    batch.read(self.data.files[file].id, at, bytes, page.0);
                    queued += 1;
                }
                Err(error) => hand_out(page, bytes, Err(error)),
            }
            if queued + batch.in_flight() >= DEPTH {
                batch.submit();
                queued = 0;
                self.complete(batch.as_mut(), DEPTH / 2, &mut hand_out);
            }
        }
        batch.submit();
        while batch.in_flight() > 0 {
            self.complete(batch.as_mut(), 1, &mut hand_out);
        }
        self.data.batches.give_back(batch);
    }

    fn complete(
        &self,
        batch: &mut dyn Batch,
        min: usize,
        hand_out: &mut impl FnMut(PageNo, Aligned, Result<(), ReadError>),
    ) {
        batch.complete(min, &mut |Finished { tag, buffer, result }| {
            let page = PageNo(tag);
            let result = self.judge(page, &buffer, result);
            hand_out(page, buffer, result);
        });
    }

    fn count_read(&self) {
        self.data.counts.add(Counter::DataReads, 1);
        self.data.counts.add(Counter::DataRead, self.page_size().bytes() as u64);
    }

    fn place_to_read(&self, page: PageNo, into: &Aligned) -> Result<(usize, u64), ReadError> {
        let page_bytes = self.page_size().bytes();
        assert!(into.len() == page_bytes, "a page has {page_bytes} bytes, not {}", into.len());
        let pages = self.pages();
        if page.0 >= pages {
            return Err(ReadError::BeyondEnd { page, pages });
        }
        Ok(self.data.place(page))
    }

    fn judge(
        &self,
        page: PageNo,
        bytes: &[u8],
        read: Result<(), DiskError>,
    ) -> Result<(), ReadError> {
        match read {
            Err(DiskError::PastEnd { .. }) => {
                return Err(ReadError::BeyondEnd { page, pages: self.pages() });
            }
            read => read?,
        }
        check(page, bytes, self.checksum)?;
        self.data.counts.add(Counter::PagesRead, 1);
        Ok(())
    }
}

pub(crate) fn check(page: PageNo, bytes: &[u8], checksum: bool) -> Result<(), ReadError> {
    if is_zero(bytes) {
        return Err(ReadError::Zero { page });
    }
    let view = PageView::new(bytes);
    let verified = if checksum {
        view.verify(page)
    } else if view.page_no() == page {
        Ok(())
    } else {
        Err(PageFault::OtherPage { page, found: view.page_no() })
    };
    verified.map_err(|fault| ReadError::Torn { page, fault })
}

/// All bytes are zero. The first few decide for nearly every page in use.
fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(64);
    head.iter().all(|byte| *byte == 0) && rest.iter().all(|byte| *byte == 0)
}
