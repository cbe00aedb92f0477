//! `iostrata engine crash-test`.
//!
//! Invariant: the writer is another process, which gets nothing but a directory and a seed; what it
//! reports as acknowledged is compared with what is there afterwards, row by row. It writes only to
//! a directory of its own inside DIR, which is removed when nothing was lost.

mod oracle;
mod place;
mod rounds;
mod worker;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use iostrata_engine::Settings;
use iostrata_run::CrashTestDocument;

use crate::args::{CrashKind, CrashTestArgs, CrashWorkerArgs};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;
use crate::signals::Interruption;

use place::{CrashTarget, Directory, EmulatedDisk};
use rounds::Rounds;

/// Settings that make every part of the engine work within seconds.
const SETTINGS: [(&str, &str); 4] = [
    ("buffer_pool_size", "4M"),
    ("redo_log_capacity", "4M"),
    ("log_buffer_size", "256K"),
    ("autoextend_increment", "1M"),
];

/// Runs the writer.
///
/// # Errors
/// An error of the engine.
pub fn worker(args: &CrashWorkerArgs) -> Result<(), ExitError> {
    worker::run(args)
}

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract; anything lost or damaged is exit code 1.
pub fn run(args: &CrashTestArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let settings = settings(args)?;
    let start = Instant::now();
    let display = Display::new(args.printing.quiet || args.printing.json);
    let home = home(&args.dir)?;
    let mut document = CrashTestDocument::default();
    let ended = all_rounds(args, &settings, &home, &mut document, (&display, interruption));
    display.finish();
    document.duration_s = start.elapsed().as_secs_f64();
    let is_sound = document.lost == 0 && document.check_failures == 0;
    if is_sound {
        remove(&home);
    }
    ended?;
    match args.printing.json {
        true => print_json(&document)?,
        false => print_text(&text(&document))?,
    }
    if is_sound {
        return Ok(());
    }
    Err(ExitError::Judged(format!(
        "{} acknowledged commits lost, {} checks failed; what killing left lies in {}",
        document.lost,
        document.check_failures,
        home.path.display()
    )))
}

/// The directory of this test, and what was made for it.
struct Home {
    path: PathBuf,
    made: Option<PathBuf>,
}

fn home(dir: &Path) -> Result<Home, ExitError> {
    let failed = |error: std::io::Error| {
        let dir = dir.display();
        ExitError::NotHere(format!(
            "cannot make a directory in {dir}: {error}; choose one that can be written"
        ))
    };
    let usage = |why: &str| ExitError::Usage(format!("{}: {why}", dir.display()));
    let made = if dir.is_dir() {
        None
    } else if dir.exists() {
        return Err(usage("it is no directory; name one to work in"));
    } else {
        std::fs::create_dir(dir).map_err(|error| match error.kind() {
            ErrorKind::NotFound => usage("the directory above it is missing; make it first"),
            _ => failed(error),
        })?;
        Some(dir.to_owned())
    };
    let path = dir.join(format!("iostrata-crash-test-{}", std::process::id()));
    std::fs::create_dir(&path).map_err(failed)?;
    let path = std::fs::canonicalize(&path).map_err(failed)?;
    Ok(Home { path, made })
}

fn remove(home: &Home) {
    // Both are ours; what cannot be removed is only left lying there.
    let _left = std::fs::remove_dir_all(&home.path);
    if let Some(made) = &home.made {
        let _not_empty = std::fs::remove_dir(made);
    }
}

fn settings(args: &CrashTestArgs) -> Result<Settings, ExitError> {
    let mut settings = Settings::default();
    let given = args.engine.iter().map(|pair| {
        pair.split_once('=').ok_or_else(|| {
            ExitError::Usage(format!("--engine {pair}: write name=value, as in page_size=4K"))
        })
    });
    for pair in SETTINGS.into_iter().map(Ok).chain(given) {
        let (name, value) = pair?;
        settings
            .set(name, value)
            .map_err(|error| ExitError::Usage(format!("--engine: {error}")))?;
    }
    settings.check().map_err(|error| ExitError::Usage(format!("--engine: {error}")))?;
    Ok(settings)
}

/// Kills in the first half of the time and power cuts in the second, as far as requested and
/// possible.
fn all_rounds(
    args: &CrashTestArgs,
    settings: &Settings,
    home: &Home,
    document: &mut CrashTestDocument,
    (display, interruption): (&Display, &Interruption),
) -> Result<(), ExitError> {
    let start = Instant::now();
    let disk = match args.by {
        CrashKind::Kill => None,
        CrashKind::Auto | CrashKind::Power => {
            match EmulatedDisk::start(&home.path.join("mount"), args.seed, interruption) {
                Ok(disk) => Some(disk),
                Err(why) if args.by == CrashKind::Power => return Err(ExitError::NotHere(why)),
                Err(why) => {
                    document.unavailable.push(format!("power cuts: {why}"));
                    None
                }
            }
        }
    };
    let has_disk = disk.is_some();
    let mut show = |document: &CrashTestDocument| {
        let share = start.elapsed().as_secs_f64() / args.seconds.as_secs_f64().max(1e-9);
        display.progress(share, &line(document));
        !interruption.is_set()
    };
    let mut run = |place: &mut dyn CrashTarget, until: Instant| {
        let time = until.saturating_duration_since(Instant::now());
        let mut rounds = Rounds::new(settings, args.seed, time);
        rounds.run(place, until, document, &mut show)
    };
    if args.by != CrashKind::Power {
        let half = if has_disk { args.seconds / 2 } else { args.seconds };
        run(&mut Directory::new(home.path.join("engine")), start + half)?;
    }
    if let Some(mut disk) = disk {
        run(&mut disk, start + args.seconds)?;
        disk.stop()?;
    }
    if interruption.is_set() {
        return Err(ExitError::Interrupted(interruption.exit_code()));
    }
    Ok(())
}

fn line(document: &CrashTestDocument) -> String {
    format!(
        "{} kills ({} by power, {} of these after a restart), {} copies in between, {} commits \
         acknowledged, {} lost",
        document.kills,
        document.power_cuts,
        document.restarts,
        document.copies,
        document.acknowledged,
        document.lost
    )
}

fn text(document: &CrashTestDocument) -> String {
    let mut text = format!(
        "{}\n{} recoveries, the longest {:.2} s; {} closes under load, the longest {:.2} s; {} checks \
         failed\n",
        line(document),
        document.recoveries,
        document.recovery_s_max,
        document.closes,
        document.close_s_max,
        document.check_failures
    );
    for failure in &document.failures {
        text += &format!("  {failure}\n");
    }
    for one in &document.unavailable {
        text += &format!("not done: {one}\n");
    }
    text
}
