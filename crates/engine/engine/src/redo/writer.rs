//! What the thread that writes the log alone has.

use std::sync::Arc;

use iostrata_io::disk::Aligned;

use crate::redo::RedoSync;
use crate::redo::file::OpenFile;

/// What the writing thread alone has.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The buffer that is not being filled.
    pub(crate) other: Aligned,
    pub(crate) block_bytes: u64,
    pub(crate) sync: RedoSync,
    /// Files with writes that no sync covers yet.
    pub(crate) unsynced: Vec<Arc<OpenFile>>,
}

impl Writer {
    /// A file was written into.
    pub(crate) fn wrote(&mut self, file: &Arc<OpenFile>) {
        let is_synced = matches!(self.sync, RedoSync::WriteThrough | RedoSync::None);
        if !is_synced && !self.unsynced.iter().any(|other| Arc::ptr_eq(other, file)) {
            self.unsynced.push(Arc::clone(file));
        }
    }
}
