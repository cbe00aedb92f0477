//! Attributes of a block device's queue.
//!
//! Invariant: the whole queue is noted before, because switching the scheduler resets other
//! attributes, and setting others resets the read-ahead; undoing puts back what was set first, then
//! what that reset, and compares all of it. A value that is neither what we set nor what was before
//! is left and reported.

use crate::change::QueueAttribute;
use crate::effect::{Effect, How, Left, Prior, QueueValues, Undone};
use crate::error::{ChangeError, system};
use crate::journal::JournalEntry;
use crate::kind::{self, ResolvedDevice};
use crate::platform::Platform;
use crate::seen::{DeviceRef, DeviceToken};

pub(super) fn prior(
    platform: &dyn Platform,
    device: &DeviceRef,
    attribute: QueueAttribute,
) -> Result<Prior, ChangeError> {
    let found = kind::resolve(platform, device)?;
    let values = read_all(platform, &found);
    if !values.contains_key(&attribute) {
        return Err(ChangeError::unavailable(
            format!("{} of {}", attribute.name(), found.disk),
            "the kernel shows no such attribute for this device",
            "leave it out on this kernel",
        ));
    }
    Ok(Prior::Queue { device: found.token, values })
}

pub(super) fn apply(
    platform: &dyn Platform,
    device: &DeviceToken,
    attribute: QueueAttribute,
    value: &str,
) -> Result<Effect, ChangeError> {
    let Some(found) = kind::find_again(platform, device)? else {
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
        // Some attributes make the kernel compute the read-ahead anew; that was not asked for.
        for (&other, was) in before.iter().filter(|(other, _)| **other != attribute) {
            if read(platform, &found, other).is_ok_and(|now| now != *was) {
                let _as_good_as_it_goes = put(platform, &found, other, was);
            }
        }
    }
    let values = read_all(platform, &found);
    let took = values.get(&attribute).cloned().unwrap_or_default();
    Ok(Effect::Queue { asked: value.to_owned(), took, values })
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
pub(crate) fn read(
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

pub(super) fn undo(
    platform: &dyn Platform,
    entry: &JournalEntry,
    (attribute, asked): (QueueAttribute, &str),
    device: &DeviceToken,
    prior: &QueueValues,
) -> Result<Undone, ChangeError> {
    let Some(found) = kind::find_again(platform, device)? else { return Ok(Undone::as_before()) };
    let after = match &entry.effect {
        Some(Effect::Queue { values, .. }) => Some(values),
        _ => None,
    };
    let before = read_all(platform, &found);
    let (Some(present), Some(was)) = (before.get(&attribute), prior.get(&attribute)) else {
        return Ok(Undone::as_before());
    };
    let is_ours = match after {
        Some(after) => after.get(&attribute) == Some(present),
        None => could_have_taken(asked, was, present),
    };
    let thing = format!("{} of {}", attribute.name(), found.disk);
    let mut undone =
        Undone::of_value(thing, present, was, is_ours, || put(platform, &found, attribute, was))?;
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

/// Whether the kernel may have made `present` of `asked`, when nobody noted what it took: the
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
