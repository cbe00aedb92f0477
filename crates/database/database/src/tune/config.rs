//! What the user allows: bounds of each setting, the set-point, the read latency to keep, a budget.
//!
//! The text is TOML: `set_point_pct`, `read_ms_max`, `allow_delay`, a table `budget`, and a table
//! for each setting with `min`, `max`.

use std::collections::BTreeMap;

use thiserror::Error;
use toml::de::{DeTable, DeValue};

use crate::tune::budget::Budget;
use crate::tune::lever::Lever;

/// Bounds of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// What the user allows.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneConfig {
    /// Where the checkpoint age is held, in percent of the max checkpoint age.
    pub set_point_pct: f64,
    /// Mean time of a device's read, in milliseconds, above which less is flushed while the age
    /// allows it.
    pub read_ms_max: Option<f64>,
    /// Whether writers may be slowed down by `innodb_max_purge_lag` when the device cannot follow.
    pub allow_delay: bool,
    /// What tuning may take.
    pub budget: Budget,
    /// The server restores its own settings when the tuner was silent for so many seconds; 0: it
    /// does not.
    pub lease_s: u32,
    /// The schema of the event that does it, where that is not to be one of its own.
    pub lease_schema: Option<String>,
    bounds: BTreeMap<Lever, Bounds>,
}

impl Default for TuneConfig {
    fn default() -> Self {
        Self {
            set_point_pct: 85.0,
            read_ms_max: None,
            allow_delay: false,
            budget: Budget::default(),
            lease_s: 120,
            lease_schema: None,
            bounds: BTreeMap::new(),
        }
    }
}

/// Text that is no configuration.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    /// No TOML.
    #[error("{0}")]
    Text(String),
    /// An invalid name.
    #[error("`{name}` is unknown; use {known}")]
    Name {
        /// What was found.
        name: String,
        /// What there is.
        known: String,
    },
    /// A value of another kind, or out of its bounds.
    #[error("{name} = {found}: it takes {takes}")]
    Value {
        /// Of which entry.
        name: String,
        /// What was found.
        found: String,
        /// What would do.
        takes: String,
    },
}

