//! What can go wrong while profiling.

use std::io;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The system does not let this process sample the kernel.
    #[error("the kernel may not be sampled: {why}; {fix}")]
    NotPermitted {
        /// What forbids it, with the value found.
        why: String,
        /// What to do.
        fix: String,
    },
    /// The kernel has no way to sample.
    #[error("this kernel cannot sample: {source}; it needs CONFIG_PERF_EVENTS")]
    Unsupported {
        /// What the system said.
        source: io::Error,
    },
    /// A rate of 0, or one above what the kernel allows.
    #[error("a profile at {found} Hz is not possible; choose 1 to {max}")]
    Rate {
        /// Samples per second that were asked for.
        found: u32,
        /// The kernel's limit (kernel.perf_event_max_sample_rate).
        max: u32,
    },
    /// The system refused a step that it normally grants.
    #[error("{doing} failed: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The steps came in the wrong order.
    #[error("a profiler was asked to {asked} while it was {state}; the order is start, stop, take")]
    OutOfOrder {
        /// The step asked for.
        asked: &'static str,
        /// What the profiler was doing.
        state: &'static str,
    },
    /// The thread that drains the buffers ended by itself.
    #[error("the thread that reads the samples ended unexpectedly; this is a bug")]
    ReaderGone,
}
