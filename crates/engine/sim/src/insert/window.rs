//! One replicate of one point: warm up, then measure, on a drive of which not every request is
//! worked through.
//!
//! Method: a load that fills memory begins with memory filled; a load that a journal's commits stop
//! begins with everything clean and is followed from one commit that the journal rested before to
//! another. Warm-up goes to the first commit, under a large queue that is not filled at once one
//! round more; without a journal it goes over some pages of the sweep. Then it is measured: whole
//! rounds of commits, or so many pages of the sweep. Rows follow from pages written and pages
//! dirtied.
//! While a commit has a long backlog in no order, each stretch of it is like the next: after a
//! sample the rest is skipped, and counted as if every page took what those of the sample took. A
//! load that changes slowly on a drive that costs much to model is sampled too: a stretch of
//! requests goes to the drive itself; the next ones, many more, take the mean time that those took.
//! Below `NR_REQUESTS_MIN` requests nothing is left out.
//! Invariants: spans are bounded in pages simulated and in virtual time. Of a sampled drive every
//! request is done exactly once; while the drive is left out its clock stands still, so that what
//! it holds (a write cache, worn flash) is there when it goes on. One of both is at work at a time:
//! what comes in between waits.

use std::collections::VecDeque;

use super::machine::{Machine, Prefill, ROW_CPU_NS, Snapshot};
use crate::cache::{EXPIRE_NS, PERIODIC_NS};
use crate::drive::{Drive, DriveCompletion, DriveFacts, Request};

/// Shortest span, in ns: some times the age at which pages are written, and the look after it.
const SPAN_NS_MIN: u64 = 105_000_000_000;
/// Longest span, in ns.
const SPAN_NS_MAX: u64 = 3_600_000_000_000;
/// Pages worked through after which a span ends, whatever waits.
const PAGES_MAX: u64 = 60_000;
/// The same on a drive that is worked through in samples.
const PAGES_SAMPLED_MAX: u64 = 500_000;
/// Pages of the warm-up there.
const PAGES_SAMPLED_WARM_UP: u64 = 150_000;
/// Pages of the warm-up and of the span of a sweep.
const SWEEP_PAGES: [u64; 2] = [6_000, 30_000];
/// Reads after which a span with a reader ends.
const READS: usize = 150;
/// Pages after which it ends, however few were read.
const READER_PAGES: u64 = 100_000;
/// Fewest rows of a window from which the pages that a row dirties are computed.
const ROWS_MIN: u64 = 1_000;
/// Rows that the processor inserts in an hour when it waits for nothing.
const ROWS_PER_HOUR_MAX: f64 = 3.6e12 / ROW_CPU_NS as f64;
/// Pages of a sample.
const SAMPLE_PAGES: u64 = 1_500;
/// Commits after which a span ends.
const COMMITS_MAX: u64 = 12;
/// How far what is unwritten may be from where a span began, as a part of that, to be the same.
const LEVEL_PART: f64 = 0.15;

/// What a replicate counted.
pub(super) struct Replicate {
    pub(super) since: Snapshot,
    pub(super) until: Snapshot,
    pub(super) latencies_ns: Vec<u64>,
}

impl Replicate {
    pub(super) fn span_s(&self) -> f64 {
        (self.until.counters.at_ns - self.since.counters.at_ns) as f64 / 1e9
    }

    /// Pages that a row dirties which were clean; of the whole run when too few rows came in.
    pub(super) fn pages_per_row(&self) -> f64 {
        let rows = self.until.rows - self.since.rows;
        let (rows, pages) = match rows < ROWS_MIN {
            true => (self.until.rows, self.until.pages_dirtied),
            false => (rows, self.until.pages_dirtied - self.since.pages_dirtied),
        };
        pages as f64 / rows.max(1) as f64
    }

    fn pages_written(&self) -> f64 {
        (self.until.pages_written - self.since.pages_written) as f64
    }

    /// Rows per hour in the long run: as many pages are dirtied as are written. Rows come in
    /// bursts, and a window with a burst more or less means little when they are simply counted. No
    /// more than the processor makes, which a window that begins with much to write would pass.
    pub(super) fn rows_per_hour(&self) -> f64 {
        self.drive_rows_per_hour().min(ROWS_PER_HOUR_MAX)
    }

