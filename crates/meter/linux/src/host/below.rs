//! What the devices below a path do from one look to the next, for whoever looks at them for long.
//!
//! Invariant: a look costs one small file per device. Devices that serve one file system together
//! are one.

use std::path::Path;
use std::time::Instant;

use iostrata_run::host::{DeviceCounters, DeviceDelta};

use crate::host::diskstats::{delta, device_counters, sum};
use crate::host::{HostError, Root, Scope, describe_path};

/// The devices that requests for a path arrive at.
#[derive(Debug)]
pub struct DevicesBelow {
    root: Root,
    names: Vec<String>,
    last: Option<(Instant, DeviceCounters)>,
}

impl DevicesBelow {
    /// Those of a path; nothing where it lies on none, or where the kernel does not count.
    ///
    /// # Errors
    /// As [`describe_path`].
    pub fn of(root: &Root, path: &Path) -> Result<Option<Self>, HostError> {
        let names = Scope::of(root, &describe_path(root, path)?).tops;
        let mut below = Self { root: root.clone(), names, last: None };
        below.last = below.look();
        Ok(below.last.is_some().then_some(below))
    }

    /// Their names, as the kernel has them.
    pub fn name(&self) -> String {
        self.names.join("+")
    }

    /// What they did since the last look; nothing where one of them cannot be asked any more.
    pub fn since_last(&mut self) -> Option<DeviceDelta> {
        let now = self.look()?;
        let (from, before) = self.last.replace(now)?;
        delta(&before, &now.1, now.0.saturating_duration_since(from).as_secs_f64())
    }

    fn look(&self) -> Option<(Instant, DeviceCounters)> {
        let at = Instant::now();
        let counted = self.names.iter().map(|name| device_counters(&self.root, name));
        let all: Vec<DeviceCounters> = counted.collect::<Option<_>>()?;
        Some((at, sum(&all)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_below_this_directory_is_looked_at() {
        let root = Root::system();
        let Some(mut below) = DevicesBelow::of(&root, Path::new(".")).unwrap() else {
            eprintln!("skipped: no counted device lies below this directory");
            return;
        };
        assert!(!below.name().is_empty());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let delta = below.since_last().unwrap();
        assert!(delta.seconds > 0.0, "{delta:?}");
    }

    #[test]
    fn what_lies_on_no_device_has_none() {
        let root = Root::system();
        assert!(DevicesBelow::of(&root, Path::new("/proc")).unwrap().is_none());
        assert!(DevicesBelow::of(&root, Path::new("/no/such/place")).is_err());
    }
}
