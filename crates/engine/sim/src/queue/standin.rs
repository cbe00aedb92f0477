//! A drive for tests: one arm, time by distance, requests in the order of coming.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::drive::{Done, Drive, DriveFacts, Request};

/// What a stand-in was sent, in order.
pub(crate) type Sent = Arc<Mutex<Vec<Request>>>;

/// One arm: a fixed time per request and one per GiB moved over.
pub(crate) struct Arm {
    pub(crate) facts: DriveFacts,
    pub(crate) request_ns: u64,
    pub(crate) gib_ns: u64,
    head_bytes: u64,
    free_ns: u64,
    done: VecDeque<Done>,
    sent: Sent,
}

impl Arm {
    pub(crate) fn new(queue_depth: u32, request_ns: u64, gib_ns: u64) -> (Box<Self>, Sent) {
        let facts = DriveFacts {
            capacity_bytes: 1 << 40,
            queue_depth,
            volatile_bytes: 0,
            is_rotational: gib_ns > 0,
        };
        let sent = Sent::default();
        let (done, kept) = (VecDeque::new(), sent.clone());
        let arm = Self { facts, request_ns, gib_ns, head_bytes: 0, free_ns: 0, done, sent: kept };
        (Box::new(arm), sent)
    }
}

impl Drive for Arm {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        assert!((self.done.len() as u32) < self.facts.queue_depth, "the drive was sent too much");
        let moved = self.head_bytes.abs_diff(request.at_bytes);
        let takes_ns =
            self.request_ns + ((u128::from(moved) * u128::from(self.gib_ns)) >> 30) as u64;
        self.free_ns = self.free_ns.max(now_ns) + takes_ns;
        self.head_bytes = request.at_bytes + u64::from(request.bytes);
        self.done.push_back(Done { id: request.id, at_ns: self.free_ns });
        self.sent.lock().unwrap().push(request);
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.done.front().map(|done| done.at_ns)
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        let due = self.done.partition_point(|one| one.at_ns <= now_ns);
        done.extend(self.done.drain(..due));
    }
}
