//! A request's tag and kind in the 64 bits that the kernel hands back.
//!
//! Layout: tag in the low 32 bits, kind above.

use crate::{Done, Op, OpKind};

#[inline]
pub(crate) fn of(op: &Op) -> u64 {
    let kind = match op.kind {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Sync => 2,
        OpKind::Trim => 3,
    };
    kind << 32 | u64::from(op.tag)
}

#[inline]
pub(crate) fn done(token: u64, result: i32) -> Done {
    Done { tag: token as u32, kind: kind(token), result }
}

#[inline]
pub(crate) fn kind(token: u64) -> OpKind {
    match token >> 32 {
        0 => OpKind::Read,
        1 => OpKind::Write,
        2 => OpKind::Sync,
        _ => OpKind::Trim,
    }
}
