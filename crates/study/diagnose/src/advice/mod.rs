//! What to change: settings with their reasons, risk and undo.
//!
//! Invariant: every line rests on findings, and nothing is advised that every server does by
//! default or that could only be right elsewhere. Barriers are never turned off; the doublewrite is
//! never turned off, because a server that does not ask for atomic writes does not get them.
//! Schedulers were not compared without root, so that nothing is advised about them; a queue only
//! where it was seen to be full and is shorter than any driver makes it.

pub(crate) mod capacity;
mod files;
mod host;
mod limit;
mod page_writes;
pub(crate) mod redo;
mod sync_method;
mod volume;

use iostrata_run::{Advice, Finding, ProbeHost, Risk};

use crate::finding::seek::{ROTATIONAL_FLAG_WRONG, SEEK_COST};
use crate::finding::sizing::FLUSH_CAPACITY;
use crate::server_setting::{Family, ServerSetting};

pub use redo::redo_table;

/// What to change, the most telling first.
pub fn advise(findings: &[Finding], host: &ProbeHost) -> Vec<Advice> {
    let found = Found { findings };
    let mut advice = Vec::new();
    advice.extend(host::own_volume(&found));
    advice.extend(host::mount_option(&found));
    advice.extend(host::direct_loop(&found));
    advice.extend(limit::lift_limits(&found, host));
    advice.extend(limit::lift_new(&found));
    advice.extend(volume::raise_cap(&found));
    advice.extend(host::cpu_quota(&found, host));
    advice.extend(limit::barriers(&found));
    advice.extend(host::aligned_start(&found));
    advice.extend(host::nr_requests(&found, host));
    advice.extend(host::dirty_limit(&found));
    advice.extend(files::data_files(&found));
    advice.extend(sync_method::data_journal(&found, host));
    advice.extend(sync_method::flush_method(&found, host));
    advice.extend(sync_method::fdatasync(&found));
    advice.extend(sync_method::write_through(&found));
    advice.extend(page_writes::flush_neighbors(&found));
    advice.extend(capacity::io_capacity_max(&found));
    advice
}

/// Whether advice fits a setting to the storage instead of repairing something.
pub(crate) fn is_fitting(advice: &Advice) -> bool {
    let facts = [FLUSH_CAPACITY, SEEK_COST, ROTATIONAL_FLAG_WRONG];
    advice.why.iter().all(|why| facts.contains(&why.as_str()))
}

/// Findings by id.
pub(crate) struct Found<'f> {
    findings: &'f [Finding],
}

impl<'f> Found<'f> {
    pub fn get(&self, id: &str) -> Option<&'f Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }

    /// A figure of a finding's evidence.
    pub fn number(&self, id: &str, name: &str) -> Option<f64> {
        self.get(id)?.evidence.get(name)?.as_f64()
    }

    /// A word of a finding's evidence.
    pub fn word(&self, id: &str, name: &str) -> Option<&'f str> {
        self.get(id)?.evidence.get(name)?.as_str()
    }
}

/// Where a setting is set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SettingPlace {
    MyCnf,
    DataDirectory,
    MountOption,
    Schema,
    ControlGroup,
    Sysctl,
    Sysfs,
    PartitionTable,
    LoopSetup,
    Volume,
}

impl SettingPlace {
    pub(crate) fn name(self) -> &'static str {
        match self {
            SettingPlace::MyCnf => "my.cnf [mysqld]",
            SettingPlace::DataDirectory => "place of the data",
            SettingPlace::MountOption => "mount option",
            SettingPlace::Schema => "schema",
            SettingPlace::ControlGroup => "control group",
            SettingPlace::Sysctl => "sysctl",
            SettingPlace::Sysfs => "/sys/block/DEVICE/queue",
            SettingPlace::PartitionTable => "partition table",
            SettingPlace::LoopSetup => "losetup",
            SettingPlace::Volume => "provider of the volume",
        }
    }
}

/// One line of advice without risk. A server's setting brings its releases, defaults and manual.
pub(crate) fn line(
    setting: &str,
    value: impl Into<String>,
    place: SettingPlace,
    why: &[&str],
    text: String,
    undo: &str,
) -> Advice {
    let of_server = ServerSetting::of(setting);
    let section = match of_server.and_then(ServerSetting::only_in) {
        Some(Family::MariaDb) => "my.cnf [mariadb]",
        _ => place.name(),
    };
    Advice {
        setting: setting.to_owned(),
        value: value.into(),
        default: of_server.map(ServerSetting::defaults),
        versions: of_server.and_then(ServerSetting::versions),
        source: of_server.map(ServerSetting::source),
        where_: section.to_owned(),
        why: why.iter().map(|id| (*id).to_owned()).collect(),
        text,
        risk: Risk::None,
        undo: undo.to_owned(),
        expected: None,
    }
}
