//! The profiler: opened once, used for many windows.
//!
//! Invariant: the caller starts, stops and takes, in this order; outside a window nothing is
//! recorded and no thread runs.

use std::fs;
use std::sync::OnceLock;
use std::time::Instant;

use iostrata_run::host::Profile;

use crate::profile::ProfileError;
use crate::profile::collector::{Collector, Running};
use crate::profile::event::Reach;
use crate::profile::fold::{fold, fold_waits};
use crate::profile::kallsyms::Kallsyms;
use crate::profile::source::{
    Clock, Sources, check_rate, hidden_symbols, is_refusal_error, only_own,
};

const KALLSYMS: &str = "/proc/kallsyms";
/// Missing samples of a clock that should never miss any are reported from here up.
const MISSING_SHARE_TOLD: f64 = 0.05;

/// Samples kernel stacks, and traces waits on request.
///
/// With `system_wide` and permission every task of the machine is sampled. Otherwise only the
/// thread that opens the profiler and the threads and processes it starts afterwards.
#[derive(Debug)]
pub struct Profiler {
    state: ProfilerState,
    reach: Reach,
    clock: Clock,
    hz: u32,
    cpus: u32,
    notes: Vec<String>,
    symbols: OnceLock<Kallsyms>,
}

#[derive(Debug)]
enum ProfilerState {
    Idle(Box<Collector>),
    Started(Running, Instant),
    Stopped(Box<Collector>, f64),
    /// The reader was lost with its buffers.
    Broken,
}

impl Profiler {
    /// Opens what is needed on every processor; nothing is recorded yet.
    ///
    /// Waits that cannot be traced although stacks can be sampled are no error: the profiles state
    /// it in their notes.
    ///
    /// # Errors
    /// [`ProfileError::NotPermitted`] with the value that forbids it and the fix;
    /// [`ProfileError::Rate`] for a rate that the kernel refuses; others when the kernel cannot
    /// sample at all.
    pub fn open(options: &ProfileOptions) -> Result<Self, ProfileError> {
        check_rate(options.hz)?;
        let mut notes = Vec::new();
        let (reach, (sampled, clock)) = open_samples(options, &mut notes)?;
        let switched = options.off_cpu.then(|| Sources::switches(reach)).and_then(|opened| {
            opened.inspect_err(|error| notes.push(format!("waits were not traced: {error}"))).ok()
        });
        let cpus = sampled.all.len() as u32;
        let state = ProfilerState::Idle(Box::new(Collector::new(sampled, switched)));
        let hz = options.hz;
        Ok(Self { state, reach, clock, hz, cpus, notes, symbols: OnceLock::new() })
    }

    /// The window begins now.
    ///
    /// # Errors
    /// [`ProfileError::OutOfOrder`] within a window; [`ProfileError::System`] when the kernel or
    /// the thread that reads cannot be had. A profile not yet taken is dropped.
    pub fn start(&mut self) -> Result<(), ProfileError> {
        match self.take_state() {
            ProfilerState::Idle(collector) | ProfilerState::Stopped(collector, _) => {
                match collector.start() {
                    Ok(running) => {
                        self.state = ProfilerState::Started(running, Instant::now());
                        Ok(())
                    }
                    Err((collector, error)) => {
                        self.state = ProfilerState::Idle(collector);
                        Err(error)
                    }
                }
            }
            other => self.refuse("start", other),
        }
    }

    /// The window ends now; what was recorded is read to its end.
    ///
    /// # Errors
    /// [`ProfileError::OutOfOrder`] outside a window; [`ProfileError::System`] when the kernel
    /// refuses to stop, and the profiler is of no use any more.
    pub fn stop(&mut self) -> Result<(), ProfileError> {
        match self.take_state() {
            ProfilerState::Started(running, since) => {
                let seconds = since.elapsed().as_secs_f64();
                self.state = ProfilerState::Stopped(running.stop()?, seconds);
                Ok(())
            }
            other => self.refuse("stop", other),
        }
    }

