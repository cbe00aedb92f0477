//! Which command the arm serves next: the one whose data it reaches first.
//!
//! Invariant: the shortest access time wins, seek and rotation together (Seltzer, Chen and
//! Ousterhout, "Disk scheduling revisited", 1990); a command that has waited longer than the bound
//! goes first, oldest before younger, so that none starves. With one command there is no choice.

use super::geometry::Geometry;
use crate::drive::Request;

/// Where the arm is and when it can leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    pub(crate) now_ns: u64,
    /// In turns.
    pub(crate) position: f64,
}

/// A command that needs the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) request: Request,
    /// The first byte that the medium must give or take; later than the request's first when the
    /// buffer has the beginning.
    pub(crate) first: u64,
    /// Where that byte lies, in turns.
    pub(crate) position: f64,
    pub(crate) is_write: bool,
    pub(crate) since_ns: u64,
}

/// The commands that need the medium.
#[derive(Debug)]
pub(crate) struct Candidates {
    all: Vec<Candidate>,
    age_ns_max: u64,
}

impl Candidates {
    pub(crate) fn new(age_ns_max: u64) -> Self {
        Self { all: Vec::new(), age_ns_max }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn push(&mut self, candidate: Candidate) {
        self.all.push(candidate);
    }

    /// Takes out the one to serve next.
    pub(crate) fn take_next(&mut self, geometry: &Geometry, arm: Arm) -> Option<Candidate> {
        let oldest = self.all.iter().enumerate().min_by_key(|(_, it)| it.since_ns)?;
        let index = if arm.now_ns.saturating_sub(oldest.1.since_ns) > self.age_ns_max {
            oldest.0
        } else {
            self.nearest(geometry, arm)?
        };
        // The order in the vector is the order of arrival: `remove`, not `swap_remove`, so that
        // equal ages and equal distances are served in order.
        Some(self.all.remove(index))
    }

    fn nearest(&self, geometry: &Geometry, arm: Arm) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (index, it) in self.all.iter().enumerate() {
            let ns = geometry.expected_ns(arm.now_ns, arm.position, it.position, it.is_write);
            if best.is_none_or(|(_, least)| ns < least) {
                best = Some((index, ns));
            }
        }
        best.map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::HDD_15K;
    use super::*;
    use crate::drive::Command;

    fn candidate(id: u64, position: f64, since_ns: u64) -> Candidate {
        let request = Request { id, command: Command::Read, at_bytes: 0, bytes: 4_096 };
        Candidate { request, first: 0, position, is_write: false, since_ns }
    }

    fn geometry() -> Geometry {
        Geometry::new(&HDD_15K, HDD_15K.capacity_bytes, 0.0)
    }

    #[test]
    fn rotation_counts_as_much_as_distance() {
        let mut candidates = Candidates::new(u64::MAX);
        // The same track but just passed, so nearly a turn away; a little farther but in time.
        candidates.push(candidate(1, 100.99, 0));
        candidates.push(candidate(2, 140.5, 0));
        let arm = Arm { now_ns: 0, position: 100.0 };
        let first = candidates.take_next(&geometry(), arm).expect("two");
        assert_eq!(first.request.id, 2);
    }

    #[test]
    fn one_that_waited_too_long_goes_first() {
        let mut candidates = Candidates::new(1_000_000);
        candidates.push(candidate(1, 200_000.0, 10));
        candidates.push(candidate(2, 100.5, 2_000_000));
        let arm = Arm { now_ns: 2_000_000, position: 100.0 };
        assert_eq!(candidates.take_next(&geometry(), arm).map(|it| it.request.id), Some(1));
        assert_eq!(candidates.take_next(&geometry(), arm).map(|it| it.request.id), Some(2));
        assert!(candidates.take_next(&geometry(), arm).is_none());
    }
}
