//! The API that does nothing, at once.
//!
//! Purpose: shows what the loop above it costs by itself. It goes through the same trait as all.
//! Invariant: touches no file and no buffer, makes no system call; at most `depth` in flight.

use crate::{ApiConfig, Buffers, Caps, Completion, FileApi, IoError, Op, OpKind, OpenFiles};

/// Completes every request in full when reaped.
#[derive(Debug)]
pub struct NullApi {
    queued: Box<[Completion]>,
    count: usize,
}

impl FileApi for NullApi {
    fn start(
        config: &ApiConfig,
        _files: &OpenFiles,
        _buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError> {
        let empty = Completion { tag: 0, kind: OpKind::Read, result: 0 };
        let queued = vec![empty; config.depth.max(1) as usize].into_boxed_slice();
        Ok((Self { queued, count: 0 }, Caps::default()))
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        assert!(self.count < self.queued.len(), "more than {} requests in flight", self.count);
        self.queued[self.count] = Completion { tag: op.tag, kind: op.kind, result: op.len as i32 };
        self.count += 1;
    }

    #[inline]
    fn submit(&mut self) -> Result<u32, IoError> {
        Ok(self.count as u32)
    }

    #[inline]
    fn reap(
        &mut self,
        _min: u32,
        _wait_at_most: Option<u64>,
        mut on: impl FnMut(Completion),
    ) -> Result<u32, IoError> {
        let count = self.count;
        for done in &self.queued[..count] {
            on(*done);
        }
        self.count = 0;
        Ok(count as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(depth: u32) -> NullApi {
        let config = ApiConfig { depth, ..ApiConfig::default() };
        NullApi::start(&config, &OpenFiles::null(1, 4096), &Buffers::none()).unwrap().0
    }

    fn read(tag: u32) -> Op {
        Op { kind: OpKind::Read, file: 0, offset: 0, len: 4096, buffer: 0, tag }
    }

    #[test]
    fn completes_each_request_once_in_full() {
        let mut api = started(4);
        for tag in 0..3 {
            api.queue(read(tag));
        }
        let mut tags = Vec::new();
        let reaped = api.reap(1, None, |done| {
            assert_eq!(done.result, 4096);
            tags.push(done.tag);
        });
        assert_eq!(reaped.unwrap(), 3);
        assert_eq!(tags, [0, 1, 2]);
        assert_eq!(api.reap(1, None, |_| panic!("nothing is in flight")).unwrap(), 0);
    }

    #[test]
    #[should_panic(expected = "in flight")]
    fn holds_the_depth() {
        let mut api = started(2);
        (0..3).for_each(|tag| api.queue(read(tag)));
    }
}
