//! A simulated disk served in real time as a block device.
//!
//! Purpose: a file that a FUSE server answers at the pace of a model of `sim`, with a loop device
//! above it, so that the real block layer, file system and programs run on a disk that is not
//! there. Invariant: what was flushed survives a power cut on request; the server holds nothing
//! that its end does not give back. It decides nothing about time: the model does.

mod arguments;
mod changes;
mod client;
mod clock;
mod disk;
mod error;
mod errors;
mod fault;
mod files;
mod filesystem;
mod holder;
mod medium;
mod options;
mod pace;
mod priority;
mod server;
mod store;
mod volatile;
mod wake;

pub use arguments::{ArgumentsError, COMMAND, ServeArguments};
pub use changes::{changes, device};
pub use client::Client;
pub use client::{DiskStats, Power};
pub use error::{ClientError, ServeError};
pub use fault::{Fault, FaultError, SLOW_MS_MAX, Stall, Tear};
pub use options::{SIZE_BYTES_MIN, SIZE_BYTES_STEP, ServeOptions, Store, disk_file};
pub use server::{serve, serve_drive};
