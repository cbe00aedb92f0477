//! Patience with what is still busy: processes of a killed run may still be ending.

use std::io;

use crate::platform::Platform;

/// Tries of a busy thing, [`Platform::pause`] apart: about three seconds on a real machine.
pub(crate) const TRIES: u32 = 60;

/// Tries until the thing is not busy any more, or patience ends.
pub(crate) fn while_busy(
    platform: &dyn Platform,
    mut act: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    for _ in 1..TRIES {
        match act() {
            Err(error) if is_busy(&error) => platform.pause(),
            done => return done,
        }
    }
    act()
}

/// Waits until something holds, or patience ends; says whether it holds.
pub(crate) fn until(
    platform: &dyn Platform,
    tries: u32,
    mut holds: impl FnMut() -> io::Result<bool>,
) -> io::Result<bool> {
    for _ in 1..tries {
        if holds()? {
            return Ok(true);
        }
        platform.pause();
    }
    holds()
}

pub(crate) fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::ENOTEMPTY | libc::EAGAIN | libc::EINTR))
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO))
}
