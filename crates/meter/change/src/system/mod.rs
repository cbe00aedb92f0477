//! The machine itself.
//!
//! Invariant: each call does one thing; what to do is decided above. Programs that it runs die with
//! this process; only servers outlive it.

mod contents;
mod files;
mod loop_device;
mod mounting;
mod server;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iostrata_io::Progress;

use crate::error::ChangeError;
use crate::owner::Owner;
use crate::platform::{MountRequest, Platform, Refusal, RunError};
use crate::seen::{Answer, DeviceState, FileToken, LoopDevice, Seen};
use crate::server::{Ending, Greeting, ServerCommand, Tie};
use crate::settings::Prewrite;
use crate::variables::{NoServers, Servers};
use iostrata_io::Mount;

pub use files::touched_unwritten_bytes;
pub use server::{BoundCommand, end_with_starter, spawn_for_life};

/// How long [`Platform::pause`] waits.
const PAUSE: Duration = Duration::from_millis(50);

type Tell = dyn Fn(Progress) + Send + Sync;

/// The machine that this runs on.
#[derive(Clone, Default)]
pub struct System {
    stop: Arc<AtomicBool>,
    tell: Option<Arc<Tell>>,
    started: Arc<server::Started>,
    servers: Option<Arc<dyn Servers + Send + Sync>>,
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").finish_non_exhaustive()
    }
}

impl System {
    /// The machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops filling files when the flag is raised.
    #[must_use]
    pub fn stopping_on(mut self, flag: Arc<AtomicBool>) -> Self {
        self.stop = flag;
        self
    }

    /// Reaches database servers through this client.
    #[must_use]
    pub fn with_servers(mut self, servers: impl Servers + Send + Sync + 'static) -> Self {
        self.servers = Some(Arc::new(servers));
        self
    }

    /// Tells how far the filling of a file has come.
    #[must_use]
    pub fn telling(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.tell = Some(Arc::new(tell));
        self
    }
}

impl Platform for System {
    fn read(&self, cell: &Path) -> io::Result<String> {
        Ok(fs::read_to_string(cell)?.trim().to_owned())
    }

    fn write(&self, cell: &Path, text: &str) -> io::Result<()> {
        files::write_cell(cell, text)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(dir)?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
        names.sort();
        Ok(names)
    }

    fn look(&self, path: &Path) -> io::Result<Option<Seen>> {
        files::look(path)
    }

    fn real(&self, path: &Path) -> PathBuf {
        files::real(path)
    }

    fn disk_of(&self, device: &Path) -> io::Result<String> {
        contents::disk_of(device)
    }

    fn state(&self, device: &Path) -> io::Result<DeviceState> {
        contents::state(device)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn make_file(&self, path: &Path, bytes: u64, prewrite: Prewrite) -> Result<(), ChangeError> {
        let mut tell = |progress| {
            if let Some(tell) = &self.tell {
                tell(progress);
            }
        };
        files::make(path, bytes, prewrite, &self.stop, &mut tell)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        files::remove(path)
    }

    fn remove_tree(&self, dir: &Path) -> io::Result<()> {
        files::remove_tree(dir)
    }

    fn loops_over(&self, file: &FileToken) -> io::Result<Vec<LoopDevice>> {
        loop_device::over(file)
    }

    fn attach(
        &self,
        backing: &FileToken,
        direct: bool,
        block_bytes: Option<u32>,
    ) -> io::Result<LoopDevice> {
        loop_device::attach(backing, direct, block_bytes)
    }

    fn detach(&self, device: &LoopDevice) -> io::Result<()> {
        loop_device::detach(device)
    }

    fn mounts(&self) -> io::Result<Vec<Mount>> {
        iostrata_io::mounts()
    }

    fn mount(&self, request: &MountRequest) -> Result<(), Refusal> {
        mounting::mount(request)
    }

    fn remount(&self, at: &Path, options: &[String]) -> Result<(), Refusal> {
        let mounts = self.mounts().unwrap_or_default();
        let now = mounts.into_iter().rev().find(|mount| mount.at == at);
        mounting::remount(at, now.map(|now| now.options).unwrap_or_default(), options)
    }

    fn unmount(&self, at: &Path, lazily: bool) -> io::Result<()> {
        mounting::unmount(at, lazily)
    }

    fn run(&self, program: &str, arguments: &[String]) -> Result<(), RunError> {
        server::run(program, arguments)
    }

    fn start(&self, server: &ServerCommand, tie: Tie<'_>) -> Result<Owner, RunError> {
        self.started.start(server, tie)
    }

    fn greeting(&self, socket: &Path) -> Greeting {
        server::greeting(socket)
    }

    fn said(&self, process: &Owner) -> Option<String> {
        self.started.said(process)
    }

    fn servers(&self, server: &ServerCommand) -> io::Result<Vec<Owner>> {
        server::find(server)
    }

    fn end(&self, process: &Owner, how: Ending) -> io::Result<()> {
        server::end(process, how)
    }

    fn ask(&self, file: &Path) -> Answer {
        server::ask(file)
    }

    fn in_use(&self, device: &Path) -> io::Result<Option<DeviceState>> {
        let device = device.to_owned();
        // A device that does not answer is at least not mounted, which is asked first.
        server::within(move || contents::in_use(&device)).unwrap_or(Ok(None))
    }

    fn openers(&self, device: &Path) -> Vec<String> {
        server::openers(device)
    }

    fn servers_at(&self) -> &dyn Servers {
        match &self.servers {
            Some(servers) => servers.as_ref(),
            None => &NoServers,
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn sync(&self) {
        rustix::fs::sync();
    }

    fn owner(&self) -> Owner {
        Owner::this()
    }

    fn is_alive(&self, owner: &Owner) -> bool {
        owner.is_alive()
    }

    fn now_us(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_micros() as u64
    }

    fn pause(&self) {
        std::thread::sleep(PAUSE);
    }
}
