//! InnoDB as plain data: its settings and counters by name, and what it flushes when.
//!
//! Purpose: one catalogue of settings and one of counters, from which parsing, printing, checks,
//! help and documents come; the flushing policies of the embedded engine and of InnoDB's history;
//! page numbers, log positions and table numbers. Invariant: pure; whatever is printed parses back
//! to the same settings, a status page is either whole or refused, and the same samples give the
//! same actions. It acts on no setting, counts nothing and writes no page: the engine does.

mod counters;
pub mod flush;
mod ids;
mod settings;

pub use counters::{
    COUNTERS, Counter, CounterKind, CounterOrigin, CounterRow, CounterUnit, Counters, STATUS_BYTES,
    StatusFault, StatusPage, TABLE_HASH,
};
pub use ids::{Lsn, NO_PAGE, PageNo, TableId};
pub use settings::{
    CATALOGUE, ChecksumAlgorithm, Doublewrite, FRAMES_MIN, FilePlan, FlushLogAt, FlushMethod,
    FlushPlan, FlushWriteLimit, InnoDb, IoMethod, MaxPurgeLagVersion, PolicyName, Setting,
    SettingError, Settings, SyncRule, TextError, ValueKind, When, find,
};
