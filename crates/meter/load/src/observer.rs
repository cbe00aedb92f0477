//! Who looks on while a window is open, and what surrounds it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::figures::WindowFigures;
use crate::transactions::live::LiveFigures;

/// Somebody who wants to know when the window opens and closes.
pub trait WindowObserver {
    /// Called just before the window opens.
    fn opened(&mut self);
    /// Called every few milliseconds while it is open, with the seconds since it opened.
    fn open(&mut self, elapsed_s: f64);
    /// Called once when the warm-up of transactions is over.
    fn warmed_up(&mut self) {}
    /// Called once a second while transactions run.
    fn live(&mut self, _figures: &LiveFigures) {}
    /// Called just after the window closed.
    fn closed(&mut self);
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl WindowObserver for NoObserver {
    fn opened(&mut self) {}
    fn open(&mut self, _elapsed_s: f64) {}
    fn closed(&mut self) {}
}

/// Somebody who is given the figures so far, again and again while a window is open.
#[derive(Clone, Copy)]
pub struct Interim<'a> {
    /// How often.
    pub every: Duration,
    /// Takes them.
    pub on: &'a (dyn Fn(WindowFigures) + Sync),
}

impl std::fmt::Debug for Interim<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interim").field("every", &self.every).finish_non_exhaustive()
    }
}

/// What surrounds a window.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// Set by a signal: the window ends soon and what was measured is kept.
    pub interrupted: &'a AtomicBool,
    /// This program, for workers that are processes.
    pub program: Option<PathBuf>,
}
