//! The contents of a disk and what of them is beyond a power cut.
//!
//! Invariant: what was flushed, written through, or fell out of the volatile cache is there after
//! every power cut; what is not may be. A number that was given out before a cut has no say after.

use std::io;
use std::ops::Range;

use iostrata_stats::Random;

use crate::emudisk::error::ServeError;
use crate::emudisk::fault::Tear;
use crate::emudisk::options::ServeOptions;
use crate::emudisk::store::{Contents, WriteError};
use crate::emudisk::volatile::Volatile;

/// Contents with their durability.
#[derive(Debug)]
pub(crate) struct Medium {
    contents: Contents,
    volatile: Volatile,
    is_on: bool,
    cuts: u64,
    random: Random,
}

/// A write that was applied and is not done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied {
    number: u64,
    cut: u64,
}

/// A flush that came and is not done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushing {
    mark: u64,
    cut: u64,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no power, or the file below failed.
    Broken,
    /// The contents may not grow.
    Full,
}

impl From<WriteError> for Refused {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Full => Self::Full,
            WriteError::Io => Self::Broken,
        }
    }
}

impl Medium {
    /// A disk of zeros whose volatile cache holds `volatile_bytes`.
    pub(crate) fn new(options: &ServeOptions, volatile_bytes: u64) -> Result<Self, ServeError> {
        let size_bytes = options.size_bytes;
        let limit_bytes = options.store_limit_bytes.unwrap_or(size_bytes);
        Ok(Self {
            contents: Contents::new(&options.store, size_bytes, limit_bytes)?,
            volatile: Volatile::new(volatile_bytes),
            is_on: true,
            cuts: 0,
            random: Random::new(options.seed),
        })
    }

    pub(crate) fn store_bytes(&self) -> u64 {
        self.contents.bytes()
    }

    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.volatile.done_bytes()
    }

    pub(crate) fn cuts(&self) -> u64 {
        self.cuts
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn set_limit(&mut self, bytes: u64) {
        self.contents.set_limit(bytes);
    }

    fn powered(&self) -> Result<(), Refused> {
        if self.is_on { Ok(()) } else { Err(Refused::Broken) }
    }

    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Refused> {
        self.powered()?;
        self.contents.read(at, into).map_err(|_| Refused::Broken)
    }

    /// Applies a write: reads see it from now on.
    pub(crate) fn write(&mut self, at: u64, from: &[u8]) -> Result<Applied, Refused> {
        self.powered()?;
        let mut before = vec![0; from.len()];
        self.contents.read(at, &mut before).map_err(|_| Refused::Broken)?;
        if let Err(error) = self.contents.write(at, from) {
            // A file may have taken a part of it.
            if matches!(error, WriteError::Io) || !self.is_as(at, &before) {
                self.contents.put(at, &before).map_err(|_| Refused::Broken)?;
            }
            return Err(error.into());
        }
        Ok(Applied { number: self.volatile.begin(at, before), cut: self.cuts })
    }

    fn is_as(&self, at: u64, before: &[u8]) -> bool {
        let mut now = vec![0; before.len()];
        self.contents.read(at, &mut now).is_ok() && now == before
    }

    /// A write is done; whether there was no power cut since it was applied.
    pub(crate) fn done(&mut self, write: Applied) -> bool {
        let is_valid = write.cut == self.cuts && self.is_on;
        if is_valid {
            self.volatile.done(write.number);
        }
        is_valid
    }

    pub(crate) fn flush(&self) -> Result<Flushing, Refused> {
        self.powered()?;
        Ok(Flushing { mark: self.volatile.flush_mark(), cut: self.cuts })
    }

    /// A flush is done; whether there was no power cut since it came.
    pub(crate) fn flushed(&mut self, flush: Flushing) -> bool {
        let is_valid = flush.cut == self.cuts && self.is_on;
        if is_valid {
            self.volatile.flushed(flush.mark);
        }
        is_valid
    }

    /// Makes a range zero, beyond a power cut at once, as a disk may.
    pub(crate) fn discard(&mut self, range: Range<u64>) -> Result<(), Refused> {
        self.powered()?;
        self.contents.zero(range.clone()).map_err(|_| Refused::Broken)?;
        self.volatile.replaced(&range);
        Ok(())
    }

    /// The power fails.
    pub(crate) fn cut(&mut self, tear: Option<Tear>, seed: Option<u64>) -> io::Result<()> {
        let mut own = seed.map(Random::new);
        let random = own.as_mut().unwrap_or(&mut self.random);
        self.is_on = false;
        self.cuts += 1;
        let contents = &mut self.contents;
        self.volatile.cut(tear, random, |at, before| contents.put(at, before))
    }

    /// The power is back.
    pub(crate) fn power_on(&mut self) {
        self.is_on = true;
    }
}

#[cfg(test)]
mod tests;
