//! Doubly linked lists through numbered nodes: insertion and removal anywhere in a few stores.
//!
//! Invariant: a node is in at most one list of a `Links` at a time; the caller knows which.

pub const NONE: u32 = u32::MAX;

/// Where the nodes' neighbours are kept.
pub struct Links {
    older: Vec<u32>,
    newer: Vec<u32>,
}

/// One list, from the oldest to the newest.
#[derive(Clone, Copy, Debug)]
pub struct List {
    oldest: u32,
    newest: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { oldest: NONE, newest: NONE, len: 0 }
    }
}

impl List {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}

impl Links {
    pub fn new(nodes: usize) -> Self {
        Self { older: vec![NONE; nodes], newer: vec![NONE; nodes] }
    }

    fn newer(&self, node: u32) -> Option<u32> {
        let next = self.newer[node as usize];
        (next != NONE).then_some(next)
    }

    /// A list's nodes, oldest first.
    pub fn nodes(&self, list: &List) -> impl Iterator<Item = u32> {
        std::iter::successors(list.oldest(), |node| self.newer(*node))
    }

    pub fn push_newest(&mut self, list: &mut List, node: u32) {
        self.older[node as usize] = list.newest;
        self.newer[node as usize] = NONE;
        match list.newest {
            NONE => list.oldest = node,
            newest => self.newer[newest as usize] = node,
        }
        list.newest = node;
        list.len += 1;
    }

    pub fn push_oldest(&mut self, list: &mut List, node: u32) {
        self.newer[node as usize] = list.oldest;
        self.older[node as usize] = NONE;
        match list.oldest {
            NONE => list.newest = node,
            oldest => self.older[oldest as usize] = node,
        }
        list.oldest = node;
        list.len += 1;
    }

    pub fn remove(&mut self, list: &mut List, node: u32) {
        let (older, newer) = (self.older[node as usize], self.newer[node as usize]);
        match older {
            NONE => list.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
        match newer {
            NONE => list.newest = older,
            newer => self.older[newer as usize] = older,
        }
        list.len -= 1;
    }

    pub fn pop_oldest(&mut self, list: &mut List) -> Option<u32> {
        let node = list.oldest()?;
        self.remove(list, node);
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn order(links: &Links, list: &List) -> Vec<u32> {
        links.nodes(list).collect()
    }

    proptest! {
        #[test]
        fn lists_keep_their_order(steps in prop::collection::vec((0..4_u8, 0..12_u32), 0..200)) {
            let (mut links, mut list) = (Links::new(12), List::default());
            let mut model: VecDeque<u32> = VecDeque::new();
            for (what, node) in steps {
                let place = model.iter().position(|one| *one == node);
                match (what, place) {
                    (0, None) => { links.push_newest(&mut list, node); model.push_back(node) }
                    (1, None) => { links.push_oldest(&mut list, node); model.push_front(node) }
                    (2, Some(at)) => { links.remove(&mut list, node); model.remove(at); }
                    (3, _) => prop_assert_eq!(links.pop_oldest(&mut list), model.pop_front()),
                    _ => {}
                }
                prop_assert_eq!(order(&links, &list), Vec::from(model.clone()));
                prop_assert_eq!(list.len(), model.len());
            }
        }
    }
}
