//! Values of the kernel: write-back settings, the page cache, the frequency governor of a
//! processor.
//!
//! Invariant: a ratio and its form in bytes are one setting: the kernel turns one to 0 when the
//! other is set, so both are compared, and the one that was in force is set back.

use std::path::{Path, PathBuf};

use crate::change::VmSetting;
use crate::effect::{Effect, Left, Prior, Undone, VmValues};
use crate::error::{ChangeError, system};
use crate::platform::Platform;

const UNSET: &str = "0";

fn vm_cell(which: VmSetting) -> PathBuf {
    Path::new("/proc/sys/vm").join(which.name())
}

/// The present value.
pub(crate) fn read_vm(platform: &dyn Platform, which: VmSetting) -> std::io::Result<String> {
    platform.read(&vm_cell(which))
}

fn read_all(platform: &dyn Platform) -> VmValues {
    let value = |which| Some((which, read_vm(platform, which).ok()?));
    VmSetting::ALL.into_iter().filter_map(value).collect()
}

pub(super) fn prior_sysctl(
    platform: &dyn Platform,
    which: VmSetting,
) -> Result<Prior, ChangeError> {
    read_vm(platform, which).map_err(|source| system("read", &vm_cell(which), source))?;
    Ok(Prior::Vm { values: read_all(platform) })
}

pub(super) fn apply_sysctl(
    platform: &dyn Platform,
    which: VmSetting,
    value: u64,
) -> Result<Effect, ChangeError> {
    let asked = value.to_string();
    if let Err(error) = platform.write(&vm_cell(which), &asked) {
        return Err(match error.raw_os_error() {
            Some(libc::EINVAL | libc::ERANGE) => ChangeError::unavailable(
                format!("vm.{} {asked}", which.name()),
                format!("the kernel refuses the value: {error}"),
                "choose one within its range",
            ),
            _ => system("write", &vm_cell(which), error),
        });
    }
    let values = read_all(platform);
    let took = values.get(&which).cloned().unwrap_or_default();
    Ok(Effect::Vm { asked, took, values })
}

/// The setting and its other form.
fn forms(which: VmSetting) -> impl Iterator<Item = VmSetting> {
    std::iter::once(which).chain(which.other_form())
}

pub(super) fn undo_sysctl(
    platform: &dyn Platform,
    which: VmSetting,
    asked: u64,
    prior: &VmValues,
    effect: Option<&Effect>,
) -> Result<Undone, ChangeError> {
    let now = read_all(platform);
    let is_ours = match effect {
        Some(Effect::Vm { values, .. }) => {
            forms(which).all(|form| now.get(&form) == values.get(&form))
        }
        _ => now.get(&which) == Some(&asked.to_string()),
    };
    // Of both forms at most one is not 0.
    let shown = |values: &VmValues| {
        let form = forms(which).find(|form| values.get(form).is_some_and(|value| value != UNSET));
        let form = form.unwrap_or(which);
        let value = values.get(&form).map_or("not there", String::as_str);
        format!("{} {value}", form.name())
    };
    let thing = format!("vm.{}", which.name());
    let mut undone = Undone::of_value(thing, &shown(&now), &shown(prior), is_ours, || {
        put_back(platform, which, prior)
    })?;
    let is_other = |other: &VmSetting| forms(which).all(|form| form != *other);
    for (other, was) in prior.iter().filter(|(other, _)| is_other(other)) {
        let Some(found) = now.get(other).filter(|found| *found != was) else { continue };
        let thing = format!("vm.{}", other.name());
        undone.left.push(Left { thing, found: found.clone(), prior: was.clone() });
    }
    Ok(undone)
}

fn put_back(
    platform: &dyn Platform,
    which: VmSetting,
    prior: &VmValues,
) -> Result<(), ChangeError> {
    let in_force = |form: &VmSetting| prior.get(form).is_some_and(|value| value != UNSET);
    let form = forms(which).find(in_force).unwrap_or(which);
    let Some(value) = prior.get(&form) else { return Ok(()) };
    let fail = |source| system("set back", &vm_cell(form), source);
    platform.write(&vm_cell(form), value).map_err(fail)?;
    let now = read_all(platform);
    match forms(which).find(|form| now.get(form) != prior.get(form)) {
        None => Ok(()),
        Some(form) => {
            let found = now.get(&form).cloned().unwrap_or_default();
            Err(system("set back", &vm_cell(form), std::io::Error::other(format!("it is {found}"))))
        }
    }
}

pub(super) fn drop_caches(platform: &dyn Platform) -> Result<Effect, ChangeError> {
    let cell = Path::new("/proc/sys/vm/drop_caches");
    platform.sync();
    platform.write(cell, "3").map_err(|source| system("write", cell, source))?;
    Ok(Effect::Dropped)
}

fn governor_cell(cpu: u32, name: &str) -> PathBuf {
    Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}/cpufreq")).join(name)
}

/// The present governor.
pub(crate) fn read_governor(platform: &dyn Platform, cpu: u32) -> std::io::Result<String> {
    platform.read(&governor_cell(cpu, "scaling_governor"))
}

pub(super) fn prior_governor(platform: &dyn Platform, cpu: u32) -> Result<Prior, ChangeError> {
    match read_governor(platform, cpu) {
        Ok(value) => Ok(Prior::Governor { value }),
        Err(error) => Err(ChangeError::unavailable(
            format!("the frequency governor of processor {cpu}"),
            error,
            "in a virtual machine the host decides; set it there",
        )),
    }
}

pub(super) fn apply_governor(
    platform: &dyn Platform,
    cpu: u32,
    value: &str,
) -> Result<Effect, ChangeError> {
    let cell_of = governor_cell(cpu, "scaling_governor");
    if let Err(error) = platform.write(&cell_of, value) {
        let offered =
            platform.read(&governor_cell(cpu, "scaling_available_governors")).unwrap_or_default();
        return Err(match error.raw_os_error() {
            Some(libc::EINVAL) => ChangeError::unavailable(
                format!("the governor {value}"),
                error,
                format!("the kernel offers: {offered}"),
            ),
            _ => system("write", &cell_of, error),
        });
    }
    let took = read_governor(platform, cpu).map_err(|source| system("read", &cell_of, source))?;
    Ok(Effect::Governor { asked: value.to_owned(), took })
}

pub(super) fn undo_governor(
    platform: &dyn Platform,
    cpu: u32,
    asked: &str,
    was: &str,
    effect: Option<&Effect>,
) -> Result<Undone, ChangeError> {
    let Ok(now) = read_governor(platform, cpu) else { return Ok(Undone::as_before()) };
    let ours = match effect {
        Some(Effect::Governor { took, .. }) => took,
        _ => asked,
    };
    Undone::of_value(format!("the governor of processor {cpu}"), &now, was, now == ours, || {
        let cell = governor_cell(cpu, "scaling_governor");
        platform.write(&cell, was).map_err(|source| system("set back", &cell, source))
    })
}
