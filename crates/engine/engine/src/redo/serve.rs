//! Durability for those who do not wait: a thread that serves their requests.
//!
//! Invariant: it promises nothing by itself: it is one more possible leader of the group commit,
//! and gives way to those who wait. What was requested before it is stopped is served before it
//! ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use iostrata_innodb::Lsn;

use crate::error::EngineError;
use crate::redo::redo::Redo;
use crate::redo::requests::Sleep;

/// Requests gather for as long as a sync takes, at least and at most so long. On two processors
/// half of that cost 4 % more processor time for each commit, twice that made commits durable 9 %
/// later (medians of three runs).
const GATHER_MIN: Duration = Duration::from_micros(20);
const GATHER_MAX: Duration = Duration::from_millis(2);
/// First and longest nap while those who commit make their commits durable themselves. The longest
/// is rare enough to cost them nothing that could be seen: with 16 ms they lost about a tenth.
const NAP_MIN: Duration = Duration::from_millis(1);
const NAP_MAX: Duration = Duration::from_millis(128);

impl Redo {
    /// Asks the serving thread to make everything before `upto` durable soon. Returns at once; look
    /// at [`Redo::durable`], or wait by [`Redo::make_durable`]. Without such a thread nothing
    /// happens.
    pub fn request_durable(&self, Lsn(upto): Lsn) {
        self.requests.want_durable(upto);
    }

    /// Asks the serving thread to give everything before `upto` to the disk soon; otherwise as
    /// [`Redo::request_durable`].
    pub fn request_written(&self, Lsn(upto): Lsn) {
        self.requests.want_written(upto);
    }

    /// Says that somebody goes on asking for what was requested and will not wait for it.
    pub fn hasten_requests(&self) {
        self.requests.hasten();
    }

    /// Serves requests until it is stopped. For one thread; a log is served once.
    pub fn serve_requests(&self) -> Result<(), EngineError> {
        self.requests.begin();
        let mut nap = Duration::ZERO;
        while !self.requests.is_stopped() {
            self.poison.check()?;
            let wanted = self.requests.wanted();
            self.rest(nap);
            if !self.owes() {
                // A nap during which nobody came ends in sleep.
                nap = if self.requests.wanted() == wanted { Duration::ZERO } else { nap };
                continue;
            }
            nap = if self.serve_group()? { Duration::ZERO } else { longer(nap) };
        }
        let (durable, written) = self.requests.wanted();
        self.make_durable(Lsn(durable))?;
        self.make_written(Lsn(written))
    }

    /// Ends [`Redo::serve_requests`], once what was requested is served.
    pub fn stop_serving(&self) {
        self.requests.stop();
    }

    fn owes(&self) -> bool {
        let (durable, written) = self.requests.wanted();
        self.owes_before(durable, written)
    }

    fn owes_before(&self, durable: u64, written: u64) -> bool {
        self.durable.load(Ordering::Acquire) < durable
            || self.written.load(Ordering::Acquire) < written
            || self.poison.is_set()
    }

    fn rest(&self, nap: Duration) {
        if nap.is_zero() {
            self.requests.sleep(Sleep::Idle, None, || self.owes());
        } else {
            self.requests.sleep(Sleep::Napping, Some(nap), || false);
        }
    }

    /// Lets a group gather and serves it, unless those who committed did so meanwhile: false then.
    fn serve_group(&self) -> Result<bool, EngineError> {
        let (durable, written) = self.requests.wanted();
        loop {
            let gather = self.group.lead_time().clamp(GATHER_MIN, GATHER_MAX);
            let gather = gather.max(self.group.least());
            self.requests.sleep(Sleep::Gathering, Some(gather), || self.requests.is_full());
            if !self.owes_before(durable, written) {
                self.requests.take_group();
                return Ok(false);
            }
            if self.requests.is_stopped() || self.serve_now()? {
                return Ok(true);
            }
        }
    }

    /// Serves what was requested until now. False when another thread leads: it may serve it, too.
    fn serve_now(&self) -> Result<bool, EngineError> {
        let (durable, written) = self.requests.wanted();
        if self.durable.load(Ordering::Acquire) >= durable {
            self.requests.take_group();
            return self.make_written(Lsn(written)).map(|()| true);
        }
        if !self.group.try_lead() {
            return Ok(false);
        }
        self.requests.take_group();
        self.lead_and_leave(0).map(|()| true)
    }
}

fn longer(nap: Duration) -> Duration {
    (2 * nap).clamp(NAP_MIN, NAP_MAX)
}
