//! Settings and counters of the embedded engine under InnoDB's names.
//!
//! Purpose: one catalogue of settings and one of counters, from which parsing, printing, checks,
//! help and documents come. Invariant: pure; whatever is printed parses back to the same settings,
//! and a status page is either whole or refused. It does not act on a setting and counts nothing
//! itself: the engine does.

mod counters;
mod settings;

pub use counters::{
    COUNTERS, Counter, CounterKind, CounterOrigin, CounterRow, CounterUnit, Counters, STATUS_BYTES,
    StatusFault, StatusPage, TABLE_HASH,
};
pub use settings::{
    CATALOGUE, ChecksumAlgorithm, Doublewrite, FRAMES_MIN, FlushLogAt, FlushMethod,
    FlushWriteLimit, InnoDb, IoMethod, MaxPurgeLagVersion, PolicyName, Setting, SettingError,
    Settings, TextError, ValueKind, When, find,
};
