//! The redo log as its users see it: on a disk in memory, on one that crashes, on a faulty one and
//! on a real one.

mod basics;
mod capacity;
mod common;
mod crash;
mod faults;
mod garbage;
mod incarnation;
mod rate;
mod threads;
