//! The frequency governor of a processor.

use std::path::{Path, PathBuf};

use super::value;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::platform::Platform;

fn cell(cpu: u32, name: &str) -> PathBuf {
    Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}/cpufreq")).join(name)
}

/// The present governor.
pub(crate) fn read(platform: &dyn Platform, cpu: u32) -> std::io::Result<String> {
    platform.read(&cell(cpu, "scaling_governor"))
}

pub(super) fn prior(platform: &dyn Platform, cpu: u32) -> Result<Prior, ChangeError> {
    match read(platform, cpu) {
        Ok(value) => Ok(Prior::Governor { value }),
        Err(error) => Err(ChangeError::unavailable(
            format!("the frequency governor of processor {cpu}"),
            error,
            "in a virtual machine the host decides; set it there",
        )),
    }
}

pub(super) fn apply(platform: &dyn Platform, cpu: u32, value: &str) -> Result<Effect, ChangeError> {
    let cell_of = cell(cpu, "scaling_governor");
    if let Err(error) = platform.write(&cell_of, value) {
        let offered = platform.read(&cell(cpu, "scaling_available_governors")).unwrap_or_default();
        return Err(match error.raw_os_error() {
            Some(libc::EINVAL) => ChangeError::unavailable(
                format!("the governor {value}"),
                error,
                format!("the kernel offers: {offered}"),
            ),
            _ => system("write", &cell_of, error),
        });
    }
    let took = read(platform, cpu).map_err(|source| system("read", &cell_of, source))?;
    Ok(Effect::Governor { asked: value.to_owned(), took })
}

pub(super) fn undo(
    platform: &dyn Platform,
    cpu: u32,
    asked: &str,
    was: &str,
    effect: Option<&Effect>,
) -> Result<Undone, ChangeError> {
    let Ok(now) = read(platform, cpu) else { return Ok(Undone::as_before()) };
    let ours = match effect {
        Some(Effect::Governor { took, .. }) => took,
        _ => asked,
    };
    value::undo(format!("the governor of processor {cpu}"), &now, was, now == ours, || {
        let cell = cell(cpu, "scaling_governor");
        platform.write(&cell, was).map_err(|source| system("set back", &cell, source))
    })
}
