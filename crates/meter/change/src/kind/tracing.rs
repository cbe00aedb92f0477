//! tracefs, and trace buffers of our own with their settings while they are in use.
//!
//! Invariants: tracefs is unmounted only when no file in it is open; buffers of others are never
//! touched. Of an instance only files below one that this program made are written; it is removed
//! with all its settings when its change is undone, so single settings need no journal.

use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Change, Entry, Kind, Site};
use crate::error::{ChangeError, system};
use crate::platform::{self, MountRequest, Platform};
use crate::undone::Undone;

/// Where the kernel wants it, and where it was before that.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Where tracefs is mounted, of the usual places first.
fn mounted(platform: &dyn Platform) -> Option<PathBuf> {
    let mounts = platform.mounts().unwrap_or_default();
    let at: Vec<PathBuf> =
        mounts.into_iter().filter(|mount| mount.kind == "tracefs").map(|mount| mount.at).collect();
    let usual = PLACES.iter().map(PathBuf::from).find(|place| at.contains(place));
    usual.filter(|place| platform.look(&place.join("events")).ok().flatten().is_some())
}

/// Mounts tracefs where the kernel wants it, unless it is mounted. Undone: unmounted, unless it is
/// in use by then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountTracefs;

/// Whether tracefs is mounted, and where it is or will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TracefsPrior {
    mounted: bool,
    dir: PathBuf,
}

/// tracefs is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracefsEffect {
    /// Where.
    pub dir: PathBuf,
    /// It was there before.
    pub was_mounted: bool,
}

impl Kind for MountTracefs {
    type Prior = TracefsPrior;
    type Effect = TracefsEffect;

    fn describe(&self) -> String {
        "mount tracefs".to_owned()
    }

    fn carries(&self, later: &Change) -> bool {
        matches!(later, Change::TraceInstance(_))
    }

    fn prior(&self, site: &Site<'_>) -> Result<TracefsPrior, ChangeError> {
        if let Some(dir) = mounted(site.platform) {
            return Ok(TracefsPrior { mounted: true, dir });
        }
        let dir = PathBuf::from(PLACES[0]);
        match site.platform.look(&dir) {
            Ok(Some(_)) => Ok(TracefsPrior { mounted: false, dir }),
            _ => Err(ChangeError::unavailable(
                "tracefs",
                format!("there is no {}", dir.display()),
                "use a kernel with CONFIG_TRACING, outside of a container",
            )),
        }
    }

    fn apply(&self, site: &Site<'_>, prior: &TracefsPrior) -> Result<TracefsEffect, ChangeError> {
        let (platform, TracefsPrior { mounted: was_mounted, dir }) = (site.platform, prior);
        if !was_mounted {
            let request = MountRequest {
                source: PathBuf::from("tracefs"),
                at: dir.clone(),
                kind: "tracefs",
                options: Vec::new(),
            };
            platform.mount(&request).map_err(|refusal| {
                ChangeError::unavailable(
                    "tracefs",
                    refusal.said,
                    "run it as root, outside of a container",
                )
            })?;
        }
        Ok(TracefsEffect { dir: dir.clone(), was_mounted: *was_mounted })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let TracefsPrior { mounted: was_mounted, dir } = entry.prior;
        let is_there = mounted(platform).is_some_and(|place| place == *dir);
        if *was_mounted || !is_there {
            return Ok(Undone::as_before());
        }
        match platform::while_busy(platform, || platform.unmount(dir, false)) {
            // Lazily would pull it from under others.
            Err(error) if platform::is_busy(&error) => {
                let thing = format!("tracefs at {}", dir.display());
                Ok(Undone::left_alone(thing, "in use by another process", "not mounted"))
            }
            done => {
                done.map(|()| Undone::put_back()).map_err(|error| system("unmount", dir, error))
            }
        }
    }
}

/// Makes a trace buffer of its own. Undone: removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceInstance {
    /// Its name within the session.
    pub name: String,
    /// Events to enable, as `block:block_rq_issue`.
    pub events: Vec<String>,
    /// Buffer per processor, in KiB.
    pub buffer_kib: u64,
    /// Clock of its time stamps, as `mono`.
    pub clock: String,
}

/// No such trace buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoInstance {
    dir: PathBuf,
}

/// A trace buffer was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceEffect {
    /// Its directory.
    pub dir: PathBuf,
    /// Buffer per processor, in KiB.
    pub buffer_kib: String,
    /// Its clock.
    pub clock: String,
}

