//! Disks in real time.

#![allow(clippy::unwrap_used)]

mod emudisk;
