//! The iostrata command.
fn main() {}
