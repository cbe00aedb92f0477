//! Flushes that the kernel cannot do asynchronously, and completions that did not come from it.
//!
//! Invariant: room for `depth` of each from the start; nothing is allocated later.
//! It is empty in the usual case and then costs one comparison.

use crate::api::sync::flush;
use crate::{ApiConfig, Done, OpKind, OpenFiles, SyncKind};

#[derive(Debug)]
pub(crate) struct Flushes {
    /// Tag and file of each flush to run.
    waiting: Vec<(u32, u32)>,
    done: Vec<Done>,
    sync_kind: SyncKind,
}

impl Flushes {
    pub(crate) fn new(config: &ApiConfig) -> Self {
        let depth = config.depth.max(1) as usize;
        Self {
            waiting: Vec::with_capacity(depth),
            done: Vec::with_capacity(depth),
            sync_kind: config.sync_kind,
        }
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.waiting.len() + self.done.len()
    }

    /// Takes a flush to run at the next reap.
    pub(crate) fn queue(&mut self, tag: u32, file: u32) {
        self.waiting.push((tag, file));
    }

    /// Takes a completion to hand on at the next reap.
    pub(crate) fn done(&mut self, done: Done) {
        self.done.push(done);
    }

    /// Runs the flushes and hands on every completion; returns how many.
    #[inline]
    pub(crate) fn run(&mut self, files: &OpenFiles, on: &mut impl FnMut(Done)) -> u32 {
        if self.count() == 0 {
            return 0;
        }
        self.run_some(files, on)
    }

    #[cold]
    fn run_some(&mut self, files: &OpenFiles, on: &mut impl FnMut(Done)) -> u32 {
        let count = self.count() as u32;
        self.done.drain(..).for_each(&mut *on);
        for (tag, file) in self.waiting.drain(..) {
            let flushed = flush(files.descriptor(file), self.sync_kind);
            let result = flushed.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
            on(Done { tag, kind: OpKind::Sync, result });
        }
        count
    }
}
