//! Which run, how long, and what was watched in it; runs that have ended, kept as files.
//!
//! Invariant: a run is there whole or not at all, since its document is moved to its place as the
//! last step.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{SCENARIOS, Scenario, Side};

// Which run, how long, and what was watched in it.

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

/// Where loaded data is, and the runs of a picture.
const PREPARED: &str = "prepared";
const PICTURE: &str = "picture";
/// The document of a run, and its run directory.
const DOCUMENT: &str = "run.json";
const RECORDING: &str = "recording";

/// The directory of runs.
pub struct RunStore {
    dir: PathBuf,
}

impl RunStore {
    /// In a directory that is made where it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn in_dir(dir: PathBuf) -> Result<Self> {
        fs::create_dir_all(&dir).with_context(|| format!("--keep {}", dir.display()))?;
        Ok(Self { dir: dir.canonicalize()? })
    }

    /// Where loaded data is kept.
    pub fn prepared(&self) -> PathBuf {
        self.dir.join(PREPARED)
    }

    /// Where a picture's runs are named.
    pub fn picture(&self) -> PathBuf {
        self.dir.join(PICTURE)
    }

    /// Where the recording of a run that is kept lies.
    pub fn recording_at(&self, key: &RunKey) -> PathBuf {
        self.place(key).join(RECORDING)
    }

    fn place(&self, key: &RunKey) -> PathBuf {
        let run = format!("{}-{}", key.side.name(), key.round);
        self.dir.join(&key.server).join(key.scenario.name).join(run)
    }

    /// Where the recording of a run goes while it is made; what a killed bench left there is gone.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn recording_of(&self, key: &RunKey) -> Result<PathBuf> {
        let place = self.place(key);
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        fs::create_dir_all(&place)?;
        Ok(place.join(RECORDING))
    }

    /// Whether a run with these times is there.
    pub fn has(&self, key: &RunKey, times: RunTimes) -> bool {
        self.read(key).is_ok_and(|run| run.times == times)
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, run: &KeptRun) -> Result<()> {
        let place = self.place(&run.key);
        fs::create_dir_all(&place)?;
        let text = json!({
            "warm_up_s": run.times.warm_up_s,
            "seconds": run.times.seconds,
            "watched": run.watched,
        });
        let new = place.join("run.json.new");
        fs::write(&new, text.to_string())?;
        fs::rename(new, place.join(DOCUMENT)).context("cannot keep a run")
    }

    fn read(&self, key: &RunKey) -> Result<KeptRun> {
        let path = self.place(key).join(DOCUMENT);
        let said = || path.display().to_string();
        let mut document: Value =
            serde_json::from_str(&fs::read_to_string(&path).with_context(said)?)
                .with_context(said)?;
        let number = |name: &str| document[name].as_u64().with_context(said);
        let times = RunTimes { warm_up_s: number("warm_up_s")?, seconds: number("seconds")? };
        Ok(KeptRun { key: key.clone(), times, watched: document["watched"].take() })
    }

    /// All runs.
    ///
    /// # Errors
    /// When the directory cannot be read, or a run is damaged.
    pub fn all(&self) -> Result<Vec<KeptRun>> {
        let mut runs = Vec::new();
        for server in names(&self.dir)?.into_iter().filter(|name| name.contains('-')) {
            for scenario in &SCENARIOS {
                let place = self.dir.join(&server).join(scenario.name);
                for name in names(&place)? {
                    let Some((side, round)) = side_and_round(&name) else { continue };
                    let key = RunKey { server: server.clone(), scenario, side, round };
                    if place.join(&name).join(DOCUMENT).exists() {
                        runs.push(self.read(&key)?);
                    }
                }
            }
        }
        Ok(runs)
    }

    /// What tuning came to before the change, as options of a server.
    ///
    /// # Errors
    /// When it was not tuned yet in the same round.
    pub fn fixed_of(&self, key: &RunKey) -> Result<Vec<String>> {
        let tuned = RunKey { side: Side::Tuned, ..key.clone() };
        let run = self.read(&tuned).context("a fixed side needs the tuned one before it")?;
        let names = run.watched["settings"].as_array().context("no settings")?;
        let mut names: Vec<&str> = names.iter().filter_map(|one| one["name"].as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let option = |name: &str| {
            let mean = run.mean_of(name)?;
            // Shares of a percent stay what they are.
            let value = if mean < 1.0 { mean } else { mean.round() };
            Some(format!("{name}={value}"))
        };
        Ok(names.into_iter().filter_map(option).collect())
    }
}

/// The entries of a directory in order; none where it is not there.
fn names(dir: &Path) -> Result<Vec<String>> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?.flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Of the name of a run's directory.
fn side_and_round(name: &str) -> Option<(Side, usize)> {
    let (side, round) = name.split_once('-')?;
    let side = Side::ALL.into_iter().find(|one| one.name() == side)?;
    Some((side, round.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(side: Side, settings: Value) -> KeptRun {
        let server = "mariadb-10.11".to_owned();
        let scenario = SCENARIOS.iter().find(|one| one.change.is_some()).unwrap();
        let key = RunKey { server, scenario, side, round: 2 };
        let times = RunTimes { warm_up_s: 10, seconds: 100 };
        KeptRun { key, times, watched: json!({"samples": [], "settings": settings}) }
    }

    #[test]
    fn what_is_fixed_is_what_tuning_came_to_before_the_change() {
        let to = |t_s: f64, name: &str, to: &str| json!({"t_s": t_s, "name": name, "to": to});
        let settings = json!([
            to(2.0, "innodb_adaptive_flushing", "OFF"),
            to(2.0, "innodb_max_dirty_pages_pct_lwm", "0.001"),
            to(3.0, "innodb_io_capacity", "900"),
            to(20.0, "innodb_io_capacity", "600"),
            // From here on the load is another.
            to(61.0, "innodb_io_capacity", "100"),
        ]);
        let place = std::env::temp_dir().join(format!("iostrata-kept-{}", std::process::id()));
        let kept = RunStore::in_dir(place.clone()).unwrap();
        let tuned = run(Side::Tuned, settings);
        kept.keep(&tuned).unwrap();
        assert!(kept.has(&tuned.key, tuned.times));
        assert!(!kept.has(&tuned.key, RunTimes { seconds: 99, ..tuned.times }));
        let fixed = kept.fixed_of(&RunKey { side: Side::Fixed, ..tuned.key.clone() }).unwrap();
        let expected = [
            "innodb_adaptive_flushing=0",
            // 10 s of 900 and 40 s of 600.
            "innodb_io_capacity=660",
            "innodb_max_dirty_pages_pct_lwm=0.001",
        ];
        assert_eq!(fixed, expected);
        let all = kept.all().unwrap();
        assert_eq!(all.iter().map(|run| &run.key).collect::<Vec<_>>(), [&tuned.key]);
        fs::remove_dir_all(place).unwrap();
    }
}
