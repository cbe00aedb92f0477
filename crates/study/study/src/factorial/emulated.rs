//! Emulated disks under the volumes of a study: what makes them, and what reached them.
//!
//! Invariant: the server of a disk is a process of its own, started before this one enters the
//! workload's control group, so that neither its memory nor its time counts there. What reached a
//! disk is the difference over the measured window alone.

use std::path::{Path, PathBuf};

use iostrata_change::{Change, DeviceRef};
use iostrata_plan::disk::DiskSpec;
use iostrata_run::host::EmulatedDisk;
use iostrata_sim::emudisk::{Client, DiskStats, ServeArguments, Store, device};

use super::VolumePlace;
use crate::{StudyError, Watcher};

/// Seed of a disk's rotation: the same for every study, so that studies can be compared.
const SEED: u64 = 1;

/// The device of a disk of `bytes` served at `at`, and the changes that make it.
pub(super) fn changes(
    place: &VolumePlace,
    disk: &DiskSpec,
    at: &Path,
    bytes: u64,
    store: &Store,
) -> Result<(DeviceRef, Vec<Change>), StudyError> {
    let arguments = ServeArguments {
        at: at.to_owned(),
        disk: disk.clone(),
        size_bytes: bytes,
        store: store.clone(),
        store_limit_bytes: None,
        seed: SEED,
    };
    let made = iostrata_sim::emudisk::changes(&place.program, &arguments, false)
        .map_err(|error| StudyError::Disk { why: error.to_string() })?;
    let over = match &made[1] {
        Change::Loop(over) => DeviceRef::Loop { backing: over.backing.clone() },
        _ => device(at),
    };
    Ok((over, made.to_vec()))
}

/// Watches the emulated disks of a volume over a window.
#[derive(Debug, Default)]
pub(super) struct DiskProbe {
    clients: Vec<Client>,
    before: Vec<DiskStats>,
    seen: Option<EmulatedDisk>,
}

impl DiskProbe {
    /// Of the disks that are served at these directories.
    pub(super) fn of(places: &[PathBuf]) -> Self {
        let clients = places.iter().map(|at| Client::at(at)).collect();
        Self { clients, ..Self::default() }
    }

    /// What reached them in the window that ended last; absent without disks, and where one of them
    /// did not answer.
    pub(super) fn take(&mut self) -> Option<EmulatedDisk> {
        self.seen.take()
    }

    fn stats(&self) -> Vec<DiskStats> {
        // A server that does not answer shows in the figures themselves, as failed requests.
        self.clients.iter().filter_map(|client| client.stats().ok()).collect()
    }
}

impl Watcher for DiskProbe {
    fn opened(&mut self) {
        self.seen = None;
        self.before = self.stats();
    }

    fn closed(&mut self) {
        let after = self.stats();
        if after.len() != self.clients.len() || self.before.len() != after.len() {
            return;
        }
        let each = self.before.iter().zip(&after).map(|(before, after)| between(before, after));
        self.seen = each.reduce(|sum, one| sum.plus(&one));
    }
}

/// The difference between two readings of a disk's counters.
fn between(before: &DiskStats, after: &DiskStats) -> EmulatedDisk {
    let in_order =
        |stats: &DiskStats| (stats.in_order * (stats.reads + stats.writes) as f64).round() as u64;
    EmulatedDisk {
        model: after.model.clone(),
        reads: after.reads.saturating_sub(before.reads),
        writes: after.writes.saturating_sub(before.writes),
        flushes: after.flushes.saturating_sub(before.flushes),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        write_bytes: after.write_bytes.saturating_sub(before.write_bytes),
        in_order: in_order(after).saturating_sub(in_order(before)),
        late: after.late.saturating_sub(before.late),
        depth_max: after.depth_max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_sim::emudisk::Power;

    fn stats(writes: u64, in_order: f64) -> DiskStats {
        DiskStats {
            model: "hdd-15k".to_owned(),
            size_bytes: 1 << 30,
            pid: 1,
            reads: 0,
            writes,
            flushes: writes / 10,
            discards: 0,
            read_bytes: 0,
            write_bytes: writes * 4096,
            depth_max: 9,
            depth_mean: 3.0,
            in_order,
            late: writes / 100,
            late_us_mean: 1.0,
            late_us_max: 2.0,
            overhead_us: 30.0,
            errors_injected: 0,
            errors_full: 0,
            unflushed_bytes: 0,
            store_bytes: 0,
            power: Power::On,
            cuts: 0,
        }
    }

    #[test]
    fn only_the_window_counts() {
        // 1000 writes of which half in order, then 1000 of which none.
        let seen = between(&stats(1000, 0.5), &stats(2000, 0.25));
        assert_eq!((seen.writes, seen.flushes, seen.late), (1000, 100, 10));
        assert_eq!((seen.in_order_pct(), seen.write_bytes), (Some(0.0), 4_096_000));
    }

    #[test]
    fn a_disk_that_does_not_answer_is_no_evidence() {
        let mut probe = DiskProbe::of(&["/nowhere/at/all".into()]);
        probe.opened();
        probe.closed();
        assert_eq!(probe.take(), None);
        let mut none = DiskProbe::default();
        none.opened();
        none.closed();
        assert_eq!(none.take(), None);
    }
}
