//! Files in memory, for tests of whatever sits above.
//!
//! Purpose: records every request in order, and lets a test stall it, fail it or cut it short.
//! It takes locks and allocates: never for a measurement.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Buffers, Op, OpKind};

/// What a test's hook lets happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is carried out.
    Done,
    /// It fails with this errno and changes nothing.
    Failed(i32),
    /// Only so many of its bytes are moved.
    Short(u32),
}

type Hook = Box<dyn FnMut(u64, &Op) -> Fate + Send>;

struct Inner {
    contents: Vec<Vec<u8>>,
    ops: Vec<Op>,
    hook: Option<Hook>,
}

/// Files in memory, shared by the APIs that were started on them and by the test.
#[derive(Clone)]
pub struct MemoryFiles(Arc<Mutex<Inner>>);

impl fmt::Debug for MemoryFiles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        write!(out, "MemoryFiles({} files, {} ops)", inner.contents.len(), inner.ops.len())
    }
}

impl MemoryFiles {
    /// `files` files of `bytes_each` zero bytes.
    pub fn new(files: u32, bytes_each: u64) -> Self {
        let contents = vec![vec![0; bytes_each as usize]; files as usize];
        Self(Arc::new(Mutex::new(Inner { contents, ops: Vec::new(), hook: None })))
    }

    /// Calls `hook` with the number (from 0, over all APIs) and the request before each request. A
    /// hook that sleeps is a stall. It must not use these files itself.
    pub fn before_each(&self, hook: impl FnMut(u64, &Op) -> Fate + Send + 'static) {
        self.lock().hook = Some(Box::new(hook));
    }

    /// Bytes of every file.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        self.lock().contents.iter().map(|content| content.len() as u64).collect()
    }

    /// Every request so far, in order, the failed ones included.
    pub fn ops(&self) -> Vec<Op> {
        self.lock().ops.clone()
    }

    /// A file's bytes.
    pub fn content(&self, file: u32) -> Vec<u8> {
        self.lock().contents[file as usize].clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a request, as far as the hook lets it, and returns what a system call would.
    pub(crate) fn run(&self, op: &Op, buffers: &Buffers) -> i32 {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let number = inner.ops.len() as u64;
        inner.ops.push(*op);
        let fate = inner.hook.as_mut().map_or(Fate::Done, |hook| hook(number, op));
        let most = match fate {
            Fate::Failed(errno) => return -errno,
            Fate::Short(bytes) => bytes.min(op.len),
            Fate::Done => op.len,
        };
        if op.kind == OpKind::Sync {
            return 0;
        }
        let content = &mut inner.contents[op.file as usize];
        let start = (op.offset as usize).min(content.len());
        let end = (start + most as usize).min(content.len());
        match op.kind {
            OpKind::Read => buffers.write_slot(op.buffer, &content[start..end]),
            OpKind::Trim => content[start..end].fill(0),
            _ => buffers.copy_out(op.buffer, &mut content[start..end]),
        }
        (end - start) as i32
    }
}
