//! Wakes the control loop, and waits for what concerns it.
//!
//! Invariant: a wake that comes before the wait is not lost.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// What it can be woken by.
#[derive(Debug)]
pub(crate) struct Wake {
    event: OwnedFd,
    /// Tells of every mount and unmount; absent where it cannot be opened.
    mounts: Option<File>,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, mounts: File::open("/proc/self/mountinfo").ok() })
    }

    /// Ends the wait that is, or the next one.
    pub(crate) fn wake(&self) {
        // A counter that is full has woken it already.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Waits for [`Wake::wake`], for a mount or unmount, or for so long.
    pub(crate) fn wait(&self, at_most: Duration) {
        let mut on = vec![PollFd::new(&self.event, PollFlags::IN)];
        on.extend(self.mounts.iter().map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
        let at_most =
            Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
        // A signal ends it early, which does no harm.
        let _ = poll(&mut on, Some(&at_most));
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }
}
