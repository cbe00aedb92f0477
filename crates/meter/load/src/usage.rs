//! Processor time of the calling thread.
#![allow(unsafe_code)]

use serde::{Deserialize, Serialize};

/// Processor seconds of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadCpu {
    /// In user space.
    pub user_s: f64,
    /// In the kernel.
    pub sys_s: f64,
}

impl ThreadCpu {
    /// Of the calling thread since it began: getrusage(RUSAGE_THREAD).
    pub(crate) fn now() -> Self {
        // SAFETY: an all-zero rusage is valid, and getrusage only writes into it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let answer = libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            assert_eq!(answer, 0, "getrusage of the own thread cannot fail");
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Self { user_s: seconds(usage.ru_utime), sys_s: seconds(usage.ru_stime) }
    }

    /// What was used since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_s: (self.user_s - earlier.user_s).max(0.0),
            sys_s: (self.sys_s - earlier.sys_s).max(0.0),
        }
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: Self) {
        self.user_s += other.user_s;
        self.sys_s += other.sys_s;
    }
}
