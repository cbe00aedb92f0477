//! `iostrata disk`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use iostrata_plan::disk::DiskSpec;
use iostrata_sim::emudisk::{Fault, Tear};

use super::{Printing, value};

/// Arguments of `iostrata disk`.
#[derive(Args, Debug)]
pub struct DiskArgs {
    #[command(subcommand)]
    pub action: DiskAction,
}

/// What to do with emulated disks.
#[derive(Debug, Subcommand)]
pub enum DiskAction {
    /// Create a block device with the timing of a disk model
    ///
    /// Serves a file with the model's timing through FUSE and attaches a loop device to it:
    /// partition it, create a file system on it, run a database on it. Its contents are lost when
    /// it is stopped. Needs root and /dev/fuse. docs/disks.md describes the models.
    Start(StartArgs),
    /// List the emulated disks and their request counts
    List(DiskListArgs),
    /// Inject faults into a disk, or end them
    ///
    /// A power cut loses unflushed writes, and every request fails until --power-on, or until
    /// nothing is mounted on the disk: then the power returns automatically.
    Fault(FaultArgs),
    /// Remove disks and their contents
    ///
    /// A mounted or open disk is not removed, which is reported.
    Stop(StopArgs),
    /// The server of one disk; not for users
    #[command(hide = true)]
    Serve(ServeWords),
}

/// Arguments of `iostrata disk start`.
#[derive(Args, Debug)]
pub struct StartArgs {
    /// The model: hdd-7k2, hdd-10k, hdd-15k, raid10-hdd, ssd-sata, nvme, nvme-no-plp, cloud-burst,
    /// or probe:FILE, a device measured by `iostrata probe --json`. Options follow, separated by
    /// commas: queue=N, cache=on|off, flush=TIME, spindles=N, credits=N
    #[arg(long, value_name = "M", value_parser = disk)]
    pub model: DiskSpec,
    /// Size of the disk
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub size: u64,
    /// Storage of its contents: memory, or a directory for an unnamed sparse file
    #[arg(long, value_name = "memory|DIR", default_value = "memory")]
    pub store: PathBuf,
    /// Limit of the stored contents; a write beyond it fails as on a full thin volume [default: the
    /// size]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub store_limit: Option<u64>,
    /// Random seed: position of the platters, writes torn by a power cut
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    pub seed: u64,
    #[command(flatten)]
    pub common: Printing,
}

/// Arguments of `iostrata disk list`.
#[derive(Args, Debug)]
pub struct DiskListArgs {
    #[command(flatten)]
    pub common: Printing,
}

/// Arguments of `iostrata disk fault`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("fault").required(true))]
pub struct FaultArgs {
    /// The disk's device, as `disk start` printed it
    #[arg(value_name = "DEVICE")]
    pub device: PathBuf,
    /// Fail requests that touch these bytes: 1M-2M, or none
    #[arg(long, value_name = "RANGE", group = "fault", value_parser = eio)]
    pub eio: Option<Fault>,
    /// Fail this many of a million requests
    #[arg(long, value_name = "PER_MILLION", group = "fault", value_parser = eio_rate)]
    pub eio_rate: Option<Fault>,
    /// Delay every request by this many milliseconds; 0 ends it
    #[arg(long, value_name = "MS", group = "fault", value_parser = slow)]
    pub slow: Option<Fault>,
    /// Pause periodically: 50ms/1s is 50 ms at the start of every second; none ends it
    #[arg(long, value_name = "LENGTH/PERIOD", group = "fault", value_parser = stall)]
    pub stall: Option<Fault>,
    /// Cut the power: unflushed writes are lost
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          value_parser = value::switch, group = "fault")]
    pub power_cut: Option<bool>,
    /// Keep or lose each piece of this size of the unflushed data at random
    #[arg(long, value_name = "512|4096", value_parser = tear)]
    pub tear: Option<Tear>,
    /// Restore the power
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          value_parser = value::switch, group = "fault")]
    pub power_on: Option<bool>,
    /// Limit of the stored contents
    #[arg(long, value_name = "SIZE", value_parser = value::size, group = "fault")]
    pub store_limit: Option<u64>,
    /// End all faults: no errors, no delay, no pauses, power on
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          value_parser = value::switch, group = "fault")]
    pub none: Option<bool>,
    #[command(flatten)]
    pub common: Printing,
}

/// Arguments of `iostrata disk stop`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("which").required(true))]
pub struct StopArgs {
    /// The disk's device, as `disk start` printed it
    #[arg(value_name = "DEVICE", group = "which")]
    pub device: Option<PathBuf>,
    /// Every disk created by `disk start`; those of active runs stay
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          value_parser = value::switch, group = "which")]
    pub all: Option<bool>,
    #[command(flatten)]
    pub common: Printing,
}

/// Arguments of the hidden `iostrata disk serve`, which no user types.
#[derive(Args, Debug)]
pub struct ServeWords {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<OsString>,
}

fn disk(text: &str) -> Result<DiskSpec, String> {
    text.parse().map_err(|error: iostrata_plan::disk::DiskSpecError| error.to_string())
}

fn fault(line: &str) -> Result<Fault, String> {
    line.parse().map_err(|error: iostrata_sim::emudisk::FaultError| error.to_string())
}

fn eio(text: &str) -> Result<Fault, String> {
    fault(&format!("eio {text}"))
}

fn eio_rate(text: &str) -> Result<Fault, String> {
    fault(&format!("eio-rate {text}"))
}

/// A bare number is milliseconds here, as the option documents.
fn slow(text: &str) -> Result<Fault, String> {
    if text.chars().all(|letter| letter.is_ascii_digit()) {
        return fault(&format!("slow {text}"));
    }
    fault(&format!("slow {}", value::duration(text)?.as_millis()))
}

fn stall(text: &str) -> Result<Fault, String> {
    let Some((lasts, every)) = text.split_once('/') else {
        return fault(&format!("stall {text}"));
    };
    let [lasts, every] = [value::duration(lasts)?, value::duration(every)?];
    fault(&format!("stall {}/{}", lasts.as_millis(), every.as_millis()))
}

fn tear(text: &str) -> Result<Tear, String> {
    match value::size(text) {
        Ok(512) => Ok(Tear::Sector),
        Ok(4096) => Ok(Tear::Block),
        _ => Err("write 512 (a sector) or 4096 (a block)".to_owned()),
    }
}
