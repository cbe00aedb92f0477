//! Group commit: one write of redo at a time, for all who wait.
//!
//! Invariant: what is durable never goes back; who waits for redo that is there goes on.

use std::time::Duration;

use iostrata_innodb::flush::STALLED_REDO_WRITE;

use super::state::{Happening, RedoWaiter, World};

/// Longest wait of a leader for others, in ns.
const GATHER_NS_MAX: f64 = 2_000_000.0;

impl World {
    /// Whoever this is goes on when the redo before `upto` is durable.
    pub(super) fn need_redo(&mut self, upto: u64, waiter: RedoWaiter) {
        if self.redo.durable >= upto {
            return self.redo_is_there(waiter);
        }
        self.redo.waiting.push_back((upto, waiter));
        if self.redo.writing.is_none() {
            self.lead();
        }
    }

    /// Writes, or waits: for as long as the rule gathers the commits of a step; else for those who
    /// waited the last time and may be back in a moment. One more is worth waiting for while it
    /// comes within the time of a write over those who are here.
    fn lead(&mut self) {
        let (now_ns, here) = (self.now_ns, self.redo.waiting.len());
        let least_ns = 1_000 * self.rule.pace.gather_us();
        if least_ns > 0 {
            if self.redo.gather_until_ns.is_none() {
                self.gather_until(now_ns + least_ns, now_ns + least_ns);
            }
            return;
        }
        let lead_ns = self.redo.lead_ns;
        if here >= self.redo.population || lead_ns == 0 {
            return self.write_redo();
        }
        let longest = GATHER_NS_MAX * self.weight;
        let end_ns = now_ns + (lead_ns as f64 / 2.0).min(longest) as u64;
        let end_ns = self.redo.gather_until_ns.unwrap_or(end_ns);
        let worth_ns = lead_ns / here.clamp(2, 64) as u64;
        self.gather_until(end_ns, end_ns.min(now_ns + worth_ns));
    }

    /// The leader waits until `end_ns`, and no longer than `at_ns` unless somebody comes.
    fn gather_until(&mut self, end_ns: u64, at_ns: u64) {
        self.redo.gather_until_ns = Some(end_ns);
        self.redo.gather_turn = self.redo.gather_turn.wrapping_add(1);
        let turn = self.redo.gather_turn;
        self.note(at_ns, Happening::Gathered { turn });
    }

    /// The leader waits for nobody else.
    pub(super) fn gathered(&mut self, turn: u32) {
        let is_due = self.redo.gather_until_ns.is_some() && self.redo.gather_turn == turn;
        if is_due && self.redo.writing.is_none() {
            self.write_redo();
        }
    }

    fn write_redo(&mut self) {
        self.redo.gather_until_ns = None;
        let upto = self.redo.lsn;
        let block = u64::from(self.plan.settings.log_write_ahead_size);
        let bytes = (upto - self.redo.durable).next_multiple_of(block);
        // The commits of a step are gathered in one write, however many are done in one go.
        let times = if self.rule.pace.gather_us() > 0 { 1.0 } else { self.weight };
        let done_ns = self.volume.redo(self.now_ns, bytes as f64, times);
        self.redo.writing = Some((upto, self.now_ns, times));
        self.note(done_ns, Happening::RedoDurable);
    }

    /// A write of redo ended.
    pub(super) fn redo_durable(&mut self) {
        let Some((upto, begun_ns, times)) = self.redo.writing.take() else { return };
        self.redo.durable = upto;
        self.redo.lead_ns = self.now_ns - begun_ns;
        self.redo.writes_ns += self.redo.lead_ns;
        // Transactions done in one go stand for so many writes, one after the other.
        let each = Duration::from_nanos((self.redo.lead_ns as f64 / times) as u64);
        self.redo.writes += times as u64;
        self.redo.stalled_writes += times as u64 * u64::from(each >= STALLED_REDO_WRITE);
        self.redo.population = self.redo.waiting.len();
        let mut covered = Vec::new();
        self.redo.waiting.retain(|(wanted, waiter)| {
            if *wanted <= upto {
                covered.push(*waiter);
            }
            *wanted > upto
        });
        for waiter in covered {
            self.redo_is_there(waiter);
        }
        if self.redo.writing.is_none() && !self.redo.waiting.is_empty() {
            self.lead();
        }
    }

    fn redo_is_there(&mut self, waiter: RedoWaiter) {
        match waiter {
            RedoWaiter::User(user) => self.end_transaction(user),
            RedoWaiter::Writer(writer) => self.go_on(writer),
        }
    }
}
