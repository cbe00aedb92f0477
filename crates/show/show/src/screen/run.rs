//! Shows samples as they come, and does what the keys ask for.
//!
//! Invariant: one thread; it waits for keys and looks for samples between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use iostrata_run::{WatchSample, WatchTarget};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::screen::error::ScreenError;
use crate::screen::key::{self, Key};
use crate::screen::look::Look;
use crate::screen::terminal::Screen;
use crate::screen::view::{Next, View};

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
    /// Nobody sends samples any more.
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

/// What an event asks for. A resize asks for nothing but another frame.
fn asked(event: &Event) -> Option<Key> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return None;
    };
    let is_control = modifiers.contains(KeyModifiers::CONTROL);
    match code {
        KeyCode::Char('c') if is_control => Some(Key::Interrupt),
        KeyCode::Char('z') if is_control => Some(Key::Suspend),
        KeyCode::Char(_) if is_control => None,
        KeyCode::Char(character) => key::of_character(*character),
        KeyCode::F(1) => Some(Key::Help),
        KeyCode::Up | KeyCode::Left => Some(Key::Before),
        KeyCode::Down | KeyCode::Right => Some(Key::After),
        KeyCode::Enter => Some(Key::Open),
        KeyCode::Esc | KeyCode::Backspace => Some(Key::Back),
        _ => None,
    }
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