    fn drive_rows_per_hour(&self) -> f64 {
        self.pages_written() / self.pages_per_row() / self.span_s() * 3600.0
    }

    /// Whether the drive could write more than the processor dirties.
    pub(super) fn is_cpu_limited(&self) -> bool {
        self.drive_rows_per_hour() >= ROWS_PER_HOUR_MAX
    }

    /// Whether as many pages were dirtied in the window as were written, within a factor of 2.
    pub(super) fn is_steady(&self) -> bool {
        let dirtied = (self.until.pages_dirtied - self.since.pages_dirtied) as f64;
        (0.5..2.0).contains(&(dirtied / self.pages_written().max(1.0)))
    }
}

/// How a replicate is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    /// Requests that the queue holds.
    pub(super) nr_requests: u32,
    /// Whether the drive is worked through in samples.
    pub(super) is_sampled: bool,
    pub(super) has_reader: bool,
    /// Whether nothing is skipped.
    pub(super) is_exact: bool,
    pub(super) prefill: Prefill,
}

impl Method {
    fn pages_max(&self) -> u64 {
        match (self.is_exact, self.is_sampled) {
            (true, _) => u64::MAX,
            (false, true) => PAGES_SAMPLED_MAX,
            (false, false) => PAGES_MAX,
        }
    }
}

/// Runs one replicate.
pub(super) fn window(machine: &mut Machine, method: Method) -> Replicate {
    warm_up(machine, method);
    let since = machine.snapshot();
    match method.prefill {
        _ if method.has_reader => reads(machine),
        Prefill::Sweep(_) => pages(machine, SWEEP_PAGES[1]),
        _ => span(machine, method),
    }
    let until = machine.snapshot();
    Replicate { since, until, latencies_ns: machine.latencies_ns(&since).to_vec() }
}

fn warm_up(machine: &mut Machine, method: Method) {
    match method.prefill {
        Prefill::Sweep(_) => pages(machine, SWEEP_PAGES[0]),
        _ => {
            next_commit(machine);
            if method.nr_requests >= NR_REQUESTS_MIN
                && method.prefill == Prefill::Nothing
                && !method.has_reader
            {
                pages(machine, PAGES_SAMPLED_WARM_UP);
                next_commit(machine);
            }
        }
    }
}

/// Lets so many pages be written.
fn pages(machine: &mut Machine, count: u64) {
    let (from, start_ns) = (machine.pages_seen(), machine.now_ns());
    while machine.pages_seen() - from < count && machine.now_ns() - start_ns < SPAN_NS_MAX {
        machine.step(machine.now_ns() + SPAN_NS_MIN);
    }
}

/// Goes on to the beginning of a commit; without a journal for as long as a page may stay dirty.
fn next_commit(machine: &mut Machine) {
    let (commits, start_ns) = (machine.commits(), machine.now_ns());
    let most_ns = if commits.is_some() { SPAN_NS_MAX } else { EXPIRE_NS + PERIODIC_NS };
    while machine.commits() == commits && machine.now_ns() - start_ns < most_ns {
        machine.step(start_ns + most_ns);
    }
}

/// Lets a reader read for some time.
fn reads(machine: &mut Machine) {
    let (seen, reads, start_ns) = (machine.pages_seen(), machine.reads(), machine.now_ns());
    while machine.reads() - reads < READS
        && machine.pages_seen() - seen < READER_PAGES
        && machine.now_ns() - start_ns < SPAN_NS_MAX
    {
        machine.step(start_ns + SPAN_NS_MAX);
    }
}

