//! What is recorded with the figures: the kernel's profile, and where requests spend their time;
//! and what of a volume is observed and traced.
//!
//! Invariant: the profile runs in measured windows, because it costs next to nothing; tracing and
//! the waits of threads have a pass apart. What is not possible here is reported once, with the
//! fix, and the study goes on without it.

use std::path::{Path, PathBuf};

use iostrata_change::{
    Change, ChangeError, ChangeId, Effect, MountTracefs, Platform, Session, TraceInstance,
    write_instance,
};
use iostrata_linux::blocktrace::{BlockTrace, Setting, TraceScope};
use iostrata_linux::host::{Root, Scope, describe_path};
use iostrata_linux::profile::{ProfileError, ProfileOptions, Profiler};
use iostrata_plan::OpKind;
use iostrata_run::host::{ApplicationLatency, BlockLatency, NamedIostat, PathFacts, Profile};
use iostrata_run::{Replicate, Unavailable};

use super::pace::TRACED_PASS;
use crate::{StudyError, Watcher};

/// Requests per second for which the trace buffer has room.
const TRACED_REQUESTS_PER_S: f64 = 200_000.0;
/// Stacks kept of one window; what others held stays in the totals.
const STACKS_KEPT: usize = 80;
const INSTANCE: &str = "study";

/// The changes that a traced pass needs, as a plan shows them.
pub(super) fn changes() -> [Change; 2] {
    let events = vec!["block:*".to_owned()];
    [MountTracefs.into(), instance(events).into()]
}

fn instance(events: Vec<String>) -> TraceInstance {
    let seconds = TRACED_PASS.as_secs_f64();
    let buffer_kib = iostrata_linux::blocktrace::buffer_kib(TRACED_REQUESTS_PER_S, seconds);
    TraceInstance { name: INSTANCE.to_owned(), events, buffer_kib, clock: "mono".to_owned() }
}

/// Profilers and tracers of a study.
#[derive(Default)]
pub(super) struct Probes {
    profile: Option<ProfileProbe>,
    waits: Option<ProfileProbe>,
    trace: Option<TraceProbe>,
}

/// What a traced pass brought.
#[derive(Default)]
pub(super) struct TracedPass {
    pub latency: Option<BlockLatency>,
    pub waits: Option<Profile>,
}

impl Probes {
    /// Opens the profiler of measured windows, if one is requested and this machine allows it.
    pub(super) fn open(profile_hz: u32) -> (Self, Vec<Unavailable>) {
        let mut missing = Vec::new();
        let mut probes = Self::default();
        if profile_hz > 0 {
            let options = ProfileOptions { hz: profile_hz, system_wide: true, off_cpu: false };
            probes.profile = ProfileProbe::open(&options, "on-CPU profile", &mut missing);
        }
        (probes, missing)
    }

    /// Opens what traced passes need. Tracepoints cost something as long as they are enabled, so
    /// this comes after the measured windows. What is not possible comes back with its reason.
    pub(super) fn open_trace<W: Platform>(&mut self, session: &mut Session<W>) -> Vec<Unavailable> {
        let mut missing = Vec::new();
        let options = ProfileOptions { off_cpu: true, ..ProfileOptions::default() };
        self.waits = ProfileProbe::open(&options, "off-CPU profile", &mut missing);
        match TraceProbe::open(session) {
            Ok(trace) => self.trace = Some(trace),
            Err((why, fix)) => {
                missing.push(Unavailable::impossible("latency by layer", why, fix));
            }
        }
        missing
    }

    /// Ends tracing: the trace buffer goes, tracefs as well if it was mounted for it.
    ///
    /// # Errors
    /// When the changes cannot be undone now.
    pub(super) fn close_trace<W: Platform>(
        &mut self,
        session: &mut Session<W>,
    ) -> Result<(), ChangeError> {
        self.waits = None;
        let changes = self.trace.take().map(|trace| trace.changes).unwrap_or_default();
        for id in changes.into_iter().rev() {
            session.undo(id)?;
        }
        Ok(())
    }

    /// The profiler of measured windows.
    pub(super) fn profiler(&mut self) -> Option<&mut dyn Watcher> {
        self.profile.as_mut().map(|probe| probe as &mut dyn Watcher)
    }

    /// The profile of the window that ended last.
    pub(super) fn take_profile(&mut self) -> Option<Profile> {
        self.profile.as_mut()?.take()
    }

    /// Prepares a traced pass; false when nothing would be seen in it.
    pub(super) fn arm_trace(&mut self, scope: &PathScope) -> bool {
        if let Some(trace) = &mut self.trace {
            trace.arm(scope);
        }
        self.waits.is_some() || self.trace.as_ref().is_some_and(|trace| trace.open.is_some())
    }

    /// The watchers of a traced pass.
    pub(super) fn tracers(&mut self) -> Vec<&mut dyn Watcher> {
        let mut watchers: Vec<&mut dyn Watcher> = Vec::new();
        watchers.extend(self.waits.as_mut().map(|probe| probe as &mut dyn Watcher));
        watchers.extend(self.trace.as_mut().map(|probe| probe as &mut dyn Watcher));
        watchers
    }

    /// What the traced pass brought; `pass` is what the meter saw in it.
    pub(super) fn take_trace(&mut self, pass: &Replicate) -> TracedPass {
        TracedPass {
            latency: self.trace.as_mut().and_then(|trace| trace.take(pass)),
            waits: self.waits.as_mut().and_then(ProfileProbe::take),
        }
    }
}

/// A profiler that follows the windows of a meter.
struct ProfileProbe {
    profiler: Profiler,
    running: bool,
    ready: bool,
}

