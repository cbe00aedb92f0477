//! The thread that reads the buffers while a window runs, and counts samples by stack and by
//! process.
//!
//! Invariants: it sleeps between two readings and only adds up in between; what it cannot keep up
//! with is counted as lost by the kernel, never waited for. Every sample is counted exactly once,
//! so the counts add up to `total`. Addresses stay addresses; naming them can wait until nothing is
//! measured. `/proc` is read once per process that appears, so a process that was gone by then
//! stays unnamed and counts as foreign.

use std::collections::HashMap;
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::profile::ProfileError;
use crate::profile::record::{Chain, RingRecord, Stamp, records};
use crate::profile::source::{SampleSource, Sources};
use crate::profile::switches::{Step, Switches};

/// Samples come slowly: a few hundred bytes each, at 99 per second.
const SAMPLES_PAUSE: Duration = Duration::from_millis(200);
/// Switches come fast: up to tens of MB per second and processor.
const SWITCHES_PAUSE: Duration = Duration::from_millis(50);
/// A record stands in its buffer well within this time of its own time stamp.
const SETTLE_NS: u64 = 10_000_000;

/// Everything that is open, and what it has recorded in the current window.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) sampled: Sources,
    pub(crate) switched: Option<Sources>,
    pub(crate) samples: Samples,
    pub(crate) switches: Switches,
    processes: Processes,
    bytes: Vec<u8>,
}

/// CLOCK_MONOTONIC, in ns, as in the records.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Collector {
    pub(crate) fn new(sampled: Sources, switched: Option<Sources>) -> Self {
        Self {
            sampled,
            switched,
            samples: Samples::default(),
            switches: Switches::default(),
            processes: Processes::new(),
            bytes: Vec::new(),
        }
    }

    /// Forgets the window before, begins to record, and reads in a thread of its own.
    pub(crate) fn start(mut self: Box<Self>) -> Result<Running, (Box<Self>, ProfileError)> {
        self.samples = Samples::default();
        self.switches = Switches::default();
        self.processes = Processes::new();
        if let Err(error) = self.enable() {
            self.discard();
            return Err((self, error));
        }
        let (stop, stopped) = channel();
        // The collector travels over a channel, so that it is not lost when no thread can be had.
        let (hand_over, handed) = channel::<Box<Self>>();
        let body = move || handed.recv().ok().map(|collector| collector.read_until(&stopped));
        match Builder::new().name("profile".to_owned()).spawn(body) {
            Ok(thread) => match hand_over.send(self) {
                Ok(()) => Ok(Running { stop, thread }),
                Err(unsent) => Err((unsent.0, ProfileError::ReaderGone)),
            },
            Err(source) => {
                self.discard();
                let doing = "starting the thread that reads the samples";
                Err((self, ProfileError::System { doing, source }))
            }
        }
    }

    fn enable(&self) -> Result<(), ProfileError> {
        self.switched.iter().try_for_each(Sources::enable)?;
        self.sampled.enable()
    }

    /// Turns everything off, even when part of it fails; the first failure is returned.
    fn disable(&self) -> Result<(), ProfileError> {
        let sampled = self.sampled.disable();
        let switched = self.switched.iter().try_for_each(Sources::disable);
        sampled.and(switched)
    }

    fn discard(&mut self) {
        // The failure that led here is the one to return.
        let _ = self.disable();
        self.read(0);
        self.samples = Samples::default();
        self.switches = Switches::default();
    }

    fn read_until(mut self: Box<Self>, stopped: &Receiver<u64>) -> (Box<Self>, Ended) {
        let pause = if self.switched.is_some() { SWITCHES_PAUSE } else { SAMPLES_PAUSE };
        let end_ns = loop {
            match stopped.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {
                    let settled_ns = now_ns().saturating_sub(SETTLE_NS);
                    self.read(settled_ns);
                }
                Ok(end_ns) => break end_ns,
                Err(RecvTimeoutError::Disconnected) => break now_ns(),
            }
        };
        let disabled = self.disable();
        self.read(0);
        self.switches.finish(end_ns);
        (self, disabled)
    }

    /// Takes what has been recorded; waits are paired up to `settled_ns`.
    fn read(&mut self, settled_ns: u64) {
        let mut bytes = std::mem::take(&mut self.bytes);
        for source in &mut self.sampled.all {
            drain(source, &mut bytes);
            for record in records(&bytes) {
                count_sample(&record, &mut self.samples, &mut self.processes);
            }
        }
        for source in self.switched.iter_mut().flat_map(|sources| &mut sources.all) {
            drain(source, &mut bytes);
            let mut before_ns = 0;
            for record in records(&bytes) {
                note_switch(&record, &mut before_ns, &mut self.switches, &mut self.processes);
            }
        }
        self.switches.settle(settled_ns);
        self.bytes = bytes;
    }
}

fn drain(source: &mut SampleSource, bytes: &mut Vec<u8>) {
    bytes.clear();
    source.ring.drain(bytes);
}

fn count_sample(record: &RingRecord<'_>, samples: &mut Samples, processes: &mut Processes) {
    match record {
        RingRecord::Sample { stamp, in_program, chain } => {
            samples.add(*stamp, *in_program, chain, processes);
        }
        RingRecord::Lost { records, .. } => samples.lost += records,
        RingRecord::Leave { .. } | RingRecord::Enter { .. } => {}
    }
}

