//! Pressure stall information: `/proc/pressure/{io,cpu,memory}`, and `{io,cpu,memory}.pressure` of
//! a control group (Documentation/accounting/psi.rst).
//!
//! Invariant: absent when the kernel was built or started without it.

use std::path::PathBuf;

use iostrata_run::host::{PressureShare, PressureShares};

use crate::host::Root;
use crate::host::cgroup::Cgroup;

/// One line: stalled time since boot, and the running mean of the last 10 s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StallTotal {
    /// Time stalled since boot, in microseconds.
    pub total_us: u64,
    /// Share of the last 10 s, in percent.
    pub avg10_pct: Option<f64>,
}

/// One resource.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PressureTotals {
    /// At least one task waited.
    pub some: StallTotal,
    /// All tasks with work waited; an older kernel does not report it for the processor.
    pub full: Option<StallTotal>,
}

impl PressureTotals {
    /// Parses one of the three files.
    pub fn parse(text: &str) -> Option<Self> {
        let line = |name: &str| {
            text.lines().find_map(|line| {
                let mut words = line.split_ascii_whitespace();
                (words.next() == Some(name)).then(|| stall(words))?
            })
        };
        Some(Self { some: line("some")?, full: line("full") })
    }

    fn share_since(&self, before: &Self, seconds: f64) -> Option<PressureShare> {
        let passed =
            |after: StallTotal, before: StallTotal| after.total_us.saturating_sub(before.total_us);
        let pct = |us: u64| us as f64 / seconds / 10_000.0;
        let some_us = passed(self.some, before.some);
        let full_us = self.full.zip(before.full).map(|(after, before)| passed(after, before));
        (seconds > 0.0).then(|| PressureShare {
            some_pct: pct(some_us),
            full_pct: full_us.map(pct),
            some_us,
            full_us,
            some_avg10_pct: self.some.avg10_pct,
            full_avg10_pct: self.full.and_then(|full| full.avg10_pct),
        })
    }
}

fn stall<'a>(words: impl Iterator<Item = &'a str>) -> Option<StallTotal> {
    let mut total_us = None;
    let mut avg10_pct = None;
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        match name {
            "total" => total_us = value.parse().ok(),
            "avg10" => avg10_pct = value.parse().ok().filter(|pct: &f64| pct.is_finite()),
            _ => {}
        }
    }
    Some(StallTotal { total_us: total_us?, avg10_pct })
}

/// All three resources at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pressure {
    pub(crate) io: Option<PressureTotals>,
    pub(crate) cpu: Option<PressureTotals>,
    pub(crate) memory: Option<PressureTotals>,
}

impl Pressure {
    /// That of the whole machine.
    pub(crate) fn read(root: &Root) -> Self {
        Self::of(root, |name| format!("/proc/pressure/{name}").into())
    }

    /// That of a control group; all absent where groups do not report it.
    pub(crate) fn of_group(root: &Root, group: &Cgroup) -> Self {
        Self::of(root, |name| group.dir().join(format!("{name}.pressure")))
    }

    fn of(root: &Root, file: impl Fn(&str) -> PathBuf) -> Self {
        let read = |name: &str| root.text(file(name)).and_then(|text| PressureTotals::parse(&text));
        Self { io: read("io"), cpu: read("cpu"), memory: read("memory") }
    }

    /// What was waited for since an earlier moment; absent without any of the files.
    pub(crate) fn shares_since(&self, before: &Self, seconds: f64) -> Option<PressureShares> {
        let share = |after: Option<PressureTotals>, before: Option<PressureTotals>| {
            after?.share_since(&before?, seconds)
        };
        let shares = PressureShares {
            io: share(self.io, before.io),
            cpu: share(self.cpu, before.cpu),
            memory: share(self.memory, before.memory),
        };
        (shares != PressureShares::default()).then_some(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEFORE: &str = "some avg10=0.00 avg60=0.17 avg300=0.45 total=1000000\n";
    const AFTER: &str = "some avg10=12.50 avg60=0.17 avg300=0.45 total=1500000\n\
                         full avg10=1.00 avg60=0.00 avg300=0.00 total=200000\n";

    #[test]
    fn shares_worked_out_by_hand() {
        let before = PressureTotals {
            full: Some(StallTotal::default()),
            ..PressureTotals::parse(BEFORE).unwrap()
        };
        let after = PressureTotals::parse(AFTER).unwrap();
        let share = after.share_since(&before, 2.0).unwrap();
        assert_eq!((share.some_pct, share.full_pct), (25.0, Some(10.0)));
        assert_eq!((share.some_us, share.full_us), (500_000, Some(200_000)));
        assert_eq!(share.some_avg10_pct, Some(12.5));
    }

    #[test]
    fn missing_lines_and_files() {
        assert_eq!(PressureTotals::parse(BEFORE).unwrap().full, None);
        assert_eq!(PressureTotals::parse("full total=1"), None);
        assert_eq!(PressureTotals::parse("some avg10=1"), None);
        assert_eq!(Pressure::default().shares_since(&Pressure::default(), 1.0), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}", near in "(some|full) (avg10|total)=[0-9.naif-]{0,24}") {
            PressureTotals::parse(&text);
            PressureTotals::parse(&near);
        }
    }
}
