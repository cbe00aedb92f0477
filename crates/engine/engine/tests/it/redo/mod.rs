//! The redo log as its users see it: on a disk in memory, on one that crashes, on a faulty one and
//! on a real one.

#![allow(clippy::unwrap_used)]

mod basics;
mod capacity;
mod common;
mod crash;
mod damage;
mod faults;
mod fuzz;
mod garbage;
mod hooked;
mod incarnation;
mod rate;
mod requests;
mod restarts;
mod threads;
