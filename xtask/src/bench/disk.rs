//! `cargo xtask bench disk`: emulated disks beside the same models in virtual time.
//!
//! The example of `sim` does the work: it serves each disk, lets fio measure its block device,
//! and asks the model. Here it is only built as it ships and kept alone on the machine.

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::test::execute;
use crate::workspace::{self, Workspace};

/// Models whose rates this way of serving can carry on a small machine.
const DISKS: &str = "hdd-7k2 hdd-15k raid10-hdd cloud-burst ssd-sata";

/// Runs the example; `--disks "A B"` names others, `--runtime` the seconds of each figure.
///
/// # Errors
/// When it does not build or fails.
pub fn run(mut args: Args) -> Result<()> {
    let disks: String = args.option("--disks", DISKS.to_owned())?;
    let runtime_s: u32 = args.option("--runtime", 8)?;
    args.finish()?;
    let workspace = Workspace::read()?;
    let example = ["--release", "--package", "iostrata-sim", "--example", "agreement"];
    let mut build = workspace::cargo(&workspace.root);
    if !build.arg("build").args(example).status().context("cannot run cargo build")?.success() {
        bail!("the example does not build");
    }
    let _lock = execute::lock()?;
    // Without a disk it measures what the way to the server costs.
    for disks in ["", &disks] {
        let mut command = workspace::cargo(&workspace.root);
        command.args(["run", "--quiet"]).args(example).arg("--").args(disks.split_whitespace());
        command.env("SECONDS_EACH", runtime_s.to_string());
        if !command.status().context("cannot run the example")?.success() {
            bail!("the example failed; it needs root, /dev/fuse and fio");
        }
    }
    Ok(())
}
