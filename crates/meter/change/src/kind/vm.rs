//! Write-back settings and the page cache.
//!
//! Invariant: a ratio and its form in bytes are one setting: the kernel turns one to 0 when the
//! other is set, so both are compared, and the one that was in force is set back.

use std::path::{Path, PathBuf};

use super::value;
use crate::effect::{Effect, Left, Prior, Undone, VmValues};
use crate::error::{ChangeError, system};
use crate::platform::Platform;
use crate::settings::VmSetting;

const UNSET: &str = "0";

fn cell(which: VmSetting) -> PathBuf {
    Path::new("/proc/sys/vm").join(which.name())
}

/// The present value.
pub(crate) fn read(platform: &dyn Platform, which: VmSetting) -> std::io::Result<String> {
    platform.read(&cell(which))
}

fn read_all(platform: &dyn Platform) -> VmValues {
    let value = |which| Some((which, read(platform, which).ok()?));
    VmSetting::ALL.into_iter().filter_map(value).collect()
}

pub(super) fn prior(platform: &dyn Platform, which: VmSetting) -> Result<Prior, ChangeError> {
    read(platform, which).map_err(|source| system("read", &cell(which), source))?;
    Ok(Prior::Vm { values: read_all(platform) })
}

pub(super) fn apply(
    platform: &dyn Platform,
    which: VmSetting,
    value: u64,
) -> Result<Effect, ChangeError> {
    let asked = value.to_string();
    if let Err(error) = platform.write(&cell(which), &asked) {
        return Err(match error.raw_os_error() {
            Some(libc::EINVAL | libc::ERANGE) => ChangeError::unavailable(
                format!("vm.{} {asked}", which.name()),
                format!("the kernel refuses the value: {error}"),
                "choose one within its range",
            ),
            _ => system("write", &cell(which), error),
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

pub(super) fn undo(
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
    let mut undone = value::undo(thing, &shown(&now), &shown(prior), is_ours, || {
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
    let fail = |source| system("set back", &cell(form), source);
    platform.write(&cell(form), value).map_err(fail)?;
    let now = read_all(platform);
    match forms(which).find(|form| now.get(form) != prior.get(form)) {
        None => Ok(()),
        Some(form) => {
            let found = now.get(&form).cloned().unwrap_or_default();
            Err(system("set back", &cell(form), std::io::Error::other(format!("it is {found}"))))
        }
    }
}

pub(super) fn drop_caches(platform: &dyn Platform) -> Result<Effect, ChangeError> {
    let cell = Path::new("/proc/sys/vm/drop_caches");
    platform.sync();
    platform.write(cell, "3").map_err(|source| system("write", cell, source))?;
    Ok(Effect::Dropped)
}
