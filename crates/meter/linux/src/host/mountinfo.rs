//! The mounts of a machine, or of a directory that stands in for one.
//!
//! Invariant: what `io` cannot parse is left out; the order of mountinfo is kept.

use std::path::PathBuf;

use iostrata_io::Mount;
use iostrata_run::host::DeviceNumber;

use crate::host::Root;

/// One mount, as seen by this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// Number of the mount.
    pub id: u64,
    /// Device number of the file system.
    pub device: DeviceNumber,
    /// The directory of the file system that is mounted.
    pub root: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of this mount.
    pub options: Vec<String>,
    /// Type of the file system.
    pub file_system: String,
    /// What was mounted.
    pub source: String,
    /// Options of the file system.
    pub super_options: Vec<String>,
}

impl MountEntry {
    /// The value of a file-system option `name=value`.
    pub(crate) fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether a file-system option is set.
    pub(crate) fn has_super_option(&self, name: &str) -> bool {
        self.super_options.iter().any(|option| option == name)
    }
}

/// All mounts that this process sees, in the order in which they were made.
pub fn mounts(root: &Root) -> Vec<MountEntry> {
    root.text("/proc/self/mountinfo").map(|text| parse(&text)).unwrap_or_default()
}

/// Parses the text of mountinfo.
pub(crate) fn parse(text: &str) -> Vec<MountEntry> {
    iostrata_io::parse_mounts(text).into_iter().filter_map(entry).collect()
}

fn entry(mount: Mount) -> Option<MountEntry> {
    let Mount {
        id,
        device,
        root,
        at: mount_point,
        options,
        kind: file_system,
        source,
        super_options,
    } = mount;
    let device = device.parse().ok()?;
    Some(MountEntry { id, device, root, mount_point, options, file_system, source, super_options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_file_system_are_found() {
        let line = "36 35 98:0 /sub /mnt rw,noatime shared:1 - ext4 /dev/root rw,errors=continue";
        let entry = &parse(line)[0];
        assert_eq!((entry.id, entry.device.to_string()), (36, "98:0".to_owned()));
        assert_eq!((entry.file_system.as_str(), entry.options.len()), ("ext4", 2));
        assert_eq!(entry.super_option("errors"), Some("continue"));
        assert!(entry.has_super_option("rw") && !entry.has_super_option("ro"));
    }

    #[test]
    fn a_device_without_a_number_is_left_out() {
        assert!(parse("36 35 8 / / rw - xfs /dev/sda1 rw\n").is_empty());
    }
}
