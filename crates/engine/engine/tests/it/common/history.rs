//! Recorded histories of transactions on lists, and what speaks against their isolation.
//!
//! After Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations"
//! (2020): every write appends a number of its own to a list, so the final lists show in which
//! order the writes came, and every list that was read shows which writes it saw.

use std::collections::BTreeMap;

use iostrata_engine::Isolation;

use crate::common::history_graph::{Edge, Graph};

/// What a committed transaction did, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// One list, by a plain read.
    Read {
        key: usize,
        list: Vec<u32>,
    },
    /// All lists, by one scan.
    Scan {
        lists: Vec<Vec<u32>>,
    },
    /// One list, locked.
    Locked {
        key: usize,
        list: Vec<u32>,
    },
    Append {
        key: usize,
        element: u32,
    },
    /// The last append to this list was taken back.
    TakenBack {
        key: usize,
    },
}

/// The committed transactions of each thread, in its order, and the lists in the end.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub threads: Vec<Vec<Vec<Event>>>,
    pub finals: Vec<Vec<u32>>,
}

/// What must not be. Transactions are named by their places in the order of the threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// A transaction does not see what it wrote itself.
    OwnWrites { transaction: usize, key: usize },
    /// G1a: an element is there that no committed transaction left there.
    AbortedRead { key: usize, element: u32 },
    /// G1b: a list was seen as a transaction had it only for a while.
    IntermediateRead { key: usize, element: u32 },
    /// A list was seen that is no beginning of the final one.
    NoPrefix { key: usize, list: Vec<u32> },
    /// A committed append is not in the final list, or twice.
    LostAppend { key: usize, element: u32 },
    /// G0: a cycle of writes.
    DirtyWrite { cycle: Vec<usize> },
    /// G1c: a cycle of writes and of reads of what was written.
    CircularFlow { cycle: Vec<usize> },
    /// G-single: a cycle with one read of what another has overwritten; a lost update is one.
    ReadSkew { cycle: Vec<usize> },
    /// What was read under one snapshot, or after what the same thread did before, is of no one
    /// moment.
    NoMoment { cycle: Vec<usize> },
}

impl History {
    fn transactions(&self) -> impl Iterator<Item = &Vec<Event>> {
        self.threads.iter().flatten()
    }

    /// Everything that a level forbids, the plainest first; of cycles one of each kind.
    pub fn anomalies(&self, level: Isolation) -> Vec<Anomaly> {
        let (reads, mut found) = self.external();
        let writers = Writers::of(self, &reads);
        found.extend(writers.anomalies(self));
        for read in &reads.all {
            found.extend(writers.judge(read, &self.finals));
        }
        if !found.is_empty() {
            // The order of the writes is not known, so neither are the dependencies.
            return found;
        }
        self.cycles(level, &reads, &writers)
    }

    fn cycles(&self, level: Isolation, reads: &Reads, writers: &Writers) -> Vec<Anomaly> {
        let mut found = Vec::new();
        let whole = self.graph(reads, writers, |read| read.transaction);
        let of = |edges: &[Edge]| whole.cycle(edges);
        if let Some(cycle) = of(&[Edge::WriteWrite]) {
            found.push(Anomaly::DirtyWrite { cycle });
        } else if let Some(cycle) = of(&[Edge::WriteWrite, Edge::WriteRead]) {
            found.push(Anomaly::CircularFlow { cycle });
        } else if level == Isolation::Snapshot
            && let Some(cycle) = whole.cycle_with_one(Edge::ReadWrite)
        {
            found.push(Anomaly::ReadSkew { cycle });
        }
        if let Some(cycle) = self.moments(level, reads, writers) {
            found.push(Anomaly::NoMoment { cycle });
        }
        found
    }

    /// A node for each moment at which a transaction acts: one for all plain reads under one
    /// snapshot, and one for its end, to which locks hold what it locked. Then every dependency
    /// leads on in time, whatever its kind, so there is no cycle at all.
    fn moments(&self, level: Isolation, reads: &Reads, writers: &Writers) -> Option<Vec<usize>> {
        let count = self.transactions().count();
        let (mut owners, mut nodes): (Vec<usize>, BTreeMap<_, usize>) =
            ((0..count).collect(), BTreeMap::new());
        for read in reads.all.iter().filter(|read| !read.is_locked) {
            nodes.entry((read.transaction, read.statement(level))).or_insert_with(|| {
                owners.push(read.transaction);
                owners.len() - 1
            });
        }
        let node = |read: &External| match read.is_locked {
            true => read.transaction,
            false => nodes[&(read.transaction, read.statement(level))],
        };
        let mut graph = self.graph(reads, writers, node);
        let mut transactions = 0..count;
        for thread in &self.threads {
            let mut last = None;
            for transaction in transactions.by_ref().take(thread.len()) {
                let moments = nodes.range((transaction, 0)..(transaction + 1, 0));
                for node in moments.map(|(_, node)| *node).chain([transaction]) {
                    if let Some(last) = last {
                        graph.add(last, node, Edge::Order);
                    }
                    last = Some(node);
                }
            }
        }
        let cycle = graph.cycle(&Edge::ALL)?;
        let mut cycle: Vec<_> = cycle.into_iter().map(|node| owners[node]).collect();
        cycle.dedup();
        Some(cycle)
    }