impl ProfileProbe {
    fn open(options: &ProfileOptions, what: &str, missing: &mut Vec<Unavailable>) -> Option<Self> {
        match Profiler::open(options) {
            Ok(profiler) => Some(Self { profiler, running: false, ready: false }),
            Err(error) => {
                let (why, fix) = match error {
                    ProfileError::NotPermitted { why, fix } => (why, Some(fix)),
                    other => (other.to_string(), None),
                };
                missing.push(Unavailable::impossible(what, why, fix));
                None
            }
        }
    }

    fn take(&mut self) -> Option<Profile> {
        if !std::mem::take(&mut self.ready) {
            return None;
        }
        let mut profile = self.profiler.take().ok()?;
        profile.keep_stacks(STACKS_KEPT);
        Some(profile)
    }
}

impl Watcher for ProfileProbe {
    fn opened(&mut self) {
        self.running = self.profiler.start().is_ok();
    }

    fn closed(&mut self) {
        if std::mem::take(&mut self.running) {
            self.ready = self.profiler.stop().is_ok();
        }
    }
}

/// A trace instance that follows the traced passes.
struct TraceProbe {
    /// What was changed for it, to be undone in reverse.
    changes: Vec<ChangeId>,
    instance: PathBuf,
    open: Option<BlockTrace>,
    scope: TraceScope,
    running: bool,
    ready: bool,
}

impl TraceProbe {
    /// Makes the instance through the session. The error is a reason and, where there is one, a
    /// fix.
    fn open<W: Platform>(session: &mut Session<W>) -> Result<Self, (String, Option<String>)> {
        let mounted = session.apply(MountTracefs).map_err(reason)?;
        let Effect::Tracefs(tracefs) = &mounted.effect else {
            return Err(("tracefs has no directory".to_owned(), None));
        };
        let events = iostrata_linux::blocktrace::events(&tracefs.dir)
            .map_err(|error| (error.to_string(), None))?;
        let made = session.apply(instance(events)).map_err(reason)?;
        let Effect::Instance(buffer) = made.effect else {
            return Err(("the trace instance has no directory".to_owned(), None));
        };
        let (instance, scope) = (buffer.dir, TraceScope::default());
        let changes = vec![mounted.id, made.id];
        Ok(Self { changes, instance, open: None, scope, running: false, ready: false })
    }

    /// Points the trace at a volume's devices. A volume without a device of its own is not traced.
    fn arm(&mut self, scope: &PathScope) {
        let scope = scope.trace_scope();
        if self.open.is_some() && self.scope == scope {
            return;
        }
        self.open = BlockTrace::open(&self.instance, scope.clone()).ok();
        self.scope = scope;
    }

    fn take(&mut self, pass: &Replicate) -> Option<BlockLatency> {
        if !std::mem::take(&mut self.ready) {
            return None;
        }
        let stream = pass.streams.first()?;
        let mean = |op: OpKind| stream.ops[op].as_ref().map(|op| op.latency_us.mean);
        let application = ApplicationLatency {
            read_us_mean: mean(OpKind::Read),
            write_us_mean: mean(OpKind::Write),
        };
        self.open.as_mut()?.take(Some(application)).ok()
    }
}

impl Watcher for TraceProbe {
    fn opened(&mut self) {
        let instance = &self.instance;
        let mut switch = |setting: &Setting| set(instance, setting);
        self.running = self.open.as_mut().is_some_and(|trace| trace.start(&mut switch).is_ok());
    }

    fn closed(&mut self) {
        let instance = &self.instance;
        let mut switch = |setting: &Setting| set(instance, setting);
        if std::mem::take(&mut self.running) {
            self.ready = self.open.as_mut().is_some_and(|trace| trace.stop(&mut switch).is_ok());
        }
    }
}

fn set(instance: &Path, setting: &Setting) -> std::io::Result<()> {
    write_instance(instance, &setting.file, &setting.value)
}

fn reason(error: ChangeError) -> (String, Option<String>) {
    match error {
        ChangeError::Unavailable { what, why, fix } => (format!("{what}: {why}"), Some(fix)),
        other => (other.to_string(), None),
    }
}

// What to observe and to trace for the places of a volume.

/// The places of a volume as the host sees them.
#[derive(Clone, Debug, Default)]
pub(super) struct PathScope {
    /// For the observer of measured windows.
    pub observed: Scope,
    facts: Vec<PathFacts>,
}

impl PathScope {
    /// Observes every place, as it is now: limits belong to the group that this process is in.
    pub(super) fn of(root: &Root, places: &[PathBuf]) -> Result<Self, StudyError> {
        let mut scope = Self::default();
        for place in places {
            let facts = describe_path(root, place)?;
            scope.observed.join(Scope::of(root, &facts));
            scope.facts.push(facts);
        }
        Ok(scope)
    }

    /// What the device of one place did, among those of all.
    pub(super) fn of_place(&self, place: usize, layers: &[NamedIostat]) -> Option<NamedIostat> {
        let device = self.facts.get(place)?.devices.first()?;
        layers.iter().find(|layer| layer.name == device.name).cloned()
    }

    /// What to trace: the devices of every place, for the calls of this process.
    fn trace_scope(&self) -> TraceScope {
        let mut joined = TraceScope::default();
        for facts in &self.facts {
            let scope = TraceScope::of(facts, vec![std::process::id()]);
            joined.is_limited |= scope.is_limited;
            joined.processes = scope.processes;
            for device in scope.devices {
                if !joined.devices.contains(&device) {
                    joined.devices.push(device);
                }
            }
        }
        joined
    }
}