impl TuneConfig {
    /// From the text of a file.
    ///
    /// # Errors
    /// The first entry that is wrong.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let root = DeTable::parse(text);
        let root = root.map_err(|error| ConfigError::Text(error.to_string()))?;
        let mut config = Self::default();
        for (name, value) in root.into_inner() {
            config.take(name.get_ref(), value.get_ref())?;
        }
        for lever in CAPACITIES {
            let min = config.bounds.get(&lever).map_or(0.0, |bounds| bounds.min);
            if let Some(most) = config.budget.pages_per_s_max.filter(|most| *most < min) {
                let (name, found) = ("budget.pages_per_s_max".to_owned(), most.to_string());
                let takes = format!("at least {}.min, which is {min}", lever.name());
                return Err(ConfigError::Value { name, found, takes });
            }
        }
        Ok(config)
    }

    fn take(&mut self, name: &str, value: &DeValue<'_>) -> Result<(), ConfigError> {
        match (name, value) {
            ("set_point_pct", _) => self.set_point_pct = number(name, value, (10.0, 95.0))?,
            ("read_ms_max", _) => self.read_ms_max = Some(number(name, value, (0.01, 1e5))?),
            ("allow_delay", DeValue::Boolean(allows)) => self.allow_delay = *allows,
            ("allow_delay", _) => return Err(wrong(name, value, "true or false".to_owned())),
            ("lease_s", _) => self.lease_s = lease_s(name, value)?,
            ("lease_schema", DeValue::String(text)) if is_word(text) => {
                self.lease_schema = Some(text.to_string());
            }
            ("lease_schema", _) => {
                return Err(wrong(name, value, "a schema of letters, digits and _".to_owned()));
            }
            ("budget", DeValue::Table(table)) => self.budget = budget(table)?,
            ("budget", _) => return Err(wrong(name, value, format!("a table with {IN_BUDGET}"))),
            (_, DeValue::Table(table)) => {
                let lever = Lever::named(name).ok_or_else(|| unknown(name))?;
                self.bounds.insert(lever, bounds(lever, table)?);
            }
            _ if Lever::named(name).is_some() => {
                return Err(wrong(name, value, format!("a table with {IN_BOUNDS}")));
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// The bounds of a setting: the server's own where the user gave none.
    pub fn bounds(&self, lever: Lever) -> Bounds {
        let (min, max) = lever.range();
        let bounds = self.bounds.get(&lever).copied().unwrap_or(Bounds { min, max });
        let most = self.budget.pages_per_s_max.filter(|_| CAPACITIES.contains(&lever));
        Bounds { max: most.map_or(bounds.max, |most| bounds.max.min(most)), ..bounds }
    }
}

/// The entries of a budget, and of the bounds of a setting.
const IN_BUDGET: &str = "pages_per_s_max, pages_per_day_max or quiet_hours_utc";
const IN_BOUNDS: &str = "min or max";

/// What a budget of pages per second bounds.
const CAPACITIES: [Lever; 2] = [Lever::IoCapacity, Lever::IoCapacityMax];

/// The shortest lease, and the longest, in seconds.
const LEASE_S: (f64, f64) = (5.0, 86_400.0);

fn lease_s(name: &str, value: &DeValue<'_>) -> Result<u32, ConfigError> {
    let (least, most) = LEASE_S;
    let seconds = number(name, value, (0.0, most))?;
    let is_taken = seconds.fract() == 0.0 && (seconds == 0.0 || seconds >= least);
    let takes = || format!("0 for none, or {least} to {most}");
    is_taken.then_some(seconds as u32).ok_or_else(|| wrong(name, value, takes()))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|one| one.is_ascii_alphanumeric() || one == b'_')
}

fn budget(table: &DeTable<'_>) -> Result<Budget, ConfigError> {
    let mut budget = Budget::default();
    for (key, value) in table {
        let (name, value) = (format!("budget.{}", key.get_ref()), value.get_ref());
        match key.get_ref().as_ref() {
            "pages_per_s_max" => {
                budget.pages_per_s_max = Some(number(&name, value, Lever::IoCapacity.range())?);
            }
            "pages_per_day_max" => {
                budget.pages_per_day_max = Some(number(&name, value, (1.0, 1e12))?);
            }
            "quiet_hours_utc" => budget.quiet_hours = hours(&name, value)?,
            _ => return Err(ConfigError::Name { name, known: IN_BUDGET.to_owned() }),
        }
    }
    Ok(budget)
}

fn hours(name: &str, value: &DeValue<'_>) -> Result<Vec<(u32, u32)>, ConfigError> {
    let takes = || "a list of hours such as [\"22:00-06:00\"]".to_owned();
    let DeValue::Array(all) = value else { return Err(wrong(name, value, takes())) };
    let one = |one: &toml::Spanned<DeValue<'_>>| match one.get_ref() {
        DeValue::String(text) => Budget::hours(text),
        _ => None,
    };
    let each = |value| one(value).ok_or_else(|| wrong(name, value.get_ref(), takes()));
    all.iter().map(each).collect()
}

fn bounds(lever: Lever, table: &DeTable<'_>) -> Result<Bounds, ConfigError> {
    let (min, max) = lever.range();
    let mut found = Bounds { min, max };
    for (key, value) in table {
        let name = format!("{}.{}", lever.name(), key.get_ref());
        let number = number(&name, value.get_ref(), (min, max)).and_then(|number| {
            let takes = || format!("a whole number from {min} to {max}");
            let is_taken = number.fract() == 0.0 || !lever.is_whole();
            is_taken.then_some(number).ok_or_else(|| wrong(&name, value.get_ref(), takes()))
        });
        match key.get_ref().as_ref() {
            "min" => found.min = number?,
            "max" => found.max = number?,
            _ => return Err(ConfigError::Name { name, known: IN_BOUNDS.to_owned() }),
        }
    }
    if found.min > found.max {
        let (name, takes) = (format!("{}.min", lever.name()), "at most its max".to_owned());
        return Err(ConfigError::Value { name, found: found.min.to_string(), takes });
    }
    Ok(found)
}

fn number(name: &str, value: &DeValue<'_>, (min, max): (f64, f64)) -> Result<f64, ConfigError> {
    let text = shown(value);
    let number = text.replace('_', "").parse::<f64>().ok();
    let is_within = |number: &f64| (min..=max).contains(number);
    number.filter(is_within).ok_or_else(|| wrong(name, value, format!("{min} to {max}")))
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(on) => if *on { "1" } else { "0" }.to_owned(),
        DeValue::String(text) => format!("\"{text}\""),
        other => other.type_str().to_owned(),
    }
}

fn wrong(name: &str, value: &DeValue<'_>, takes: String) -> ConfigError {
    ConfigError::Value { name: name.to_owned(), found: shown(value), takes }
}

