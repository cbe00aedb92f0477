//! Patience with what is still busy: processes of a killed run may still be ending.

use std::io;

use crate::world::World;

/// Tries of a busy thing, [`World::pause`] apart: about three seconds on a real machine.
pub(crate) const TRIES: u32 = 60;

/// Tries until the thing is not busy any more, or patience ends.
pub(crate) fn while_busy(
    world: &dyn World,
    mut act: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    for _ in 1..TRIES {
        match act() {
            Err(error) if is_busy(&error) => world.pause(),
            done => return done,
        }
    }
    act()
}

/// Waits until something holds, or patience ends; says whether it holds.
pub(crate) fn until(
    world: &dyn World,
    mut holds: impl FnMut() -> io::Result<bool>,
) -> io::Result<bool> {
    for _ in 1..TRIES {
        if holds()? {
            return Ok(true);
        }
        world.pause();
    }
    holds()
}

pub(crate) fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::ENOTEMPTY | libc::EAGAIN | libc::EINTR))
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO))
}