impl Kind for TraceInstance {
    type Prior = NoInstance;
    type Effect = InstanceEffect;

    fn describe(&self) -> String {
        let Self { name, events, buffer_kib, clock } = self;
        format!(
            "make the trace buffer {name} ({buffer_kib} KiB per processor, clock {clock}) for {}",
            events.join(", ")
        )
    }

    fn prior(&self, site: &Site<'_>) -> Result<NoInstance, ChangeError> {
        let (platform, name) = (site.platform, &self.name);
        let Some(tracefs) = mounted(platform) else {
            return Err(ChangeError::unavailable(
                format!("the trace buffer {name}"),
                "tracefs is not mounted",
                "mount tracefs first",
            ));
        };
        let dir =
            tracefs.join("instances").join(format!("iostrata-{}-{name}", platform.owner().pid));
        match platform.look(&dir).map_err(|source| system("look at", &dir, source))? {
            None => Ok(NoInstance { dir }),
            Some(_) => {
                let found = "exists".to_owned();
                let fix = "run iostrata restore, which removes trace buffers of killed runs";
                Err(ChangeError::Taken { path: dir, found, fix })
            }
        }
    }

    fn apply(&self, site: &Site<'_>, prior: &NoInstance) -> Result<InstanceEffect, ChangeError> {
        let (platform, dir) = (site.platform, &prior.dir);
        platform.make_dir(dir).map_err(|source| system("make the trace buffer", dir, source))?;
        set(platform, &dir.join("buffer_size_kb"), &self.buffer_kib.to_string())?;
        set(platform, &dir.join("trace_clock"), &self.clock)?;
        for event in &self.events {
            let path = dir.join("events").join(event.replace(':', "/")).join("enable");
            set(platform, &path, "1")?;
        }
        let read = |name: &str| platform.read(&dir.join(name)).unwrap_or_default();
        let clocks = read("trace_clock");
        let chosen = clocks.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Ok(InstanceEffect {
            dir: dir.clone(),
            buffer_kib: read("buffer_size_kb"),
            clock: chosen.map_or(clocks.as_str(), |(chosen, _)| chosen).to_owned(),
        })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let dir = &entry.prior.dir;
        let exists = platform.look(dir).map_err(|source| system("look at", dir, source))?.is_some();
        if !exists {
            return Ok(Undone::as_before());
        }
        // The reader of a killed run may still be ending.
        let removed = platform::while_busy(platform, || platform.remove_dir(dir));
        removed.map_err(|source| system("remove the trace buffer", dir, source))?;
        Ok(Undone::put_back())
    }
}

fn set(platform: &dyn Platform, cell: &Path, value: &str) -> Result<(), ChangeError> {
    platform.write(cell, value).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINVAL | libc::ENODEV) => ChangeError::unavailable(
            format!("{} {value}", cell.display()),
            error,
            "leave it out on this kernel",
        ),
        _ => system("write", cell, error),
    })
}

/// Names of own instances begin so.
const OWN_PREFIX: &str = "iostrata-";

/// Writes one file of an instance: recording on or off, a filter, the buffer cleared.
///
/// # Errors
/// When the directory is no instance of ours, the file lies outside it, or the kernel refuses.
pub fn write_instance(instance: &Path, file: &str, value: &str) -> io::Result<()> {
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()));
    let parent = instance.parent().and_then(Path::file_name);
    let name = instance.file_name().map(|name| name.to_string_lossy());
    let is_ours = name.is_some_and(|name| name.starts_with(OWN_PREFIX));
    if parent.is_none_or(|parent| parent != "instances") || !is_ours {
        return refuse("not a trace instance of this program");
    }
    if !Path::new(file).components().all(|part| matches!(part, Component::Normal(_))) {
        return refuse("not a file of the instance");
    }
    std::fs::write(instance.join(file), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_an_own_instance_is_written() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join(format!("instances/{OWN_PREFIX}1-x"));
        let foreign = root.path().join("instances/other");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&foreign).unwrap();
        write_instance(&own, "tracing_on", "1").unwrap();
        assert_eq!(std::fs::read_to_string(own.join("tracing_on")).unwrap(), "1");
        for (dir, file) in
            [(&foreign, "tracing_on"), (&own, "../other/tracing_on"), (&own, "/etc/passwd")]
        {
            assert!(write_instance(dir, file, "1").is_err(), "{file}");
        }
        assert!(!foreign.join("tracing_on").exists());
    }
}
