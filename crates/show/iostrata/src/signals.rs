//! SIGINT and SIGTERM: the first asks the command to end and clean up, the second ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
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
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                heard.signal.store(signal, Ordering::SeqCst);
                if heard.asked.swap(true, Ordering::SeqCst) {
                    iostrata_io::remove_leftovers();
                    std::process::exit(128 + signal);
                }
            }
        })?;
        Ok(interruption)
    }

    /// Set once a signal came.
    pub fn flag(&self) -> &AtomicBool {
        &self.asked
    }

    /// Whether a signal came.
    pub fn is_set(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// The exit code of the signal that came: 130 or 143.
    pub fn exit_code(&self) -> u8 {
        128 + self.signal.load(Ordering::SeqCst) as u8
    }
}
