//! Volumes as they stand: made through the journal, with their file sets.
//!
//! Invariant: what requests will touch was written through the volume before it is measured; a
//! backing file that holds fewer written bytes than were filled raises `unwritten_extents`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use iostrata_change::{Applied, DeviceRef, Effect, Session, World, touched_unwritten_bytes};
use iostrata_host::Root;
use iostrata_io::{FileSet, FileSetPlan, FileSpec, Place, Progress};
use iostrata_spec::IoSpec;
use iostrata_spec::study::VolumeKind;
use iostrata_stats::{Verdict, Verdicts};

use super::emulated::DiskEye;
use super::fill::fill_device;
use super::layout::{Member, SetShape, VolumeLayout};
use super::path_scope::PathScope;
use crate::{StudyError, fill_of};

/// A volume that has been made.
#[derive(Debug)]
pub(super) struct Stand {
    /// How it was laid out.
    pub layout: VolumeLayout,
    /// Where requests go: a device or a directory per member.
    pub places: Vec<PathBuf>,
    /// What to observe.
    pub scope: PathScope,
    /// What speaks against everything measured on it.
    pub verdicts: Verdicts,
    /// What reaches the emulated disks below it.
    pub disks: DiskEye,
    sets: BTreeMap<SetShape, Vec<FileSet>>,
    filled_bytes: u64,
}

/// Makes the members of a volume one change after the other; `made` is told of each. When one is
/// not possible, those before it are undone.
pub(super) fn make<W: World>(
    session: &mut Session<W>,
    layout: &VolumeLayout,
    root: &Root,
    here: &Path,
    made: &mut dyn FnMut(&Applied),
) -> Result<Stand, StudyError> {
    let mut ids = Vec::new();
    let mut nodes = Vec::new();
    for change in layout.members.iter().flat_map(|member| &member.changes) {
        match session.apply(change.clone()) {
            Ok(applied) => {
                made(&applied);
                if let Effect::Loop { device, .. } = &applied.effect {
                    nodes.push(device.clone());
                }
                if change.is_lasting() {
                    ids.push(applied.id);
                }
            }
            Err(error) => {
                for id in ids.into_iter().rev() {
                    session.undo(id)?;
                }
                return Err(error.into());
            }
        }
    }
    let places = places(layout, &nodes, here);
    let scope = PathScope::of(root, &places)?;
    let served: Vec<PathBuf> =
        layout.members.iter().filter_map(|member| member.served_at.clone()).collect();
    Ok(Stand {
        layout: layout.clone(),
        places,
        scope,
        verdicts: Verdicts::none(),
        disks: DiskEye::of(&served),
        sets: BTreeMap::new(),
        filled_bytes: 0,
    })
}

/// Mount points, device nodes, or the directory itself.
fn places(layout: &VolumeLayout, nodes: &[PathBuf], here: &Path) -> Vec<PathBuf> {
    if layout.volume.kind == VolumeKind::Here {
        return vec![here.to_owned()];
    }
    let place = |(number, member): (usize, &Member)| match (&member.mount, &member.device) {
        (Some(mount), _) => mount.clone(),
        (None, DeviceRef::Named { path, .. }) => path.clone(),
        (None, DeviceRef::Loop { .. }) => nodes[number].clone(),
    };
    layout.members.iter().enumerate().map(place).collect()
}

impl Stand {
    /// Bytes that filling wrote so far.
    pub(super) fn filled_bytes(&self) -> u64 {
        self.filled_bytes
    }

    /// The files of a workload, made when first asked for; sets that requests use up are made
    /// afresh.
    pub(super) fn files(
        &mut self,
        workload: &IoSpec,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<FileSpec>, StudyError> {
        let shape = SetShape::of(workload);
        if shape.used_up {
            self.sets.remove(&shape);
        }
        if !self.sets.contains_key(&shape) {
            let sets = self.prepare(workload, &shape, stop, progress)?;
            self.filled_bytes += sets.iter().map(FileSet::filled_bytes).sum::<u64>();
            self.sets.insert(shape.clone(), sets);
            self.check_backing();
        }
        let sets = &self.sets[&shape];
        Ok(sets.iter().flat_map(|set| set.specs().to_vec()).collect())
    }

    fn prepare(
        &self,
        workload: &IoSpec,
        shape: &SetShape,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<FileSet>, StudyError> {
        for member in &self.layout.members {
            if let (DeviceRef::Named { path, .. }, None) = (&member.device, &member.mount) {
                fill_device(path, shape.size_bytes, workload.seed, stop, progress).map_err(
                    |source| StudyError::Fill { device: path.display().to_string(), source },
                )?;
            }
        }
        let members = self.places.len() as u64;
        let raw = self.layout.volume.kind == VolumeKind::Raw;
        let files = if raw { 1 } else { shape.files.div_ceil(members as u32) };
        let mut sets = Vec::new();
        for place in &self.places {
            let plan = FileSetPlan {
                place: if raw {
                    Place::Device(place.clone())
                } else {
                    Place::Directory(place.clone())
                },
                files,
                total_bytes: Some(shape.size_bytes / members),
                block_bytes: shape.block_bytes,
                fill: fill_of(workload.preparation),
                keep: false,
                write: true,
                overwrite_contents: raw,
                seed: workload.seed,
            };
            sets.push(FileSet::prepare(&plan, stop, progress)?);
        }
        Ok(sets)
    }

    /// Every filled byte was written through the loop device, so its backing file must hold at
    /// least as many written bytes.
    fn check_backing(&mut self) {
        let members = self.layout.members.len().max(1) as u64;
        for member in &self.layout.members {
            // A disk that is emulated takes its time over blocks that were never written, too.
            if member.served_at.is_some() {
                continue;
            }
            let DeviceRef::Loop { backing } = &member.device else { continue };
            let all = (0, self.layout.member_bytes);
            let Ok(unwritten) = touched_unwritten_bytes(backing, &[all]) else { continue };
            let written = self.layout.member_bytes.saturating_sub(unwritten);
            let raw = self.layout.volume.kind == VolumeKind::Raw;
            let least = if raw { self.layout.member_bytes } else { self.filled_bytes / members };
            if written < least {
                self.verdicts.add(Verdict::UnwrittenExtents);
            }
        }
    }
}
