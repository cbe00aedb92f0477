//! The terminal while the screen has it.
//!
//! Invariant: it is given back exactly once, by whichever way out comes first: the guard's end, a
//! panic of any thread, or [`restore`] before the program ends itself.

use std::io::{self, IsTerminal, Stdout, Write, stdout};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::process::{Signal, getpid, kill_process};

use crate::screen::error::ScreenError;
use crate::screen::look::Look;
use crate::screen::view::View;

/// The screen has the terminal.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back where the screen has it; does nothing otherwise.
///
/// For a program that ends itself while [`run`](super::run) still goes on, as upon a second signal.
pub fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // Whatever fails, the rest is still tried: there is nobody left to tell.
        let _raw = disable_raw_mode();
        let _screen = execute!(stdout(), LeaveAlternateScreen, Show);
        let _flushed = stdout().flush();
    }
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync;

/// The terminal in raw mode on its other screen, until it is dropped.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    hook: Arc<Hook>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When standard output is none, or it refuses.
    pub(crate) fn take() -> Result<Self, ScreenError> {
        if !stdout().is_terminal() {
            return Err(ScreenError::NoTerminal);
        }
        let name = std::env::var("TERM").unwrap_or_default();
        if name == "dumb" || name.is_empty() {
            return Err(ScreenError::Plain { name });
        }
        let hook: Arc<Hook> = Arc::from(panic::take_hook());
        let before = Arc::clone(&hook);
        // The message of a panic would be lost with the other screen.
        panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
        let taken = enter().and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Self { terminal, hook }),
            Err(source) => {
                restore();
                give_back_hook(&hook);
                Err(ScreenError::Terminal { action: "take", source })
            }
        }
    }

    /// Whether a panic of another thread gave the terminal back.
    ///
    /// # Errors
    /// When it did.
    pub(crate) fn check(&self) -> Result<(), ScreenError> {
        if IS_TAKEN.load(Ordering::SeqCst) { Ok(()) } else { Err(ScreenError::Panicked) }
    }

    /// Shows a frame.
    ///
    /// # Errors
    /// When the terminal went away.
    pub(crate) fn show(&mut self, view: &View, look: Look) -> Result<(), ScreenError> {
        let drawn =
            self.terminal.draw(|frame| crate::screen::draw::draw(frame.buffer_mut(), view, look));
        drawn.map(|_| ()).map_err(|source| ScreenError::Terminal { action: "write to", source })
    }

    /// Gives the terminal to the shell until it continues this program.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub(crate) fn suspend(&mut self) -> Result<(), ScreenError> {
        restore();
        let stopped = kill_process(getpid(), Signal::TSTP).map_err(io::Error::from);
        let again = stopped.and_then(|()| enter()).and_then(|()| self.terminal.clear());
        again.map_err(|source| ScreenError::Terminal { action: "take back", source })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        // The hook of a thread that panics cannot be changed.
        if !std::thread::panicking() {
            give_back_hook(&self.hook);
        }
    }
}

fn give_back_hook(hook: &Arc<Hook>) {
    let hook = Arc::clone(hook);
    panic::set_hook(Box::new(move |info| hook(info)));
}

fn enter() -> io::Result<()> {
    // Before the first change, so that half of it is put back, too.
    IS_TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide)
}
