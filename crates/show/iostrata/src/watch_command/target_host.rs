//! What is seen of a target's host, where that is this one: the device below its data, pressure,
//! and what holds it back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use iostrata_database::target::TargetFacts;
use iostrata_database::watch::OnHost;
use iostrata_engine::read_status;
use iostrata_linux::host::{DevicesBelow, FindProcess, HeldBack, ProcessPlace, Root};

/// A file that every data directory of InnoDB holds, and that a server keeps open.
const SYSTEM_FILE: &str = "ibdata1";

/// How long is looked whether its tasks wait for processors, while it stalls.
const TASKS_LOOK: Duration = Duration::from_millis(200);

/// The host of a target; empty where it is another one.
#[derive(Default)]
pub struct TargetHost {
    is_here: bool,
    data: PathBuf,
    device: Option<DevicesBelow>,
    held: Option<HeldBack>,
}

impl TargetHost {
    /// Of a server; `is_local` says whether its address is of this host.
    pub fn of_server(facts: &TargetFacts, is_local: bool) -> Self {
        let setting = |wanted: &str| {
            let found = facts.settings.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| PathBuf::from(value))
        };
        // A server in a container of its own may have the address of this host.
        let data_dir = setting("datadir").filter(|dir| dir.join(SYSTEM_FILE).exists());
        data_dir.filter(|_| is_local).map_or_else(Self::default, |dir| {
            let (file, pid_file) = (SYSTEM_FILE.to_owned(), setting("pid_file"));
            let place = ProcessPlace { dir: dir.clone(), file, pid_file };
            Self::at(&dir, Box::new(move || place.process(&Root::system())))
        })
    }

    /// Of an engine, which another process on this host holds.
    pub fn of_engine(dir: &Path) -> Self {
        let of = dir.to_owned();
        let find = move || Some(read_status(&of).ok()?.process_id);
        Self::at(dir, Box::new(find))
    }

    fn at(data: &Path, find: FindProcess) -> Self {
        let root = Root::system();
        let device = DevicesBelow::of(&root, data).ok().flatten();
        Self {
            is_here: true,
            data: data.to_owned(),
            device,
            held: HeldBack::of(&root, data, find).ok(),
        }
    }

    /// What happened there since it was last looked at.
    pub fn since_last(&mut self) -> OnHost {
        OnHost {
            device: self
                .device
                .as_mut()
                .and_then(|below| Some((below.name(), below.since_last()?))),
            // A file system that does not answer would hold up the samples; it does the server too.
            disk_free_bytes: self
                .is_here
                .then(|| rustix::fs::statvfs(&self.data).ok())
                .flatten()
                .map(|found| found.f_bavail * found.f_frsize),
            held: self.held.as_mut().map(HeldBack::since_last).unwrap_or_default(),
        }
    }

    /// Tasks of its process that wait for a processor at a time; looking takes a moment.
    pub fn tasks_waiting(&self) -> Option<u64> {
        self.held.as_ref()?.tasks_waiting(TASKS_LOOK)
    }

    /// What is not told of it, and why.
    pub fn missing(&self) -> Vec<String> {
        if !self.is_here {
            let text = "the data does not lie on this host, or is hidden from this user";
            return vec![format!("device, pressure, throttle: {text}")];
        }
        let mut out = Vec::new();
        if self.device.is_none() {
            let text = "device: the data does not lie on a counted device of this host";
            out.push(text.to_owned());
        }
        out.extend(self.held.iter().flat_map(HeldBack::missing));
        out
    }
}
