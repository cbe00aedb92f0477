//! The file sets of a probe: made when first needed, used again by points that do the same work,
//! made afresh for points that use them up.
//!
//! Invariant: one set per use, so that a log never shares a file with data.

use std::sync::atomic::AtomicBool;

use iostrata_io::{FileSet, FileSetError, FileSetPlan, Place, Progress};
use iostrata_spec::{IoApi, Preparation, Stream};

use crate::fill_of;

/// What makes two streams use the same files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    role: Role,
    files: u32,
    size_bytes: u64,
    preparation: Preparation,
}

/// What files are for. Streams with the same role and the same shape share a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Data,
    Log,
    Doublewrite,
}

impl Role {
    fn of(stream: &Stream) -> Self {
        match stream.name.as_str() {
            "redo" | "log" => Role::Log,
            "doublewrite" => Role::Doublewrite,
            _ => Role::Data,
        }
    }
}

impl Key {
    fn of(stream: &Stream) -> Self {
        Self {
            role: Role::of(stream),
            files: stream.spec.files,
            size_bytes: stream.spec.size_bytes,
            preparation: stream.spec.preparation,
        }
    }
}

/// The file sets at hand.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    sets: Vec<(Key, FileSet)>,
    filled_bytes: u64,
}

impl Shelf {
    /// Makes sure that the sets of these streams are there. Sets that requests use up are made
    /// afresh each time.
    pub(super) fn prepare(
        &mut self,
        streams: &[Stream],
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), FileSetError> {
        for stream in streams.iter().filter(|stream| stream.spec.api != IoApi::Null) {
            let key = Key::of(stream);
            if key.preparation != Preparation::Written {
                self.sets.retain(|(other, _)| *other != key);
            } else if self.sets.iter().any(|(other, _)| *other == key) {
                continue;
            }
            let set = FileSet::prepare(&plan(stream), stop, progress)?;
            self.filled_bytes += set.filled_bytes();
            self.sets.push((key, set));
        }
        Ok(())
    }

    /// The prepared set of each stream.
    pub(super) fn sets(&self, streams: &[Stream]) -> Vec<Option<&FileSet>> {
        let find = |stream: &Stream| {
            let key = Key::of(stream);
            self.sets.iter().find(|(other, _)| *other == key).map(|(_, set)| set)
        };
        streams.iter().map(find).collect()
    }

    /// Removes every set that requests have used up.
    pub(super) fn drop_used_up(&mut self) {
        self.sets.retain(|(key, _)| key.preparation == Preparation::Written);
    }

    /// Bytes that filling wrote so far.
    pub(super) fn filled_bytes(&self) -> u64 {
        self.filled_bytes
    }
}

fn plan(stream: &Stream) -> FileSetPlan {
    let spec = &stream.spec;
    FileSetPlan {
        files: spec.files,
        total_bytes: Some(spec.size_bytes),
        block_bytes: spec.block_bytes,
        fill: fill_of(spec.preparation),
        keep: false,
        write: true,
        overwrite_contents: false,
        seed: spec.seed,
        place: Place::Directory(spec.path.clone()),
    }
}
