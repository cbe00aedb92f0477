//! A drive of which not every request is worked through.
//!
//! Purpose: a load that changes slowly on a drive that costs much to model. A stretch of requests
//! goes to the drive itself; the next ones, many more, take the mean time that those took.
//! Invariant: every request is done exactly once; while the drive is left out its clock stands
//! still, so that what it holds (a write cache, worn flash) is there when it goes on. One of both
//! is at work at a time: what comes in between waits. Below `NR_REQUESTS_MIN` requests nothing is
//! left out.

use std::collections::VecDeque;

use crate::drive::{Done, Drive, DriveFacts, Request};

/// Queue size from which on requests are left out.
pub(super) const NR_REQUESTS_MIN: u32 = 4096;
/// Requests of which the time is taken.
const SAMPLE: u32 = 600;
/// Requests that take the mean time of those.
const UNSEEN: u32 = 9_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The drive works.
    Seen,
    /// The drive finishes what it has.
    Finishing,
    /// Requests take the mean time.
    Unseen,
    /// What takes the mean time is finished.
    Returning,
}

/// A drive that is looked at in samples.
pub(super) struct Sampled {
    drive: Box<dyn Drive>,
    facts: DriveFacts,
    mode: Mode,
    /// How far the drive's clock is behind, in ns.
    behind_ns: u64,
    in_drive: u32,
    /// Requests done of this stretch, or let in without the drive.
    count: u32,
    sample_from_ns: u64,
    /// When the drive was done with the last request.
    done_ns: u64,
    each_ns: u64,
    free_ns: u64,
    unseen: VecDeque<Done>,
    waiting: VecDeque<Request>,
    done: Vec<Done>,
}

impl Sampled {
    pub(super) fn new(drive: Box<dyn Drive>) -> Self {
        let facts = drive.facts();
        Self {
            drive,
            facts,
            mode: Mode::Seen,
            behind_ns: 0,
            in_drive: 0,
            count: 0,
            sample_from_ns: 0,
            done_ns: 0,
            each_ns: 0,
            free_ns: 0,
            unseen: VecDeque::new(),
            waiting: VecDeque::new(),
            done: Vec::new(),
        }
    }

    /// Requests before a sample, in which the drive's queue fills.
    fn warm_up(&self) -> u32 {
        2 * self.facts.queue_depth.min(256)
    }

    fn is_drive_at_work(&self) -> bool {
        matches!(self.mode, Mode::Seen | Mode::Finishing)
    }

    fn let_in(&mut self, now_ns: u64, request: Request) {
        match self.mode {
            Mode::Seen => {
                if self.in_drive == 0 && now_ns > self.done_ns {
                    // It was idle: what was counted says nothing about a drive at work.
                    self.count = 0;
                }
                self.in_drive += 1;
                self.drive.submit(now_ns - self.behind_ns, request);
            }
            Mode::Unseen => {
                self.free_ns = self.free_ns.max(now_ns) + self.each_ns;
                self.unseen.push_back(Done { id: request.id, at_ns: self.free_ns });
                self.count += 1;
                if self.count >= UNSEEN {
                    self.mode = Mode::Returning;
                }
            }
            Mode::Finishing | Mode::Returning => self.waiting.push_back(request),
        }
    }

    fn count_done(&mut self, now_ns: u64) {
        self.in_drive -= 1;
        self.done_ns = now_ns;
        self.count += 1;
        if self.mode != Mode::Seen {
            return;
        }
        if self.count == self.warm_up() {
            self.sample_from_ns = now_ns;
        } else if self.count == self.warm_up() + SAMPLE {
            self.each_ns = (now_ns - self.sample_from_ns) / u64::from(SAMPLE);
            self.mode = Mode::Finishing;
        }
    }

    /// Changes over when the one that was at work has nothing left.
    fn change_over(&mut self, now_ns: u64) {
        match self.mode {
            Mode::Finishing if self.in_drive == 0 => {
                (self.mode, self.count, self.free_ns) = (Mode::Unseen, 0, now_ns);
                // From here the drive's clock stands still.
                self.sample_from_ns = now_ns;
            }
            Mode::Returning if self.unseen.is_empty() => {
                (self.mode, self.count) = (Mode::Seen, 0);
                self.behind_ns += now_ns - self.sample_from_ns;
            }
            _ => return,
        }
        for request in std::mem::take(&mut self.waiting) {
            self.let_in(now_ns, request);
        }
    }
}

impl Drive for Sampled {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        self.let_in(now_ns, request);
    }

    fn next_event_ns(&self) -> Option<u64> {
        match self.is_drive_at_work() {
            true => self.drive.next_event_ns().map(|at_ns| at_ns + self.behind_ns),
            false => self.unseen.front().map(|done| done.at_ns),
        }
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        if self.is_drive_at_work() {
            let mut found = std::mem::take(&mut self.done);
            self.drive.advance(now_ns - self.behind_ns, &mut found);
            for one in found.drain(..) {
                let at_ns = one.at_ns + self.behind_ns;
                self.count_done(at_ns);
                done.push(Done { at_ns, ..one });
            }
            self.done = found;
        } else {
            let due = self.unseen.partition_point(|one| one.at_ns <= now_ns);
            done.extend(self.unseen.drain(..due));
        }
        self.change_over(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Command;
    use crate::queue::standin::Arm;

    #[test]
    fn every_request_is_done_once_and_few_are_worked_through() {
        for queue_depth in [1, 32] {
            let (arm, sent) = Arm::new(queue_depth, 1_000_000, 0);
            let mut drive = Sampled::new(arm);
            let (count, mut next, mut now_ns, mut done) = (40_000, 0, 0, Vec::new());
            while done.len() < count {
                while next < count && next - done.len() < queue_depth as usize {
                    let at_bytes = next as u64 * 4096;
                    let id = next as u64;
                    let command = Command::Write;
                    drive.submit(now_ns, Request { id, command, at_bytes, bytes: 4096 });
                    next += 1;
                }
                now_ns = drive.next_event_ns().unwrap().max(now_ns);
                drive.advance(now_ns, &mut done);
            }
            let mut ids: Vec<u64> = done.iter().map(|one| one.id).collect();
            ids.sort_unstable();
            assert!(ids.iter().enumerate().all(|(place, &id)| place as u64 == id));
            assert_eq!(now_ns, count as u64 * 1_000_000, "a steady drive keeps its pace");
            assert!(sent.lock().unwrap().len() < count / 5, "depth {queue_depth}");
        }
    }
}
