//! What to observe and to trace for the places of a volume.

use std::path::PathBuf;

use iostrata_linux::blocktrace::TraceScope;
use iostrata_linux::host::{Root, Scope, describe_path};
use iostrata_run::host::{NamedIostat, PathFacts};

use crate::StudyError;

/// The places of a volume as the host sees them.
#[derive(Clone, Debug, Default)]
pub(super) struct PathScope {
    /// For the observer of measured windows.
    pub observed: Scope,
    facts: Vec<PathFacts>,
}

impl PathScope {
    /// Looks at every place, as things stand now: limits belong to the group that this process is
    /// in.
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
    pub(super) fn trace_scope(&self) -> TraceScope {
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
