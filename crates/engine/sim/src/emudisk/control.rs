//! The control loop: commands of `control`, the power coming back, the end.
//!
//! Invariant: the power comes back by itself only when nobody holds the block device, so that a
//! file system of before a cut cannot write after it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::emudisk::disk::{Disk, Failure, Reply};
use crate::emudisk::error::ServeError;
use crate::emudisk::fault::Fault;
use crate::emudisk::filesystem::{ControlLine, ToKernel};
use crate::emudisk::holder::is_held;
use crate::emudisk::options::disk_file;
use crate::emudisk::wake::Wake;

/// How often it looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks whether the device is let go, while there is no power.
const LOOK_POWER: Duration = Duration::from_millis(1);

/// What runs beside requests.
pub(crate) struct ControlLoop<'a> {
    pub(crate) at: PathBuf,
    pub(crate) disk: Arc<Disk<ToKernel>>,
    pub(crate) commands: Receiver<ControlLine>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) has_died: Arc<AtomicBool>,
    pub(crate) stop: &'a AtomicBool,
}

impl ControlLoop<'_> {
    /// Returns when it was unmounted (`is_over` says so) or asked to stop.
    pub(crate) fn run(&self, is_over: impl Fn() -> bool) -> Result<(), ServeError> {
        while !is_over() && !self.stop.load(Ordering::Acquire) {
            if self.has_died.load(Ordering::Acquire) {
                return Err(ServeError::Died { at: self.at.clone() });
            }
            while let Ok(command) = self.commands.try_recv() {
                self.carry_out(command)?;
            }
            let is_on = self.disk.is_on();
            if !is_on && !is_held(&disk_file(&self.at)) {
                self.disk.power_on()?;
            }
            self.wake.wait(if is_on { LOOK } else { LOOK_POWER });
        }
        Ok(())
    }

    fn carry_out(&self, command: ControlLine) -> Result<(), ServeError> {
        match command.fault {
            Fault::Eio(range) => self.disk.errors.set_range(range),
            Fault::EioRate(per_million) => self.disk.errors.set_rate(per_million),
            Fault::Slow(ms) => self.disk.pace().set_slow(u64::from(ms) * 1_000_000),
            Fault::Stall(stall) => self.disk.pace().set_stall(stall),
            Fault::StoreLimit(bytes) => self.disk.set_store_limit(bytes),
            Fault::PowerOn => self.disk.power_on()?,
            Fault::PowerCut { tear, seed } => {
                if let Err(source) = self.disk.power_off(tear, seed) {
                    command.reply.failed(Failure::Io);
                    let what = "taking back what a power cut loses";
                    return Err(ServeError::System { what, source });
                }
                if !is_held(&disk_file(&self.at)) {
                    self.disk.power_on()?;
                }
            }
        }
        command.reply.done(&[]);
        Ok(())
    }
}
