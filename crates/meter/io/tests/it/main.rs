//! The file APIs and file sets on real files of the disk that the build is on.

#![allow(clippy::unwrap_used)]

mod api;
mod batches;
mod crash;
mod devices;
mod disks;
mod images;
mod locks;
mod place;
mod restarts;
mod sets;
