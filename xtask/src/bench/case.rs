//! One case of the comparison with fio.

/// What both sides do, direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityCase {
    /// `randread` or `randwrite`.
    pub rw: &'static str,
    /// Bytes of a request, as both programs write it.
    pub block: &'static str,
    /// Memory of the requests, by fio's name.
    pub memory: &'static str,
    /// `sync` or `io_uring`.
    pub engine: &'static str,
    /// Threads.
    pub jobs: u32,
    /// Requests in flight per thread.
    pub depth: u32,
}
