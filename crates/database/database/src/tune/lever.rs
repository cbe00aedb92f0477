//! The settings that may be moved.
//!
//! Invariant: each is dynamic in every server that has it.

use std::collections::BTreeMap;

/// A setting that may be moved, in the order in which they are named to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lever {
    /// Pages per second that flushing may take as a rule.
    IoCapacity,
    /// Pages per second that it may take in need.
    IoCapacityMax,
    /// Whether the server weighs the age by itself.
    AdaptiveFlushing,
    /// Share of the redo in percent below which it does not.
    AdaptiveFlushingLwm,
    /// Share of dirty pages in percent from which all is written that may be.
    MaxDirtyPagesPct,
    /// Share of dirty pages in percent from which the cleaner is awake.
    MaxDirtyPagesPctLwm,
    /// Passes of the page cleaner over which it averages.
    FlushingAvgLoops,
    /// Whether neighbours of a page are written with it.
    FlushNeighbors,
    /// History from which writers are delayed.
    MaxPurgeLag,
    /// The longest such delay of a row, in microseconds.
    MaxPurgeLagDelay,
}

impl Lever {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::IoCapacity,
        Self::IoCapacityMax,
        Self::AdaptiveFlushing,
        Self::AdaptiveFlushingLwm,
        Self::MaxDirtyPagesPct,
        Self::MaxDirtyPagesPctLwm,
        Self::FlushingAvgLoops,
        Self::FlushNeighbors,
        Self::MaxPurgeLag,
        Self::MaxPurgeLagDelay,
    ];

    /// Its name in the server.
    pub fn name(self) -> &'static str {
        match self {
            Self::IoCapacity => "innodb_io_capacity",
            Self::IoCapacityMax => "innodb_io_capacity_max",
            Self::AdaptiveFlushing => "innodb_adaptive_flushing",
            Self::AdaptiveFlushingLwm => "innodb_adaptive_flushing_lwm",
            Self::MaxDirtyPagesPct => "innodb_max_dirty_pages_pct",
            Self::MaxDirtyPagesPctLwm => "innodb_max_dirty_pages_pct_lwm",
            Self::FlushingAvgLoops => "innodb_flushing_avg_loops",
            Self::FlushNeighbors => "innodb_flush_neighbors",
            Self::MaxPurgeLag => "innodb_max_purge_lag",
            Self::MaxPurgeLagDelay => "innodb_max_purge_lag_delay",
        }
    }

    /// The lever of this name, with `innodb_` or without.
    pub fn named(name: &str) -> Option<Self> {
        let own = name.strip_prefix("innodb_").unwrap_or(name);
        Self::ALL.into_iter().find(|lever| lever.name().strip_prefix("innodb_") == Some(own))
    }

    /// What the server takes at most and at least.
    pub(crate) fn range(self) -> (f64, f64) {
        match self {
            Self::IoCapacity | Self::IoCapacityMax => (100.0, 1e6),
            Self::AdaptiveFlushing => (0.0, 1.0),
            Self::AdaptiveFlushingLwm => (0.0, 70.0),
            Self::MaxDirtyPagesPct | Self::MaxDirtyPagesPctLwm => (0.0, 99.0),
            Self::FlushingAvgLoops => (1.0, 1000.0),
            Self::FlushNeighbors => (0.0, 2.0),
            Self::MaxPurgeLag => (0.0, 4_294_967_295.0),
            Self::MaxPurgeLagDelay => (0.0, 10_000_000.0),
        }
    }

    /// A value as the server takes it.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::AdaptiveFlushing => if value == 0.0 { "OFF" } else { "ON" }.to_owned(),
            // The greatest number that there is would be rounded up beyond it.
            _ if value.fract() == 0.0 => format!("{}", value as u64),
            _ => format!("{value}"),
        }
    }

    /// Whether the server takes whole numbers only.
    pub(crate) fn is_whole(self) -> bool {
        !matches!(self, Self::MaxDirtyPagesPct | Self::MaxDirtyPagesPctLwm)
    }

    /// A value as the server reports it.
    pub fn value(self, text: &str) -> Option<f64> {
        match text.to_ascii_uppercase().as_str() {
            "ON" => Some(1.0),
            "OFF" => Some(0.0),
            number => number.parse().ok().filter(|value: &f64| value.is_finite()),
        }
    }
}

/// The present values of the levers that a server has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeverValues(BTreeMap<Lever, f64>);

impl LeverValues {
    /// From all settings of a server, by name.
    pub fn of<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let known = settings.into_iter().filter_map(|(name, text)| {
            let lever = Lever::ALL.into_iter().find(|lever| lever.name() == name)?;
            Some((lever, lever.value(text)?))
        });
        Self(known.collect())
    }

    /// One of them; absent where the server has it not.
    pub fn get(&self, lever: Lever) -> Option<f64> {
        self.0.get(&lever).copied()
    }

    /// Notes a value.
    pub fn set(&mut self, lever: Lever, value: f64) {
        self.0.insert(lever, value);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Lever, f64)> {
        self.0.iter().map(|(lever, value)| (*lever, *value))
    }
}

/// A setting to change.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Which.
    pub lever: Lever,
    /// To what.
    pub to: f64,
    /// Why, in one sentence.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_to_the_server_as_they_came() {
        for (lever, text) in [
            (Lever::IoCapacity, "200"),
            (Lever::AdaptiveFlushing, "ON"),
            (Lever::AdaptiveFlushing, "OFF"),
            (Lever::MaxDirtyPagesPctLwm, "0.001"),
            (Lever::MaxPurgeLag, "4294967295"),
            (Lever::IoCapacityMax, "18446744073709551615"),
        ] {
            assert_eq!(lever.text(lever.value(text).unwrap()), text);
        }
        assert_eq!(Lever::MaxDirtyPagesPctLwm.value("0.001000"), Some(0.001));
        assert_eq!(Lever::IoCapacity.value("many"), None);
    }

    #[test]
    fn a_lever_is_known_by_its_name_with_and_without_the_engine() {
        for lever in Lever::ALL {
            assert_eq!(Lever::named(lever.name()), Some(lever));
            assert_eq!(Lever::named(&lever.name()["innodb_".len()..]), Some(lever));
        }
        assert_eq!(Lever::named("innodb_buffer_pool_size"), None);
    }

    #[test]
    fn a_server_has_what_it_tells() {
        let told = [("innodb_io_capacity", "200"), ("max_connections", "9"), ("innodb_x", "1")];
        let values = LeverValues::of(told);
        assert_eq!(values.iter().collect::<Vec<_>>(), [(Lever::IoCapacity, 200.0)]);
        assert_eq!(values.get(Lever::IoCapacityMax), None);
    }
}
