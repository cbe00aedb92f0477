//! The head reads on while nobody asks for anything.
//!
//! Invariant: at any moment the byte under the head follows from when the reading began; it stops
//! at a limit that moves with what the host has taken. It keeps no bytes: the read cache does.

use super::geometry::Geometry;

/// One run of reading on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAhead {
    /// When the head is at `from`, in ns.
    pub(crate) begins_ns: u64,
    /// First byte of the run.
    pub(crate) from: u64,
    /// Byte at which the buffer is full.
    pub(crate) limit: u64,
}

impl ReadAhead {
    /// One past the last byte that the head has passed.
    pub(crate) fn passed(&self, geometry: &Geometry, now_ns: u64) -> u64 {
        if now_ns <= self.begins_ns {
            return self.from;
        }
        let turned = geometry.turned(now_ns - self.begins_ns);
        let byte = geometry.byte(geometry.position(self.from) + turned);
        byte.clamp(self.from, self.limit)
    }
}
