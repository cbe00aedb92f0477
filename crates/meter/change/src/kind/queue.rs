//! Attributes of a block device's queue.
//!
//! Invariant: the whole queue is noted before, because switching the scheduler resets other
//! attributes, and setting others resets the read-ahead; undoing puts back what was set first, then
//! what that reset, and compares all of it. A value that is neither what we set nor what was before
//! is left and reported.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::device::{ResolvedDevice, find_again, resolve};
use super::{Change, Entry, Kind, Site, Uses};
use crate::error::{ChangeError, system};
use crate::names::QueueAttribute;
use crate::platform::Platform;
use crate::seen::{DeviceRef, DeviceToken};
use crate::undone::{How, Left, Undone};

/// Values of a device's queue.
type QueueValues = BTreeMap<QueueAttribute, String>;

/// Sets an attribute of a queue. Undone: the value before, with all that setting it reset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Of which device; for a partition its disk is meant.
    pub device: DeviceRef,
    /// Which.
    pub attribute: QueueAttribute,
    /// To what; the kernel may take another value.
    pub value: String,
}

/// The whole queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueuePrior {
    device: DeviceToken,
    values: QueueValues,
}

/// A queue attribute was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEffect {
    /// The requested value.
    pub asked: String,
    /// What the kernel took.
    pub took: String,
    /// Every attribute of the queue afterwards.
    pub values: BTreeMap<QueueAttribute, String>,
}

impl Kind for Queue {
    type Prior = QueuePrior;
    type Effect = QueueEffect;

    fn describe(&self) -> String {
        let (attribute, value) = (self.attribute.name(), &self.value);
        format!("set {attribute} of {} to {value}", queue_of(&self.device))
    }

    fn present(&self, platform: &dyn Platform) -> Option<String> {
        read(platform, &resolve(platform, &self.device).ok()?, self.attribute).ok()
    }

    fn uses(&mut self) -> Uses<'_> {
        Uses { device: Some(&mut self.device), ..Uses::default() }
    }

    fn carries(&self, later: &Change) -> bool {
        // Attributes of one queue reset each other.
        matches!(later, Change::Queue(other) if self.device.is_same(&other.device))
    }

    fn prior(&self, site: &Site<'_>) -> Result<QueuePrior, ChangeError> {
        let found = resolve(site.platform, &self.device)?;
        let values = read_all(site.platform, &found);
        if !values.contains_key(&self.attribute) {
            return Err(ChangeError::unavailable(
                format!("{} of {}", self.attribute.name(), found.disk),
                "the kernel shows no such attribute for this device",
                "leave it out on this kernel",
            ));
        }
        Ok(QueuePrior { device: found.token, values })
    }

    fn apply(&self, site: &Site<'_>, prior: &QueuePrior) -> Result<QueueEffect, ChangeError> {
        let (platform, Self { attribute, value, .. }) = (site.platform, self);
        let attribute = *attribute;
        let Some(found) = find_again(platform, &prior.device)? else {
            return Err(ChangeError::unavailable(
                format!("the device of {} {value}", attribute.name()),
                "it is gone",
                "attach it again",
            ));
        };
        let cell = found.queue_cell(attribute.name());
        let before = read_all(platform, &found);
        if let Err(error) = platform.write(&cell, value) {
            return Err(refused(platform, &found, attribute, value, error));
        }
        if attribute != QueueAttribute::Scheduler {
            // Some attributes make the kernel recompute the read-ahead; that was not requested.
            for (&other, was) in before.iter().filter(|(other, _)| **other != attribute) {
                if read(platform, &found, other).is_ok_and(|now| now != *was) {
                    let _as_good_as_it_goes = put(platform, &found, other, was);
                }
            }
        }
        let values = read_all(platform, &found);
        let took = values.get(&attribute).cloned().unwrap_or_default();
        Ok(QueueEffect { asked: value.to_owned(), took, values })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let Self { attribute, value: asked, .. } = entry.change;
        let (attribute, QueuePrior { device, values: prior }) = (*attribute, entry.prior);
        let Some(found) = find_again(platform, device)? else { return Ok(Undone::as_before()) };
        let after = entry.effect.map(|effect| &effect.values);
        let before = read_all(platform, &found);
        let (Some(present), Some(was)) = (before.get(&attribute), prior.get(&attribute)) else {
            return Ok(Undone::as_before());
        };
        let is_ours = match after {
            Some(after) => after.get(&attribute) == Some(present),
            None => could_have_taken(asked, was, present),
        };
        let thing = format!("{} of {}", attribute.name(), found.disk);
        let mut undone = Undone::of_value(thing, present, was, is_ours, || {
            put(platform, &found, attribute, was)
        })?;
        // Setting the value that was there already resets the others too.
        let may_have_acted = entry.was_undoing || after.is_some() || asked == was;
        let acted = match undone.how {
            How::PutBack => true,
            how => how == How::AsBefore && may_have_acted,
        };
        let was_reset = |other: QueueAttribute, now: &str| {
            let untouched = after.is_some_and(|after| after.get(&other) == before.get(&other));
            let reset = before.get(&other).is_none_or(|before| before != now);
            acted && (entry.was_undoing || after.is_none() || untouched || reset)
        };
        compare(platform, &found, (attribute, prior), was_reset, &mut undone.left);
        Ok(undone)
    }

    fn asked_and_took(effect: &QueueEffect) -> Option<(&str, &str)> {
        Some((&effect.asked, &effect.took))
    }
}

