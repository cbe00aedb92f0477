//! `iostrata study`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use iostrata_plan::study::{Extent, MeasuringOverrides};

use super::{Common, Printing, value};

/// Arguments of `iostrata study`.
#[derive(Args, Debug)]
pub struct StudyArgs {
    #[command(subcommand)]
    pub action: StudyAction,
}

/// What to do with a study.
#[derive(Debug, Subcommand)]
pub enum StudyAction {
    /// List the shipped studies
    List(ListArgs),
    /// Show a study's plan, time, bytes to be written and every system change
    Show(ShowArgs),
    /// Create the volumes, measure every point, undo all changes, write a report
    Run(Box<RunArgs>),
    /// Continue a study that was killed or interrupted
    Resume(ResumeArgs),
    /// Compare the kernel profiles of two points of a study
    Diff(DiffArgs),
}

/// Arguments of `iostrata study list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    pub printing: Printing,
}

/// Which study, and how much of it.
#[derive(Args, Debug)]
pub struct StudyChoice {
    /// A shipped study, or a .toml file
    #[arg(value_name = "STUDY")]
    pub study: String,
    /// The quick extent, in minutes (default)
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub quick: bool,
    /// The full extent
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true,
          conflicts_with = "quick")]
    pub full: bool,
    /// Only this part of it (may be repeated; `main` is the part of the top-level factors)
    #[arg(long = "part", value_name = "NAME")]
    pub parts: Vec<String>,
    /// Time limit of the study: replicates are dropped to meet it, points are not
    #[arg(long, value_name = "TIME", value_parser = value::bound)]
    pub budget: Option<Duration>,
    /// Replicates of every point
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub replicates: Option<u32>,
    /// Random seed of the order of points and of their requests
    #[arg(long, value_name = "N", value_parser = value::whole::<u64>)]
    pub seed: Option<u64>,
}

impl StudyChoice {
    /// Quick or full.
    pub fn extent(&self) -> Extent {
        if self.full { Extent::Full } else { Extent::Quick }
    }

    /// What stands over the study's own `[measure]`. `--max-time` bounds the whole like `--budget`.
    pub fn overrides(&self, common: &Common) -> MeasuringOverrides {
        let budget = match (self.budget, common.max_time) {
            (Some(budget), Some(most)) => Some(budget.min(most)),
            (budget, most) => budget.or(most),
        };
        MeasuringOverrides {
            budget,
            point_time: common.point_time,
            precision: common.precision,
            replicates: self.replicates,
            seed: self.seed,
        }
    }

    /// The requested parts; none for all.
    pub fn parts(&self) -> Option<&[String]> {
        (!self.parts.is_empty()).then_some(self.parts.as_slice())
    }
}

/// Where a study's volumes are made.
#[derive(Args, Debug)]
pub struct StudyPlace {
    /// Directory for the backing files of the loop devices [default: the run directory]
    #[arg(long, value_name = "DIR", conflicts_with = "device")]
    pub dir: Option<PathBuf>,
    /// A block device to use instead of loop devices
    #[arg(long, value_name = "DEV")]
    pub device: Option<PathBuf>,
    /// Allow overwriting exactly this device, whatever its contents
    #[arg(long, value_name = "DEV", requires = "device")]
    pub overwrite_contents: Option<PathBuf>,
}

/// Which servers a study may start.
#[derive(Args, Debug)]
pub struct StudyServers {
    /// A server program for targets such as mariadb-10.11, matched by its version (may be repeated)
    /// [default: those in IOSTRATA_SERVER_PROGRAMS, then the installed ones]
    #[arg(long = "server", value_name = "PROGRAM")]
    pub servers: Vec<String>,
}

/// Arguments of `iostrata study show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    #[command(flatten)]
    pub choice: StudyChoice,
    #[command(flatten)]
    pub place: StudyPlace,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `iostrata study run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub choice: StudyChoice,
    #[command(flatten)]
    pub place: StudyPlace,
    #[command(flatten)]
    pub servers: StudyServers,
    /// Show the plan and every system change, and exit
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub dry_run: bool,
    /// Take no kernel profile
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub no_profile: bool,
    /// Skip the traced pass (latency by layer, waits)
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub no_trace: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `iostrata study resume`.
#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// The run directory of the study
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    #[command(flatten)]
    pub servers: StudyServers,
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `iostrata study diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// A point: its id with --run, otherwise RUN:POINT
    #[arg(value_name = "A")]
    pub a: String,
    /// The other point
    #[arg(value_name = "B")]
    pub b: String,
    /// The run directory of both points
    #[arg(long, value_name = "RUN")]
    pub run: Option<PathBuf>,
    #[command(flatten)]
    pub printing: Printing,
}
