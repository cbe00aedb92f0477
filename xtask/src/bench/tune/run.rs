//! Which run, how long, and what was watched in it.

use std::fmt;

use serde_json::Value;

use super::scenario::{SCENARIOS, Scenario, Side};

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTimes {
    pub warm_up_s: u64,
    pub seconds: u64,
}

impl RunTimes {
    /// When a change comes, in seconds since tuning began.
    pub fn change_at_s(self) -> u64 {
        self.warm_up_s + self.seconds / 2
    }
}

/// Which run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunKey {
    pub server: String,
    pub scenario: &'static Scenario,
    pub side: Side,
    /// From 1.
    pub round: usize,
}

impl RunKey {
    /// Its place among scenarios.
    pub fn scenario_at(&self) -> usize {
        SCENARIOS.iter().position(|one| one.name == self.scenario.name).unwrap_or(0)
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, scenario, side, round } = self;
        write!(f, "{server}, {}, {}, round {round}", scenario.name, side.name())
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct KeptRun {
    pub key: RunKey,
    pub times: RunTimes,
    /// What `tune` printed, or watched.
    pub watched: Value,
}

impl KeptRun {
    /// When something changed, in seconds since tuning began.
    pub fn change_at_s(&self) -> Option<usize> {
        self.key.scenario.change.map(|_| self.times.change_at_s() as usize)
    }

    /// What a setting was on average while it was measured, before anything changed; nothing where
    /// it was not set.
    pub fn mean_of(&self, name: &str) -> Option<f64> {
        let from = self.times.warm_up_s as f64;
        let until = self.change_at_s().map_or(f64::INFINITY, |at| at as f64);
        let until = until.min(from + self.times.seconds as f64);
        let changes = self.watched["settings"].as_array()?.iter();
        let values = changes.filter(|one| one["name"] == name);
        let values = values.filter_map(|one| {
            let value = match one["to"].as_str()? {
                "ON" => 1.0,
                "OFF" => 0.0,
                number => number.parse().ok()?,
            };
            Some((one["t_s"].as_f64()?, value))
        });
        let values: Vec<(f64, f64)> = values.filter(|(t_s, _)| *t_s < until).collect();
        let ends = values.iter().skip(1).map(|(t_s, _)| *t_s).chain([until]);
        let held = |((t_s, value), end): (&(f64, f64), f64)| {
            (value * (end.max(from) - t_s.max(from)), end.max(from) - t_s.max(from))
        };
        let sums = values.iter().zip(ends).map(held);
        let (sum, time) = sums.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        (time > 0.0).then(|| sum / time)
    }
}
