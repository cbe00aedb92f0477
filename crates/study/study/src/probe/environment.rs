//! What kind of place the directory is, and what that means for the figures.

use std::time::Duration;

use iostrata_linux::host::{Root, quiet_check};
use iostrata_run::Unavailable;
use iostrata_run::host::{PathFacts, PathKind};

/// How long the device is watched for others.
const WATCHED: Duration = Duration::from_millis(600);

/// Which other processes use the device now, as the end of a sentence; `None` where it is quiet.
pub(super) fn others(path: &PathFacts) -> Option<String> {
    let check = quiet_check(&Root::system(), path, WATCHED).filter(|check| !check.quiet)?;
    let names: Vec<String> =
        check.processes.iter().take(3).map(|one| format!("{} ({})", one.comm, one.pid)).collect();
    let who = if names.is_empty() { "something else".to_owned() } else { names.join(", ") };
    Some(format!("; {who} uses {} at the same time", check.device))
}

/// Names of the devices below, as the kernel's log has them.
pub(super) fn devices(path: &PathFacts) -> Vec<String> {
    path.block_stack.iter().map(|layer| layer.name.clone()).collect()
}

/// What cannot be seen or trusted in a place like this, each with the reason and the way out.
pub(super) fn limits_of(path: &PathFacts) -> Vec<Unavailable> {
    let mut limits = Vec::new();
    let mut say = |what: &str, why: String, fix: Option<&str>| {
        limits.push(Unavailable::impossible(what, why, fix.map(str::to_owned)));
    };
    match &path.kind {
        PathKind::Tmpfs => say(
            "device rungs",
            "the directory lies in memory (tmpfs): there is no device below it, and nothing here \
             survives a power cut"
                .to_owned(),
            Some("measure a directory on a disk"),
        ),
        PathKind::Network { protocol } => say(
            "device counters",
            format!(
                "the directory is served {}: what the device does is not visible from here",
                protocol.words()
            ),
            Some("run the probe on the machine that holds the disks as well, and compare"),
        ),
        PathKind::Overlay { upper, .. } => say(
            "plain file system rungs",
            format!(
                "the directory is an overlay; writes go to {}",
                upper.as_deref().unwrap_or("an upper directory that is not visible from here")
            ),
            Some("a database keeps its data on a volume of its own: measure that one"),
        ),
        PathKind::Unknown => {
            say("device counters", "what lies under the directory is not known".to_owned(), None)
        }
        PathKind::Disk | PathKind::BlockDevice if path.devices.is_empty() => {
            say(
                "device counters",
                "no block device was found under the directory".to_owned(),
                None,
            );
        }
        PathKind::Disk | PathKind::BlockDevice => {}
    }
    limits
}
