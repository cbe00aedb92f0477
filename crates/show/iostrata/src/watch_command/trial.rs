//! `watch --verify`: the advised settings tried on the server that was watched, in turns with those
//! of before.
//!
//! Invariants: what is set was written down before, and is put back whichever way the trial ends; a
//! server that is not known for sure is refused before the recording begins. The load is the
//! server's own: nothing is sent to it.

use std::time::{Duration, Instant};

use iostrata_change::{ServerSetting, ServerToken};
use iostrata_database::target::Target;
use iostrata_diagnose::WatchTrial;
use iostrata_run::{Unavailable, WatchDocument, WatchTarget};
use iostrata_server::{ServerAddress, ServerTarget};
use iostrata_study::SamplePace;

use super::recorder::Recorder;
use super::source::Source;
use crate::args::WatchArgs;
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::server_group::{GroupSet, KeptClaim, Preconditions, ServerGroup, claim, one};
use crate::signals::{Interruption, pause};
use crate::test_database::{ending, server_address};

/// Windows before and after, one after the other in turns: A B B A A B B A.
const PAIRS: u64 = 4;
/// Share of a window that passes before it, so that the settings have taken hold.
const SETTLING: f64 = 1.0 / 3.0;

/// A server on which advice may be tried.
pub struct Trial {
    address: ServerAddress,
    window: Duration,
    interval: Duration,
    one: ServerToken,
    claim: KeptClaim,
}

/// The settings of before, or the advised ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrialSide {
    Before,
    After,
}

impl Trial {
    /// Makes sure that the server may be set.
    ///
    /// # Errors
    /// What is refused, with the reason.
    pub fn begin(args: &WatchArgs) -> Result<Self, ExitError> {
        let usage = |why: &str| ExitError::Usage(format!("--verify: {why}"));
        if args.record.is_none() || args.time.is_none() {
            return Err(usage("it tries what a recording advises; add --record DIR and --time"));
        }
        let server = args.targets.first().filter(|target| target.starts_with("mysql://"));
        let Some(server) = server else {
            return Err(usage("it sets settings of a server; name mysql://user@host:port"));
        };
        let credentials = args.login.credentials();
        let address = server_address(server, &credentials, "")?;
        let target = ServerTarget::open_one(address.clone()).map_err(ending)?;
        let facts = target.facts().map_err(ending)?;
        Preconditions::of(&target, &facts)?.refuse(&facts)?;
        let claim = KeptClaim::keep(claim(&target, &facts)?);
        let (one, window, interval) = (one(&target)?.clone(), args.verify_window, args.interval);
        Ok(Self { address, window, interval, one, claim })
    }

    /// The server that is tried.
    pub fn one(&self) -> &ServerToken {
        &self.one
    }

    /// Tries what the recording advises, and adds what came of it.
    ///
    /// # Errors
    /// A server that does not answer any more, or that refuses a setting; what could not be put
    /// back.
    pub fn run(
        &self,
        args: &WatchArgs,
        document: &mut WatchDocument,
        (display, interruption): (&Display, &Interruption),
    ) -> Result<(), ExitError> {
        let trial = WatchTrial::of(&document.advice);
        document.unavailable.extend(trial.left_out.iter().cloned());
        if trial.settings.is_empty() {
            display.note("Nothing that was advised can be tried on the server while it runs.");
            return Ok(());
        }
        let windows = 2 * PAIRS;
        let seconds = iostrata_stats::units::seconds(self.window.as_secs_f64());
        let words = trial.words();
        display.note(&format!("Trying {words}: {windows} alternating windows of {seconds}."));
        let names = trial.settings.iter().map(|(name, _)| name.clone()).collect();
        let mut group = ServerGroup::new(&self.address)?;
        let before = group.begin(names, &self.one)?;
        let setting = |(name, value): (&String, &String)| ServerSetting::new(name, value);
        let sides = [
            before.iter().map(setting).collect::<Vec<ServerSetting>>(),
            trial.settings.iter().map(|(name, value)| setting((name, value))).collect(),
        ];
        let mut course = TrialCourse {
            trial: self,
            source: Source::open(&args.targets[0], args, std::slice::from_ref(&self.one))?,
            began: Instant::now(),
            windows: Default::default(),
        };
        let tried = course.all(&mut group, &sides, (display, interruption));
        let put_back = group.put_back();
        display.finish();
        let [first, second] = &course.windows;
        document.verifications = trial.verifications(first, second);
        put_back?.iter().for_each(|left| display.note(&left.to_string()));
        if let Some(why) = tried? {
            let fix = Some("watch with --verify again".to_owned());
            document.unavailable.push(Unavailable::impossible(words, why, fix));
        }
        Ok(())
    }
}

/// The windows so far.
struct TrialCourse<'a> {
    trial: &'a Trial,
    source: Source,
    began: Instant,
    /// Before and after.
    windows: [Vec<WatchDocument>; 2],
}

impl TrialCourse<'_> {
    /// Measures all windows; gives why it ended early, where that is no error.
    fn all(
        &mut self,
        group: &mut ServerGroup,
        sides: &[Vec<ServerSetting>; 2],
        (display, interruption): (&Display, &Interruption),
    ) -> Result<Option<String>, ExitError> {
        let is_over = || interruption.is_set();
        for at in 0..2 * PAIRS {
            // A B, then B A.
            let is_turned = at / 2 % 2 == 1;
            let side =
                if (at % 2 == 1) == is_turned { TrialSide::Before } else { TrialSide::After };
            if let Some(why) = self.trial.claim.look() {
                return Ok(Some(why));
            }
            match group.set(&sides[side as usize])? {
                GroupSet::Took(_) => {}
                GroupSet::Others => {
                    return Ok(Some("another client set one of the settings".to_owned()));
                }
                GroupSet::Restarted => {
                    return Ok(Some("the server was restarted".to_owned()));
                }
                GroupSet::NoAnswer(why) => return Err(ExitError::NotHere(why)),
            }
            let share = at as f64 / (2 * PAIRS) as f64;
            let what =
                if side == TrialSide::Before { "the settings of before" } else { "as advised" };
            display.progress(share, &format!("measuring {what}"));
            self.pass(self.trial.window.mul_f64(SETTLING), &is_over);
            let window = self.pass(self.trial.window, &is_over);
            if is_over() {
                return Ok(None);
            }
            if let Some(why) = self.trial.claim.look() {
                return Ok(Some(why));
            }
            self.windows[side as usize].push(window);
        }
        Ok(None)
    }

    /// Watches for so long.
    fn pass(&mut self, time: Duration, is_over: &dyn Fn() -> bool) -> WatchDocument {
        let Self { trial, source, began, .. } = self;
        // The first sample begins the window: its rates are those of the time before. The last ends
        // it.
        let first = began.elapsed();
        let (mut pace, until) = (SamplePace::new(*began, trial.interval, first), first + time);
        let mut recorder = Recorder::new(None);
        let wait = |due: Duration| {
            pause(due.min(until.saturating_sub(began.elapsed())), is_over);
            !is_over() && trial.claim.lost().is_none()
        };
        while let Some(watched) = source.next(&mut pace, wait) {
            recorder.take(&watched);
            if began.elapsed() >= until {
                break;
            }
        }
        recorder.document(WatchTarget::default())
    }
}
