//! What a rule of storage looks for: one function for a finding, and one for the points that would
//! confirm it where it needs any. The table of rules gives each its name.

pub(crate) mod above;
pub(crate) mod alignment;
pub(crate) mod cache;
pub(crate) mod capped;
pub(crate) mod fell;
pub(crate) mod flush;
pub(crate) mod known_limit;
pub(crate) mod machine;
pub(crate) mod pairs;
pub(crate) mod pauses;
pub(crate) mod place;
pub(crate) mod queue;
pub(crate) mod quota;
pub(crate) mod room;
pub(crate) mod seek;
pub(crate) mod sizing;
pub(crate) mod steady;
pub(crate) mod write_back;
