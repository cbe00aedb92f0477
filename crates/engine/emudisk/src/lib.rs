//! A simulated disk served in real time as a block device.
//!
//! Purpose: a file that a FUSE server answers at the pace of a model of `sim`, with a loop device
//! above it, so that the real block layer, file system and programs run on a disk that is not
//! there. Invariant: what was flushed survives a power cut on request; the server holds nothing
//! that its end does not give back. It decides nothing about time: the model does.
