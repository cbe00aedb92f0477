//! Reading the log from the checkpoint to its end.

use iostrata_page::Lsn;

use crate::RedoError;

/// A valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its first byte.
    pub start: Lsn,
    /// Behind its last byte.
    pub end: Lsn,
    /// The records.
    pub body: &'a [u8],
}

/// The frames from the checkpoint on.
#[derive(Debug)]
pub struct Scan {}

impl Scan {
    /// Where the scan begins.
    pub fn checkpoint(&self) -> Lsn {
        unimplemented!()
    }

    /// Whether the log was closed cleanly: no records follow the checkpoint.
    pub fn clean(&self) -> bool {
        unimplemented!()
    }

    /// The next frame; none at the end of the log.
    ///
    /// # Errors
    /// The disk's, [`RedoError::Truncated`], [`RedoError::UnknownFrame`].
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, RedoError> {
        unimplemented!()
    }

    /// Behind the last valid frame read; the end of the log once `next` has given none.
    pub fn end(&self) -> Lsn {
        unimplemented!()
    }
}
