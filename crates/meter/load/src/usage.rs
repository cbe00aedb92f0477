//! What the calling thread used of the machine.
#![allow(unsafe_code)]

use serde::{Deserialize, Serialize};

/// Processor seconds, context switches and page faults of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// In user space.
    pub user_s: f64,
    /// In the kernel.
    pub sys_s: f64,
    /// Context switches, voluntary or not.
    pub context_switches: u64,
    /// Page faults that read from a device.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
}

impl ThreadUse {
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
        let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        Self {
            user_s: seconds(usage.ru_utime),
            sys_s: seconds(usage.ru_stime),
            context_switches: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
            major_faults: count(usage.ru_majflt),
            minor_faults: count(usage.ru_minflt),
        }
    }

    /// What was used since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_s: (self.user_s - earlier.user_s).max(0.0),
            sys_s: (self.sys_s - earlier.sys_s).max(0.0),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: Self) {
        self.user_s += other.user_s;
        self.sys_s += other.sys_s;
        self.context_switches += other.context_switches;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
    }
}
