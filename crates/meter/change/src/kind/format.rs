//! Making file systems.
//!
//! Invariant: a device in use is refused always; one that holds something is refused unless it is
//! over a file that this session made, or the user's flag named that very device. The device is
//! found again by token right before the program runs.

use crate::change::Change;
use crate::device;
use crate::effect::{Effect, Prior};
use crate::error::{ChangeError, system};
use crate::journal::JournalEntry;
use crate::platform::{Platform, RunError};
use crate::seen::DeviceState;
use crate::settings::FilesystemKind;
use crate::tokens::DeviceRef;

pub(super) fn prior(
    platform: &dyn Platform,
    device: &DeviceRef,
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let found = device::resolve(platform, device)?;
    let state =
        platform.state(&found.path).map_err(|source| system("look at", &found.path, source))?;
    let name = match device {
        DeviceRef::Loop { .. } => format!("{} ({device})", found.path.display()),
        DeviceRef::Named { .. } => device.to_string(),
    };
    refuse(&name, state, may_overwrite(device, active)).map(|()| Prior::Nothing)
}

/// Whether what the device holds may be lost.
fn may_overwrite(device: &DeviceRef, active: &[JournalEntry]) -> bool {
    match device {
        DeviceRef::Named { overwrite, .. } => *overwrite,
        DeviceRef::Loop { backing } => active.iter().any(
            |entry| matches!(&entry.change, Change::BackingFile { path, .. } if path == backing),
        ),
    }
}

pub(super) fn refuse(
    device: &str,
    state: DeviceState,
    may_overwrite: bool,
) -> Result<(), ChangeError> {
    let fix = match &state {
        DeviceState::Empty => return Ok(()),
        DeviceState::Mounted(_) | DeviceState::Held(_) => {
            "it is never touched while in use; free it or choose another device"
        }
        _ if may_overwrite => return Ok(()),
        _ => "name this very device as one to overwrite, or choose an empty one",
    };
    let (device, found) = (device.to_owned(), state.to_string());
    Err(ChangeError::Refused { device, found, fix: fix.to_owned() })
}

pub(super) fn apply(
    platform: &dyn Platform,
    device: &DeviceRef,
    kind: FilesystemKind,
    options: &[String],
    label: Option<&str>,
) -> Result<Effect, ChangeError> {
    let found = device::resolve(platform, device)?;
    let mut arguments: Vec<String> = kind.arguments().iter().map(|&one| one.to_owned()).collect();
    if let Some(label) = label {
        arguments.extend(["-L".to_owned(), label.to_owned()]);
    }
    arguments.extend_from_slice(options);
    arguments.push(found.path.display().to_string());
    match platform.run(kind.program(), &arguments) {
        Ok(()) => Ok(Effect::Formatted { device: found.path, kind }),
        Err(error) => {
            let fix = match &error {
                RunError::Missing => {
                    format!("install it, on Debian: apt-get install {}", kind.package())
                }
                _ => format!("try by hand: {} {}", kind.program(), arguments.join(" ")),
            };
            let what = format!("{} on {}", kind.name(), found.path.display());
            Err(ChangeError::unavailable(what, format!("{}: {error}", kind.program()), fix))
        }
    }
}
