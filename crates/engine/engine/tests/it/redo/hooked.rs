//! A disk that does something of the test's around each sync.

use std::sync::Arc;

use iostrata_io::SyncKind;
use iostrata_io::disk::{Disk, DiskError, FileId, ForwardDisk};

type Hook = Box<dyn Fn() + Send + Sync>;

/// A disk with something before and after each sync.
pub struct Hooked {
    pub disk: Arc<dyn Disk>,
    pub before_sync: Hook,
    pub after_sync: Hook,
}

impl ForwardDisk for Hooked {
    fn below(&self) -> &dyn Disk {
        &*self.disk
    }

    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        (self.before_sync)();
        let result = self.disk.sync(file, kind);
        (self.after_sync)();
        result
    }
}
