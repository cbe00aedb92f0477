//! Dependencies between transactions, and cycles of them.

use std::collections::{BTreeMap, VecDeque};

/// Why one comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It wrote the version before.
    WriteWrite,
    /// It wrote what the other read.
    WriteRead,
    /// It read what the other overwrote.
    ReadWrite,
    /// The same thread did it before.
    Order,
}

impl Edge {
    pub const ALL: [Self; 4] = [Self::WriteWrite, Self::WriteRead, Self::ReadWrite, Self::Order];
}

/// A graph over numbered nodes.
#[derive(Default)]
pub struct Graph {
    next: Vec<Vec<(usize, Edge)>>,
}

impl Graph {
    /// Adds an edge, but for one from a node to itself.
    pub fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from == to {
            return;
        }
        let nodes = self.next.len().max(from.max(to) + 1);
        self.next.resize_with(nodes, Vec::new);
        self.next[from].push((to, edge));
    }

    fn followed<'g>(&'g self, from: usize, by: &'g [Edge]) -> impl Iterator<Item = usize> + 'g {
        self.next[from].iter().filter(|(_, edge)| by.contains(edge)).map(|(to, _)| *to)
    }

    /// A cycle of these edges, if there is one.
    pub fn cycle(&self, by: &[Edge]) -> Option<Vec<usize>> {
        let left = self.sorted(by).err()?;
        // Every node that is left has one before it that is left: going back meets itself.
        let mut before = BTreeMap::new();
        for from in &left {
            before.extend(self.followed(*from, by).map(|to| (to, *from)));
        }
        let (mut at, mut passed) = (*left.first()?, Vec::new());
        while !passed.contains(&at) {
            passed.push(at);
            at = before[&at];
        }
        let start = passed.iter().position(|node| *node == at)?;
        let mut cycle = passed.split_off(start);
        cycle.reverse();
        Some(cycle)
    }

    /// A cycle with exactly one edge of this kind, the others being of writes and of reads of what
    /// was written, which have no cycle by themselves.
    pub fn cycle_with_one(&self, one: Edge) -> Option<Vec<usize>> {
        let flow = [Edge::WriteWrite, Edge::WriteRead];
        let order = self.sorted(&flow).ok()?;
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, node)| place[*node] = at);
        let back = |from: usize| {
            self.followed(from, &[one]).filter(|to| place[*to] < place[from]).collect::<Vec<_>>()
        };
        (0..self.next.len())
            .flat_map(|from| back(from).into_iter().map(move |to| (from, to)))
            .find_map(|(from, to)| self.way(to, from, &flow, &place))
    }

    /// The nodes on a way, which lies between the places of its ends.
    fn way(&self, from: usize, to: usize, by: &[Edge], place: &[usize]) -> Option<Vec<usize>> {
        let mut before = BTreeMap::from([(from, from)]);
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            for next in self.followed(node, by).filter(|next| place[*next] <= place[to]) {
                if before.contains_key(&next) {
                    continue;
                }
                before.insert(next, node);
                if next == to {
                    let mut way = vec![to];
                    while way[way.len() - 1] != from {
                        way.push(before[&way[way.len() - 1]]);
                    }
                    way.reverse();
                    return Some(way);
                }
                waiting.push_back(next);
            }
        }
        None
    }

    /// The nodes in an order in which all these edges lead on; otherwise those that lie on cycles
    /// or behind them.
    fn sorted(&self, by: &[Edge]) -> Result<Vec<usize>, Vec<usize>> {
        let mut waits_for = vec![0; self.next.len()];
        for from in 0..self.next.len() {
            self.followed(from, by).for_each(|to| waits_for[to] += 1);
        }
        let mut free: VecDeque<usize> =
            (0..self.next.len()).filter(|node| waits_for[*node] == 0).collect();
        let mut order = Vec::with_capacity(self.next.len());
        while let Some(node) = free.pop_front() {
            order.push(node);
            for to in self.followed(node, by) {
                waits_for[to] -= 1;
                if waits_for[to] == 0 {
                    free.push_back(to);
                }
            }
        }
        if order.len() == self.next.len() {
            return Ok(order);
        }
        Err((0..self.next.len()).filter(|node| waits_for[*node] > 0).collect())
    }
}
