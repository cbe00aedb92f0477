//! `iostrata fio`: fio's job files and its command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, ValueEnum};
use iostrata_plan::fio::{FioArgument, catalogue, split};

use super::{Common, value};

/// Arguments of `iostrata fio`.
#[derive(Args, Debug)]
#[command(
    override_usage = "iostrata fio [OPTIONS] [JOB OPTIONS] [JOBFILE]...",
    after_long_help = job_options_help(),
    disable_version_flag = true,
    args_override_self = true
)]
pub struct FioArgs {
    /// Job files, - for standard input; each file runs after the previous one
    #[arg(value_name = "JOBFILE")]
    pub files: Vec<PathBuf>,
    /// Options of jobs, as [`in_our_words`] makes them
    #[arg(long, hide = true, value_name = "NUMBER:NAME=VALUE")]
    pub job_option: Vec<FioArgument>,
    /// Print the plan of the jobs, and exit
    #[arg(long, visible_alias = "parse-only", num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub dry_run: bool,
    /// Print the results in these formats of fio (separated by commas) [default: fio's normal
    /// format and a table with intervals]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT")]
    pub output_format: Vec<OutputFormat>,
    /// The same as --output-format=terse
    #[arg(long)]
    pub minimal: bool,
    /// Version of the terse format
    #[arg(long, value_name = "2..5", default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=5))]
    pub terse_version: u32,
    /// Print the supported version of fio and iostrata's own, and exit
    #[arg(short, long)]
    pub version: bool,
    /// Print help on an option of jobs, or on all of them, and exit
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "OPTION", default_missing_value = "all")]
    pub cmdhelp: Option<String>,
    /// Print the I/O engines, or help on one of them, and exit
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "ENGINE", default_missing_value = "")]
    pub enghelp: Option<String>,
    /// Add the terse format to the others, or to the normal one
    #[arg(long)]
    pub append_terse: bool,
    /// Write the results to this file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print intermediate results at this interval
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub status_interval: Option<Duration>,
    /// When to show progress on stderr
    #[arg(long, value_enum, default_value = "auto")]
    pub eta: Eta,
    /// Run only the sections of this name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub section: Vec<String>,
    /// Skip jobs that cannot be run, and list them
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub skip_unsupported: bool,
    /// Print the job files as command lines, and exit
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub showcmd: bool,
    /// Allow overwriting existing files or devices
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub overwrite_contents: bool,
    #[command(flatten)]
    pub common: Common,
}

/// When progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Eta {
    /// If stderr is a terminal
    Auto,
    /// The same
    Always,
    /// Never
    Never,
}

/// A form of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Text
    Normal,
    /// A line of fields per job, of --terse-version
    Terse,
    /// JSON
    Json,
    /// JSON with histograms
    #[value(name = "json+")]
    JsonPlus,
}

/// The hidden option that carries options of jobs.
const JOB_OPTION: &str = "job-option";

/// The arguments with fio's job options in front, each as one hidden option of ours.
pub fn in_our_words(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_none_or(|command| command != "fio") {
        return arguments;
    }
    let (jobs, rest) = split(&arguments.split_off(2), &own_options());
    arguments.extend(jobs.iter().map(|job| format!("--{JOB_OPTION}={job}").into()));
    arguments.extend(rest);
    arguments
}

/// Names of the command's own options.
pub fn own_options() -> Vec<String> {
    let mut command = super::Cli::command();
    command.build();
    let fio = command.find_subcommand("fio");
    let options = fio.into_iter().flat_map(clap::Command::get_arguments);
    let options = options.filter(|option| option.get_id() != "job_option");
    let names = options.filter_map(|option| option.get_long_and_visible_aliases()).flatten();
    names.map(str::to_owned).collect()
}

/// Every option of jobs, by areas.
fn job_options_help() -> String {
    let mut text = String::from(
        "Job options, one dash or two; those before the first --name are defaults of all jobs:\n",
    );
    for (title, entries) in catalogue::areas() {
        text.push_str(&format!("\n{title}:\n"));
        for entry in entries {
            let names: Vec<String> = entry.names().map(|name| format!("--{name}")).collect();
            let names = names.join(", ");
            text.push_str(&format!("  {names:<28} {}\n", entry.effect));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_of_ours_has_the_name_of_an_option_of_jobs() {
        let of_jobs: Vec<&str> = catalogue::entries().flat_map(|entry| entry.names()).collect();
        for own in own_options() {
            assert!(!of_jobs.contains(&own.replace('-', "_").as_str()), "{own}");
        }
    }

    #[test]
    fn options_of_jobs_are_carried_by_one_of_ours() {
        let words = "x fio -rw=read --json --bs 4k j.fio".split(' ').map(OsString::from).collect();
        let expected =
            ["x", "fio", "--job-option=1:rw=read", "--job-option=3:bs=4k", "--json", "j.fio"];
        assert_eq!(in_our_words(words), expected);
        let other: Vec<OsString> = ["x", "io", "--rw=read"].map(OsString::from).into();
        assert_eq!(in_our_words(other.clone()), other);
    }
}
