//! What sort of place a mount is, by the type of its file system.

use iostrata_run::host::{NetworkKind, PathKind};

use iostrata_io::Mount;

/// The sort of place; a file system on block devices is told by the caller.
pub(crate) fn path_kind(mount: &Mount, on_block_devices: bool) -> PathKind {
    match mount.kind.as_str() {
        "tmpfs" | "ramfs" => PathKind::Tmpfs,
        "overlay" | "overlayfs" => overlay(mount),
        other => match network_kind(other) {
            Some(protocol) => PathKind::Network { protocol },
            None if on_block_devices => PathKind::Disk,
            None => PathKind::Unknown,
        },
    }
}

fn network_kind(file_system: &str) -> Option<NetworkKind> {
    Some(match file_system {
        "nfs" | "nfs4" => NetworkKind::Nfs,
        "cifs" | "smb3" | "smbfs" => NetworkKind::Cifs,
        "9p" => NetworkKind::NineP,
        "virtiofs" => NetworkKind::Virtiofs,
        "ceph" => NetworkKind::Ceph,
        "afs" | "glusterfs" | "lustre" | "gpfs" | "beegfs" | "orangefs" | "pvfs2" => {
            NetworkKind::Other
        }
        // fuseblk has a block device below and so is a disk.
        "fuse" => NetworkKind::Fuse,
        other if other.starts_with("fuse.") => NetworkKind::Fuse,
        _ => return None,
    })
}

fn overlay(mount: &Mount) -> PathKind {
    let mut lower: Vec<String> =
        mount.super_option("lowerdir").map(split_lower).unwrap_or_default();
    // Newer mount tools list each lower directory as an option of its own.
    lower.extend(
        mount
            .super_options
            .iter()
            .filter_map(|option| option.strip_prefix("lowerdir+="))
            .map(str::to_owned),
    );
    let upper = mount.super_option("upperdir").map(unescaped);
    PathKind::Overlay { lower, upper, upper_file_system: None }
}

/// Splits at colons that are not escaped.
fn split_lower(directories: &str) -> Vec<String> {
    let mut lower = vec![String::new()];
    let mut escaped = false;
    for c in directories.chars() {
        match c {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            ':' if !escaped => lower.push(String::new()),
            _ => {
                if let Some(last) = lower.last_mut() {
                    last.push(c);
                }
            }
        }
        escaped = false;
    }
    lower.retain(|directory| !directory.is_empty());
    lower
}

fn unescaped(directory: &str) -> String {
    let mut out = String::with_capacity(directory.len());
    let mut escaped = false;
    for c in directory.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            out.push(c);
            escaped = false;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_io::parse_mounts as parse;

    fn kind_of(line: &str, on_block_devices: bool) -> PathKind {
        path_kind(&parse(line)[0], on_block_devices)
    }

    #[test]
    fn types_and_their_kinds() {
        let kind = |fs: &str| kind_of(&format!("1 1 0:9 / /m rw - {fs} source rw"), true);
        assert_eq!(kind("ramfs"), PathKind::Tmpfs);
        assert_eq!(kind("nfs4"), PathKind::Network { protocol: NetworkKind::Nfs });
        assert_eq!(kind("9p"), PathKind::Network { protocol: NetworkKind::NineP });
        assert_eq!(kind("fuse.sshfs"), PathKind::Network { protocol: NetworkKind::Fuse });
        assert_eq!(kind("fuseblk"), PathKind::Disk);
        assert_eq!(kind("xfs"), PathKind::Disk);
        assert_eq!(kind_of("1 1 0:9 / /m rw - zfs pool/data rw", false), PathKind::Unknown);
    }

    #[test]
    fn overlay_directories_with_escapes() {
        let line =
            r"1 1 0:9 / /m rw - overlay o rw,lowerdir=/a\134:b:/c,upperdir=/u\134\054v,workdir=/w";
        let PathKind::Overlay { lower, upper, .. } = kind_of(line, false) else { panic!() };
        assert_eq!(lower, ["/a:b", "/c"]);
        assert_eq!(upper.as_deref(), Some("/u,v"));
    }
}
