//! Sessions and restores on a machine that is only data, and the changes of every kind that they
//! make.

mod database;
mod fake;
mod served;
mod session;
mod settings;

use std::path::PathBuf;

use fake::BOUNDED;
use iostrata_plan::study::IoLimits;

use super::{
    Change, DeviceRef, FilesystemKind, Prewrite, QueueAttribute, ServerSetting, VmSetting,
};

const SERVER: &str = "mysql://127.0.0.1:3306";

fn device() -> DeviceRef {
    DeviceRef::Loop { backing: "/data/disk".into() }
}

fn queue(attribute: QueueAttribute, value: &str) -> Change {
    Change::Queue { device: device(), attribute, value: value.to_owned() }
}

fn disk() -> [Change; 2] {
    let path = PathBuf::from("/data/disk");
    [
        Change::BackingFile { path: path.clone(), bytes: 4096, prewrite: Prewrite::All },
        Change::Loop { backing: path, direct: true, block_bytes: None },
    ]
}

/// A disk that a program serves, and the loop device over it.
fn served(holds_journal: bool) -> [Change; 2] {
    let at = PathBuf::from("/data/served/here");
    let (program, arguments) = ("/bin/program".into(), vec!["serve".to_owned()]);
    let server = Change::FuseServer { at: at.clone(), program, arguments, holds_journal };
    [server, Change::Loop { backing: at.join("disk"), direct: true, block_bytes: None }]
}

fn mount(options: &[&str]) -> Change {
    let options = options.iter().map(|&option| option.to_owned()).collect();
    let kind = FilesystemKind::Ext4;
    Change::Mount { device: device(), at: "/data/deep/mnt".into(), kind, options }
}

/// A group of settings, with others that may be adjusted.
fn settings(set: &[(&str, u64)], adjustable: &[&str]) -> Change {
    let adjustable = adjustable.iter().map(|&name| name.to_owned()).collect();
    Change::ServerSettings { server: SERVER.to_owned(), settings: wanted(set), adjustable }
}

/// What a group is adjusted to.
fn wanted(set: &[(&str, u64)]) -> Vec<ServerSetting> {
    set.iter().map(|&(name, value)| ServerSetting::new(name, value)).collect()
}

/// A directory for a database server, and the server on it.
fn database(group: Option<&str>) -> [Change; 2] {
    let path = PathBuf::from("/data/private");
    let socket = path.join("socket");
    let arguments =
        vec![format!("--datadir={}", path.display()), format!("--socket={}", socket.display())];
    let server = Change::DatabaseServer {
        data_dir: path.clone(),
        is_named: false,
        socket,
        program: "/usr/sbin/mysqld".into(),
        arguments,
        group: group.map(str::to_owned),
        run_as: None,
    };
    [Change::ServerDirectory { path }, server]
}

/// One change of every kind that the stand-in has.
fn every_kind() -> Vec<Change> {
    let name = || "small".to_owned();
    let limits = IoLimits { write_iops: Some(9), read_bytes_per_s: Some(5), ..IoLimits::default() };
    let kind = FilesystemKind::Ext4;
    let mut changes = disk().to_vec();
    changes.extend([
        queue(QueueAttribute::NrRequests, "60"),
        queue(QueueAttribute::Scheduler, "none"),
        queue(QueueAttribute::Scheduler, "mq-deadline"),
        queue(QueueAttribute::NrRequests, "100000"),
        queue(QueueAttribute::ReadAheadKb, "5"),
        queue(QueueAttribute::Iostats, "0"),
        queue(QueueAttribute::Scheduler, "bfq"),
        Change::MakeFilesystem { device: device(), kind, options: vec![], label: None },
        mount(&[]),
        Change::Remount { at: "/data/deep/mnt".into(), options: vec!["noatime".to_owned()] },
        Change::Sysctl { which: VmSetting::DirtyBytes, value: 1 << 20 },
        Change::Sysctl { which: VmSetting::DirtyRatio, value: 5 },
        Change::Sysctl { which: VmSetting::DirtyBackgroundBytes, value: 1 << 20 },
        Change::Sysctl { which: VmSetting::DirtyExpireCentisecs, value: 7 },
        Change::DropCaches,
        Change::IoGroup { name: name(), device: device(), limits },
        Change::MemoryGroup { name: "other".to_owned(), limit_bytes: 1 << 30 },
        Change::CpuGroup { name: "other".to_owned(), milli_cpus: 1500 },
        Change::EnterGroup { name: name() },
        Change::MountTracefs,
        settings(&[(BOUNDED[0], 9_999), (BOUNDED[1], 5_000)], &BOUNDED),
        settings(&[("buffer_pool_mib", 130)], &[]),
    ]);
    changes.extend(served(false));
    changes.extend(database(Some("other")));
    changes
}
