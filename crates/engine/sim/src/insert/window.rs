//! One replicate of one point: warm up, then measure.
//!
//! Method: the table starts with everything clean and grows by nothing but the rows of the window.
//! A span lasts until what waits to be written has been replaced once and a pass by age has
//! happened, and ends where a commit starts that the journal rested before, or the third in a row that
//! follows another at once: a load that commits stop has its course from one to the next. The first span is warm-up, the second is measured. While a commit has
//! a long backlog in no order, each stretch of it is like the next: after a sample the rest is
//! skipped, and counted as if every page took what those of the sample took. Spans are bounded in
//! pages simulated and in virtual time.

use super::machine::{Machine, Snapshot};

/// Shortest span, in ns: the age at which pages are written, and the look after it.
const SPAN_NS_MIN: u64 = 35_000_000_000;
/// Longest span, in ns.
const SPAN_NS_MAX: u64 = 3_600_000_000_000;
/// Pages simulated after which a span ends, whatever waits.
const PAGES_MAX: u64 = 400_000;
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

    pub(super) fn rows_per_hour(&self) -> f64 {
        (self.until.rows - self.since.rows) as f64 / self.span_s() * 3600.0
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
    let start = machine.snapshot();
    let (commits, seen) = (machine.commits(), machine.pages_seen());
    let mut backlog = Backlog::default();
    loop {
        machine.step(machine.now_ns() + SPAN_NS_MIN);
        backlog.look(machine, nr_requests);
        let now = machine.snapshot();
        let past_ns = now.counters.at_ns - start.counters.at_ns;
        let is_long = past_ns >= SPAN_NS_MIN
            && now.pages_written - start.pages_written >= machine.unwritten();
        let is_round = match (commits, machine.commits()) {
            (Some((rested, all)), Some((rested_now, all_now))) => {
                rested_now > rested || all_now >= all + COMMITS_MAX
            }
            _ => true,
        };
        let is_over = past_ns >= SPAN_NS_MAX || machine.pages_seen() - seen >= PAGES_MAX;
        if (is_long && is_round) || is_over {
            return;
        }
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
