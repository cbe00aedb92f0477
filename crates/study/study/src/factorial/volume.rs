//! Mounted volumes: made through the journal, with their file sets; devices, filled beforehand.
//!
//! Invariant: what requests will touch was written through the volume before it is measured; a
//! backing file that holds fewer written bytes than were filled raises `unwritten_extents`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_change::{
    AppliedChange, DeviceRef, Effect, Platform, Session, touched_unwritten_bytes,
};
use iostrata_io::{FileSetPlan, FileSpec, Place, Progress};
use iostrata_linux::host::Root;
use iostrata_plan::IoSpec;
use iostrata_plan::study::VolumeKind;
use iostrata_stats::{Random, Verdict, Verdicts};

use super::emulated::DiskProbe;
use super::layout::{Member, SetShape, VolumeLayout};
use super::probes::PathScope;
use crate::{FileSetCache, StudyError, WantedFiles, fill_of};

/// A volume that has been made.
#[derive(Debug)]
pub(super) struct MountedVolume {
    /// How it was laid out.
    pub layout: VolumeLayout,
    /// Where requests go: a device or a directory per member.
    pub places: Vec<PathBuf>,
    /// What to observe.
    pub scope: PathScope,
    /// What speaks against everything measured on it.
    pub verdicts: Verdicts,
    /// What reaches the emulated disks below it.
    pub disks: DiskProbe,
    /// The directories of its databases, once there are any.
    pub databases: Vec<PathBuf>,
    files: FileSetCache,
}

/// Makes the members of a volume one change after the other; `made` gets each. When one is not
/// possible, those before it are undone.
pub(super) fn make<W: Platform>(
    session: &mut Session<W>,
    layout: &VolumeLayout,
    root: &Root,
    here: &Path,
    made: &mut dyn FnMut(&AppliedChange),
) -> Result<MountedVolume, StudyError> {
    let mut ids = Vec::new();
    let mut nodes = Vec::new();
    for change in layout.members.iter().flat_map(|member| &member.changes) {
        match session.apply(change.clone()) {
            Ok(applied) => {
                made(&applied);
                if let Effect::Loop(attached) = &applied.effect {
                    nodes.push(attached.device.clone());
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
    Ok(MountedVolume {
        layout: layout.clone(),
        places,
        scope,
        verdicts: Verdicts::none(),
        disks: DiskProbe::of(&served),
        databases: Vec::new(),
        files: FileSetCache::default(),
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

impl MountedVolume {
    /// Bytes that filling wrote so far.
    pub(super) fn filled_bytes(&self) -> u64 {
        self.files.filled_bytes()
    }

    /// The files of a workload, made when first needed.
    pub(super) fn files(
        &mut self,
        workload: &IoSpec,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<FileSpec>, StudyError> {
        let wanted = self.wanted(workload);
        if wanted.iter().any(|one| one.is_used_up() || self.files.get(one).is_none()) {
            self.fill_devices(workload, stop, progress)?;
        }
        let filled_bytes = self.filled_bytes();
        let mut specs = Vec::new();
        for one in &wanted {
            specs.extend_from_slice(self.files.prepare(one, stop, progress)?.specs());
        }
        if self.filled_bytes() > filled_bytes {
            self.check_backing();
        }
        Ok(specs)
    }

    /// What a workload wants of each member.
    fn wanted(&self, workload: &IoSpec) -> Vec<WantedFiles> {
        let (shape, members) = (SetShape::of(workload), self.places.len() as u64);
        let raw = self.layout.volume.kind == VolumeKind::Raw;
        let plan = |place: &PathBuf| {
            let place = place.clone();
            let place = if raw { Place::Device(place) } else { Place::Directory(place) };
            FileSetPlan {
                files: if raw { 1 } else { shape.files.div_ceil(members as u32) },
                fill: fill_of(workload.preparation),
                overwrite_contents: raw,
                ..FileSetPlan::new(place, shape.size_bytes / members, shape.block_bytes)
            }
        };
        self.places.iter().map(plan).map(WantedFiles::data).collect()
    }

    /// Writes what requests will touch of named devices.
    fn fill_devices(
        &self,
        workload: &IoSpec,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), StudyError> {
        for member in &self.layout.members {
            if let (DeviceRef::Named { path, .. }, None) = (&member.device, &member.mount) {
                fill_device(path, workload.size_bytes, workload.seed, stop, progress).map_err(
                    |source| StudyError::Fill { device: path.display().to_string(), source },
                )?;
            }
        }
        Ok(())
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
            let least = if raw { self.layout.member_bytes } else { self.filled_bytes() / members };
            if written < least {
                self.verdicts.add(Verdict::UnwrittenExtents);
            }
        }
    }
}

// Filling a named block device, so that its requests find written blocks.
//
// Invariant: only devices that the session may overwrite come here; blocks are incompressible and
// durable on return.

const CHUNK_BYTES: usize = 1 << 20;

/// Writes the first `bytes` of a device. A signal ends it early.
///
/// # Errors
/// When the device is in use, or it is smaller, or a write fails.
fn fill_device(
    device: &Path,
    bytes: u64,
    seed: u64,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> io::Result<()> {
    // Exclusively: the kernel refuses while the device is mounted or part of another.
    let excl = rustix::fs::OFlags::EXCL.bits() as i32;
    let mut file = OpenOptions::new().write(true).custom_flags(excl).open(device)?;
    let mut random = Random::of_stream(seed, 0);
    let mut chunk = vec![0_u8; CHUNK_BYTES];
    let mut done_bytes = 0;
    while done_bytes < bytes && !stop.load(Ordering::Relaxed) {
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&random.bits().to_le_bytes());
        }
        let now = (bytes - done_bytes).min(CHUNK_BYTES as u64) as usize;
        file.write_all(&chunk[..now])?;
        done_bytes += now as u64;
        progress(Progress { done_bytes, total_bytes: bytes });
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_up_to_the_end_is_written_and_none_after_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = (5 << 20) + 4096;
        file.as_file().set_len(bytes + 4096).unwrap();
        let never = AtomicBool::new(false);
        fill_device(file.path(), bytes, 7, &never, &mut |_| ()).unwrap();
        let found = std::fs::read(file.path()).unwrap();
        let (filled, rest) = found.split_at(bytes as usize);
        assert!(filled.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
        assert!(rest.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_signal_ends_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stopped = AtomicBool::new(true);
        fill_device(file.path(), 1 << 30, 7, &stopped, &mut |_| ()).unwrap();
        assert_eq!(file.as_file().metadata().unwrap().len(), 0);
    }
}
