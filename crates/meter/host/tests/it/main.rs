//! The readers on directories that stand in for a machine, and on the machine itself.

#![allow(clippy::unwrap_used)]

mod held;
mod hosts;
mod loops;
mod machine;
mod places;
mod tree;
mod watching;
