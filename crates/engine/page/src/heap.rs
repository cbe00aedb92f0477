//! Cells in the page.
