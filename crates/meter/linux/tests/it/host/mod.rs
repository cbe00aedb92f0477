//! The readers on directories that stand in for a machine, and on the machine itself.

mod held;
mod hosts;
mod loops;
mod machine;
mod places;
mod tree;
mod watching;
