//! Context switches of this process, ended threads included (getrusage(2)).
//!
//! `/proc/self/status` would tell only those of one thread, and a worker that has ended could not
//! be asked any more.
#![allow(unsafe_code)]

use iostrata_run::host::Switches;

/// Context switches of this process so far; absent when the system refuses to tell.
pub(crate) fn switches() -> Option<Switches> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is valid for writes of one rusage, which is all that the call writes.
    let answer = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    if answer != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so it has filled the whole structure, a plain struct of integers.
    let usage = unsafe { usage.assume_init() };
    Some(Switches {
        voluntary: u64::try_from(usage.ru_nvcsw).ok()?,
        involuntary: u64::try_from(usage.ru_nivcsw).ok()?,
    })
}

/// The switches between two readings.
pub(crate) fn switches_between(before: Switches, after: Switches) -> Switches {
    Switches {
        voluntary: after.voluntary.saturating_sub(before.voluntary),
        involuntary: after.involuntary.saturating_sub(before.involuntary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let before = switches().unwrap();
        std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_millis(2)))
            .join()
            .unwrap();
        let passed = switches_between(before, switches().unwrap());
        assert!(passed.voluntary >= 1, "{passed:?}");
    }
}
