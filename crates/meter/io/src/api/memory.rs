//! An API over memory, for tests of whatever sits above.
//!
//! Purpose: carries out requests on byte vectors, records every one in order, and lets a test stall
//! it, fail it or cut it short.
//! Invariant: requests take effect in the order in which they were queued, inside `reap`.
//! It takes locks and allocates: never for a measurement.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{ApiConfig, Buffers, Caps, Done, FileApi, IoError, Op, OpKind, OpenFiles};

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

    /// The files as [`FileApi::start`] takes them. Only [`MemoryApi`] can use them.
    pub fn open(&self) -> OpenFiles {
        let bytes = self.lock().contents.iter().map(|content| content.len() as u64).collect();
        OpenFiles::memory(self.clone(), bytes)
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

    fn run(&self, op: &Op, buffers: &Buffers) -> i32 {
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
            _ => buffers.copy_out(op.buffer, &mut content[start..end]),
        }
        (end - start) as i32
    }
}

/// Carries out requests on [`MemoryFiles`].
#[derive(Debug)]
pub struct MemoryApi {
    files: MemoryFiles,
    buffers: Buffers,
    queued: Vec<Op>,
    depth: usize,
}

impl FileApi for MemoryApi {
    /// # Panics
    /// When the files do not come from [`MemoryFiles::open`].
    fn start(
        config: &ApiConfig,
        files: &OpenFiles,
        buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError> {
        let Some(memory) = files.memory_files() else {
            panic!("the memory API needs files from MemoryFiles::open");
        };
        let depth = config.depth.max(1) as usize;
        let queued = Vec::with_capacity(depth);
        let api = Self { files: memory.clone(), buffers: buffers.share(), queued, depth };
        Ok((api, Caps::default()))
    }

    fn queue(&mut self, op: Op) {
        assert!(self.queued.len() < self.depth, "more than {} requests in flight", self.depth);
        self.queued.push(op);
    }

    fn submit(&mut self) -> Result<u32, IoError> {
        Ok(self.queued.len() as u32)
    }

    fn reap(
        &mut self,
        _min: u32,
        _wait_at_most: Option<u64>,
        mut on: impl FnMut(Done),
    ) -> Result<u32, IoError> {
        let count = self.queued.len() as u32;
        for op in self.queued.drain(..) {
            let result = self.files.run(&op, &self.buffers);
            on(Done { tag: op.tag, kind: op.kind, result });
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: OpKind, offset: u64, tag: u32) -> Op {
        Op { kind, file: 0, offset, len: 512, buffer: tag, tag }
    }

    fn results(api: &mut MemoryApi) -> Vec<i32> {
        let mut results = Vec::new();
        api.reap(1, None, |done| results.push(done.result)).unwrap();
        results
    }

    #[test]
    fn writes_are_read_back_and_recorded() {
        let files = MemoryFiles::new(1, 4096);
        let mut buffers = Buffers::new(2, 512, 3).unwrap();
        buffers.copy_in(0, &[7; 512]);
        let config = ApiConfig { depth: 2, ..ApiConfig::default() };
        let (mut api, _caps) = MemoryApi::start(&config, &files.open(), &buffers).unwrap();
        api.queue(op(OpKind::Write, 1024, 0));
        api.queue(op(OpKind::Read, 1024, 1));
        assert_eq!(results(&mut api), [512, 512]);
        let mut content = [0; 512];
        buffers.copy_out(1, &mut content);
        assert_eq!(content, [7; 512]);
        assert_eq!(files.content(0)[1024..1536], [7; 512]);
        assert_eq!(files.ops(), [op(OpKind::Write, 1024, 0), op(OpKind::Read, 1024, 1)]);
    }

    #[test]
    fn a_hook_fails_and_shortens_and_the_file_ends() {
        let files = MemoryFiles::new(1, 768);
        files.before_each(|number, _op| match number {
            0 => Fate::Failed(5),
            1 => Fate::Short(100),
            _ => Fate::Done,
        });
        let buffers = Buffers::new(1, 512, 3).unwrap();
        let (mut api, _caps) =
            MemoryApi::start(&ApiConfig::default(), &files.open(), &buffers).unwrap();
        for expected in [-5, 100, 512] {
            api.queue(op(OpKind::Write, 0, 0));
            assert_eq!(results(&mut api), [expected]);
        }
        api.queue(op(OpKind::Read, 512, 0));
        assert_eq!(results(&mut api), [256]);
    }
}