fn note_switch(
    record: &RingRecord<'_>,
    before_ns: &mut u64,
    switches: &mut Switches,
    processes: &mut Processes,
) {
    let at_ns = match record {
        RingRecord::Sample { stamp, chain, .. } => {
            if processes.is_own(stamp.pid) {
                switches.leaving(*stamp, chain.addresses());
            }
            stamp.at_ns
        }
        RingRecord::Leave { stamp, preempted } => {
            if *preempted && processes.is_own(stamp.pid) {
                switches.step(stamp.at_ns, Step::Preempted { tid: stamp.tid });
            }
            stamp.at_ns
        }
        RingRecord::Enter { stamp } => {
            if processes.is_own(stamp.pid) {
                switches.step(stamp.at_ns, Step::Enter { tid: stamp.tid });
            }
            stamp.at_ns
        }
        RingRecord::Lost { at_ns, records } => {
            let until_ns = at_ns.unwrap_or(*before_ns);
            switches.gap(*before_ns, until_ns, *records);
            until_ns
        }
    };
    *before_ns = at_ns;
}

/// How turning off went.
type Ended = Result<(), ProfileError>;

/// A window that is being recorded.
#[derive(Debug)]
pub(crate) struct Running {
    stop: Sender<u64>,
    thread: JoinHandle<Option<(Box<Collector>, Ended)>>,
}

impl Running {
    /// Ends the window and waits until everything recorded has been read.
    pub(crate) fn stop(self) -> Result<Box<Collector>, ProfileError> {
        // A reader that is gone shows below.
        let _ = self.stop.send(now_ns());
        let Ok(Some((collector, ended))) = self.thread.join() else {
            return Err(ProfileError::ReaderGone);
        };
        ended.map(|()| collector)
    }
}

/// What was sampled in a window.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// Kernel stacks, innermost address first.
    pub(crate) kernel: HashMap<Box<[u64]>, u64>,
    /// Samples in this program and its children, by name.
    pub(crate) own: HashMap<String, u64>,
    /// Samples in other programs, by name.
    pub(crate) others: HashMap<String, u64>,
    /// All.
    pub(crate) total: u64,
    /// Of these, how many hit the idle task.
    pub(crate) on_idle_task: u64,
    /// Could not be stored by the kernel.
    pub(crate) lost: u64,
    /// Room for one chain, kept between samples.
    pub(crate) chain: Vec<u64>,
}

impl Samples {
    /// Counts one.
    pub(crate) fn add(
        &mut self,
        stamp: Stamp,
        in_program: bool,
        chain: &Chain<'_>,
        processes: &mut Processes,
    ) {
        self.total += 1;
        self.on_idle_task += u64::from(stamp.pid == 0);
        if in_program {
            let is_own = processes.is_own(stamp.pid);
            let program = processes.program(stamp.pid);
            let programs = if is_own { &mut self.own } else { &mut self.others };
            match programs.get_mut(program) {
                Some(count) => *count += 1,
                None => drop(programs.insert(program.to_owned(), 1)),
            }
            return;
        }
        self.chain.clear();
        self.chain.extend(chain.addresses());
        match self.kernel.get_mut(self.chain.as_slice()) {
            Some(count) => *count += 1,
            None => drop(self.kernel.insert(self.chain.as_slice().into(), 1)),
        }
    }
}

/// Longest line of descent that is followed.
const GENERATIONS_MAX: usize = 16;

/// What is known about the processes seen.
#[derive(Debug)]
pub(crate) struct Processes {
    own: u32,
    family: HashMap<u32, bool>,
    programs: HashMap<u32, String>,
}

impl Processes {
    /// Nothing is known yet but this process.
    pub(crate) fn new() -> Self {
        Self { own: std::process::id(), family: HashMap::new(), programs: HashMap::new() }
    }

    /// Whether a process is this one or descends from it.
    pub(crate) fn is_own(&mut self, pid: u32) -> bool {
        let own = self.own;
        pid == own || *self.family.entry(pid).or_insert_with(|| descends(pid, own))
    }

    /// The name of a process's program; `?` when it has ended too soon.
    pub(crate) fn program(&mut self, pid: u32) -> &str {
        self.programs.entry(pid).or_insert_with(|| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .map_or_else(|_| "?".to_owned(), |text| text.trim_end().to_owned())
        })
    }
}

fn descends(pid: u32, from: u32) -> bool {
    let mut current = pid;
    for _ in 0..GENERATIONS_MAX {
        match parent(current) {
            Some(above) if above == from => return true,
            Some(above @ 2..) => current = above,
            _ => return false,
        }
    }
    false
}

/// `/proc/PID/stat` is `pid (name) state parent ...`; the name may hold anything.
fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = text.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_own_and_its_parent_is_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut processes = Processes::new();
        assert!(processes.is_own(std::process::id()));
        assert!(processes.is_own(child.id()));
        assert!(!processes.is_own(1));
        assert!(!processes.is_own(0));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(processes.program(0), "?");
        assert_ne!(processes.program(std::process::id()), "?");
    }
}
