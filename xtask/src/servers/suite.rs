//! Servers for the suite: those that are installed, and one MySQL that is fetched where that is
//! allowed and possible.
//!
//! Invariant: what is not there fails nothing; it is named and counted. Fetching takes bounded
//! time, and every server ends with this process at the latest.

use std::fs::DirBuilder;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use super::recipe::{FLEET, Recipe};
use super::{Until, helper_of, install, program, start, stop};
use crate::test::outcome::Omission;
use crate::workspace::Workspace;

/// Longest time that fetching a MariaDB may take, and a MySQL.
const FETCH_MAX: Duration = Duration::from_secs(150);
/// Words of the reason why one could not be fetched.
const REASON_WORDS_MAX: usize = 40;
/// Names the directory where tests keep fresh data of servers, to copy from.
const FRESH_DATA: &str = "IOSTRATA_TEST_DATA";

/// If one of these is in the environment, the servers are given.
const OTHERS: [&str; 2] = ["IOSTRATA_TEST_SERVERS", "IOSTRATA_TEST_PROGRAMS"];

/// Servers that are installed, and what is missing of a MariaDB and a MySQL.
pub struct SuiteServers {
    dir: PathBuf,
    installed: Vec<&'static Recipe>,
    /// What the suite has to leave out, and why.
    pub missing: Vec<Omission>,
}

/// Looks for servers below a directory; fetches what is missing of a MariaDB and a MySQL if it may.
///
/// # Errors
/// When the directory cannot be made.
pub fn prepare(dir: &Path, may_fetch: bool) -> Result<SuiteServers> {
    let mut servers =
        SuiteServers { dir: dir.to_owned(), installed: Vec::new(), missing: Vec::new() };
    if OTHERS.iter().any(|name| std::env::var_os(name).is_some()) {
        return Ok(servers);
    }
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    for family in ["mariadb-", "mysql-"] {
        let mut why = vec!["cargo xtask servers install fetches it".to_owned()];
        let recipes: Vec<&Recipe> =
            FLEET.iter().filter(|one| one.name.starts_with(family)).collect();
        if recipes.iter().all(|recipe| program(recipe, dir).is_none()) {
            why = servers.fetch_one(&recipes, may_fetch);
        }
        let found = recipes.into_iter().filter(|recipe| program(recipe, dir).is_some());
        let before = servers.installed.len();
        servers.installed.extend(found);
        if servers.installed.len() == before {
            let name = format!("tests on {family}*");
            servers.missing.push(Omission { name, reason: why.join("; ") });
        }
    }
    Ok(servers)
}

impl SuiteServers {
    /// Tries one recipe after the other until one is installed; what was in the way otherwise.
    fn fetch_one(&self, recipes: &[&'static Recipe], may_fetch: bool) -> Vec<String> {
        let mut why = Vec::new();
        let end = Instant::now() + FETCH_MAX;
        for recipe in recipes {
            // What needs nothing but a look at the system is not fetched.
            let is_there = Path::new(recipe.program).is_file();
            let tried = match (is_there, may_fetch) {
                (true, _) => install(recipe, &self.dir.join(recipe.name)).map(drop),
                (false, true) => fetch(recipe, &self.dir, end),
                (false, false) => Err(anyhow::anyhow!("not installed, and not to be fetched")),
            };
            match tried {
                Ok(()) => break,
                Err(error) => why.push(format!("{}: {error:#}", recipe.name)),
            }
        }
        why
    }

    /// Starts all; they end when [`Homes`] is dropped. The process that runs them is built where it
    /// was not built already.
    ///
    /// # Errors
    /// When that does not build.
    pub fn start(&self, workspace: &Workspace, helper: Option<&Path>) -> Result<RunningServers> {
        let mut running = RunningServers::default();
        if self.installed.is_empty() {
            return Ok(running);
        }
        let helper = helper.map_or_else(|| helper_of(workspace), |built| Ok(built.to_owned()))?;
        let (mut addresses, mut programs) = (Vec::new(), Vec::new());
        for recipe in &self.installed {
            let home = self.dir.join(recipe.name);
            let started =
                free_port().and_then(|port| start(recipe, &home, port, &helper, Until::WeEnd));
            match started {
                Ok(_) => {
                    addresses.extend(super::address(&home));
                    programs.extend(program(recipe, &self.dir));
                    println!("started for the tests: {}", recipe.name);
                    running.homes.0.push(home);
                }
                Err(error) => running.missing.push(Omission {
                    name: format!("tests on {}", recipe.name),
                    reason: format!("{error:#}"),
                }),
            }
        }
        if !addresses.is_empty() {
            let values = [addresses.join(";"), programs.join(":")];
            running.environment = OTHERS.iter().copied().zip(values).collect();
            match FreshData::make() {
                Ok(data) => {
                    running.environment.push((FRESH_DATA, data.0.display().to_string()));
                    running.fresh_data = Some(data);
                }
                Err(error) => println!("each server of a test makes its own data: {error:#}"),
            }
        }
        Ok(running)
    }
}

/// Names of all servers that there are recipes of.
pub fn names() -> Vec<&'static str> {
    FLEET.iter().map(|recipe| recipe.name).collect()
}

/// The program of one of them where it is installed below a directory, or in the system.
pub fn program_of(name: &str, dir: &Path) -> Option<PathBuf> {
    let recipe = FLEET.iter().find(|recipe| recipe.name == name)?;
    let in_system = Path::new(recipe.program);
    let in_system = (in_system.is_absolute() && in_system.is_file()).then(|| in_system.to_owned());
    program(recipe, dir).map(PathBuf::from).or(in_system.filter(|_| recipe.check(dir).is_ok()))
}

/// Servers that run for a while.
#[derive(Default)]
pub struct RunningServers {
    /// Where they run.
    pub homes: Homes,
    /// What the tests get of them.
    pub environment: Vec<(&'static str, String)>,
    /// Those that did not start.
    pub missing: Vec<Omission>,
    fresh_data: Option<FreshData>,
}

/// A directory that is removed when this is dropped, with a short path, since sockets are made in
/// it.
struct FreshData(PathBuf);

impl FreshData {
    fn make() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("iostrata-data-{}", std::process::id()));
        // Servers run as another user where root tests.
        let made = DirBuilder::new().mode(0o755).create(&dir);
        made.with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(Self(dir))
    }
}

impl Drop for FreshData {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Directories of servers, which end when this is dropped.
#[derive(Default)]
pub struct Homes(Vec<PathBuf>);

impl Drop for Homes {
    fn drop(&mut self) {
        for home in &self.0 {
            if let Err(error) = stop(home) {
                eprintln!("{}: {error:#}", home.display());
            }
        }
    }
}

/// Installs one server in a process of its own, which is ended with all that it started when its
/// time is over.
fn fetch(recipe: &Recipe, dir: &Path, end: Instant) -> Result<()> {
    println!("fetching {}", recipe.name);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["servers", "install", "--only", recipe.name, "--dir"]).arg(dir);
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot run this program again")?;
    while Instant::now() < end && child.try_wait()?.is_none() {
        thread::sleep(Duration::from_millis(100));
    }
    if child.try_wait()?.is_none() {
        if let Some(group) = Pid::from_raw(child.id() as i32) {
            kill_process_group(group, Signal::KILL)?;
        }
        child.wait()?;
        anyhow::bail!("not fetched in time");
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = said.split_whitespace().take(REASON_WORDS_MAX).collect();
    anyhow::bail!("{}", if words.is_empty() { "no output".into() } else { words.join(" ") })
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
