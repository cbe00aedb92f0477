//! The frequency governor of a processor.

use std::path::{Path, PathBuf};

use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system};
use crate::world::World;

fn cell(cpu: u32, name: &str) -> PathBuf {
    Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}/cpufreq")).join(name)
}

/// The present governor.
pub(crate) fn read(world: &dyn World, cpu: u32) -> std::io::Result<String> {
    world.read(&cell(cpu, "scaling_governor"))
}

pub(super) fn prior(world: &dyn World, cpu: u32) -> Result<Prior, ChangeError> {
    match read(world, cpu) {
        Ok(value) => Ok(Prior::Governor { value }),
        Err(error) => Err(ChangeError::Unavailable {
            what: format!("the frequency governor of processor {cpu}"),
            why: error.to_string(),
            fix: "in a virtual machine the host decides; set it there".to_owned(),
        }),
    }
}

pub(super) fn apply(world: &dyn World, cpu: u32, value: &str) -> Result<Effect, ChangeError> {
    let cell_of = cell(cpu, "scaling_governor");
    if let Err(error) = world.write(&cell_of, value) {
        let offered = world.read(&cell(cpu, "scaling_available_governors")).unwrap_or_default();
        return Err(match error.raw_os_error() {
            Some(libc::EINVAL) => ChangeError::Unavailable {
                what: format!("the governor {value}"),
                why: error.to_string(),
                fix: format!("the kernel offers: {offered}"),
            },
            _ => system("write", &cell_of, error),
        });
    }
    let took = read(world, cpu).map_err(|source| system("read", &cell_of, source))?;
    Ok(Effect::Governor { asked: value.to_owned(), took })
}

pub(super) fn undo(
    world: &dyn World,
    cpu: u32,
    asked: &str,
    was: &str,
    effect: Option<&Effect>,
) -> Result<Undone, ChangeError> {
    let Ok(now) = read(world, cpu) else { return Ok(Undone::as_before()) };
    let ours = match effect {
        Some(Effect::Governor { took, .. }) => took,
        _ => asked,
    };
    if now == was {
        return Ok(Undone::as_before());
    }
    if now != ours {
        let thing = format!("the governor of processor {cpu}");
        return Ok(Undone::left_alone(thing, now, was));
    }
    let cell = cell(cpu, "scaling_governor");
    world.write(&cell, was).map_err(|source| system("set back", &cell, source))?;
    Ok(Undone::put_back())
}
