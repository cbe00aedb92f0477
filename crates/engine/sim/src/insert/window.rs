//! One replicate of one point: warm up, then measure.
//!
//! Method: the table starts with everything clean and grows by nothing but the rows of the window.
//! A span lasts until what waits to be written has been replaced once and a pass by age has
//! happened, and ends where a commit starts that the journal rested before, or the third in a row
//! that follows another at once: a load that commits stop has its course from one to the next. The
//! first span is warm-up, the second is measured; rows follow from pages written and pages dirtied.
//! While a commit has a long backlog in no order, each stretch of it is like the next: after a
//! sample the rest is skipped, and counted as if every page took what those of the sample took.
//! Spans are bounded in pages simulated and in virtual time.

use super::machine::{Machine, Snapshot};

/// Shortest span, in ns: the age at which pages are written, and the look after it.
const SPAN_NS_MIN: u64 = 35_000_000_000;
/// Longest span, in ns.
const SPAN_NS_MAX: u64 = 3_600_000_000_000;
/// Pages simulated after which a span ends, whatever waits.
const PAGES_MAX: u64 = 250_000;
/// Fewest rows of a window that say how many pages a row dirties.
const ROWS_MIN: u64 = 1_000;
/// Pages of a sample.
const SAMPLE_PAGES: u64 = 1_500;
/// Commits that follow each other at once after which a span may end.
const COMMITS_MAX: u64 = 3;

/// What a replicate counted.
pub(super) struct Window {
    pub(super) since: Snapshot,
    pub(super) until: Snapshot,
    pub(super) latencies_ns: Vec<u64>,
}

impl Window {
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
    pub(super) fn rows_per_hour(&self) -> f64 {
        self.pages_written() / self.pages_per_row() / self.span_s() * 3600.0
    }

    /// Whether as many pages were dirtied in the window as were written, within a factor of 2.
    pub(super) fn is_steady(&self) -> bool {
        let dirtied = (self.until.pages_dirtied - self.since.pages_dirtied) as f64;
        (0.5..2.0).contains(&(dirtied / self.pages_written().max(1.0)))
    }
}

/// Runs one replicate on a queue that holds so many requests.
pub(super) fn window(machine: &mut Machine, nr_requests: u32) -> Window {
    span(machine, nr_requests);
    let since = machine.snapshot();
    span(machine, nr_requests);
    let until = machine.snapshot();
    Window { since, until, latencies_ns: machine.latencies_ns(&since).to_vec() }
}

fn span(machine: &mut Machine, nr_requests: u32) {
    let (start, seen) = (machine.snapshot(), machine.pages_seen());
    let mut rounds = Rounds::new(machine);
    let mut backlog = Backlog::default();
    loop {
        machine.step(machine.now_ns() + SPAN_NS_MIN);
        backlog.look(machine, nr_requests);
        let is_round = rounds.is_end(machine);
        let now = machine.snapshot();
        let past_ns = now.counters.at_ns - start.counters.at_ns;
        let is_replaced = now.pages_written - start.pages_written >= machine.unwritten() / 2;
        let is_over = past_ns >= SPAN_NS_MAX || machine.pages_seen() - seen >= PAGES_MAX;
        if (past_ns >= SPAN_NS_MIN && is_replaced && is_round) || is_over {
            return;
        }
    }
}

/// Where the course of a load that commits stop starts over.
struct Rounds {
    commits: Option<(u64, u64)>,
    in_a_row: u64,
}

impl Rounds {
    fn new(machine: &Machine) -> Self {
        Self { commits: machine.commits(), in_a_row: 0 }
    }

    /// Whether this very moment is one; always without a journal.
    fn is_end(&mut self, machine: &Machine) -> bool {
        let (Some((rested, all)), Some(now)) = (self.commits, machine.commits()) else {
            return true;
        };
        self.commits = Some(now);
        if now.0 > rested {
            self.in_a_row = 0;
            return true;
        }
        self.in_a_row += now.1 - all;
        now.1 > all && self.in_a_row >= COMMITS_MAX
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
        if seen >= seen_from + 2 * turn + SAMPLE_PAGES.max(turn / 4) {
            let pages = machine.backlog().saturating_sub(turn);
            let now = machine.snapshot();
            machine.skip(pages, &sample, &now);
            *self = Self::default();
        }
    }
}
