//! Shows samples as they come, and handles the keys, on a terminal that it owns meanwhile.
//!
//! Invariants: one thread; it waits for keys and looks for samples between them. The terminal is
//! given back exactly once, by whichever way out comes first: the guard's end, a panic of any
//! thread, or [`restore`] before the program ends itself.

use std::io::{self, IsTerminal, Stdout, Write, stdout};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use iostrata_run::{WatchSample, WatchTarget};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::process::{Signal, getpid, kill_process};
use thiserror::Error;

use crate::screen::look::Look;
use crate::screen::view::{self, Key, Next, View};

/// Longest time for which a sample or a signal waits to be seen.
const PATIENCE: Duration = Duration::from_millis(80);

/// Why a screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The user quit.
    Quit,
    /// The user pressed Ctrl-C; in raw mode no signal comes of it.
    Interrupted,
    /// The caller's flag was set.
    Stopped,
    /// The sender of samples is gone.
    StreamEnded,
}

/// Shows samples on the whole terminal until the user quits, `stop` is set or the stream ends.
///
/// `samples` brings the index of a target in `targets` with each sample. Several targets begin with
/// their table. Nothing else may write to the terminal meanwhile.
///
/// # Errors
/// When there is no terminal, it goes away, or another thread panics. It is given back in any case.
pub fn run(
    targets: &[WatchTarget],
    samples: &Receiver<(usize, WatchSample)>,
    stop: &AtomicBool,
    look: Look,
) -> Result<Ending, ScreenError> {
    let mut screen = Screen::take()?;
    let mut view = View::new(targets);
    let mut is_stale = true;
    loop {
        let is_ended = loop {
            match samples.try_recv() {
                Ok((index, sample)) => view.take(index, sample),
                Err(error) => break error == TryRecvError::Disconnected,
            }
            is_stale = true;
        };
        screen.check()?;
        if stop.load(Ordering::SeqCst) {
            return Ok(Ending::Stopped);
        }
        if is_ended {
            return Ok(Ending::StreamEnded);
        }
        if is_stale {
            screen.show(&view, look)?;
        }
        let read = |source| ScreenError::Terminal { action: "read", source };
        is_stale = event::poll(PATIENCE).map_err(read)?;
        if !is_stale {
            continue;
        }
        let Some(key) = asked(&event::read().map_err(read)?) else {
            continue;
        };
        match view.press(key) {
            Next::Stay => {}
            Next::End => return Ok(Ending::Quit),
            Next::Interrupt => return Ok(Ending::Interrupted),
            Next::Suspend => screen.suspend()?,
        }
    }
}

/// The key of an event. A resize needs nothing but another frame.
fn asked(event: &Event) -> Option<Key> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return None;
    };
    let is_control = modifiers.contains(KeyModifiers::CONTROL);
    match code {
        KeyCode::Char('c') if is_control => Some(Key::Interrupt),
        KeyCode::Char('z') if is_control => Some(Key::Suspend),
        KeyCode::Char(_) if is_control => None,
        KeyCode::Char(character) => view::of_character(*character),
        KeyCode::F(1) => Some(Key::Help),
        KeyCode::Up | KeyCode::Left => Some(Key::Before),
        KeyCode::Down | KeyCode::Right => Some(Key::After),
        KeyCode::Enter => Some(Key::Open),
        KeyCode::Esc | KeyCode::Backspace => Some(Key::Back),
        _ => None,
    }
}

/// Why a screen could not be shown, or ended early.
#[derive(Debug, Error)]
pub enum ScreenError {
    /// Standard output is a file or a pipe.
    #[error("standard output is no terminal; --json-lines prints a line per sample instead")]
    NoTerminal,
    /// The terminal cannot move its cursor.
    #[error("the terminal is \"{name}\" and shows lines only; set TERM, or use --json-lines")]
    Plain {
        /// The value of `TERM`.
        name: String,
    },
    /// The terminal went away, or refused.
    #[error("cannot {action} the terminal: {source}")]
    Terminal {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Another thread of the program panicked, and the terminal was given back to its message.
    #[error("a broken invariant stopped the program while the screen was shown")]
    Panicked,
}

/// The screen has the terminal.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back where the screen has it; does nothing otherwise.
///
/// For a program that ends itself while [`run`](super::run) still goes on, as upon a second signal.
pub fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // Whatever fails, the rest is still tried: an error can no longer be reported.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_understood() {
        let press = |code, modifiers| asked(&Event::Key(KeyEvent::new(code, modifiers)));
        let plain = |code| press(code, KeyModifiers::NONE);
        assert_eq!(plain(KeyCode::Char('q')), Some(Key::Quit));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(press(KeyCode::Char('q'), KeyModifiers::CONTROL), None);
        assert_eq!(plain(KeyCode::Char('c')), None);
        assert_eq!(press(KeyCode::Char('?'), KeyModifiers::SHIFT), Some(Key::Help));
        assert_eq!(plain(KeyCode::Down), Some(Key::After));
        assert_eq!(plain(KeyCode::Tab), None);
        assert_eq!(asked(&Event::Resize(80, 24)), None);
    }
}
