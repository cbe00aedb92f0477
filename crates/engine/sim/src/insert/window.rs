//! One replicate of one point: warm up, then measure.
//!
//! Method: a load that fills memory begins with memory filled; a load that a journal's commits stop
//! begins with everything clean and is followed from one commit that the journal rested before to
//! another. Warm-up goes to the first commit, under a large queue that is not filled at once one
//! round more; without a journal it goes over some pages of the sweep. Then it is measured: whole
//! rounds of commits, or so many pages of the sweep. Rows follow from pages written and pages
//! dirtied.
//! While a commit has a long backlog in no order, each stretch of it is like the next: after a
//! sample the rest is skipped, and counted as if every page took what those of the sample took.
//! Spans are bounded in pages simulated and in virtual time.

use super::machine::{Machine, ROW_CPU_NS, Snapshot};
use super::prefill::Prefill;
use super::sampled::NR_REQUESTS_MIN;
use crate::cache::{EXPIRE_NS, PERIODIC_NS};

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
/// Reads after which a span beside a reader ends.
const READS: usize = 150;
/// Pages after which it ends, however few were read.
const READER_PAGES: u64 = 100_000;
/// Fewest rows of a window that say how many pages a row dirties.
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
    /// bursts, and a window with a burst more or less says little when they are simply counted.
    /// No more than the processor makes, which a window that begins with much to write would pass.
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
