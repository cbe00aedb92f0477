//! Slotted pages and redo records of the embedded engine.
//!
//! Purpose: the bytes of a page, the bytes of a redo record, and the one function that changes a
//! page: [`Record::apply`]. Invariant: everything here is pure. The same record on the same page
//! gives the same bytes, and no bytes, however damaged, make a function panic or read outside the
//! page. It knows no file, no cache, no latch and no tree: who calls decides which page is meant
//! and stamps the LSN.

mod apply;
mod cells;
mod edit;
mod fault;
mod heap;
mod hunks;
pub mod layout;
mod numbers;
mod record;
mod search;
mod size;
mod space;
mod split;
mod verify;
mod view;

pub use cells::{Cell, Cells, CellsIter, Version};
pub use edit::PageEdit;
pub use fault::{ApplyFault, CellFault, PageFault, RecordFault};
pub use hunks::Hunks;
pub use layout::PageKind;
pub use layout::{cell_bytes, row_bytes};
pub use record::Record;
pub use search::shortest_separator;
pub use size::{PageSize, PageSizeError, RowTooLarge};
pub use split::Split;
pub use view::{PageView, cells_of};
