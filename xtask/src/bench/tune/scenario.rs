//! What a server is put under, as data, and what is done with it.

use anyhow::{Result, bail};

/// A stall, or what takes another setting in the middle.
#[derive(Debug, PartialEq)]
pub struct Scenario {
    pub name: &'static str,
    /// In the words of a table.
    pub title: &'static str,
    /// Size of the redo in bytes.
    pub redo_bytes: u64,
    /// Reads per second and writes per second that the volume is held to.
    pub iops: u64,
    /// Transactions per second that arrive; absent where as many are done as can be.
    pub rate: Option<u32>,
    /// For so many seconds the load has run when tuning begins.
    pub head_start_s: u64,
    /// What becomes otherwise in the middle of the measured time.
    pub change: Option<TuneChange>,
    /// Whether it is for every server, or for the first alone.
    pub is_everywhere: bool,
}

/// What becomes otherwise in the middle of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuneChange {
    /// The volume is held to half as many requests.
    LimitHalved,
    /// As many threads again run the load.
    LoadDoubled,
}

const MIB: u64 = 1 << 20;

const BASE: Scenario = Scenario {
    name: "base",
    title: "redo 100 MB, 1,500 IOPS",
    redo_bytes: 100 * MIB,
    iops: 1500,
    rate: None,
    head_start_s: 0,
    change: None,
    is_everywhere: true,
};

const ONCE: Scenario = Scenario { is_everywhere: false, ..BASE };

/// All of them.
pub const SCENARIOS: [Scenario; 9] = [
    BASE,
    Scenario { name: "late", title: "tuned from the 60th second on", head_start_s: 60, ..ONCE },
    Scenario {
        name: "halved",
        title: "1,500 IOPS, then 750",
        change: Some(TuneChange::LimitHalved),
        ..ONCE
    },
    Scenario {
        name: "doubled",
        title: "8 threads, then 16",
        change: Some(TuneChange::LoadDoubled),
        ..ONCE
    },
    Scenario { name: "iops-800", title: "redo 100 MB, 800 IOPS", iops: 800, ..ONCE },
    Scenario { name: "iops-4000", title: "redo 100 MB, 4,000 IOPS", iops: 4000, ..ONCE },
    Scenario { name: "redo-500M", title: "redo 500 MB, 1,500 IOPS", redo_bytes: 500 * MIB, ..ONCE },
    Scenario {
        name: "quiet",
        title: "redo 8 MB, 30 transactions/s",
        redo_bytes: 8 * MIB,
        rate: Some(30),
        ..ONCE
    },
    Scenario {
        name: "quiet-32M",
        title: "redo 32 MB, 5 transactions/s",
        redo_bytes: 32 * MIB,
        rate: Some(5),
        ..ONCE
    },
];

/// Who sets the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Nobody: it has the settings of the stall.
    Untuned,
    /// `iostrata tune`.
    Tuned,
    /// Somebody, once: what tuning came to before the change.
    Fixed,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Untuned, Self::Tuned, Self::Fixed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Untuned => "untuned",
            Self::Tuned => "tuned",
            Self::Fixed => "fixed",
        }
    }
}

/// The scenarios of these names; all where none is named.
///
/// # Errors
/// A name that there is not.
pub fn named(names: &[String]) -> Result<Vec<&'static Scenario>> {
    let known = SCENARIOS.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    if let Some(other) = names.iter().find(|name| SCENARIOS.iter().all(|one| one.name != **name)) {
        bail!("--scenario {other}: there are {known}");
    }
    let is_meant = |one: &&Scenario| names.is_empty() || names.iter().any(|name| name == one.name);
    Ok(SCENARIOS.iter().filter(is_meant).collect())
}

/// The sides of these names; all where none is named.
///
/// # Errors
/// A name that there is not.
pub fn sides(names: &[String]) -> Result<Vec<Side>> {
    if let Some(other) = names.iter().find(|name| Side::ALL.iter().all(|one| one.name() != **name))
    {
        bail!("--side {other}: there are untuned, tuned and fixed");
    }
    let is_meant = |one: &Side| names.is_empty() || names.iter().any(|name| name == one.name());
    Ok(Side::ALL.into_iter().filter(is_meant).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_not_there_is_refused_and_no_name_means_all() {
        assert_eq!(named(&[]).unwrap().len(), SCENARIOS.len());
        let two = named(&words("halved base")).unwrap();
        assert_eq!(two.iter().map(|one| one.name).collect::<Vec<_>>(), ["base", "halved"]);
        assert!(named(&words("base bsae")).unwrap_err().to_string().contains("redo-500M"));
        assert_eq!(sides(&words("fixed tuned")).unwrap(), [Side::Tuned, Side::Fixed]);
        assert!(sides(&words("own")).is_err());
    }

    #[test]
    fn a_fixed_setting_is_for_what_changes() {
        let changed = SCENARIOS.iter().filter(|one| one.change.is_some());
        assert_eq!(changed.map(|one| one.name).collect::<Vec<_>>(), ["halved", "doubled"]);
    }
}
