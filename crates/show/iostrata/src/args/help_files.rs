//! `iostrata completions` and `iostrata man`: the same definitions as the help, for a shell and for
//! `man`.
//!
//! Invariants: nothing is written by hand; what clap parses is what is completed and described.
//! Written is only the directory that was named.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::display::print_text;
use crate::exit_error::ExitError;

/// Arguments of `iostrata completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `iostrata man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Directory for the pages; created if missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

impl CompletionsArgs {
    /// The script for the shell.
    pub fn script(&self) -> Vec<u8> {
        let (mut command, mut script) = (shown(&Cli::command()), Vec::new());
        clap_complete::generate(self.shell, &mut command, "iostrata", &mut script);
        script
    }
}

/// Writes one page for each command into a directory.
///
/// # Errors
/// An error of the system.
fn write_man_pages(dir: &Path) -> io::Result<()> {
    clap_mangen::generate_to(shown(&Cli::command()), dir)
}

/// A command without those below it that are not for users. clap cannot remove subcommands, so one
/// that has others below it is built again.
fn shown(command: &Command) -> Command {
    let below: Vec<&Command> =
        command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    if below.is_empty() {
        return command.clone();
    }
    let shown = Command::new(command.get_name().to_owned())
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(command.get_arguments().cloned())
        .subcommands(below.into_iter().map(shown));
    let shown = match command.get_about() {
        Some(about) => shown.about(about.clone()),
        None => shown,
    };
    match command.get_long_about() {
        Some(about) => shown.long_about(about.clone()),
        None => shown,
    }
}

/// Prints the script for a shell.
///
/// # Errors
/// When stdout cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result<(), ExitError> {
    print_text(&String::from_utf8_lossy(&args.script()))
}

/// Writes the manual pages.
///
/// # Errors
/// When the directory cannot be made or written.
pub fn man(args: &ManArgs) -> Result<(), ExitError> {
    let dir = &args.dir;
    std::fs::create_dir_all(dir).and_then(|()| write_man_pages(dir)).map_err(|error| {
        ExitError::NotHere(format!("cannot write manual pages into {}: {error}", dir.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(command: &Command, out: &mut Vec<String>) {
        for below in command.get_subcommands() {
            out.push(below.get_name().to_owned());
            names(below, out);
        }
    }

    #[test]
    fn what_is_not_for_users_is_left_out() {
        let [mut all, mut those_shown] = [Vec::new(), Vec::new()];
        names(&Cli::command(), &mut all);
        names(&shown(&Cli::command()), &mut those_shown);
        let hidden: Vec<&String> = all.iter().filter(|name| !those_shown.contains(name)).collect();
        assert_eq!(hidden.len(), 3, "{hidden:?}");
        assert!(those_shown.iter().any(|name| name == "crash-test"));
    }
}