/// A named device by its last part, as the kernel's tools do.
fn queue_of(device: &DeviceRef) -> String {
    match device {
        DeviceRef::Named { path, .. } => {
            path.strip_prefix(Path::new("/dev")).unwrap_or(path).display().to_string()
        }
        DeviceRef::Loop { .. } => device.to_string(),
    }
}

fn refused(
    platform: &dyn Platform,
    found: &ResolvedDevice,
    attribute: QueueAttribute,
    value: &str,
    error: std::io::Error,
) -> ChangeError {
    let cell = found.queue_cell(attribute.name());
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        return system("write", &cell, error);
    }
    let fix = match attribute {
        QueueAttribute::Scheduler => {
            let offered = platform.read(&cell).unwrap_or_default().replace(['[', ']'], "");
            format!("the kernel offers: {offered}")
        }
        _ => "choose a value that the kernel takes".to_owned(),
    };
    ChangeError::unavailable(format!("{} {value} of {}", attribute.name(), found.disk), error, fix)
}

/// One attribute's value; of the schedulers the chosen one.
fn read(
    platform: &dyn Platform,
    found: &ResolvedDevice,
    attribute: QueueAttribute,
) -> std::io::Result<String> {
    let text = platform.read(&found.queue_cell(attribute.name()))?;
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Ok(chosen.map_or(text.as_str(), |(chosen, _)| chosen).to_owned())
}

fn read_all(platform: &dyn Platform, found: &ResolvedDevice) -> QueueValues {
    let value = |attribute| Some((attribute, read(platform, found, attribute).ok()?));
    QueueAttribute::ALL.into_iter().filter_map(value).collect()
}

/// Sets what the switch reset, and reports what is neither ours nor as before.
fn compare(
    platform: &dyn Platform,
    found: &ResolvedDevice,
    (attribute, prior): (QueueAttribute, &QueueValues),
    was_reset: impl Fn(QueueAttribute, &str) -> bool,
    left: &mut Vec<Left>,
) {
    let others = prior.iter().filter(|(other, _)| **other != attribute);
    for (&other, was) in others {
        let Ok(now) = read(platform, found, other) else { continue };
        if now == *was || (was_reset(other, &now) && put(platform, found, other, was).is_ok()) {
            continue;
        }
        let thing = format!("{} of {}", other.name(), found.disk);
        left.push(Left { thing, found: now, prior: was.clone() });
    }
}

/// Writes a value and sees that it is there.
fn put(
    platform: &dyn Platform,
    found: &ResolvedDevice,
    attribute: QueueAttribute,
    value: &str,
) -> Result<(), ChangeError> {
    let cell = found.queue_cell(attribute.name());
    let fail = |source| system("set back", &cell, source);
    platform.write(&cell, value).map_err(fail)?;
    let now = read(platform, found, attribute).map_err(fail)?;
    if now == value {
        return Ok(());
    }
    let said = format!("the kernel made {now} of {value}");
    Err(fail(std::io::Error::other(said)))
}

/// Whether the kernel may have made `present` of `asked`, when what it took was not noted: the
/// value itself, one that it rounded down to whole pages, or one cut back towards what was before.
fn could_have_taken(asked: &str, was: &str, present: &str) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    if asked == present {
        return true;
    }
    match (number(asked), number(was), number(present)) {
        (Some(asked), Some(was), Some(present)) => {
            (was.min(asked)..=was.max(asked)).contains(&present) || present == asked / 4 * 4
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::could_have_taken;

    #[test]
    fn a_clamped_value_may_be_ours() {
        assert!(could_have_taken("100000", "64", "2048"));
        assert!(could_have_taken("1", "64", "4"));
        assert!(could_have_taken("5", "128", "4"));
        assert!(could_have_taken("bfq", "none", "bfq"));
        assert!(!could_have_taken("bfq", "none", "kyber"));
        assert!(!could_have_taken("100", "64", "200"));
    }
}
