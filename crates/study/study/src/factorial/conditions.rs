//! Switching the conditions of a cell: queue attributes, control group limits, dirty settings.
//!
//! Invariant: what the next cell does not need otherwise stays as it is; whatever has to change is
//! taken back first, the latest first, and every step goes through the journal.

use std::collections::BTreeMap;

use iostrata_change::{
    AppliedChange, Change, ChangeError, ChangeId, DeviceRef, EnterGroup, IoGroup, MemoryGroup,
    Platform, Queue, QueueAttribute, Session, Sysctl, VmSetting,
};
use iostrata_plan::study::{Conditions, IoLimits, QueueSetting};
use iostrata_run::host::QueueReadback;

/// The control group of the workload, within the session.
const GROUP: &str = "study";

/// The conditions that are set now.
#[derive(Debug, Default)]
pub(super) struct ConditionState {
    queues: BTreeMap<String, QueueNow>,
    group: Option<(Group, Vec<ChangeId>)>,
    dirty: (Vec<(String, String)>, Vec<ChangeId>),
}

/// The queue of one device.
#[derive(Debug, Default)]
struct QueueNow {
    wanted: Vec<QueueSetting>,
    changes: Vec<ChangeId>,
    taken: Vec<QueueReadback>,
}

/// The control group of the workload.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    memory_limit_bytes: Option<u64>,
    io_limits: IoLimits,
    devices: Vec<DeviceRef>,
}

impl Group {
    fn of(wanted: &Conditions, devices: &[DeviceRef]) -> Self {
        Self {
            memory_limit_bytes: wanted.memory_limit_bytes,
            io_limits: wanted.io_limits,
            devices: if wanted.io_limits.is_none() { Vec::new() } else { devices.to_vec() },
        }
    }
}

/// Every change that a cell's conditions require on the devices of its volume.
pub(super) fn changes(
    wanted: &Conditions,
    devices: &[DeviceRef],
) -> Result<Vec<Change>, ChangeError> {
    let mut changes = Vec::new();
    for device in devices {
        changes.extend(queue_changes(&wanted.queue, device)?);
    }
    changes.extend(dirty_changes(&wanted.dirty)?);
    changes.extend(group_changes(&Group::of(wanted, devices)));
    Ok(changes)
}

fn queue_changes(wanted: &[QueueSetting], device: &DeviceRef) -> Result<Vec<Change>, ChangeError> {
    let change = |setting: &QueueSetting| {
        let attribute = QueueAttribute::of(&setting.attribute)
            .ok_or_else(|| unknown("queue attribute", &setting.attribute))?;
        let (device, value) = (device.clone(), setting.value.clone());
        Ok(Queue { device, attribute, value }.into())
    };
    wanted.iter().map(change).collect()
}

fn dirty_changes(wanted: &[(String, String)]) -> Result<Vec<Change>, ChangeError> {
    let change = |(name, value): &(String, String)| {
        let which = VmSetting::of(name).ok_or_else(|| unknown("vm setting", name))?;
        let value = value.parse().map_err(|_| unknown("value of the vm setting", value))?;
        Ok(Sysctl { which, value }.into())
    };
    wanted.iter().map(change).collect()
}

fn group_changes(group: &Group) -> Vec<Change> {
    let name = || GROUP.to_owned();
    let memory = group.memory_limit_bytes;
    let mut changes: Vec<Change> = memory
        .map(|limit_bytes| MemoryGroup { name: name(), limit_bytes }.into())
        .into_iter()
        .collect();
    changes.extend(group.devices.iter().map(|device| {
        let (device, limits) = (device.clone(), group.io_limits);
        Change::from(IoGroup { name: name(), device, limits })
    }));
    if !changes.is_empty() {
        changes.push(EnterGroup { name: name() }.into());
    }
    changes
}

impl ConditionState {
    /// Sets the conditions of a cell on the devices of its volume. Returns what was changed.
    ///
    /// # Errors
    /// When a change is not possible here; what belongs to the same setting is taken back.
    pub(super) fn switch<W: Platform>(
        &mut self,
        session: &mut Session<W>,
        wanted: &Conditions,
        devices: &[DeviceRef],
    ) -> Result<Vec<AppliedChange>, ChangeError> {
        let mut made = Vec::new();
        for device in devices {
            made.extend(self.set_queue(session, device, &wanted.queue)?);
        }
        made.extend(self.set_dirty(session, &wanted.dirty)?);
        made.extend(self.set_group(session, wanted, devices)?);
        Ok(made)
    }