    fn graph(&self, reads: &Reads, writers: &Writers, node: impl Fn(&External) -> usize) -> Graph {
        let mut graph = Graph::default();
        for list in &self.finals {
            for pair in list.windows(2) {
                let [before, after] = [pair[0], pair[1]].map(|of| writers.by_element[&of]);
                graph.add(before, after, Edge::WriteWrite);
            }
        }
        for read in &reads.all {
            if let Some(last) = read.list.last() {
                let writer = writers.by_element[last];
                if writer != read.transaction {
                    graph.add(writer, node(read), Edge::WriteRead);
                }
            }
            if let Some(next) = self.finals[read.key].get(read.list.len()) {
                let writer = writers.by_element[next];
                if writer != read.transaction {
                    graph.add(node(read), writer, Edge::ReadWrite);
                }
            }
        }
        graph
    }

    /// What was read of others' writes, and where own writes were not seen.
    fn external(&self) -> (Reads, Vec<Anomaly>) {
        let (mut reads, mut found) = (Reads::default(), Vec::new());
        for (transaction, events) in self.transactions().enumerate() {
            let mut own: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
            for (place, event) in events.iter().enumerate() {
                let mut saw = |key: usize, list: &[u32], is_locked| {
                    let own = own.get(&key).map_or(&[][..], Vec::as_slice);
                    let Some(list) = list.strip_suffix(own) else {
                        return found.push(Anomaly::OwnWrites { transaction, key });
                    };
                    // Behind an own write comes the version that was locked for it.
                    let (is_locked, list) = (is_locked || !own.is_empty(), list.to_vec());
                    reads.all.push(External { transaction, place, is_locked, key, list });
                };
                match event {
                    Event::Read { key, list } => saw(*key, list, false),
                    Event::Scan { lists } => {
                        lists.iter().enumerate().for_each(|(key, list)| saw(key, list, false));
                    }
                    Event::Locked { key, list } => saw(*key, list, true),
                    Event::Append { key, element } => own.entry(*key).or_default().push(*element),
                    Event::TakenBack { key } => drop(own.entry(*key).or_default().pop()),
                }
            }
            reads.own.push(own);
        }
        (reads, found)
    }
}

/// One list as a transaction saw it, without its own appends.
struct External {
    transaction: usize,
    /// Of the event within the transaction.
    place: usize,
    is_locked: bool,
    key: usize,
    list: Vec<u32>,
}

impl External {
    /// Which snapshot of its transaction it belongs to.
    fn statement(&self, level: Isolation) -> usize {
        if level == Isolation::ReadCommitted { self.place } else { 0 }
    }
}

#[derive(Default)]
struct Reads {
    all: Vec<External>,
    /// What each transaction has appended in the end, by key.
    own: Vec<BTreeMap<usize, Vec<u32>>>,
}

/// Who wrote what.
struct Writers {
    by_element: BTreeMap<u32, usize>,
    /// Elements behind which their transaction appended another to the same list.
    intermediate: BTreeMap<u32, u32>,
    own: Vec<(usize, u32)>,
}

impl Writers {
    fn of(history: &History, reads: &Reads) -> Self {
        debug_assert_eq!(history.transactions().count(), reads.own.len());
        let (mut by_element, mut intermediate) = (BTreeMap::new(), BTreeMap::new());
        let mut own = Vec::new();
        for (transaction, appends) in reads.own.iter().enumerate() {
            for (key, list) in appends {
                by_element.extend(list.iter().map(|element| (*element, transaction)));
                intermediate.extend(list.windows(2).map(|pair| (pair[0], pair[1])));
                own.extend(list.iter().map(|element| (*key, *element)));
            }
        }
        Self { by_element, intermediate, own }
    }

    /// What is wrong with the final lists.
    fn anomalies(&self, history: &History) -> Vec<Anomaly> {
        let mut seen: BTreeMap<(usize, u32), u32> = BTreeMap::new();
        let mut found = Vec::new();
        for (key, list) in history.finals.iter().enumerate() {
            for element in list {
                *seen.entry((key, *element)).or_default() += 1;
                if !self.by_element.contains_key(element) {
                    found.push(Anomaly::AbortedRead { key, element: *element });
                }
            }
        }
        let lost = self.own.iter().filter(|own| seen.get(own) != Some(&1));
        found.extend(
            lost.map(|(key, element)| Anomaly::LostAppend { key: *key, element: *element }),
        );
        found
    }

    /// What is wrong with one read by itself.
    fn judge(&self, read: &External, finals: &[Vec<u32>]) -> Option<Anomaly> {
        let (key, list) = (read.key, &read.list);
        let aborted = list.iter().find(|element| !self.by_element.contains_key(element));
        if let Some(element) = aborted {
            return Some(Anomaly::AbortedRead { key, element: *element });
        }
        if let Some(last) = list.last().filter(|last| self.intermediate.contains_key(last)) {
            return Some(Anomaly::IntermediateRead { key, element: *last });
        }
        let is_prefix = finals.get(key).is_some_and(|whole| whole.starts_with(list));
        (!is_prefix).then(|| Anomaly::NoPrefix { key, list: list.clone() })
    }
}
