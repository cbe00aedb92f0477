//! The store on disks that crash, fail and run full, and on a real one.
#![allow(clippy::unwrap_used)]

mod altered;
mod atomic;
mod basics;
mod common;
mod concurrency;
mod crash;
mod faults;
mod growth;
mod histories;
mod real;
mod restart;
