//! A drive that takes the same time for everything.

use std::collections::VecDeque;

use crate::drive::{Done, Drive, DriveFacts, Request};

/// So many servers of one queue; each request takes one of them for the same time.
pub(super) struct Constant {
    facts: DriveFacts,
    service_ns: u64,
    free_at_ns: VecDeque<u64>,
    done: VecDeque<Done>,
}

impl Constant {
    pub(super) fn new(facts: DriveFacts, service_ns: u64) -> Self {
        let free_at_ns = VecDeque::from(vec![0; facts.queue_depth as usize]);
        Self { facts, service_ns, free_at_ns, done: VecDeque::new() }
    }
}

impl Drive for Constant {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        let end = request.at_bytes + u64::from(request.bytes);
        assert!(end <= self.facts.capacity_bytes, "request to byte {end} is beyond the drive");
        // All take equally long, so the server that is free first is the one taken first.
        let free_ns = self.free_at_ns.pop_front().unwrap_or(now_ns).max(now_ns);
        self.free_at_ns.push_back(free_ns + self.service_ns);
        self.done.push_back(Done { id: request.id, at_ns: free_ns + self.service_ns });
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.done.front().map(|done| done.at_ns)
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        let due = self.done.partition_point(|done| done.at_ns <= now_ns);
        done.extend(self.done.drain(..due));
    }
}
