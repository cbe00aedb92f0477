//! All settings of one combination.
//!
//! Invariant: every setting that has a default is present, unless it has no meaning together with
//! the others.

use std::collections::BTreeMap;

use crate::disk::DiskSpec;
use crate::study::VolumeKind;
use crate::study::setting::{
    ENGINE, INSERT, OF_BOTH, OF_ENGINE, OF_SECOND, OF_SERVER, REQUESTS, SETTINGS, STRESS, Setting,
    SettingId, SettingKind, SettingValue, TPCC, TPCC_COMPAT, UPDATES,
};
use crate::study::text::factor::SettingAssignment;
use crate::{Rw, Words};

/// Every setting that has a default, at its default.
pub(in crate::study) fn defaults() -> Vec<SettingAssignment> {
    let default = |setting: &crate::study::setting::Setting| {
        let value = setting.parse(setting.default?).ok()?;
        Some(SettingAssignment { setting: *setting, label: setting.label(&value), value, at: None })
    };
    SETTINGS.iter().filter_map(default).collect()
}

/// The settings of one combination.
#[derive(Clone, Debug, Default)]
pub(in crate::study) struct Settings<'a>(BTreeMap<SettingId, &'a SettingAssignment>);

impl<'a> Settings<'a> {
    /// Puts some over those that are there.
    pub fn put(&mut self, sets: impl IntoIterator<Item = &'a SettingAssignment>) {
        self.0.extend(sets.into_iter().map(|set| (set.setting.id, set)));
    }

