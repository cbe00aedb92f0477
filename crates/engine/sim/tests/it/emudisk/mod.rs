//! Served disks with real loop devices and real file systems above them.
//!
//! Each test has a server, a loop device and mounts of its own, and takes them away.

mod faults;
mod kill;
mod power;
mod served;
