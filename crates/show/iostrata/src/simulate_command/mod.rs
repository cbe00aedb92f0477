//! `iostrata simulate`: what happens in virtual time.

mod expected;
mod flush;
mod flush_plan;
mod queue;
mod recording;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

use iostrata_run::Unavailable;

use crate::args::{SimulateAction, SimulateArgs};
use crate::exit_error::ExitError;
use crate::signals::Interruption;
pub use expected::expect;
pub use recording::is_recorded;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &SimulateArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        SimulateAction::Flush(args) => flush::run(args, interruption),
        SimulateAction::Queue(args) => queue::run(args, interruption),
        SimulateAction::Unknown(words) => {
            let found = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
            Err(ExitError::Usage(format!(
                "simulate {found}: no such simulation; use `flush` or `queue`"
            )))
        }
    }
}

/// What was not simulated any more.
fn stopped_before(what: impl Into<String>) -> Unavailable {
    let option = "--max-time";
    let left_out = Unavailable::left_out(what, "the simulation was stopped before it", option);
    Unavailable { fix: Some(format!("give a longer {option}")), ..left_out }
}

/// Does jobs by their number until all are done or `is_over`; `told` is called after each with the
/// share of them that is done. Returns the results of the finished jobs, in the order of their
/// numbers.
pub fn on_all_processors<T: Send>(
    jobs: usize,
    is_over: &(dyn Fn() -> bool + Sync),
    job: impl Fn(usize) -> T + Sync,
    told: impl Fn(usize, f64) + Sync,
) -> Vec<(usize, T)> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while !is_over() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= jobs {
                return;
            }
            let outcome = job(at);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push((at, outcome));
            told(at, found.len() as f64 / jobs as f64);
        }
    };
    let threads = available_parallelism().map_or(1, usize::from);
    scope(|scope| {
        (0..threads.min(jobs)).for_each(|_| {
            scope.spawn(work);
        });
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(at, _)| *at);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_and_in_order_until_it_is_over() {
        let shares = Mutex::new(Vec::new());
        let done = on_all_processors(
            20,
            &|| false,
            |at| at * at,
            |_, share| shares.lock().unwrap().push(share),
        );
        assert_eq!(done, (0..20).map(|at| (at, at * at)).collect::<Vec<_>>());
        assert_eq!(shares.lock().unwrap().last(), Some(&1.0));
        assert_eq!(on_all_processors(20, &|| true, |at| at, |_, _| {}), Vec::new());
    }
}
