//! The embedded engine compared with its peers: redb, fjall, SQLite and RocksDB.
//!
//! Purpose: the same data, the same durability, one run: engines alternate in every round and the
//! order is turned round from round to round, so that a drift of the machine cancels within pairs.
//! Invariant: a commit counts only once its engine says that it is on the device; what was
//! acknowledged is read back from the reopened files after every measured window.
//! It tunes no engine for one workload, and it prints nothing; the binary does.

pub mod bench;
pub mod counters;
pub mod drive;
pub mod emulated;
pub mod engines;
pub mod error;
pub mod figures;
pub mod group;
pub mod keys;
pub mod notes;
pub mod orders;
pub mod plan;
pub mod recovery;
pub mod rounds;
pub mod scratch;
pub mod space;
pub mod store;
pub mod table;
pub mod tpcc;
pub mod work;
