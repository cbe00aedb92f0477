//! Any sequence of requests to any drive, and what every drive promises of it.

use std::collections::HashMap;

use proptest::prelude::*;

use crate::drive::{Command, Done, Drive, Request};

/// One request, some time after the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) gap_ns: u64,
    pub(crate) command: Command,
    pub(crate) block: u64,
    pub(crate) blocks: u32,
}

const BLOCK: u64 = 4_096;

/// Up to `most` steps on the first `span_blocks` blocks.
pub(crate) fn steps(most: usize, span_blocks: u64) -> impl Strategy<Value = Vec<Step>> {
    let command = prop_oneof![
        4 => Just(Command::Read),
        8 => Just(Command::Write),
        1 => Just(Command::WriteThrough),
        2 => Just(Command::Flush),
    ];
    let gap_ns = prop_oneof![4 => Just(0), 4 => 0..2_000_000_u64, 1 => 0..50_000_000_u64];
    let blocks = prop_oneof![6 => Just(1_u32), 2 => 2..40_u32, 1 => 200..400_u32];
    let step = (gap_ns, command, 0..span_blocks - 400, blocks)
        .prop_map(|(gap_ns, command, block, blocks)| Step { gap_ns, command, block, blocks });
    prop::collection::vec(step, 1..most)
}

fn request(id: u64, step: &Step) -> Request {
    let (at_bytes, bytes) = match step.command {
        Command::Flush => (0, 0),
        _ => (step.block * BLOCK, step.blocks * BLOCK as u32),
    };
    Request { id, command: step.command, at_bytes, bytes }
}

/// Runs the steps event by event until the drive is idle; `at_done` sees the drive at the moment of
/// each end.
///
/// # Panics
/// When a request is done twice or never, before it came, or time goes back.
pub(crate) fn run_steps<D: Drive>(
    drive: &mut D,
    steps: &[Step],
    mut at_done: impl FnMut(&D, &Request, u64),
) -> Vec<Done> {
    let mut all: Vec<Done> = Vec::new();
    let mut open: HashMap<u64, (u64, Request)> = HashMap::new();
    let mut last_ns = 0;
    let mut until = |drive: &mut D, end_ns: u64, open: &mut HashMap<u64, (u64, Request)>| {
        let mut done = Vec::new();
        while let Some(next_ns) = drive.next_event_ns().filter(|next_ns| *next_ns <= end_ns) {
            assert!(next_ns >= last_ns, "the next event lies back");
            last_ns = next_ns;
            drive.advance(next_ns, &mut done);
            for it in done.drain(..) {
                assert_eq!(it.at_ns, next_ns, "done at another moment than the event's");
                let (came_ns, request) = open.remove(&it.id).expect("done once, after it came");
                assert!(it.at_ns > came_ns, "{request:?} took no time");
                at_done(drive, &request, came_ns);
                all.push(it);
            }
        }
    };
    let mut now_ns = 0;
    for (id, step) in (0..).zip(steps) {
        now_ns += step.gap_ns;
        until(drive, now_ns, &mut open);
        let request = request(id, step);
        open.insert(id, (now_ns, request));
        drive.submit(now_ns, request);
    }
    until(drive, u64::MAX, &mut open);
    assert!(open.is_empty(), "never done: {open:?}");
    assert_eq!(drive.next_event_ns(), None);
    all
}
