//! `iostrata tune`: leads a live server until it is told to end, and puts everything back.
//!
//! Invariant: settings are changed by `change` alone, each change written down before; whatever
//! ends the command, the server has its own settings again, or the journal says that it has not.

mod hands;
mod lead;
mod narrator;
mod plan;
mod record;

use std::time::{Duration, Instant};

use iostrata_run::{RunKind, RunResult};

use crate::args::TuneArgs;
use crate::display::{Display, print_json};
use crate::exit_error::ExitError;
use crate::run_sink::RunSink;
use crate::signals::{Interruption, pause};

use hands::Hands;
use lead::{Lead, LeadEnd};
use narrator::Narrator;
use plan::TunePlan;
use record::TuneRecord;

/// How often a server that does not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &TuneArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let plan = TunePlan::of(args)?;
    let display = Display::new(args.printing.quiet);
    let narrator = Narrator::new(&display, &args.printing);
    let mut hands = Hands::new(&plan)?;
    let first = Lead::begin(&plan, &mut hands)?;
    let mut sink = RunSink::begin(RunKind::Tune, "tune", args.out.as_deref(), &display)?;
    sink.say_whether_kept();
    let mut record = TuneRecord::begin(&first.facts, plan.address.is_local());
    let ended = go_on(first, &plan, &mut hands, (&narrator, &mut record), interruption);
    let put_back = hands.put_back(&narrator);
    let document = record.document();
    narrator.summary(&document, plan.is_dry);
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

/// Leads until the end, also across losses of the server.
fn go_on(
    first: Lead,
    plan: &TunePlan,
    hands: &mut Hands,
    (narrator, record): (&Narrator<'_>, &mut TuneRecord),
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let until = plan.time.map(|time| record.start() + time);
    let is_over = || interruption.is_set() || until.is_some_and(|until| Instant::now() >= until);
    let mut lead = first;
    loop {
        let before = lead.first;
        let lost = match lead.run(plan, hands, (narrator, record), &is_over)? {
            LeadEnd::Asked => return Ok(()),
            LeadEnd::Lost(why) => why,
        };
        narrator.say(&format!("{lost}; waiting for the server"));
        lead = loop {
            pause(ASK_AGAIN, &is_over);
            if is_over() {
                return Ok(());
            }
            if let Some(lead) = again(plan, hands, narrator)? {
                break lead;
            }
        };
        let back = match lead.first.was_restarted_since(&before) {
            true => "the server was started again and has its own settings",
            false => "the same server answers again and was put back",
        };
        narrator.say(&format!("{back}: it is led from the beginning"));
    }
}

/// Puts back what the same running server still has, and begins anew; nothing while it is away.
fn again(
    plan: &TunePlan,
    hands: &mut Hands,
    narrator: &Narrator<'_>,
) -> Result<Option<Lead>, ExitError> {
    if hands.put_back(narrator).is_err() {
        return Ok(None);
    }
    match Lead::begin(plan, hands) {
        Ok(lead) => Ok(Some(lead)),
        // A server that starts lets nobody in for a while.
        Err(ExitError::NotHere(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
