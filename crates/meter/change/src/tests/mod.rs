//! Sessions and restores on a machine that is only data.

mod fake;
mod served;
mod session;
mod variables;
