//! What a database uses while a window is open.

use iostrata_run::ResourceUse;

use crate::Watcher;

/// Looks at what a database has used when a window opens and when it closes.
pub(crate) struct UseWatch<'a> {
    used: &'a dyn Fn() -> ResourceUse,
    opened: ResourceUse,
    closed: ResourceUse,
}

impl<'a> UseWatch<'a> {
    /// `used` asks what was used so far.
    pub fn new(used: &'a dyn Fn() -> ResourceUse) -> Self {
        let nothing = ResourceUse::default();
        Self { used, opened: nothing, closed: nothing }
    }

    /// What was used in the window.
    pub fn used(&self) -> ResourceUse {
        self.closed.since(&self.opened)
    }
}

impl Watcher for UseWatch<'_> {
    fn opened(&mut self) {
        self.opened = (self.used)();
    }

    fn closed(&mut self) {
        self.closed = (self.used)();
    }
}
