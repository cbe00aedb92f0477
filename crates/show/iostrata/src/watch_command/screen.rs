//! Samples on the whole terminal.

use std::io::{IsTerminal, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::scope;

use iostrata_show::screen::{Ending, Look};

use super::stream::{Next, Stream};
use crate::exit_error::ExitError;

/// What a shell gives back for Ctrl-C, which is no signal in a terminal's raw mode.
const INTERRUPTED: u8 = 130;

/// Whether there is a terminal that shows and listens.
pub fn is_there() -> bool {
    stdout().is_terminal() && stdin().is_terminal()
}

/// Shows every sample until the user quits, a signal comes or the samples end.
///
/// # Errors
/// A terminal that goes away; Ctrl-C.
pub fn show(stream: &mut Stream<'_>) -> Result<(), ExitError> {
    let targets = stream.targets.clone();
    let stop = Arc::clone(stream.stop_flag());
    let is_over = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let ended = scope(|scope| {
        scope.spawn(|| {
            let sender = sender;
            while !is_over.load(Ordering::Relaxed) {
                match stream.next() {
                    Next::Sample(arrived) => {
                        if sender.send((arrived.target, arrived.watched.sample)).is_err() {
                            return;
                        }
                    }
                    Next::Nothing => {}
                    Next::End => return,
                }
            }
        });
        let ended = iostrata_show::screen::run(&targets, &receiver, &stop, Look::of_environment());
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    match ended {
        Ok(Ending::Interrupted) => Err(ExitError::Interrupted(INTERRUPTED)),
        Ok(Ending::Quit | Ending::Stopped | Ending::StreamEnded) => Ok(()),
        Err(error) => Err(ExitError::NotHere(format!("{error}; use --lines"))),
    }
}
