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
    /// Name the shipped studies
    List(ListArgs),
    /// Show a study's plan, cost, bytes to be written and every system change
    Show(ShowArgs),
    /// Make the volumes, measure every point, put everything back, write a report
    Run(Box<RunArgs>),
    /// Go on with a study that was killed or interrupted
    Resume(ResumeArgs),
    /// Compare what the kernel did at two points of a study
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
    /// In minutes (the default)
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub quick: bool,
    /// As thorough as its author meant it
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true,
          conflicts_with = "quick")]
    pub full: bool,
    /// Only this part of it (may be given several times; `main` is what the top factors make)
    #[arg(long = "part", value_name = "NAME")]
    pub parts: Vec<String>,
    /// Bound on the whole: replicates are dropped to keep it, points are not
    #[arg(long, value_name = "TIME", value_parser = value::bound)]
    pub budget: Option<Duration>,
    /// Replicates of every point
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub replicates: Option<u32>,
    /// Seed of the order of the points and of their requests
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

    /// The parts that are asked for; none for all.
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
    /// A block device to be used instead of loop devices
    #[arg(long, value_name = "DEV")]
    pub device: Option<PathBuf>,
    /// Leave to overwrite this very device, whatever it holds
    #[arg(long, value_name = "DEV", requires = "device")]
    pub overwrite_contents: Option<PathBuf>,
}

/// Which servers a study may start.
#[derive(Args, Debug)]
pub struct StudyServers {
    /// A server program for targets such as mariadb-10.11; its version says for which (may be given
    /// several times) [default: those in IOSTRATA_SERVER_PROGRAMS, then what is installed]
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
    /// Show the plan and every system change, and stop there
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub dry_run: bool,
    /// Take no profile of the kernel
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub no_profile: bool,
    /// Leave out the traced pass (latency by layer, waits)
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
    /// A point: its id where --run is given, else RUN:POINT
    #[arg(value_name = "A")]
    pub a: String,
    /// The other point
    #[arg(value_name = "B")]
    pub b: String,
    /// The run directory that holds both points
    #[arg(long, value_name = "RUN")]
    pub run: Option<PathBuf>,
    #[command(flatten)]
    pub printing: Printing,
}