    /// The name of the groups of the workload, where there are any.
    pub(super) fn group(&self) -> Option<&'static str> {
        self.group.as_ref().filter(|(_, ids)| !ids.is_empty()).map(|_| GROUP)
    }

    /// Forgets everything; the changes to be undone, the latest of each setting first.
    pub(super) fn clear(&mut self) -> Vec<ChangeId> {
        let mut ids = Vec::new();
        ids.extend(self.group.take().into_iter().flat_map(|(_, ids)| ids.into_iter().rev()));
        ids.extend(std::mem::take(&mut self.dirty).1.into_iter().rev());
        let queues = std::mem::take(&mut self.queues).into_values();
        ids.extend(queues.flat_map(|queue| queue.changes.into_iter().rev()));
        ids
    }

    /// What the queues of these devices were set to, and what the kernel took, each once.
    pub(super) fn taken(&self, devices: &[DeviceRef]) -> Vec<QueueReadback> {
        let queues = devices.iter().filter_map(|device| self.queues.get(&device.to_string()));
        let mut all: Vec<QueueReadback> = Vec::new();
        for taken in queues.flat_map(|queue| &queue.taken) {
            if !all.contains(taken) {
                all.push(taken.clone());
            }
        }
        all
    }

    fn set_queue<W: Platform>(
        &mut self,
        session: &mut Session<W>,
        device: &DeviceRef,
        wanted: &[QueueSetting],
    ) -> Result<Vec<AppliedChange>, ChangeError> {
        let key = device.to_string();
        let now = self.queues.remove(&key).unwrap_or_default();
        if now.wanted == wanted {
            self.queues.insert(key, now);
            return Ok(Vec::new());
        }
        take_back(session, now.changes)?;
        let made = apply_all(session, queue_changes(wanted, device)?)?;
        let taken = made.iter().filter_map(taken).collect();
        let now = QueueNow { wanted: wanted.to_vec(), changes: ids_of(&made), taken };
        self.queues.insert(key, now);
        Ok(made)
    }

    fn set_dirty<W: Platform>(
        &mut self,
        session: &mut Session<W>,
        wanted: &[(String, String)],
    ) -> Result<Vec<AppliedChange>, ChangeError> {
        if self.dirty.0 == wanted {
            return Ok(Vec::new());
        }
        let (_, ids) = std::mem::take(&mut self.dirty);
        take_back(session, ids)?;
        let made = apply_all(session, dirty_changes(wanted)?)?;
        self.dirty = (wanted.to_vec(), ids_of(&made));
        Ok(made)
    }

    /// The group is kept while the limits are the same; I/O limits belong to devices, a memory
    /// limit does not.
    fn set_group<W: Platform>(
        &mut self,
        session: &mut Session<W>,
        wanted: &Conditions,
        devices: &[DeviceRef],
    ) -> Result<Vec<AppliedChange>, ChangeError> {
        let group = Group::of(wanted, devices);
        if self.group.as_ref().is_some_and(|(now, _)| *now == group) {
            return Ok(Vec::new());
        }
        if let Some((_, ids)) = self.group.take() {
            take_back(session, ids)?;
        }
        let made = apply_all(session, group_changes(&group))?;
        self.group = Some((group, ids_of(&made)));
        Ok(made)
    }
}

fn unknown(what: &str, found: &str) -> ChangeError {
    ChangeError::Unavailable {
        what: format!("the {what} `{found}`"),
        why: "there is none of that name".to_owned(),
        fix: "use one of the settings that docs/studies.md lists".to_owned(),
    }
}

fn taken(applied: &AppliedChange) -> Option<QueueReadback> {
    let Change::Queue(queue) = &applied.change else { return None };
    let (asked, took) = applied.asked_and_took()?;
    let (attribute, asked) = (queue.attribute.name().to_owned(), asked.to_owned());
    Some(QueueReadback { attribute, asked, took: took.to_owned() })
}

fn ids_of(made: &[AppliedChange]) -> Vec<ChangeId> {
    made.iter().map(|applied| applied.id).collect()
}

/// Applies changes in order; when one fails, the ones before it are taken back.
fn apply_all<W: Platform>(
    session: &mut Session<W>,
    changes: Vec<Change>,
) -> Result<Vec<AppliedChange>, ChangeError> {
    let mut made = Vec::new();
    for change in changes {
        match session.apply(change) {
            Ok(applied) => made.push(applied),
            Err(error) => {
                take_back(session, ids_of(&made))?;
                return Err(error);
            }
        }
    }
    Ok(made)
}

fn take_back<W: Platform>(session: &mut Session<W>, ids: Vec<ChangeId>) -> Result<(), ChangeError> {
    for id in ids.into_iter().rev() {
        session.undo(id)?;
    }
    Ok(())
}