    /// The profile of the window that was stopped last. Names are looked up here; the first time
    /// that takes some 100 ms.
    ///
    /// # Errors
    /// [`ProfileError::OutOfOrder`] unless just stopped.
    pub fn take(&mut self) -> Result<Profile, ProfileError> {
        match self.take_state() {
            ProfilerState::Stopped(collector, seconds) => {
                let profile = self.profile(&collector, seconds);
                self.state = ProfilerState::Idle(collector);
                Ok(profile)
            }
            other => self.refuse("take", other),
        }
    }

    fn take_state(&mut self) -> ProfilerState {
        std::mem::replace(&mut self.state, ProfilerState::Broken)
    }

    fn refuse<T>(&mut self, asked: &'static str, state: ProfilerState) -> Result<T, ProfileError> {
        let name = match &state {
            ProfilerState::Idle(_) => "idle",
            ProfilerState::Started(..) => "started",
            ProfilerState::Stopped(..) => "stopped",
            ProfilerState::Broken => "broken by an earlier failure",
        };
        self.state = state;
        Err(ProfileError::OutOfOrder { asked, state: name })
    }

    fn profile(&self, collector: &Collector, seconds: f64) -> Profile {
        let symbols = self.symbols.get_or_init(|| {
            // Unreadable is the same as hidden: no names.
            Kallsyms::parse(&fs::read_to_string(KALLSYMS).unwrap_or_default())
        });
        let samples = &collector.samples;
        let expected = f64::from(self.cpus) * f64::from(self.hz) * seconds;
        let missing = (expected - (samples.total + samples.lost) as f64).max(0.0);
        let mut notes = self.notes.clone();
        let mut idle_computed = 0;
        if self.reach == Reach::Machine && missing > expected * MISSING_SHARE_TOLD {
            if self.clock == Clock::Cycles || samples.on_idle_task == 0 {
                idle_computed = missing.round() as u64;
                notes.push(computed_idle(self.clock, idle_computed));
            } else {
                notes.push(missing_samples(missing, expected));
            }
        }
        if symbols.are_hidden() || symbols.is_empty() {
            notes.push(hidden_symbols());
        }
        Profile {
            hz: self.hz,
            clock: self.clock.name().to_owned(),
            seconds,
            cpus: self.cpus,
            off_cpu: collector
                .switched
                .is_some()
                .then(|| fold_waits(&collector.switches, seconds, symbols)),
            notes,
            ..fold(samples, idle_computed, symbols)
        }
    }
}

fn computed_idle(clock: Clock, samples: u64) -> String {
    let clock = clock.name();
    format!(
        "{clock} makes no samples on idle processors here: the {samples} missing ones were counted \
         as idle"
    )
}

fn missing_samples(missing: f64, expected: f64) -> String {
    let share = 100.0 * missing / expected;
    format!(
        "{share:.0} % of the {expected:.0} expected samples never came: the hypervisor ran others, \
         or interrupts were off; percentages are of those that came"
    )
}

type OpenSamples = (Reach, (Sources, Clock));

fn open_samples(
    options: &ProfileOptions,
    notes: &mut Vec<String>,
) -> Result<OpenSamples, ProfileError> {
    if options.system_wide {
        match Sources::samples(Reach::Machine, options.hz) {
            Ok(opened) => return Ok((Reach::Machine, opened)),
            Err(error) if is_refusal_error(&error) => notes.push(only_own(&error)),
            Err(error) => return Err(error),
        }
    } else {
        notes.push("only this process was sampled, as requested".to_owned());
    }
    Ok((Reach::Own, Sources::samples(Reach::Own, options.hz)?))
}

/// Samples per second and processor by default: off the beat of everything that happens 100 times a
/// second.
pub const HZ: u32 = 99;

/// What to profile, and how finely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileOptions {
    /// Samples per second and processor.
    pub hz: u32,
    /// Every task of the machine and its idling, so that work done for this process by kernel
    /// threads and interrupts is seen. Where the system does not allow it, this process alone.
    pub system_wide: bool,
    /// Also trace where this process's threads wait. It costs a few us for every switch of a task
    /// on the machine: for a separate window, apart from the measured one.
    pub off_cpu: bool,
}

impl Default for ProfileOptions {
    /// 99 Hz, the whole machine, no waits.
    fn default() -> Self {
        Self { hz: HZ, system_wide: true, off_cpu: false }
    }
}
