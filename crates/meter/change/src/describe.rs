//! Changes in words, for a plan that is shown before anything happens.
//!
//! Invariant: one line per change; looking for the present value alters nothing.

use std::path::Path;

use iostrata_stats::units;

use iostrata_plan::study::IoLimits;

use crate::change::{Change, Prewrite};
use crate::kind;
use crate::kind::settings::At;
use crate::platform::Platform;
use crate::seen::DeviceRef;
use crate::system::System;
use crate::variables::{EVENT, ServerSetting};

/// The plan: each change in one line, with the present value where there is one already.
pub fn plan(changes: &[Change]) -> Vec<String> {
    let platform = System::new();
    changes.iter().map(|change| line(&platform, change)).collect()
}

/// A change with the present value.
pub(crate) fn line(platform: &dyn Platform, change: &Change) -> String {
    let now = match change {
        Change::Queue { device, attribute, .. } => kind::resolve(platform, device)
            .ok()
            .and_then(|found| kind::queue::read(platform, &found, *attribute).ok()),
        Change::Sysctl { which, .. } => kind::tunable::read_vm(platform, *which).ok(),
        Change::Governor { cpu, .. } => kind::tunable::read_governor(platform, *cpu).ok(),
        Change::ServerSettings { server, .. } => {
            settings_now(At { platform, server }, &change.named_settings())
        }
        _ => None,
    };
    match now {
        Some(now) => format!("{} (now {now})", change.describe()),
        None => change.describe(),
    }
}

impl Change {
    /// The change in one line.
    pub fn describe(&self) -> String {
        match self {
            Self::BackingFile { path, bytes, prewrite } => {
                let how = match prewrite {
                    Prewrite::All => "written in full with random data",
                    Prewrite::None => "allocated, not written",
                };
                let size = units::bytes(*bytes as f64);
                format!("make the file {} of {size}, {how}", path.display())
            }
            Self::Loop { backing, direct, block_bytes } => {
                let direct = if *direct { " with direct I/O" } else { "" };
                let block = block_bytes.map(|bytes| format!(", blocks of {bytes} bytes"));
                let backing = backing.display();
                format!("attach a loop device to {backing}{direct}{}", block.unwrap_or_default())
            }
            Self::MakeFilesystem { device, kind, options, label } => {
                let label = label.as_ref().map(|label| format!(" called {label}"));
                let lost = " (what it holds is lost)";
                let (name, label) = (kind.name(), label.unwrap_or_default());
                format!("make {name}{label} on {device}{}{lost}", with(options))
            }
            Self::Mount { device, at, kind, options } => {
                format!("mount {} of {device} at {}{}", kind.name(), at.display(), with(options))
            }
            Self::FuseServer { at, program, arguments, .. } => {
                let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
                format!("serve a file system at {} by {name} {}", at.display(), arguments.join(" "))
            }
            Self::Remount { at, options } => {
                format!("set options of the mount {}{}", at.display(), with(options))
            }
            Self::Queue { device, attribute, value } => {
                format!("set {} of {} to {value}", attribute.name(), queue_of(device))
            }
            Self::DropCaches => "write dirty pages and drop the page cache".to_owned(),
            Self::Sysctl { which, value } => format!("set vm.{} to {value}", which.name()),
            Self::MemoryGroup { name, limit_bytes } => group(
                name,
                &format!("{} of memory and page cache", units::bytes(*limit_bytes as f64)),
            ),
            Self::CpuGroup { name, milli_cpus } => {
                group(name, &format!("{} processors", *milli_cpus as f64 / 1e3))
            }
            Self::IoGroup { name, device, limits } => {
                group(name, &format!("{} on {device}", limited(limits)))
            }
            Self::EnterGroup { name } => format!("move this process into the group {name}"),
            Self::Governor { cpu, value } => {
                format!("set the frequency governor of processor {cpu} to {value}")
            }
            Self::ServerSettings { server, settings, adjustable } => {
                format!("{} of {server}", settings_in_words(settings, adjustable))
            }
            Self::ServerDirectory { path } => {
                format!("make the directory {} for a database server", path.display())
            }
            Self::DatabaseServer { data_dir, program, group, .. } => {
                let group = group.as_ref().map(|name| format!(" in the group {name}"));
                let (data_dir, program) = (data_dir.display(), program.display());
                let group = group.unwrap_or_default();
                format!("start a database server on {data_dir} by {program}{group}")
            }
            Self::MountTracefs => "mount tracefs".to_owned(),
            Self::TraceInstance { name, events, buffer_kib, clock } => format!(
                "make the trace buffer {name} ({buffer_kib} KiB per processor, clock {clock}) for {}",
                events.join(", ")
            ),
        }
    }
}

fn settings_in_words(settings: &[ServerSetting], adjustable: &[String]) -> String {
    let set = settings.iter().map(|one| format!("set {} to {}", one.name, one.value));
    let named = |name: &String| match name.strip_prefix(EVENT) {
        Some(event) => format!("the event {event}"),
        None => name.clone(),
    };
    let adjusted: Vec<String> = adjustable.iter().map(named).collect();
    let adjust = (!adjusted.is_empty()).then(|| format!("adjust {}", adjusted.join(", ")));
    set.chain(adjust).collect::<Vec<_>>().join(", ")
}

/// The present values, each with its name where there are several.
fn settings_now(at: At<'_>, named: &[&str]) -> Option<String> {
    let values = at.read(named).ok()?;
    match named {
        [name] => values.get(*name).cloned(),
        _ => {
            let value = |name: &&str| Some(format!("{name} {}", values.get(*name)?));
            Some(named.iter().filter_map(value).collect::<Vec<_>>().join(", "))
        }
    }
}

fn with(options: &[String]) -> String {
    match options {
        [] => String::new(),
        options => format!(" with {}", options.join(",")),
    }
}

/// A named device by its last part, as the kernel's tools do.
fn queue_of(device: &DeviceRef) -> String {
    match device {
        DeviceRef::Named { path, .. } => {
            path.strip_prefix(Path::new("/dev")).unwrap_or(path).display().to_string()
        }
        DeviceRef::Loop { .. } => device.to_string(),
    }
}

fn group(name: &str, limit: &str) -> String {
    format!("make the group {name} with at most {limit}")
}

fn limited(limits: &IoLimits) -> String {
    let count = |limit: Option<u64>, what: &str| limit.map(|limit| format!("{limit} {what}"));
    let rate = |limit: Option<u64>, what: &str| {
        limit.map(|limit| format!("{}/s {what}", units::bytes(limit as f64)))
    };
    let parts = [
        count(limits.read_iops, "reads/s"),
        count(limits.write_iops, "writes/s"),
        rate(limits.read_bytes_per_s, "read"),
        rate(limits.write_bytes_per_s, "written"),
    ];
    match parts.into_iter().flatten().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "any I/O".to_owned(),
        limited => limited,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::QueueAttribute;

    #[test]
    fn a_change_is_one_line() {
        let device = DeviceRef::Named { path: "/dev/vdb".into(), overwrite: false };
        let attribute = QueueAttribute::Scheduler;
        let set = Change::Queue { device, attribute, value: "bfq".into() };
        assert_eq!(set.describe(), "set scheduler of vdb to bfq");
        let limits = IoLimits { write_iops: Some(1500), ..IoLimits::default() };
        let device = DeviceRef::Loop { backing: "/a".into() };
        let group = Change::IoGroup { name: "slow".into(), device, limits };
        assert_eq!(
            group.describe(),
            "make the group slow with at most 1500 writes/s on the loop device over /a"
        );
    }
}
