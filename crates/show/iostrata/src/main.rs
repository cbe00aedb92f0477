//! The iostrata command: arguments in, one command run, an exit code out.
//!
//! Invariant: the only place that ends the process by its own decision, and the only crate that
//! prints. Everything measured comes from the crates below.

mod args;
mod database_command;
mod disk_command;
mod display;
mod engine_command;
mod exit_error;
mod fileio_command;
mod fio_command;
mod grants;
mod hidden_arguments;
mod io_command;
mod io_parts;
mod probe_command;
mod report_command;
mod restore_command;
mod run_sink;
mod server_group;
mod signals;
mod simulate_command;
mod study_command;
mod study_database;
mod study_show;
mod test_database;
mod tune_command;
mod watch_command;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use args::{Cli, Command};
use exit_error::ExitError;
use signals::Interruption;

fn main() -> ExitCode {
    let arguments = args::prepared(std::env::args_os());
    hidden_arguments::hide();
    let cli = match Cli::parsed(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _unprintable = error.print();
            if let Some(tip) = args::switch_tip(&arguments, &error) {
                anstream::eprintln!("tip: {tip}");
            }
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let ended = catch_unwind(AssertUnwindSafe(|| run(&cli)));
    iostrata_io::remove_leftovers();
    let ending = match ended {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(ending)) => ending,
        Err(_) => ExitError::Bug("a broken invariant stopped the program".to_owned()),
    };
    // Servers and files have a part in it.
    anstream::eprintln!("iostrata: {}", iostrata_server::printable(&ending.to_string()));
    ExitCode::from(ending.exit_code())
}

fn run(cli: &Cli) -> Result<(), ExitError> {
    if let Command::Worker = cli.command {
        return iostrata_load::worker_main().map_err(|error| ExitError::Bug(error.to_string()));
    }
    let interruption = Interruption::listen()
        .map_err(|error| ExitError::NotHere(format!("cannot listen for signals: {error}")))?;
    if cli.command.makes_files() {
        restore_command::clear_files(cli.is_quiet);
        restore_command::record_files();
    }
    if !matches!(cli.command, Command::Restore(_)) {
        restore_command::note_leftovers(cli.is_quiet);
    }
    if !cli.is_quiet {
        iostrata_server::plain_text::tell(|note| anstream::eprintln!("{note}"));
    }
    match &cli.command {
        Command::Io(args) => io_command::run(args, &interruption),
        Command::Fileio(args) => fileio_command::run(args, &interruption),
        Command::Fio(args) => fio_command::run(args, &interruption),
        Command::Probe(args) => probe_command::run(args, &interruption),
        Command::Study(args) => study_command::run(args, &interruption),
        Command::Simulate(args) => simulate_command::run(args, &interruption),
        Command::Disk(args) => disk_command::run(args, &interruption),
        Command::Engine(args) => engine_command::run(args, &interruption),
        Command::Workload(command) => database_command::run(command, &interruption),
        Command::Tune(args) => tune_command::run(args, &interruption),
        Command::Watch(args) => watch_command::run(args, &interruption),
        Command::Report(args) => report_command::run(args),
        Command::Restore(args) => restore_command::run(args),
        Command::Completions(args) => args::completions(args),
        Command::Man(args) => args::man(args),
        Command::Worker => Ok(()),
    }
}
