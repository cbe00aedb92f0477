//! The report as one HTML file.
//!
//! Invariants: every text goes through maud's escaping (the only exceptions are this crate's own
//! style and script); charts go through `chart::Charts`; the page's policy forbids every request,
//! so that it works offline and tells nobody that it was opened.

mod advice;
mod comparison;
mod curves;
mod findings;
mod fio;
mod host;
mod io;
mod ladder;
mod losses;
mod method;
mod page;
mod parts;
mod series;
mod simulate;
mod study;
mod summary;
mod tables;

pub(crate) use page::page;
