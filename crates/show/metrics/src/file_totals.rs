//! What was done with the files of one class since watching began.

use iostrata_run::FileClassIo;

use crate::growing::grow;

/// Reads, writes and syncs, in the order of [`FileTotals::OPS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileTotals {
    /// Each of them.
    pub(crate) ops: [FileOpTotals; 3],
}

/// What requests of one kind amount to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileOpTotals {
    /// How many.
    pub(crate) requests: Option<f64>,
    /// Bytes; syncs have none.
    pub(crate) bytes: Option<f64>,
    /// Seconds that they took together.
    pub(crate) seconds: Option<f64>,
}

impl FileTotals {
    /// What they are called.
    pub(crate) const OPS: [&'static str; 3] = ["read", "write", "sync"];

    /// Adds what was done in so many seconds.
    pub(crate) fn take(&mut self, one: &FileClassIo, length_s: f64) {
        let told = [
            (one.reads_per_s, one.read_bytes_per_s, one.read_ms),
            (one.writes_per_s, one.write_bytes_per_s, one.write_ms),
            (one.syncs_per_s, None, one.sync_ms),
        ];
        for (op, (rate, bytes, ms)) in self.ops.iter_mut().zip(told) {
            grow(&mut op.requests, rate, length_s);
            grow(&mut op.bytes, bytes, length_s);
            // No mean time is told where nothing was done: then nothing is added.
            let seconds = rate.zip(ms).map(|(rate, ms)| rate * ms / 1000.0);
            grow(&mut op.seconds, seconds, length_s);
        }
    }
}
