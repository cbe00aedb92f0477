//! How the processors spend their time (the first line of `/proc/stat`), and context switches of
//! this process, ended threads included (getrusage(2)).
//!
//! `/proc/self/status` would give only the switches of one thread, and a worker that has ended
//! could not be read any more.
#![allow(unsafe_code)]

use iostrata_run::host::{CpuShares, Switches};

/// Processor time since boot, in clock ticks: user, nice, system, idle, iowait, irq, softirq,
/// steal. Guest time, which follows them, is already part of user and nice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes(pub [u64; 8]);

impl CpuTimes {
    /// Parses the text of `/proc/stat`, of which the beginning is enough. Columns that an old
    /// kernel lacks count as zero.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let mut times = [0; 8];
        let mut words = line.split_ascii_whitespace();
        for (column, time) in times.iter_mut().enumerate() {
            match words.next() {
                Some(word) => *time = word.parse().ok()?,
                None if column >= 4 => break,
                None => return None,
            }
        }
        Some(Self(times))
    }

    /// The shares of the time since an earlier reading; absent when none passed. The kernel's
    /// idle counters may step back a little, which counts as nothing.
    pub fn shares_since(&self, before: &Self) -> Option<CpuShares> {
        let passed: Vec<f64> = std::iter::zip(self.0, before.0)
            .map(|(after, before)| after.saturating_sub(before) as f64)
            .collect();
        let all: f64 = passed.iter().sum();
        let &[user, nice, system, idle, iowait, irq, softirq, steal] = passed.as_slice() else {
            return None;
        };
        let pct = |time: f64| time / all * 100.0;
        (all > 0.0).then(|| CpuShares {
            user_pct: pct(user),
            nice_pct: pct(nice),
            system_pct: pct(system),
            idle_pct: pct(idle),
            iowait_pct: pct(iowait),
            irq_pct: pct(irq),
            softirq_pct: pct(softirq),
            steal_pct: pct(steal),
        })
    }
}

/// Context switches of this process so far; absent when the system does not report them.
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_worked_out_by_hand() {
        let before = CpuTimes::parse("cpu  100 0 50 800 20 1 2 3 99 0\ncpu0 1 1").unwrap();
        let after = CpuTimes::parse("cpu  130 0 70 835 30 1 4 6 120 0\n").unwrap();
        let shares = after.shares_since(&before).unwrap();
        // 30 + 20 + 35 + 10 + 2 + 3 = 100 ticks; guest time is not counted again.
        assert_eq!(shares.user_pct, 30.0);
        assert_eq!(shares.system_pct, 20.0);
        assert_eq!(shares.idle_pct, 35.0);
        assert_eq!(shares.iowait_pct, 10.0);
        assert_eq!(shares.softirq_pct, 2.0);
        assert_eq!(shares.steal_pct, 3.0);
        assert_eq!(shares.busy_pct(), 52.0);
    }

    #[test]
    fn odd_readings() {
        let times = CpuTimes::parse("cpu  1 2 3 4").unwrap();
        assert_eq!(times.0, [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(times.shares_since(&times), None);
        assert_eq!(CpuTimes::parse("cpu0 1 2 3 4"), None);
        assert_eq!(CpuTimes::parse("cpu  1 2 3"), None);
        let back = CpuTimes([10, 0, 0, 90, 0, 0, 0, 0]);
        let later = CpuTimes([20, 0, 0, 85, 0, 0, 0, 0]);
        assert_eq!(later.shares_since(&back).unwrap().user_pct, 100.0);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}", numbers in "cpu [0-9 ]{0,200}") {
            CpuTimes::parse(&text);
            CpuTimes::parse(&numbers);
        }
    }

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
