//! The files of a served disk: their names and what `stat` says of them.

/// The contents of the disk.
pub(crate) const DISK: &str = "disk";
/// What arrived so far, JSON.
pub(crate) const STATS: &str = "stats";
/// Takes one line of text per write.
pub(crate) const CONTROL: &str = "control";
