//! An API over memory, for tests of whatever sits above.
//!
//! Invariant: requests take effect in the order in which they were queued, inside `reap`.
//! It takes locks and allocates: never for a measurement.

use crate::memory_files::MemoryFiles;
use crate::{ApiConfig, Buffers, Caps, Completion, FileApi, IoError, Op, OpenFiles};

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
    /// When the files do not come from [`OpenFiles::memory`].
    fn start(
        config: &ApiConfig,
        files: &OpenFiles,
        buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError> {
        let Some(memory) = files.memory_files() else {
            panic!("the memory API needs files from OpenFiles::memory");
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
        mut on: impl FnMut(Completion),
    ) -> Result<u32, IoError> {
        let count = self.queued.len() as u32;
        for op in self.queued.drain(..) {
            let result = self.files.run(&op, &self.buffers);
            on(Completion { tag: op.tag, kind: op.kind, result });
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fate, OpKind};

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
        let (mut api, _caps) =
            MemoryApi::start(&config, &OpenFiles::memory(&files), &buffers).unwrap();
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
            MemoryApi::start(&ApiConfig::default(), &OpenFiles::memory(&files), &buffers).unwrap();
        for expected in [-5, 100, 512] {
            api.queue(op(OpKind::Write, 0, 0));
            assert_eq!(results(&mut api), [expected]);
        }
        api.queue(op(OpKind::Read, 512, 0));
        assert_eq!(results(&mut api), [256]);
    }
}
