//! The row lock table of the embedded engine: exclusive locks, held by transactions.
//!
//! Purpose: a transaction locks each row before it changes it, and releases all its locks just
//! after its commit was appended to the log. Invariants: a lock has one holder, waiters get it in
//! the order in which they came, and an owner waits for one lock at a time. Whoever closes a cycle
//! of waiting owners is refused before it waits, so no cycle ever exists. What it deliberately does
//! not do: it has no thread, knows neither rows nor transactions, and forgets nothing by itself.
//!
//! # Why it is enough to follow holders
//!
//! A search starts at the wanted lock and goes on: its holder, the lock that this one waits for,
//! that lock's holder, and so on. It never looks at those who stand in a queue before others. They
//! do block those behind them, but they wait for the same lock, hence for the same holder: whether
//! they ever go on depends on that holder alone. So every deadlock holds a cycle of holders. Such a
//! cycle can be closed in two ways only:
//! - An owner begins to wait. It searches just before, under one mutex with all others that begin
//!   to wait, so of several that close a cycle together the last one sees the others.
//! - A lock gets another holder. Who gets a lock, at once or from a queue, waits for nothing at
//!   that moment, so the new holder has no edge that could lead on. When it waits later, it
//!   searches, and those behind it in the queue are already found to wait for it: an edge leads to
//!   a lock, not to an owner.
//!
//! # Why nobody is refused for a cycle that is none
//!
//! "Owner X waits for lock L" counts only while another owner holds L, which is read under the lock
//! of L's shard. The hand-over writes X into L under the same lock, so the edge vanishes with it,
//! although X removes it later. While a search goes on no edge comes or goes, since that takes the
//! mutex which the search holds, and who gives up leaves queue and graph under it. Releases go on
//! meanwhile, but only of owners that do not wait: every owner that the search has passed was still
//! waiting when the search read the next lock, so it released nothing up to then. When the search
//! comes back to the requester, all that it read before is therefore still true.

mod border;
mod id;
mod shard;
mod sync;
mod table;
mod waits;

pub use border::{Granted, LockFailure, LockOwner, LockStats};
pub use id::{LockId, LockMap};
pub use table::LockTable;
