//! SIGINT, SIGTERM and SIGHUP: the first asks the command to end and clean up, the second ends
//! it at once, but never before the system and the terminal are as they were.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Whether a signal came, and which.
#[derive(Clone, Debug, Default)]
pub struct Interruption {
    asked: Arc<AtomicBool>,
    signal: Arc<AtomicI32>,
}

impl Interruption {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the kernel refuses the handlers.
    pub fn listen() -> std::io::Result<Self> {
        let interruption = Self::default();
        let heard = interruption.clone();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        // nohup(1) lets a program outlive its terminal by ignoring it.
        if !is_ignored(SIGHUP) {
            signals.add_signal(SIGHUP)?;
        }
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if heard.asked.load(Ordering::SeqCst) {
                    iostrata_change::wait_until_undone();
                    iostrata_io::remove_leftovers();
                    iostrata_show::screen::restore();
                    std::process::exit(128 + signal);
                }
                heard.signal.store(signal, Ordering::SeqCst);
                heard.asked.store(true, Ordering::SeqCst);
            }
        })?;
        Ok(interruption)
    }

    /// Set once a signal came; shared with whatever outlives the command's own frame.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.asked
    }

    /// Whether a signal came.
    pub fn is_set(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// The exit code of the signal that came first: 129, 130 or 143.
    pub fn exit_code(&self) -> u8 {
        128 + self.signal.load(Ordering::SeqCst) as u8
    }
}

/// Waits, but not once it is over.
pub fn pause(time: Duration, is_over: &dyn Fn() -> bool) {
    const LOOK: Duration = Duration::from_millis(20);
    let until = Instant::now() + time;
    while !is_over()
        && let Some(left) = until.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())
    {
        std::thread::sleep(left.min(LOOK));
    }
}

/// Whether this process was started with the signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
