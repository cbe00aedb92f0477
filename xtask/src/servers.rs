//! `cargo xtask servers`: a fleet of servers of different makers and years to test on.
//!
//! Invariant: what cannot be fetched or started is listed and keeps no other from running.
//! Each server is a private one of a helper process, so that ending that ends the server; nothing
//! but the directory of the fleet is written, and Debian's package in the system.

mod recipe;
pub mod suite;

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::workspace::{self, Workspace};
use recipe::{FLEET, Recipe};

/// Longest time that a server may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs one word of the chore. True when every server of the fleet did.
///
/// # Errors
/// When the words are not known, or the helper cannot be built.
pub fn run(mut args: Args) -> Result<bool> {
    let dir: PathBuf = args.option("--dir", PathBuf::new())?;
    let port = args.option("--port", 3391_u16)?;
    let only: String = args.option("--only", String::new())?;
    let word = args.word().unwrap_or_default();
    args.finish()?;
    if dir.as_os_str().is_empty() {
        bail!("servers needs --dir DIR, a directory for the fleet");
    }
    fs::create_dir_all(&dir)?;
    let dir = dir.canonicalize()?;
    let home = |recipe: &Recipe| dir.join(recipe.name);
    let is_meant = |recipe: &&Recipe| only.is_empty() || only == recipe.name;
    let meant: Vec<&Recipe> = FLEET.iter().filter(is_meant).collect();
    match word.as_str() {
        "install" => Ok(each("installed", &meant, |recipe| install(recipe, &home(recipe)))),
        "start" => {
            let helper = helper()?;
            Ok(each("started", &meant, |recipe| {
                let number = FLEET.iter().position(|one| one.name == recipe.name);
                let port = port + number.unwrap_or(0) as u16;
                start(recipe, &home(recipe), port, &helper, Until::Stopped)
            }))
        }
        "stop" => Ok(each("stopped", &meant, |recipe| stop(&home(recipe)))),
        "list" => {
            let addresses: Vec<String> =
                FLEET.iter().filter_map(|recipe| address(&dir.join(recipe.name))).collect();
            println!("{}", addresses.join(";"));
            Ok(true)
        }
        "programs" => {
            let installed = FLEET.iter().filter_map(|recipe| program(recipe, &dir));
            println!("{}", installed.collect::<Vec<_>>().join(":"));
            Ok(true)
        }
        other => {
            bail!("servers does not know {other:?}: install, start, stop, list or programs")
        }
    }
}

/// Does it for every server, past failures, and counts.
fn each(done: &str, fleet: &[&Recipe], act: impl Fn(&Recipe) -> Result<String>) -> bool {
    let mut failed = 0;
    for recipe in fleet {
        let begin = Instant::now();
        match act(recipe) {
            Ok(said) => println!("{:<14} {said} ({:.1?})", recipe.name, begin.elapsed()),
            Err(error) => {
                failed += 1;
                println!("{:<14} not {done}: {error:#}", recipe.name);
            }
        }
    }
    println!("{} {done}, {failed} not", fleet.len() - failed);
    failed == 0
}

fn install(recipe: &Recipe, home: &Path) -> Result<String> {
    // Scripts in it name their own place, so it is fetched where it stays; the mark comes last.
    let (software, mark) = (home.join("software"), home.join("fetched"));
    if !mark.exists() {
        if software.exists() {
            fs::remove_dir_all(&software)?;
        }
        fs::create_dir_all(&software)?;
        (recipe.fetch)(&software)?;
        recipe.check(&software)?;
        fs::write(&mark, recipe.name)?;
    }
    Ok(recipe.program_in(&software).display().to_string())
}

/// How long a server runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Until it is stopped.
    Stopped,
    /// No longer than this process.
    WeEnd,
}

fn start(recipe: &Recipe, home: &Path, port: u16, helper: &Path, until: Until) -> Result<String> {
    if let Some(address) = address(home) {
        return Ok(format!("runs already at {address}"));
    }
    let program = recipe.program_in(&home.join("software"));
    if !home.join("fetched").exists() {
        bail!("it is not installed: cargo xtask servers install --dir ...");
    }
    let log = home.join("log");
    let file = File::create(&log)?;
    let mut command = Command::new(helper);
    command.arg(program).arg(home).arg(port.to_string());
    command.args(recipe.options).arg("--innodb-buffer-pool-size=512M");
    if until == Until::WeEnd {
        command.env("IOSTRATA_SERVER_ENDS_WITH_PARENT", "1");
    }
    // A group of its own: what interrupts this chore leaves the fleet alone.
    command.process_group(0).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().context("cannot start the helper")?;
    let is_ready = || address(home).is_some();
    let ended = wait(|| is_ready() || child.try_wait().is_ok_and(|status| status.is_some()));
    match address(home) {
        Some(address) => Ok(address),
        None if ended => bail!("{}", fs::read_to_string(&log)?.trim()),
        None => bail!("it does not answer; see {}", log.display()),
    }
}

fn stop(home: &Path) -> Result<String> {
    if address(home).is_none() {
        return Ok("does not run".to_owned());
    }
    fs::write(home.join("stop"), "")?;
    if !wait(|| !home.join("stop").exists()) {
        bail!("it does not end; see {}", home.join("log").display());
    }
    Ok("stopped".to_owned())
}

/// The path of a program that is installed.
fn program(recipe: &Recipe, dir: &Path) -> Option<String> {
    let home = dir.join(recipe.name);
    let path = recipe.program_in(&home.join("software"));
    home.join("fetched").exists().then(|| path.display().to_string())
}

/// The address of a server that answers.
fn address(home: &Path) -> Option<String> {
    let address = fs::read_to_string(home.join("ready")).ok()?;
    let (_, host) = address.split_once('@')?;
    TcpStream::connect(host).ok()?;
    Some(address)
}

fn wait(mut holds: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(100));
    }
    false
}

/// Builds the process that runs one server.
fn helper() -> Result<PathBuf> {
    helper_of(&Workspace::read()?)
}

fn helper_of(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = workspace::cargo(&workspace.root);
    cargo.args(["build", "--quiet", "-p", "iostrata-server", "--example", "private_server"]);
    if !cargo.status().context("cannot run cargo")?.success() {
        bail!("the helper does not build");
    }
    Ok(workspace.target.join("debug/examples/private_server"))
}