    /// The setting as it was written.
    pub fn assigned(&self, id: SettingId) -> Option<&'a SettingAssignment> {
        self.0.get(&id).copied()
    }

    /// What distinguishes combinations.
    pub fn key(&self) -> Vec<(SettingId, &'a str)> {
        self.0.iter().map(|(id, set)| (*id, set.label.as_str())).collect()
    }

    /// A whole number, if it is set.
    pub fn count(&self, id: SettingId) -> Option<u64> {
        match &self.0.get(&id)?.value {
            SettingValue::Count(count) => Some(*count),
            _ => None,
        }
    }

    /// Bytes, if they are set.
    pub fn bytes(&self, id: SettingId) -> Option<u64> {
        match &self.0.get(&id)?.value {
            SettingValue::Bytes(bytes) => Some(*bytes),
            _ => None,
        }
    }

    /// Whether it is on.
    pub fn is_on(&self, id: SettingId) -> bool {
        self.0.get(&id).is_some_and(|set| set.value == SettingValue::Switch(true))
    }

    /// A number, 0 if it is not set.
    pub fn number(&self, id: SettingId) -> f64 {
        match self.0.get(&id).map(|set| &set.value) {
            Some(SettingValue::Number(number)) => *number,
            _ => 0.0,
        }
    }

    /// Options; none if they are not set.
    pub fn options(&self, id: SettingId) -> Vec<String> {
        match self.0.get(&id).map(|set| &set.value) {
            Some(SettingValue::Options(options)) => options.clone(),
            _ => Vec::new(),
        }
    }

    /// The value, if it is set.
    pub fn value(&self, id: SettingId) -> Option<&'a SettingValue> {
        self.0.get(&id).map(|set| &set.value)
    }

    /// The value of a word, if it is set.
    pub fn word<T: Words>(&self, id: SettingId) -> Option<T> {
        match self.value(id)? {
            SettingValue::Word(word) => T::of(word),
            _ => None,
        }
    }

    /// What lies on the volume.
    pub fn filesystem(&self) -> VolumeKind {
        self.word(SettingId::Filesystem).unwrap_or(VolumeKind::Here)
    }

    /// The emulated disk, if any.
    pub fn disk(&self) -> Option<&'a DiskSpec> {
        match self.value(SettingId::Disk) {
            Some(SettingValue::Disk(disk)) => disk.as_ref(),
            _ => None,
        }
    }

    /// Which requests.
    pub fn rw(&self) -> Rw {
        self.word(SettingId::Rw).unwrap_or(Rw::Randread)
    }

    /// Which workload runs.
    pub fn workload(&self) -> &'a str {
        self.assigned(SettingId::Workload).map_or(REQUESTS, |set| &set.label)
    }

    /// Whether requests of files are what runs.
    pub fn makes_requests(&self) -> bool {
        self.workload() == REQUESTS
    }

    /// Whether the embedded engine is what transactions run on.
    pub fn is_on_engine(&self) -> bool {
        self.assigned(SettingId::Target).is_none_or(|set| set.label == ENGINE)
    }

    /// Settings of a database, the measured or the second one, by what stands before their names.
    pub fn of_database(
        &self,
        prefix: &'static str,
    ) -> impl Iterator<Item = (&'a str, &'a SettingAssignment)> {
        self.0.values().filter_map(move |set| match &set.setting.id {
            SettingId::Database(name) => Some((name.strip_prefix(prefix)?, *set)),
            _ => None,
        })
    }

    /// Takes out what has no meaning together with the others, so that combinations which differ in
    /// nothing else are one.
    pub fn keep_meaningful(&mut self) {
        let all = self.clone();
        self.0.retain(|id, _| all.has_meaning(*id));
    }

    /// Transactions make their own requests, and requests know no database.
    fn is_of_load(&self, id: SettingId) -> bool {
        let shared = [SettingId::Workload, SettingId::Workers, SettingId::RateProcess];
        match (Setting::of(id).kind, self.makes_requests()) {
            _ if shared.contains(&id) => true,
            (SettingKind::Workload, false) => {
                id == SettingId::RandomDistribution && self.is_of_database(id)
            }
            // A second engine together with requests is refused, not dropped.
            (SettingKind::Transactions, true) => {
                id == SettingId::SecondWorkers && self.has_second()
            }
            _ if is_of_second(id) => self.is_second_meant(id),
            _ => self.is_of_database(id),
        }
    }

    /// Tables are counted in rows or in warehouses, and only servers have storage engines.
    fn is_of_database(&self, id: SettingId) -> bool {
        let is_one_of = |words: &[&str]| words.contains(&self.workload());
        let is_tpcc = is_one_of(&[TPCC, TPCC_COMPAT]);
        match id {
            SettingId::RowUpdates => self.workload() == UPDATES,
            SettingId::Warehouses => is_tpcc,
            SettingId::Rows => !is_tpcc && !is_one_of(&[STRESS]),
            SettingId::RandomDistribution => !is_tpcc && !is_one_of(&[STRESS, INSERT]),
            SettingId::Objects | SettingId::ReadPct => is_one_of(&[STRESS]),
            SettingId::CommitRows => is_one_of(&[INSERT]),
            SettingId::StorageEngine => !self.is_on_engine(),
            SettingId::Database(name) if name.starts_with(OF_ENGINE) => self.is_on_engine(),
            SettingId::Database(name) if name.starts_with(OF_SERVER) => !self.is_on_engine(),
            SettingId::Database(name) if name.starts_with(OF_BOTH) => {
                let own = name.strip_prefix(OF_BOTH).unwrap_or_default();
                !(self.is_on_engine() && self.names_of(OF_ENGINE).any(|other| other == own))
            }
            _ => true,
        }
    }

    fn names_of(&self, prefix: &'static str) -> impl Iterator<Item = &'a str> {
        self.of_database(prefix).map(|(own, _)| own)
    }

    /// Whether a second engine runs on the volume, too.
    pub fn has_second(&self) -> bool {
        self.count(SettingId::SecondWorkers).is_some_and(|workers| workers > 0)
    }

    /// Settings of a second engine have no meaning where the text states that it has none. Where it
    /// does not state that, they are kept and refused.
    fn is_second_meant(&self, id: SettingId) -> bool {
        let is_written =
            |id| self.assigned(id).is_some_and(|set: &SettingAssignment| set.at.is_some());
        let is_unsaid = !is_written(SettingId::SecondWorkers) && is_written(id);
        let is_of_workload = id != SettingId::SecondRowUpdates || self.workload() == UPDATES;
        is_of_workload && (self.has_second() || is_unsaid)
    }

    fn has_meaning(&self, id: SettingId) -> bool {
        if !self.is_of_load(id) {
            return false;
        }
        let (kind, rw) = (self.filesystem(), self.rw());
        let writes = rw.mix(1).writes();
        let flushes = [SettingId::Fsync, SettingId::Fdatasync]
            .into_iter()
            .any(|id| self.count(id).is_some_and(|every| every > 0));
        match id {
            SettingId::MountOptions | SettingId::MkfsOptions => {
                !matches!(kind, VolumeKind::Raw | VolumeKind::Here)
            }
            SettingId::Files | SettingId::Preparation => kind != VolumeKind::Raw,
            SettingId::VolumeSize | SettingId::Volumes => kind != VolumeKind::Here,
            // One that cannot be is refused, not dropped.
            SettingId::Disk => kind != VolumeKind::Here || self.disk().is_some(),
            SettingId::Rwmixread => rw.is_mixed(),
            SettingId::RandomDistribution => rw.is_random() || !self.makes_requests(),
            SettingId::Fsync | SettingId::Fdatasync | SettingId::Sync => writes,
            SettingId::FsyncScope | SettingId::FsyncEvery => writes && flushes,
            SettingId::RateProcess => [
                SettingId::RateIops,
                SettingId::RatePct,
                SettingId::RateTps,
                SettingId::SecondRateTps,
            ]
            .into_iter()
            .any(|id| self.is_of_load(id) && self.number(id) > 0.0),
            _ => true,
        }
    }
}

/// Whether it is a setting of a second engine, other than the one that turns it on.
fn is_of_second(id: SettingId) -> bool {
    match id {
        SettingId::SecondRowUpdates | SettingId::SecondRateTps => true,
        SettingId::Database(name) => name.starts_with(OF_SECOND),
        _ => false,
    }
}
