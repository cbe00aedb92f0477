//! `iostrata tune`: tunes a live server until it is stopped, and puts everything back.
//!
//! Invariant: settings are changed by `change` alone, each change written down before; whatever
//! ends the command, the server has its own settings again, or the journal records that it has not.

mod plan;
mod record;
mod session;
mod settings;

use std::time::{Duration, Instant};

use iostrata_run::{RunKind, RunResult};

use crate::args::TuneArgs;
use crate::display::{Display, print_json};
use crate::exit_error::ExitError;
use crate::run_sink::RunSink;
use crate::signals::{Interruption, pause};
use crate::watch_command::recorder::Export;

use plan::TunePlan;
use record::Narrator;
use record::TuneRecord;
use session::{SessionEnd, TuneSession};
use settings::TuneSettings;

/// How often a server that does not answer is tried again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// For how long after a lost connection a busy server is tried again. Its connections may be used
/// up, and it may not have noticed yet that ours is gone, whose lock keeps other tuners away.
const BUSY_MAX: Duration = Duration::from_secs(120);

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &TuneArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let plan = TunePlan::of(args)?;
    let display = Display::new(args.printing.quiet);
    let narrator = Narrator::new(&display, &args.printing);
    let export = args.metrics_addr.map(Export::listen).transpose()?;
    let mut settings = TuneSettings::new(&plan)?;
    let first = TuneSession::begin(&plan, &mut settings, &narrator, 0.0)?;
    let mut sink = RunSink::begin(RunKind::Tune, "tune", args.out.as_deref(), &display)?;
    sink.say_whether_kept();
    let mut record = TuneRecord::begin(&first.facts, &plan, &mut sink);
    if let Some(export) = export {
        record.export_to(export, &display);
    }
    let ended = go_on(first, &plan, &mut settings, (&narrator, &mut record), interruption);
    let put_back = settings.put_back(&narrator);
    if !matches!(put_back, Err(ExitError::NoAnswer(_))) {
        settings.say_settled(&narrator);
        // Why it ended does not hide what keeps a setting from going back.
        if let (Err(_), Err(left)) = (&ended, &put_back) {
            narrator.say(&left.to_string());
        }
    }
    let changes = record.changes();
    let document = record.document();
    narrator.summary(&document, changes, plan.is_dry);
    let is_kept = sink.keep_with_report(&document);
    if args.printing.json {
        print_json(&RunResult::Watch(Box::new(document)))?;
    } else if let Some(report) = sink.report().filter(|_| is_kept) {
        narrator.say(&report);
    }
    sink.end(ended.and(put_back))?;
    if interruption.is_set() {
        return Err(ExitError::Interrupted(interruption.exit_code()));
    }
    Ok(())
}

/// Tunes until the end, also across losses of the server.
fn go_on(
    first: TuneSession,
    plan: &TunePlan,
    settings: &mut TuneSettings,
    (narrator, record): (&Narrator<'_>, &mut TuneRecord<'_>),
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let until = plan.time.map(|time| record.start() + time);
    let is_over = || interruption.is_set() || until.is_some_and(|until| Instant::now() >= until);
    let mut session = first;
    loop {
        let before = session.one().cloned();
        let lost = match session.run(plan, settings, (narrator, record), &is_over)? {
            SessionEnd::Asked => return Ok(()),
            SessionEnd::Lost(why) => why,
        };
        narrator.say(&format!("{lost}; waiting for the server"));
        session = match again(plan, settings, (narrator, record), &is_over)? {
            Some(session) => session,
            None => return Ok(()),
        };
        let back = match before.as_ref().zip(session.one()) {
            Some((before, now)) if now.is(before) => {
                "the same server answers again and was put back"
            }
            Some((before, now)) if now.is_on_data_of(before) => {
                "the server was started again and has its own settings"
            }
            _ => "another server answers now; nothing is left set on the one before",
        };
        narrator.say(&format!("{back}: it is tuned from the beginning"));
    }
}

/// Puts back what the same running server still has, and starts over once it answers; nothing when
/// it is over before.
fn again(
    plan: &TunePlan,
    settings: &mut TuneSettings,
    (narrator, record): (&Narrator<'_>, &TuneRecord<'_>),
    is_over: &dyn Fn() -> bool,
) -> Result<Option<TuneSession>, ExitError> {
    let mut busy: Option<Instant> = None;
    loop {
        pause(ASK_AGAIN, is_over);
        if is_over() {
            return Ok(None);
        }
        match settings.put_back(narrator) {
            Ok(()) => {}
            Err(ExitError::NoAnswer(_)) => continue,
            // It answers, and does not let this user put it back: it will not later.
            Err(error) => return Err(error),
        }
        match TuneSession::begin(plan, settings, narrator, record.at_s()) {
            Ok(session) => return Ok(Some(session)),
            // A server that starts refuses connections for a while.
            Err(ExitError::NotHere(_)) => busy = None,
            Err(ExitError::Busy(why)) if busy.is_none() => {
                busy = Some(Instant::now());
                narrator.say(&format!(
                    "{why}; asking again for {}",
                    iostrata_stats::units::seconds(BUSY_MAX.as_secs_f64())
                ));
            }
            Err(ExitError::Busy(_)) if busy.is_some_and(|at| at.elapsed() < BUSY_MAX) => {}
            Err(error) => return Err(error),
        }
    }
}
