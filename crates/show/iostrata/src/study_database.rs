//! The databases of a study's points: the embedded engine on the study's own volumes.
//!
//! Invariants: what a study's text says of the engine is checked before anything is touched; tables
//! are loaded once for all points that can share them, which are those that agree on the rows and
//! on what is decided when the data is created. Another database gets a branch beside the engine's:
//! its data directory lies in the same place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_embedded::EmbeddedTarget;
use iostrata_engine::{Engine, SettingError, Settings};
use iostrata_load::TransactionSource;
use iostrata_spec::study::setting::{OF_ENGINE, OF_SECOND, UPDATES};
use iostrata_spec::study::{Extent, MeasuringOverrides, StudySpec};
use iostrata_spec::{Access, TransactionSpec};
use iostrata_study::factorial::{Databases, StudiedDatabase};
use iostrata_target::{Target, TargetError};
use iostrata_workload::oltp::{self, Distribution, Member, OltpSpec, OltpTerminals};

use crate::exit_error::ExitError;

/// A machine with much memory would give the engine of a study much more than its tables need.
const SMALL: [(&str, &str); 3] =
    [("buffer_pool_size", "128M"), ("redo_log_capacity", "128M"), ("autoextend_increment", "8M")];
/// What is decided when the data is created.
const OF_DATA: [&str; 2] = ["page_size", "data_files"];
/// A study has its redo where its data is: both are on the volume that it is about.
const NOT_OURS: &str = "redo_directory";

/// Checks what a study says of the engine.
///
/// # Errors
/// The first setting that the engine does not have or take, with its place; the first point whose
/// settings do not go together.
pub fn check(study: &StudySpec) -> Result<(), ExitError> {
    for set in study.database_settings() {
        let own = set.name.strip_prefix(OF_ENGINE).or_else(|| set.name.strip_prefix(OF_SECOND));
        let name = own.unwrap_or(set.name);
        let refused = match Settings::default().set(name, &set.value) {
            _ if name == NOT_OURS => {
                let fix = "leave it away: redo lies on the volume, with the data";
                study.refusal(&set, "is not for studies", fix)
            }
            Ok(()) => continue,
            Err(error @ SettingError::Unknown { .. }) => {
                let fix = "docs/settings.md lists the settings of the engine";
                study.refusal(&set, &error.to_string(), fix)
            }
            Err(error) => study.refusal(&set, &error.to_string(), "see docs/settings.md"),
        };
        return Err(ExitError::Usage(refused.to_string()));
    }
    for extent in [Extent::Quick, Extent::Full] {
        let plan = study.plan(extent, None, &MeasuringOverrides::default());
        let plan = plan.map_err(|error| ExitError::Usage(error.to_string()))?;
        for cell in &plan.cells {
            for (load, which) in [(&cell.transactions, ""), (&cell.second, ", second engine")] {
                let Some(load) = load else { continue };
                together(load).map_err(|error| {
                    let place = format!("study {}, point {}{which}", study.name, cell.id);
                    ExitError::Usage(format!("{place}: {error}"))
                })?;
            }
        }
    }
    Ok(())
}

/// Whether the settings of a load go together.
fn together(load: &TransactionSpec) -> Result<(), SettingError> {
    let mut settings = Engine::server_settings();
    for (name, value) in settings_of(load) {
        settings.set(&name, &value)?;
    }
    settings.check()
}

/// The engine's settings for a load.
fn settings_of(load: &TransactionSpec) -> Vec<(String, String)> {
    let own = |(name, value): (&String, &String)| {
        Some((name.strip_prefix(OF_ENGINE)?.to_owned(), value.clone()))
    };
    let own: Vec<(String, String)> = load.settings.iter().filter_map(own).collect();
    let small = SMALL.map(|(name, value)| (name.to_owned(), value.to_owned()));
    small.into_iter().chain(own).collect()
}

/// The tables of a load and what is done with them.
fn workload_of(load: &TransactionSpec) -> OltpSpec {
    let number = |name: &str| load.settings.get(name).and_then(|text| text.parse::<u32>().ok());
    let rows = i64::from(number("rows").unwrap_or(1));
    let member = Member::ALL.into_iter().find(|member| {
        load.workload.strip_prefix("oltp_").is_some_and(|name| name == member.name())
    });
    let mut spec = match member {
        Some(member) => OltpSpec { table_size: rows, ..OltpSpec::new(member) },
        None => OltpSpec::updates(rows, number("row_updates").unwrap_or(1)),
    };
    let chosen = load.settings.get("random_distribution").and_then(|text| text.parse().ok());
    if let Some(Access::Zipfian(theta)) = chosen {
        (spec.distribution, spec.zipf_exponent) = (Distribution::Zipfian, theta.0);
    }
    spec.seed = load.seed;
    spec
}

