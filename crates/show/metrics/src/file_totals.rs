//! What was done with the files of one class since watching began.

use iostrata_run::FileClassIo;

use crate::growing::grow;

/// Reads, writes and syncs, in the order of [`FileTotals::OPS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileTotals {
    /// How many.
    pub(crate) requests: [Option<f64>; 3],
    /// Bytes; syncs have none.
    pub(crate) bytes: [Option<f64>; 3],
    /// Seconds that they took together.
    pub(crate) seconds: [Option<f64>; 3],
}

impl FileTotals {
    /// What they are called.
    pub(crate) const OPS: [&'static str; 3] = ["read", "write", "sync"];

    /// Adds what was done in so many seconds.
    pub(crate) fn take(&mut self, one: &FileClassIo, length_s: f64) {
        let rates = [one.reads_per_s, one.writes_per_s, one.syncs_per_s];
        let bytes = [one.read_bytes_per_s, one.write_bytes_per_s, None];
        let ms = [one.read_ms, one.write_ms, one.sync_ms];
        for at in 0..Self::OPS.len() {
            grow(&mut self.requests[at], rates[at], length_s);
            grow(&mut self.bytes[at], bytes[at], length_s);
            // No mean time is told where nothing was done: then nothing is added.
            let seconds = rates[at].zip(ms[at]).map(|(rate, ms)| rate * ms / 1000.0);
            grow(&mut self.seconds[at], seconds, length_s);
        }
    }
}
