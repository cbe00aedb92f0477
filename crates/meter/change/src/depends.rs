//! Which change stands on which: later ones on earlier ones that made or set what they use.
//!
//! Invariant: undoing in reverse order never pulls away what another change stands on; a change
//! with nothing to put back holds nothing up.

use std::path::{Path, PathBuf};

use crate::change::Change;
use crate::settings::VmSetting;
use crate::tokens::DeviceRef;

/// Whether `later` stands on `earlier`.
pub(crate) fn stands_on(later: &Change, earlier: &Change) -> bool {
    if !later.is_lasting() {
        return false;
    }
    let uses_device = |path: &Path| later.device().is_some_and(|device| is_over(device, path));
    match earlier {
        Change::BackingFile { path, .. } => {
            matches!(later, Change::Loop { backing, .. } if backing == path) || uses_device(path)
        }
        Change::Loop { backing, .. } => uses_device(backing),
        Change::Mount { at, .. } | Change::Remount { at, .. } | Change::FuseServer { at, .. } => {
            places(later).iter().any(|place| place.starts_with(at))
        }
        // Attributes of one queue reset each other.
        Change::Queue { device, .. } => {
            matches!(later, Change::Queue { device: other, .. } if same_device(device, other))
        }
        Change::Sysctl { which, .. } => {
            matches!(later, Change::Sysctl { which: other, .. } if are_one(*which, *other))
        }
        Change::ServerDirectory { path } => {
            places(later).iter().any(|place| place.starts_with(path))
        }
        Change::DatabaseServer { socket, .. } => {
            let socket = socket.to_string_lossy();
            matches!(later, Change::ServerSettings { server, .. } if server.contains(&*socket))
        }
        Change::MemoryGroup { name, .. }
        | Change::CpuGroup { name, .. }
        | Change::IoGroup { name, .. } => match later {
            Change::DatabaseServer { group, .. } => group.as_ref() == Some(name),
            Change::EnterGroup { name: other }
            | Change::MemoryGroup { name: other, .. }
            | Change::CpuGroup { name: other, .. }
            | Change::IoGroup { name: other, .. } => name == other,
            _ => false,
        },
        // Homes nest: who enters a second group comes back to the first.
        Change::EnterGroup { .. } => matches!(later, Change::EnterGroup { .. }),
        Change::Governor { cpu, .. } => {
            matches!(later, Change::Governor { cpu: other, .. } if cpu == other)
        }
        // One group may set what another noted as before, so they go back in reverse order.
        Change::ServerSettings { server, .. } => {
            matches!(later, Change::ServerSettings { server: other, .. } if server == other)
        }
        Change::MountTracefs => matches!(later, Change::TraceInstance { .. }),
        Change::TraceInstance { .. } | Change::MakeFilesystem { .. } | Change::DropCaches => false,
    }
}

fn is_over(device: &DeviceRef, path: &Path) -> bool {
    matches!(device, DeviceRef::Loop { backing } if backing == path)
}

fn same_device(one: &DeviceRef, other: &DeviceRef) -> bool {
    match (one, other) {
        (DeviceRef::Named { path: one, .. }, DeviceRef::Named { path: other, .. }) => one == other,
        (one, other) => one == other,
    }
}

fn are_one(one: VmSetting, other: VmSetting) -> bool {
    one == other || one.other_form() == Some(other)
}

/// Paths that a change needs.
fn places(change: &Change) -> Vec<&PathBuf> {
    match change {
        Change::BackingFile { path, .. } | Change::Loop { backing: path, .. } => vec![path],
        Change::Mount { at, .. } | Change::Remount { at, .. } | Change::FuseServer { at, .. } => {
            vec![at]
        }
        Change::ServerDirectory { path } => vec![path],
        Change::DatabaseServer { data_dir, socket, .. } => vec![data_dir, socket],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{FilesystemKind, Prewrite, QueueAttribute};

    fn queue(attribute: QueueAttribute, backing: &str) -> Change {
        let device = DeviceRef::Loop { backing: backing.into() };
        Change::Queue { device, attribute, value: "1".into() }
    }

    fn vm(which: VmSetting) -> Change {
        Change::Sysctl { which, value: 1 }
    }

    #[test]
    fn devices_stand_on_what_they_are_over() {
        let file = Change::BackingFile { path: "/a".into(), bytes: 1, prewrite: Prewrite::None };
        let attached = Change::Loop { backing: "/a".into(), direct: true, block_bytes: None };
        let kind = FilesystemKind::Ext4;
        let device = DeviceRef::Loop { backing: "/a".into() };
        let mount =
            Change::Mount { device: device.clone(), at: "/m".into(), kind, options: vec![] };
        let made = Change::MakeFilesystem { device, kind, options: vec![], label: None };
        let inner = Change::BackingFile { path: "/m/b".into(), bytes: 1, prewrite: Prewrite::All };
        assert!(stands_on(&attached, &file) && !stands_on(&file, &attached));
        assert!(stands_on(&mount, &attached) && stands_on(&mount, &file));
        assert!(stands_on(&inner, &mount));
        assert!(!stands_on(&made, &attached), "nothing to put back");
        assert!(!stands_on(&queue(QueueAttribute::Iostats, "/b"), &attached));
    }

    #[test]
    fn a_loop_device_stands_on_the_server_of_its_file() {
        let at = PathBuf::from("/m/served");
        let server = Change::FuseServer {
            at: at.clone(),
            program: "/bin/program".into(),
            arguments: vec![],
            holds_journal: false,
        };
        let attached = Change::Loop { backing: at.join("disk"), direct: true, block_bytes: None };
        let other = Change::Loop { backing: "/m/disk".into(), direct: true, block_bytes: None };
        let device = DeviceRef::Loop { backing: "/a".into() };
        let kind = FilesystemKind::Ext4;
        let below = Change::Mount { device, at: "/m".into(), kind, options: vec![] };
        assert!(stands_on(&attached, &server) && !stands_on(&server, &attached));
        assert!(!stands_on(&other, &server));
        assert!(stands_on(&server, &below) && !stands_on(&below, &server));
    }

    #[test]
    fn settings_stand_on_what_resets_them() {
        use QueueAttribute::{Iostats, NrRequests, Scheduler};
        assert!(stands_on(&queue(NrRequests, "/a"), &queue(Scheduler, "/a")));
        assert!(stands_on(&queue(Scheduler, "/a"), &queue(NrRequests, "/a")));
        assert!(stands_on(&queue(NrRequests, "/a"), &queue(Iostats, "/a")));
        assert!(!stands_on(&queue(NrRequests, "/a"), &queue(Scheduler, "/b")));
        assert!(stands_on(&vm(VmSetting::DirtyBytes), &vm(VmSetting::DirtyRatio)));
        assert!(!stands_on(&vm(VmSetting::DirtyBytes), &vm(VmSetting::DirtyBackgroundRatio)));
    }
}