fn unknown(name: &str) -> ConfigError {
    let known = format!(
        "set_point_pct, read_ms_max, allow_delay, lease_s, lease_schema, a table budget with \
         {IN_BUDGET}, or a table with {IN_BOUNDS} of {}",
        Lever::ALL.map(Lever::name).join(", ")
    );
    ConfigError::Name { name: name.to_owned(), known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_is_allowed() {
        let text = "set_point_pct = 70\nread_ms_max = 12.5\nallow_delay = true\nlease_s = 30\n\
                    lease_schema = \"dba\"\n\
                    [innodb_io_capacity]\nmin = 300\nmax = 4_000\n[flush_neighbors]\nmin = 1\n";
        let config = TuneConfig::parse(text).unwrap();
        assert_eq!((config.set_point_pct, config.read_ms_max), (70.0, Some(12.5)));
        assert!(config.allow_delay);
        assert_eq!((config.lease_s, config.lease_schema.as_deref()), (30, Some("dba")));
        assert_eq!(config.bounds(Lever::IoCapacity), Bounds { min: 300.0, max: 4000.0 });
        assert_eq!(config.bounds(Lever::FlushNeighbors), Bounds { min: 1.0, max: 2.0 });
        assert_eq!(config.bounds(Lever::IoCapacityMax).min, 100.0);
        assert_eq!(TuneConfig::parse("").unwrap(), TuneConfig::default());
    }

    #[test]
    fn a_budget_bounds_both_capacities() {
        let text = "[budget]\npages_per_s_max = 500\npages_per_day_max = 1_000_000\n\
                    quiet_hours_utc = [\"22:00-06:00\", \"12:00-12:30\"]\n[io_capacity]\nmax = 300";
        let config = TuneConfig::parse(text).unwrap();
        assert_eq!(config.bounds(Lever::IoCapacity).max, 300.0);
        assert_eq!(config.bounds(Lever::IoCapacityMax).max, 500.0);
        assert_eq!(
            config.bounds(Lever::MaxPurgeLag),
            TuneConfig::default().bounds(Lever::MaxPurgeLag)
        );
        let Budget { pages_per_day_max, quiet_hours, .. } = config.budget;
        assert_eq!(pages_per_day_max, Some(1e6));
        assert_eq!(quiet_hours, [(1320, 360), (720, 750)]);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_do() {
        for (text, says) in [
            ("set_point_pct = 5", "set_point_pct = 5: it takes 10 to 95"),
            ("allow_delay = 2", "allow_delay = 2: it takes true or false"),
            ("[innodb_io_capacity]\nmin = 50", "innodb_io_capacity.min = 50: it takes 100 to "),
            ("[io_capacity]\nmax = 250.5", "max = 250.5: it takes a whole number"),
            (
                "[io_capacity]\nmin = 900\nmax = 300",
                "innodb_io_capacity.min = 900: it takes at most",
            ),
            ("[io_capacity]\nleast = 900", "`innodb_io_capacity.least` is unknown; use min or max"),
            ("io_capacity = 900", "io_capacity = 900: it takes a table with min or max"),
            ("[buffer_pool_size]\nmin = 1", "`buffer_pool_size` is unknown"),
            ("setpoint = 5", "`setpoint` is unknown; use set_point_pct, "),
            ("[budget]\npages_per_s = 5", "`budget.pages_per_s` is unknown; use pages_per_s_max, "),
            ("[budget]\npages_per_s_max = 50", "budget.pages_per_s_max = 50: it takes 100 to "),
            ("[budget]\nquiet_hours_utc = \"22:00-06:00\"", "it takes a list of hours such as"),
            ("[budget]\nquiet_hours_utc = [\"22-6\"]", "quiet_hours_utc = \"22-6\": it takes"),
            (
                "[budget]\npages_per_s_max = 200\n[io_capacity]\nmin = 300",
                "it takes at least innodb_io_capacity.min, which is 300",
            ),
            ("lease_s = 3", "lease_s = 3: it takes 0 for none, or 5 to 86400"),
            ("lease_schema = \"a.b\"", "it takes a schema of letters, digits and _"),
            ("budget = 5", "budget = 5: it takes a table with pages_per_s_max, "),
            ("set_point_pct = \"many\"", "set_point_pct = \"many\": it takes 10 to 95"),
        ] {
            let error = TuneConfig::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(matches!(TuneConfig::parse("a = "), Err(ConfigError::Text(_))));
    }
}
