//! Records that carry a whole page.
//!
//! Invariant: applied to any page, an image gives a page that reads as the one it was made of. Its
//! bytes may differ: dead bytes are left out and cells lie in order.

use std::ops::Range;

use iostrata_innodb::PageNo;

use crate::page::cells::Cell;
use crate::page::kind::PageKind;
use crate::page::record::Record;
use crate::page::view::PageView;

impl Record<'_> {
    /// The image of a page. `buffer` is emptied first and holds its content.
    pub fn image_of<'b>(page: &PageView<'_>, buffer: &'b mut Vec<u8>) -> Record<'b> {
        Self::image_of_part(page, 0..page.count(), page.left(), page.right(), buffer)
    }

    /// The image of a page like this one with only some of its slots and with other neighbours:
    /// the right page of a split, or the page that a root's content moves to. In an inner page the
    /// first of the slots loses its key, as slot 0 has none. Pages without slots go whole.
    ///
    /// `buffer` is emptied first and holds the content.
    pub fn image_of_part<'b>(
        page: &PageView<'_>,
        slots: Range<usize>,
        left: PageNo,
        right: PageNo,
        buffer: &'b mut Vec<u8>,
    ) -> Record<'b> {
        buffer.clear();
        let kind = page.kind();
        if kind.is_slotted() {
            let first = slots.start;
            for slot in first..slots.end.min(page.count()) {
                let cell = page.cell(slot);
                let is_keyless = slot == first && kind == PageKind::Inner;
                Cell { key: if is_keyless { &[] } else { cell.key }, ..cell }.push_to(buffer);
            }
        } else if kind != PageKind::Free {
            let body = page.body();
            let zeros = body.iter().rev().take_while(|byte| **byte == 0).count();
            buffer.extend_from_slice(&body[..body.len() - zeros]);
        }
        Record::Image { kind, level: page.level(), table: page.table(), left, right, body: buffer }
    }
}