/// Databases of a study, each loaded once.
#[derive(Debug, Default)]
pub struct StudyDatabases {
    loaded: BTreeSet<PathBuf>,
}

impl StudyDatabases {
    /// The directory of the tables that a load shares with others.
    fn directory(load: &TransactionSpec, below: &Path) -> PathBuf {
        let kind = if load.workload == UPDATES { UPDATES } else { "oltp" };
        let rows = load.settings.get("rows").map_or("", String::as_str);
        let mut name = format!("{kind}-{rows}");
        for of_data in OF_DATA {
            if let Some(value) = load.settings.get(&format!("{OF_ENGINE}{of_data}")) {
                name.push_str(&format!("-{of_data}-{value}"));
            }
        }
        below.join(name)
    }
}

impl Databases for StudyDatabases {
    fn open(
        &mut self,
        load: &TransactionSpec,
        dir: &Path,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn StudiedDatabase>, TargetError> {
        let directory = Self::directory(load, dir);
        let spec = workload_of(load);
        let target =
            EmbeddedTarget::open(&directory, &oltp::schema(spec.tables), &settings_of(load))?;
        if !self.loaded.contains(&directory) {
            progress(&format!("loading {} rows", spec.table_size));
            // What an attempt before this one left half done.
            oltp::cleanup(&target, spec.tables)?;
            // Equal tables, whatever the seed of the replicate is.
            let tables = OltpSpec { seed: 1, ..spec.clone() };
            oltp::prepare(&target, &tables, 1, stop, &|_| ())?;
            self.loaded.insert(directory);
        }
        if !stop.load(Ordering::Relaxed) {
            progress("reading the tables");
            oltp::read_all(&target, &spec)?;
        }
        Ok(Box::new(StudyEngine { target }))
    }
}

/// An engine that is open for a point.
struct StudyEngine {
    target: EmbeddedTarget,
}

impl StudiedDatabase for StudyEngine {
    fn target(&self) -> &dyn Target {
        &self.target
    }

    fn source(
        &self,
        load: &TransactionSpec,
    ) -> Result<Box<dyn TransactionSource + '_>, TargetError> {
        Ok(Box::new(OltpTerminals::new(&self.target, workload_of(load), false)?))
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        self.target.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(workload: &str, settings: &[(&str, &str)]) -> TransactionSpec {
        let mut load = TransactionSpec::new(workload, "engine");
        let own = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        load.settings.extend(own);
        load
    }

    #[test]
    fn a_load_is_what_its_words_say() {
        let spec = workload_of(&load(
            "updates",
            &[("rows", "500"), ("row_updates", "7"), ("random_distribution", "zipf:0.9")],
        ));
        assert_eq!((spec.table_size, spec.counts.non_index_updates), (500, 7));
        assert_eq!((spec.distribution, spec.zipf_exponent), (Distribution::Zipfian, 0.9));
        let spec = workload_of(&load("oltp_write_only", &[("rows", "500")]));
        assert_eq!((spec.member, spec.table_size), (Member::WriteOnly, 500));
    }

    #[test]
    fn points_share_their_tables_unless_the_data_itself_differs() {
        let of = |settings: &[(&str, &str)]| {
            StudyDatabases::directory(&load("updates", settings), Path::new("/v"))
        };
        let plain = of(&[("rows", "9")]);
        assert_eq!(plain, of(&[("rows", "9"), ("engine.policy", "adaptive")]));
        assert_ne!(plain, of(&[("rows", "8")]));
        assert_ne!(plain, of(&[("rows", "9"), ("engine.page_size", "4K")]));
    }

    fn refused(settings: &str) -> String {
        let text = format!(
            "name = 'a'\ntitle = 'a'\n[base]\nworkload = 'updates'\n[factors]\n{settings}\n"
        );
        let spec = StudySpec::parse(&text, "a.toml").unwrap();
        check(&spec).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_the_engine_does_not_have_is_refused_with_its_place() {
        assert_eq!(refused("'engine.policy' = ['adaptive', 'steady']"), "");
        let text = refused("'engine.polciy' = ['adaptive']");
        assert!(text.starts_with("a.toml:6:20: engine.polciy"), "{text}");
        assert!(text.contains("policy"), "{text}");
        let text = refused("workers = [1]\n'engine.policy' = ['adaptive', 'adaptve']");
        assert!(text.starts_with("a.toml:7:32: engine.policy `adaptve`"), "{text}");
        let text = refused("'engine.redo_directory' = ['/tmp']");
        assert!(text.contains("redo lies on the volume"), "{text}");
        let text = refused("'engine.buffer_pool_size' = ['256K']\n'engine.page_size' = ['64K']");
        assert!(text.contains("point buffer256k"), "{text}");
    }
}
