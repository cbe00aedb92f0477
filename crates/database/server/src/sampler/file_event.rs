//! What performance_schema counts of the files of one instrument.

use iostrata_database::target::FileCounts;

/// What is reported of the files of one instrument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileEvent {
    pub(crate) name: String,
    pub(crate) counts: FileCounts,
}

/// Picoseconds, in which performance_schema has times, to the nanosecond.
const PS_PER_NS: u64 = 1_000;

impl FileEvent {
    /// Of the columns of [`COLUMNS`] behind the name. Only an instrument that is timed has times.
    pub(crate) fn of(name: String, is_timed: bool, numbers: &[Option<u64>]) -> Self {
        let at = |place: usize| numbers.get(place).copied().flatten();
        let ns = |place: usize| at(place).filter(|_| is_timed).map(|ps| ps / PS_PER_NS);
        let counts = FileCounts {
            reads: at(0),
            read_bytes: at(1),
            read_ns: ns(2),
            writes: at(3),
            written_bytes: at(4),
            write_ns: ns(5),
            syncs: at(6),
            sync_ns: ns(7),
        };
        Self { name, counts }
    }
}

/// The columns of a summary of files, in the order of [`FileEvent::of`].
pub(crate) const COLUMNS: &str = "COUNT_READ, SUM_NUMBER_OF_BYTES_READ, SUM_TIMER_READ, \
                                  COUNT_WRITE, SUM_NUMBER_OF_BYTES_WRITE, SUM_TIMER_WRITE, \
                                  COUNT_MISC, SUM_TIMER_MISC";
/// How all instruments of files begin.
pub(crate) const INSTRUMENTS: &str = "wait/io/file/";
