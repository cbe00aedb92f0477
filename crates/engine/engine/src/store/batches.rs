//! Pages on their way, and batches of the disk, kept for the next caller: making one may cost
//! system calls.
//!
//! Invariant: a batch that is kept has nothing queued and nothing in flight.

use std::sync::{Arc, Mutex, PoisonError};

use iostrata_innodb::PageNo;
use iostrata_io::disk::{Aligned, Batch, Disk};

/// A page on its way to or from the store.
#[derive(Debug)]
pub struct PageCopy {
    /// Its number.
    pub page: PageNo,
    /// Its bytes: exactly a page.
    pub bytes: Aligned,
}

pub(crate) struct Batches {
    disk: Arc<dyn Disk>,
    idle: Mutex<Vec<Box<dyn Batch>>>,
}

impl Batches {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn take(&self) -> Box<dyn Batch> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| self.disk.batch())
    }

    pub(crate) fn give_back(&self, batch: Box<dyn Batch>) {
        assert!(batch.in_flight() == 0, "a batch with requests in flight was given back");
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
    }
}
