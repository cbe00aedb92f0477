//! The text of a study: from TOML to designs.
//!
//! Purpose: read the text so that every error names file, line, column, the value found and the
//! fix. Invariant: pure; whatever the text, there is a design or an error, never a panic, and the
//! work is bounded by the limits that the errors name.

pub(super) mod answer_table;
pub(super) mod design;
pub(super) mod error;
pub(super) mod exclude;
pub(super) mod factor;
pub(super) mod fields;
pub(super) mod measure;
pub(super) mod source;
pub(super) mod then_table;
pub(super) mod tree;
