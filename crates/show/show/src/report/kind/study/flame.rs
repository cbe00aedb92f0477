//! Stacks as a flame graph: stacks that begin alike share their frames.
//!
//! Invariant: the value of a frame is the sum of the stacks through it, so that it is the sum of
//! its callees and its own; the smallest frames are left out first, and what they held stays in
//! their callers.

use std::collections::BTreeMap;

use iostrata_run::host::KernelLayer;
use serde::Serialize;

/// Texts that occur many times, each kept once.
#[derive(Default)]
pub(super) struct Names {
    places: BTreeMap<String, usize>,
}

impl Names {
    /// The place of a text.
    pub(super) fn place(&mut self, text: &str) -> usize {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.places.len();
        self.places.insert(text.to_owned(), place);
        place
    }

    /// The texts by their places.
    pub(super) fn listed(self) -> Vec<String> {
        let mut both: Vec<(usize, String)> =
            self.places.into_iter().map(|(text, place)| (place, text)).collect();
        both.sort();
        both.into_iter().map(|(_, text)| text).collect()
    }
}

/// A layer's place in [`KernelLayer::ALL`].
pub(super) fn layer_place(layer: KernelLayer) -> usize {
    KernelLayer::ALL.iter().position(|one| *one == layer).unwrap_or(KernelLayer::ALL.len() - 1)
}

/// Frames from the outermost in, each before its callees: four columns of equal length.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Flame {
    /// Place of the name.
    n: Vec<usize>,
    /// Depth: a frame's caller is the nearest one before it that is less deep.
    d: Vec<usize>,
    /// Samples or microseconds.
    v: Vec<u64>,
    /// Place of the layer that nearly all of them count for; -1 where several share them.
    l: Vec<isize>,
}

/// One frame while the tree grows.
struct Node {
    name: usize,
    depth: usize,
    callees: BTreeMap<usize, usize>,
    layers: BTreeMap<usize, u64>,
}

impl Node {
    fn new(name: usize, depth: usize) -> Self {
        Self { name, depth, callees: BTreeMap::new(), layers: BTreeMap::new() }
    }

    fn value(&self) -> u64 {
        self.layers.values().sum()
    }

    fn main_layer(&self) -> isize {
        let most = self.layers.iter().max_by_key(|(_, value)| **value);
        let main = most.filter(|(_, value)| **value * 10 >= self.value() * 9);
        main.and_then(|(layer, _)| isize::try_from(*layer).ok()).unwrap_or(-1)
    }
}

impl Flame {
    /// The graph of stacks, at most `frames_max` frames.
    pub(super) fn of<'a>(
        stacks: impl Iterator<Item = (&'a [String], KernelLayer, u64)>,
        frames_max: usize,
        names: &mut Names,
    ) -> Self {
        let tree = tree(stacks, names);
        // A caller is older and never smaller than its callee: taking the largest, the older one
        // first, takes every caller before its callees.
        let mut order: Vec<usize> = (1..tree.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(tree[*at].value()), *at));
        order.truncate(frames_max);
        let mut kept = vec![false; tree.len()];
        for at in order {
            kept[at] = true;
        }
        let mut flame = Self::default();
        flame.add_callees(&tree, &kept);
        flame
    }

    /// Every kept frame, callees after their caller, the largest first.
    fn add_callees(&mut self, tree: &[Node], kept: &[bool]) {
        let callees = |at: usize| {
            let mut callees: Vec<usize> =
                tree[at].callees.values().copied().filter(|callee| kept[*callee]).collect();
            callees.sort_by_key(|callee| (tree[*callee].value(), std::cmp::Reverse(*callee)));
            callees
        };
        let mut open = callees(0);
        while let Some(at) = open.pop() {
            let node = &tree[at];
            self.n.push(node.name);
            self.d.push(node.depth);
            self.v.push(node.value());
            self.l.push(node.main_layer());
            open.extend(callees(at));
        }
    }
}

/// The tree of stacks; its first node is no frame but what all stacks start from.
fn tree<'a>(
    stacks: impl Iterator<Item = (&'a [String], KernelLayer, u64)>,
    names: &mut Names,
) -> Vec<Node> {
    let mut tree = vec![Node::new(0, 0)];
    for (frames, layer, value) in stacks {
        let mut at = 0;
        for (depth, frame) in frames.iter().enumerate() {
            let name = names.place(frame);
            at = match tree[at].callees.get(&name) {
                Some(known) => *known,
                None => {
                    tree.push(Node::new(name, depth));
                    let new = tree.len() - 1;
                    tree[at].callees.insert(name, new);
                    new
                }
            };
            *tree[at].layers.entry(layer_place(layer)).or_default() += value;
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[&str]) -> Vec<String> {
        frames.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn stacks_share_what_they_begin_with() {
        let (read, write, idle) = (
            stack(&["user", "vfs_read", "ext4_read"]),
            stack(&["user", "vfs_write"]),
            stack(&["cpu_startup", "idle"]),
        );
        let all = [
            (&read[..], KernelLayer::Filesystem, 5),
            (&write[..], KernelLayer::Vfs, 3),
            (&idle[..], KernelLayer::Idle, 20),
        ];
        let mut names = Names::default();
        let flame = Flame::of(all.into_iter(), 100, &mut names);
        assert_eq!(flame.v, [20, 20, 8, 5, 5, 3]);
        assert_eq!(flame.d, [0, 1, 0, 1, 2, 1]);
        let names = names.listed();
        let shown: Vec<&str> = flame.n.iter().map(|place| names[*place].as_str()).collect();
        assert_eq!(shown, ["cpu_startup", "idle", "user", "vfs_read", "ext4_read", "vfs_write"]);
        let place = |layer| isize::try_from(layer_place(layer)).unwrap();
        assert_eq!(flame.l[1..4], [place(KernelLayer::Idle), -1, place(KernelLayer::Filesystem)]);
    }

    #[test]
    fn small_frames_go_first_and_callers_stay() {
        let deep = stack(&["user", "a", "b", "c"]);
        let small = stack(&["user", "z"]);
        let all = [(&deep[..], KernelLayer::Vfs, 9), (&small[..], KernelLayer::Vfs, 1)];
        let flame = Flame::of(all.into_iter(), 4, &mut Names::default());
        assert_eq!((flame.v, flame.d), (vec![10, 9, 9, 9], vec![0, 1, 2, 3]));
        assert_eq!(Flame::of([].into_iter(), 4, &mut Names::default()), Flame::default());
    }
}
