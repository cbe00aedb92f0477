//! Slotted pages and redo records of the embedded engine.
//!
//! Purpose: the bytes of a page, the bytes of a redo record, and the one function that changes a
//! page: [`Record::apply`]. Invariant: everything here is pure. The same record on the same page
//! gives the same bytes, and no bytes, however damaged, make a function panic or read outside the
//! page. It knows no file, no cache, no latch and no tree: who calls decides which page is meant
//! and stamps the LSN.

mod apply;
mod edit;
mod heap;
pub mod layout;
mod record;
mod verify;
mod view;

pub use edit::PageEdit;
pub use heap::Split;
pub use layout::{
    ApplyFault, CellFault, PageFault, PageKind, PageSize, PageSizeError, RecordFault, RowTooLarge,
    cell_bytes, row_bytes,
};
pub use record::{Hunks, Record};
pub use view::{Cell, Cells, CellsIter, PageView, Version, cells_of, shortest_separator};
