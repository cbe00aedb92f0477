//! Records to bytes.
//!
//! The form of every record: its number (u8), the page number (varint), its own fields in the
//! order they are declared, numbers as varints, flags and kinds as bytes, byte strings behind
//! their length. Invariant: [`Record::decode`] of the bytes gives the record back and consumes
//! them all.

use iostrata_innodb::{PageNo, TableId};

use crate::page::cells::Cell;
use crate::page::kind::PageKind;
use crate::page::record::{Record, Tag};
use crate::page::varint::push;

impl Record<'_> {
    /// Appends the record for `page` to `out`.
    #[inline]
    pub fn encode(&self, page: PageNo, out: &mut Vec<u8>) {
        out.push(self.tag() as u8);
        push(out, page.0);
        match *self {
            Self::Init { kind, level, table, left, right } => {
                push_start(out, kind, level, table, [left, right]);
            }
            Self::Image { kind, level, table, left, right, body } => {
                push_start(out, kind, level, table, [left, right]);
                push_bytes(out, body);
            }
            Self::Insert { slot, flags, key, value } => {
                push(out, slot as u64);
                Cell { flags, key, value }.push_to(out);
            }
            Self::Delete { slot } => push(out, slot as u64),
            Self::Replace { slot, value } => {
                push(out, slot as u64);
                push_bytes(out, value);
            }
            Self::Revise { slot, flags, len, hunks } => {
                push(out, slot as u64);
                out.push(flags);
                push(out, len as u64);
                push_bytes(out, hunks.bytes());
            }
            Self::Truncate { from } => push(out, from as u64),
            Self::Splice { at, cells } => {
                push(out, at as u64);
                push_bytes(out, cells.bytes());
            }
            Self::SetLeft(to) | Self::SetRight(to) => push(out, to.0),
            Self::SetBits { from, count, .. } => {
                push(out, u64::from(from));
                push(out, u64::from(count));
            }
            Self::SetSuper { at, bytes } => {
                push(out, at as u64);
                push_bytes(out, bytes);
            }
        }
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Self::Init { .. } => Tag::Init,
            Self::Image { .. } => Tag::Image,
            Self::Insert { .. } => Tag::Insert,
            Self::Delete { .. } => Tag::Delete,
            Self::Replace { .. } => Tag::Replace,
            Self::Revise { .. } => Tag::Revise,
            Self::Truncate { .. } => Tag::Truncate,
            Self::Splice { .. } => Tag::Splice,
            Self::SetLeft(_) => Tag::SetLeft,
            Self::SetRight(_) => Tag::SetRight,
            Self::SetBits { set: true, .. } => Tag::SetBits,
            Self::SetBits { set: false, .. } => Tag::ClearBits,
            Self::SetSuper { .. } => Tag::SetSuper,
        }
    }
}

fn push_start(out: &mut Vec<u8>, kind: PageKind, level: u8, table: TableId, links: [PageNo; 2]) {
    out.push(kind as u8);
    out.push(level);
    push(out, u64::from(table.0));
    push(out, links[0].0);
    push(out, links[1].0);
}

#[inline]
fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
