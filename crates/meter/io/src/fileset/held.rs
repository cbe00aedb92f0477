//! Existing files and devices, which iostrata did not create.
//!
//! Invariant: read unless there is leave to overwrite; never written while mounted, swapped on or
//! held by another device, whatever the leave.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, major, minor, open};
use rustix::io::Errno;

use crate::fileset::plan::system;
use crate::fileset::{FileSet, FileSetError, FileSetPlan, Fill, Place, made};
use crate::{FileSpec, Mount};

/// Checks an existing file or device and takes it as a set of one.
pub(super) fn prepare(plan: &FileSetPlan, path: &Path) -> Result<FileSet, FileSetError> {
    if plan.files != 1 {
        return Err(FileSetError::OneFileOnly { path: path.to_owned(), files: plan.files });
    }
    // Before anything is opened: a device may be refused to us and mounted all the same.
    if plan.write {
        check_writable(plan, path)?;
    }
    let bytes = size(path).map_err(|source| system("open", path, source))?;
    let asked = plan.total_bytes.unwrap_or(bytes).max(u64::from(plan.block_bytes));
    let makes_files = plan.fill == Fill::Absent;
    if makes_files && matches!(plan.place, Place::Device(_)) {
        return Err(FileSetError::NotAFile { path: path.to_owned() });
    }
    let grows = plan.fill == Fill::Grown && matches!(plan.place, Place::ExistingFile(_));
    if bytes < asked && !makes_files && !grows {
        return Err(FileSetError::ExistingTooSmall { path: path.to_owned(), bytes, asked });
    }
    if bytes < asked && grows {
        made::extend(&FileSpec { path: path.to_owned(), bytes: asked })?;
    }
    let specs = vec![FileSpec { path: path.to_owned(), bytes: plan.bytes_each(asked) }];
    Ok(FileSet {
        specs,
        writable: plan.write,
        reused: false,
        filled_bytes: 0,
        temporary: Vec::new(),
        keeps_made: None,
    })
}

fn size(path: &Path) -> io::Result<u64> {
    // The end of a block device is its size too.
    File::open(path)?.seek(SeekFrom::End(0))
}

fn check_writable(plan: &FileSetPlan, path: &Path) -> Result<(), FileSetError> {
    let held = |by: String| FileSetError::Held { path: path.to_owned(), by };
    let user = match &plan.place {
        Place::Device(_) => device_user(path),
        _ => file_user(path),
    };
    match user.map_err(|source| system("look at", path, source))? {
        Some(by) => Err(held(by)),
        None if !plan.overwrite_contents => Err(FileSetError::NotOurs { path: path.to_owned() }),
        None => Ok(()),
    }
}

/// Who uses a block device: a mount, swap, a device above it, or an exclusive opener.
fn device_user(path: &Path) -> io::Result<Option<String>> {
    let number = fs::metadata(path)?.rdev();
    let name = format!("{}:{}", major(number), minor(number));
    let node = fs::canonicalize(Path::new("/sys/dev/block").join(&name))?;
    let mut family = vec![(name, node.clone())];
    family.extend(partitions(&node)?);
    // A partition lies within a whole disk, which may itself be mounted.
    if node.join("partition").exists() {
        let disk = node.parent().map(Path::to_owned).unwrap_or_default();
        family.push((fs::read_to_string(disk.join("dev"))?.trim().to_owned(), disk));
    }
    let mounts = crate::mounts()?;
    let swaps = read_swaps()?;
    for (name, node) in &family {
        if let Some(by) = mounted_at(&mounts, name) {
            return Ok(Some(by));
        }
        if let Some(holder) = fs::read_dir(node.join("holders"))?.flatten().next() {
            return Ok(Some(format!("held by {}", holder.file_name().to_string_lossy())));
        }
        let device = node.file_name().unwrap_or_default().to_string_lossy();
        if let Some(by) = swapped_on(&swaps, &Path::new("/dev").join(&*device)) {
            return Ok(Some(by));
        }
    }
    // Device mappings and file systems the name of which is not in this mount namespace.
    match open(path, OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::BUSY) => Ok(Some("the kernel refuses exclusive access".to_owned())),
        _ => Ok(None),
    }
}

fn partitions(node: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(node)?.flatten() {
        let child = entry.path();
        if child.join("partition").exists() {
            let number = fs::read_to_string(child.join("dev"))?.trim().to_owned();
            found.push((number, child));
        }
    }
    Ok(found)
}

fn mounted_at(mounts: &[Mount], number: &str) -> Option<String> {
    let mount = mounts.iter().find(|mount| mount.device == number)?;
    Some(format!("mounted at {}", mount.at.display()))
}

/// Who uses a regular file: swap, or a loop device.
fn file_user(path: &Path) -> io::Result<Option<String>> {
    let path = fs::canonicalize(path)?;
    if let Some(by) = swapped_on(&read_swaps()?, &path) {
        return Ok(Some(by));
    }
    for entry in fs::read_dir("/sys/block")?.flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
        if backing.is_ok_and(|backing| Path::new(backing.trim_end()) == path) {
            return Ok(Some(format!("held by {}", entry.file_name().to_string_lossy())));
        }
    }
    Ok(None)
}

fn read_swaps() -> io::Result<String> {
    fs::read_to_string("/proc/swaps").or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(String::new()),
        _ => Err(error),
    })
}

fn swapped_on(swaps: &str, path: &Path) -> Option<String> {
    let names = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let used = names.map(Path::new).any(|swap| swap == path);
    used.then(|| "used as swap".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWAPS: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
        /dev/sda2                               partition\t8388604\t\t0\t\t-2\n\
        /swap.img                               file\t\t2097148\t\t0\t\t-3\n";
    const MOUNTS: &str = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n\
        23 22 0:21 / /proc rw - proc proc rw\n\
        40 22 254:16 /sub /data rw - xfs /dev/vdb rw\n";

    #[test]
    fn swap_is_found() {
        assert!(swapped_on(SWAPS, Path::new("/dev/sda2")).is_some());
        assert!(swapped_on(SWAPS, Path::new("/swap.img")).is_some());
        assert!(swapped_on(SWAPS, Path::new("/dev/sda")).is_none());
        assert!(swapped_on(SWAPS, Path::new("Filename")).is_none());
    }

    #[test]
    fn mounts_are_found_by_number() {
        let mounts = crate::parse_mounts(MOUNTS);
        assert_eq!(mounted_at(&mounts, "254:1").unwrap(), "mounted at /");
        assert_eq!(mounted_at(&mounts, "254:16").unwrap(), "mounted at /data");
        assert!(mounted_at(&mounts, "254:2").is_none());
    }
}
