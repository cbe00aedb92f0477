//! The keys between which rows are scanned.
//!
//! Invariant: a span holds the keys that begin with the given values and lie within the given
//! bounds, and no others; bounds that the column cannot hold leave out what they should.

use std::ops::Bound;

use iostrata_database::target::Value;
use iostrata_engine::Direction;

use crate::context::{push_path, wrong_kind};
use crate::error::OpError;
use crate::key::{KeyMisfit, pass_prefix};
use crate::layout::{Layout, PathField};

/// The keys between which rows are scanned; without an upper one to the end.
#[derive(Debug, Default)]
pub struct KeySpan {
    low: Vec<u8>,
    high: Vec<u8>,
    has_high: bool,
    /// The bounds themselves were passed already.
    is_low_passed: bool,
    is_high_included: bool,
}

impl KeySpan {
    /// None yet, with memory that was used before.
    pub fn in_memory(low: Vec<u8>, high: Vec<u8>) -> Self {
        Self { low, high, ..Self::default() }
    }

    /// The memory.
    pub fn into_memory(self) -> (Vec<u8>, Vec<u8>) {
        (self.low, self.high)
    }

    /// Where the keys begin and end.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let low = match (self.low.is_empty(), self.is_low_passed) {
            (true, _) => Bound::Unbounded,
            (false, true) => Bound::Excluded(&self.low[..]),
            (false, false) => Bound::Included(&self.low[..]),
        };
        let high = match (self.has_high, self.is_high_included) {
            (false, _) => Bound::Unbounded,
            (true, true) => Bound::Included(&self.high[..]),
            (true, false) => Bound::Excluded(&self.high[..]),
        };
        (low, high)
    }

    /// Goes on behind a key.
    pub(crate) fn pass(&mut self, key: &[u8], direction: Direction) {
        let (bound, is_passed) = match direction {
            Direction::Forward => (&mut self.low, &mut self.is_low_passed),
            Direction::Backward => (&mut self.high, &mut self.has_high),
        };
        bound.clear();
        bound.extend_from_slice(key);
        *is_passed = true;
    }

    /// Goes on with the entries of a secondary key, some of which were given.
    pub(crate) fn resume(&mut self, secondary: &[u8], direction: Direction) {
        self.pass(secondary, direction);
        match direction {
            Direction::Forward => self.is_low_passed = false,
            Direction::Backward => self.is_high_included = true,
        }
    }

    /// The keys that begin with these values; false when there can be none.
    ///
    /// # Errors
    /// An argument of the wrong kind.
    pub fn fill_prefix(
        &mut self,
        layout: &Layout,
        fields: &[PathField],
        args: &[Value<'_>],
    ) -> Result<bool, OpError> {
        self.low.clear();
        if !begin(layout, fields, args, &mut self.low)? {
            return Ok(false);
        }
        self.high.clear();
        self.high.extend_from_slice(&self.low);
        self.has_high = pass_prefix(&mut self.high);
        Ok(true)
    }

    /// The keys that belong to these arguments; false when there can be none.
    ///
    /// # Errors
    /// An argument of the wrong kind.
    pub fn fill(
        &mut self,
        layout: &Layout,
        (prefix, range): (&[PathField], Option<PathField>),
        args: &[Value<'_>],
    ) -> Result<bool, OpError> {
        let (given, bounds) = args.split_at(prefix.len());
        let Self { low, high, .. } = self;
        (self.is_low_passed, self.is_high_included) = (false, false);
        low.clear();
        if !begin(layout, prefix, given, low)? {
            return Ok(false);
        }
        high.clear();
        high.extend_from_slice(low);
        if let (Some(of), [least, most, ..]) = (range, bounds)
            && !fill_range(layout, of, (*least, *most), (low, high))?
        {
            return Ok(false);
        }
        self.has_high = pass_prefix(&mut self.high);
        Ok(!self.has_high || self.low < self.high)
    }
}

/// Adds the bounds of a column; false when nothing lies between them.
fn fill_range(
    layout: &Layout,
    of: PathField,
    (least, most): (Value<'_>, Value<'_>),
    (low, high): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<bool, OpError> {
    if least == Value::Null || most == Value::Null {
        return Ok(false);
    }
    let wrong = |value| Err(wrong_kind(layout, of.column, value));
    match of.field.push(least, low) {
        Ok(()) => {}
        Err(KeyMisfit::Below) => of.field.push_least(low),
        Err(KeyMisfit::Above | KeyMisfit::Null) => return Ok(false),
        Err(KeyMisfit::Kind) => return wrong(least),
    }
    match of.field.push(most, high) {
        Ok(()) => Ok(true),
        Err(KeyMisfit::Above) => {
            of.field.push_least(high);
            Ok(true)
        }
        Err(KeyMisfit::Below | KeyMisfit::Null) => Ok(false),
        Err(KeyMisfit::Kind) => wrong(most),
    }
}

/// The first columns; false when no row can have them.
fn begin(
    layout: &Layout,
    fields: &[PathField],
    args: &[Value<'_>],
    low: &mut Vec<u8>,
) -> Result<bool, OpError> {
    match push_path(layout, fields, args, low) {
        Ok(()) => Ok(true),
        Err(None) => Ok(false),
        Err(Some(error)) => Err(error),
    }
}
