//! A simulated disk served in real time as a block device.
//!
//! Purpose: a file that a FUSE server answers at the pace of a model of `sim`, with a loop device
//! above it, so that the real block layer, file system and programs run on a disk that is not
//! there. Invariant: what was flushed survives a power cut on request; the server holds nothing
//! that its end does not give back. It decides nothing about time: the model does.

mod client;
mod disk;
mod error;
mod fault;
mod filesystem;
mod holder;
mod medium;
mod options;
mod pace;
mod priority;
mod server;
mod store;

pub use client::{Client, DiskStats, Power};
pub use error::{ClientError, ServeError};
pub use fault::{Fault, FaultError, SLOW_MS_MAX, Stall, Tear};
pub use options::{
    ArgumentsError, COMMAND, SIZE_BYTES_MIN, SIZE_BYTES_STEP, ServeArguments, ServeOptions, Store,
    changes, device, disk_file,
};
pub use server::{serve, serve_drive};
