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
    /// Make a block device that behaves like a disk of this model
    ///
    /// Serves a file at the model's pace through FUSE and attaches a loop device to it: partition
    /// it, make a file system on it, run a database on it. What it holds is gone when it is
    /// stopped. Needs root and /dev/fuse. docs/disks.md says what each model does.
    Start(StartArgs),
    /// Name the disks that are there, and what arrived at them so far
    List(DiskListArgs),
    /// Let something go wrong with a disk, or end that
    ///
    /// A power cut loses writes that were not flushed, and every request fails until --power-on, or
    /// until nothing is mounted on the disk: then the power comes back by itself.
    Fault(FaultArgs),
    /// Take disks away, with all that they hold
    ///
    /// One that is mounted or open is left as it is, and said so.
    Stop(StopArgs),
    /// The server of one disk; not for users
    #[command(hide = true)]
    Serve(ServeWords),
}

/// Arguments of `iostrata disk start`.
#[derive(Args, Debug)]
pub struct StartArgs {
    /// What it behaves like: hdd-7k2, hdd-10k, hdd-15k, raid10-hdd, ssd-sata, nvme, nvme-no-plp,
    /// cloud-burst, or probe:FILE, a device that `iostrata probe --json` measured. Options follow,
    /// separated by commas: queue=N, cache=on|off, flush=TIME, spindles=N, credits=N
    #[arg(long, value_name = "M", value_parser = disk)]
    pub model: DiskSpec,
    /// Its size
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub size: u64,
    /// Where its contents live: memory, or a directory with room for a sparse file without a name
    #[arg(long, value_name = "memory|DIR", default_value = "memory")]
    pub store: PathBuf,
    /// Most that the contents may take; a write beyond it fails as on a full thin volume
    /// [default: the size]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub store_limit: Option<u64>,
    /// Seed of everything random: where the platters stand, what a power cut tears
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
    /// Fail so many of a million requests
    #[arg(long, value_name = "PER_MILLION", group = "fault", value_parser = eio_rate)]
    pub eio_rate: Option<Fault>,
    /// Let every request take so many milliseconds longer; 0 ends it
    #[arg(long, value_name = "MS", group = "fault", value_parser = slow)]
    pub slow: Option<Fault>,
    /// Answer nothing for a while, again and again: 50ms/1s is 50 ms at the start of every second;
    /// none ends it
    #[arg(long, value_name = "LENGTH/PERIOD", group = "fault", value_parser = stall)]
    pub stall: Option<Fault>,
    /// Cut the power: writes that were not flushed are lost
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          value_parser = value::switch, group = "fault")]
    pub power_cut: Option<bool>,
    /// Keep or lose each piece of this size of what was not flushed, by chance
    #[arg(long, value_name = "512|4096", value_parser = tear)]
    pub tear: Option<Tear>,
    /// Give the power back
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          value_parser = value::switch, group = "fault")]
    pub power_on: Option<bool>,
    /// Most that the contents may take
    #[arg(long, value_name = "SIZE", value_parser = value::size, group = "fault")]
    pub store_limit: Option<u64>,
    /// End all of it: no errors, no delay, no pauses, power on
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
    /// Every disk that `disk start` made; those of a run that is going on stay
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

/// A bare number is milliseconds here, as the option says.
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
