//! Flushes and discards that the kernel does not do asynchronously, and completions that did not
//! come from it.
//!
//! Invariant: room for `depth` of each from the start; nothing is allocated later.
//! It is empty in the usual case and then costs one comparison.

use crate::api::sync::{discard, flush};
use crate::{ApiConfig, Completion, Op, OpKind, OpenFiles, SyncKind};

#[derive(Debug)]
pub(crate) struct Flushes {
    waiting: Vec<Op>,
    done: Vec<Completion>,
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

    /// Takes a flush or a discard to run at the next reap.
    pub(crate) fn queue(&mut self, op: Op) {
        self.waiting.push(op);
    }

    /// Takes a completion to hand on at the next reap.
    pub(crate) fn done(&mut self, done: Completion) {
        self.done.push(done);
    }

    /// Runs what waits and hands on every completion; returns how many.
    #[inline]
    pub(crate) fn run(&mut self, files: &OpenFiles, on: &mut impl FnMut(Completion)) -> u32 {
        if self.count() == 0 {
            return 0;
        }
        self.run_some(files, on)
    }

    #[cold]
    fn run_some(&mut self, files: &OpenFiles, on: &mut impl FnMut(Completion)) -> u32 {
        let count = self.count() as u32;
        self.done.drain(..).for_each(&mut *on);
        for op in self.waiting.drain(..) {
            let file = files.descriptor(op.file);
            let done = match op.kind {
                OpKind::Trim => discard(file, &op).map(|()| op.len as i32),
                _ => flush(file, self.sync_kind, (op.offset, op.len)).map(|()| 0),
            };
            let result = done.unwrap_or_else(|errno| -errno.raw_os_error());
            on(Completion { tag: op.tag, kind: op.kind, result });
        }
        count
    }
}