fn span(machine: &mut Machine, method: Method) {
    let (start, seen) = (machine.snapshot(), machine.pages_seen());
    let mut rounds = Rounds::new(machine);
    let mut backlog = Backlog::default();
    loop {
        machine.step(machine.now_ns() + SPAN_NS_MIN);
        if !method.is_exact {
            backlog.look(machine, method.nr_requests);
        }
        let is_round = rounds.is_end(machine);
        let is_over = machine.pages_seen() - seen >= method.pages_max();
        if !is_round && !is_over {
            continue;
        }
        let now = machine.snapshot();
        let past_ns = now.counters.at_ns - start.counters.at_ns;
        let is_replaced = now.pages_written - start.pages_written >= machine.unwritten() / 2;
        if (past_ns >= SPAN_NS_MIN && is_replaced) || is_over || past_ns >= SPAN_NS_MAX {
            return;
        }
    }
}

/// Where the course of a load that commits stop starts over: at a commit that begins with as much
/// to write as the first one did.
struct Rounds {
    commits: Option<u64>,
    unwritten: u64,
    seen: u64,
}

impl Rounds {
    fn new(machine: &Machine) -> Self {
        Self { commits: machine.commits(), unwritten: machine.unwritten(), seen: 0 }
    }

    /// Whether this very moment is one; always without a journal. A course that does not come back
    /// is cut off after some commits.
    fn is_end(&mut self, machine: &Machine) -> bool {
        let now = machine.commits();
        if now == self.commits {
            return now.is_none();
        }
        self.commits = now;
        self.seen += 1;
        let apart = machine.unwritten().abs_diff(self.unwritten) as f64;
        apart <= LEVEL_PART * self.unwritten as f64 || self.seen >= COMMITS_MAX
    }
}

/// What is known of the backlog of the commit that runs.
#[derive(Default)]
struct Backlog {
    /// Pages simulated when it was first seen.
    seen_from: Option<u64>,
    sample: Option<Snapshot>,
}

impl Backlog {
    /// Samples a long backlog and skips the rest of it.
    fn look(&mut self, machine: &mut Machine, nr_requests: u32) {
        // The queue must have been replaced before a sample is like what follows, and be full of
        // the last pages when the backlog ends.
        let turn = u64::from(nr_requests).max(SAMPLE_PAGES / 2);
        if machine.backlog() < turn + SAMPLE_PAGES {
            if machine.backlog() == 0 && self.sample.is_none() {
                self.seen_from = None;
            }
            return;
        }
        let seen = machine.pages_seen();
        let seen_from = *self.seen_from.get_or_insert(seen);
        if seen < seen_from + 2 * turn {
            return;
        }
        let Some(sample) = self.sample else {
            self.sample = Some(machine.snapshot());
            return;
        };
        if seen >= seen_from + 2 * turn + SAMPLE_PAGES.max(turn / 2) {
            let pages = machine.backlog().saturating_sub(turn);
            let now = machine.snapshot();
            machine.skip(pages, &sample, &now);
            *self = Self::default();
        }
    }
}

/// Queue size from which on requests are left out.
pub(super) const NR_REQUESTS_MIN: u32 = 4096;
/// Requests of which the time is taken.
const SAMPLE: u32 = 600;
/// Further requests, which take the mean time of the sample.
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

/// A drive that is measured in samples.
pub(super) struct WindowSample {
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
    unseen: VecDeque<DriveCompletion>,
    waiting: VecDeque<Request>,
    done: Vec<DriveCompletion>,
}

impl WindowSample {
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
                    // It was idle: what was counted is not of a drive at work.
                    self.count = 0;
                }
                self.in_drive += 1;
                self.drive.submit(now_ns - self.behind_ns, request);
            }
            Mode::Unseen => {
                self.free_ns = self.free_ns.max(now_ns) + self.each_ns;
                self.unseen.push_back(DriveCompletion { id: request.id, at_ns: self.free_ns });
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

    /// Changes over when the active one has nothing left.
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

impl Drive for WindowSample {
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

    fn advance(&mut self, now_ns: u64, done: &mut Vec<DriveCompletion>) {
        if self.is_drive_at_work() {
            let mut found = std::mem::take(&mut self.done);
            self.drive.advance(now_ns - self.behind_ns, &mut found);
            for one in found.drain(..) {
                let at_ns = one.at_ns + self.behind_ns;
                self.count_done(at_ns);
                done.push(DriveCompletion { at_ns, ..one });
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
            let mut drive = WindowSample::new(arm);
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
