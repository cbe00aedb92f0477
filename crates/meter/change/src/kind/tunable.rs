//! Values of the kernel: write-back settings, the page cache, the frequency governor of a
//! processor.
//!
//! Invariant: a ratio and its form in bytes are one setting: the kernel turns one to 0 when the
//! other is set, so both are compared, and the form that was in force is restored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::filesystem::Nothing;
use super::{Change, Entry, Kind, Site};
use crate::error::{ChangeError, system};
use crate::names::VmSetting;
use crate::platform::Platform;
use crate::undone::{Left, Undone};

/// The kernel's write-back settings.
type VmValues = BTreeMap<VmSetting, String>;

const UNSET: &str = "0";

/// Sets a write-back setting. Undone: the value before, in the form that it had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sysctl {
    /// Which.
    pub which: VmSetting,
    /// To what.
    pub value: u64,
}

/// All write-back settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VmPrior {
    values: VmValues,
}

/// A write-back setting was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmEffect {
    /// The requested value.
    pub asked: String,
    /// What the kernel took.
    pub took: String,
    /// Every setting afterwards.
    pub values: BTreeMap<VmSetting, String>,
}

impl Kind for Sysctl {
    type Prior = VmPrior;
    type Effect = VmEffect;

    fn describe(&self) -> String {
        format!("set vm.{} to {}", self.which.name(), self.value)
    }

    fn present(&self, platform: &dyn Platform) -> Option<String> {
        read_vm(platform, self.which).ok()
    }

    fn carries(&self, later: &Change) -> bool {
        let mut forms = forms(self.which);
        matches!(later, Change::Sysctl(other) if forms.any(|form| form == other.which))
    }

    fn prior(&self, site: &Site<'_>) -> Result<VmPrior, ChangeError> {
        let now = read_vm(site.platform, self.which);
        now.map_err(|source| system("read", &vm_cell(self.which), source))?;
        Ok(VmPrior { values: read_all(site.platform) })
    }

    fn apply(&self, site: &Site<'_>, _: &VmPrior) -> Result<VmEffect, ChangeError> {
        let (platform, which) = (site.platform, self.which);
        let asked = self.value.to_string();
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
        Ok(VmEffect { asked, took, values })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let Self { which, value: asked } = *entry.change;
        let prior = &entry.prior.values;
        let now = read_all(platform);
        let is_ours = match entry.effect {
            Some(VmEffect { values, .. }) => {
                forms(which).all(|form| now.get(&form) == values.get(&form))
            }
            None => now.get(&which) == Some(&asked.to_string()),
        };
        // Of both forms at most one is not 0.
        let shown = |values: &VmValues| {
            let form =
                forms(which).find(|form| values.get(form).is_some_and(|value| value != UNSET));
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

    fn asked_and_took(effect: &VmEffect) -> Option<(&str, &str)> {
        Some((&effect.asked, &effect.took))
    }
}

fn vm_cell(which: VmSetting) -> PathBuf {
    Path::new("/proc/sys/vm").join(which.name())
}

/// The present value.
fn read_vm(platform: &dyn Platform, which: VmSetting) -> std::io::Result<String> {
    platform.read(&vm_cell(which))
}

fn read_all(platform: &dyn Platform) -> VmValues {
    let value = |which| Some((which, read_vm(platform, which).ok()?));
    VmSetting::ALL.into_iter().filter_map(value).collect()
}

/// The setting and its other form.
fn forms(which: VmSetting) -> impl Iterator<Item = VmSetting> {
    std::iter::once(which).chain(which.other_form())
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

/// Writes dirty pages and drops the page cache. Nothing to undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropCaches;

/// Caches were dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropEffect;

impl Kind for DropCaches {
    type Prior = Nothing;
    type Effect = DropEffect;
    const IS_LASTING: bool = false;

    fn describe(&self) -> String {
        "write dirty pages and drop the page cache".to_owned()
    }

    fn prior(&self, _: &Site<'_>) -> Result<Nothing, ChangeError> {
        Ok(Nothing)
    }

    fn apply(&self, site: &Site<'_>, _: &Nothing) -> Result<DropEffect, ChangeError> {
        let cell = Path::new("/proc/sys/vm/drop_caches");
        site.platform.sync();
        site.platform.write(cell, "3").map_err(|source| system("write", cell, source))?;
        Ok(DropEffect)
    }

    fn undo(_: &Entry<'_, Self>, _: &dyn Platform) -> Result<Undone, ChangeError> {
        Ok(Undone::as_before())
    }
}

/// Sets the frequency governor of a processor. Undone: the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Governor {
    /// Number of the processor.
    pub cpu: u32,
    /// Which governor.
    pub value: String,
}

/// The governor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GovernorPrior {
    value: String,
}

/// A governor was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GovernorEffect {
    /// The requested value.
    pub asked: String,
    /// What the kernel took.
    pub took: String,
}

impl Kind for Governor {
    type Prior = GovernorPrior;
    type Effect = GovernorEffect;

    fn describe(&self) -> String {
        let Self { cpu, value } = self;
        format!("set the frequency governor of processor {cpu} to {value}")
    }

    fn present(&self, platform: &dyn Platform) -> Option<String> {
        self.read(platform).ok()
    }

    fn carries(&self, later: &Change) -> bool {
        matches!(later, Change::Governor(other) if other.cpu == self.cpu)
    }

    fn prior(&self, site: &Site<'_>) -> Result<GovernorPrior, ChangeError> {
        match self.read(site.platform) {
            Ok(value) => Ok(GovernorPrior { value }),
            Err(error) => Err(ChangeError::unavailable(
                format!("the frequency governor of processor {}", self.cpu),
                error,
                "in a virtual machine the host decides; set it there",
            )),
        }
    }

    fn apply(&self, site: &Site<'_>, _: &GovernorPrior) -> Result<GovernorEffect, ChangeError> {
        let (platform, value, cell) = (site.platform, &self.value, self.cell("scaling_governor"));
        if let Err(error) = platform.write(&cell, value) {
            let offered =
                platform.read(&self.cell("scaling_available_governors")).unwrap_or_default();
            return Err(match error.raw_os_error() {
                Some(libc::EINVAL) => ChangeError::unavailable(
                    format!("the governor {value}"),
                    error,
                    format!("the kernel offers: {offered}"),
                ),
                _ => system("write", &cell, error),
            });
        }
        let took = self.read(platform).map_err(|source| system("read", &cell, source))?;
        Ok(GovernorEffect { asked: value.clone(), took })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        let (change, was) = (entry.change, &entry.prior.value);
        let Ok(now) = change.read(platform) else { return Ok(Undone::as_before()) };
        let ours = entry.effect.map_or(&change.value, |effect| &effect.took);
        let thing = format!("the governor of processor {}", change.cpu);
        Undone::of_value(thing, &now, was, now == *ours, || {
            let cell = change.cell("scaling_governor");
            platform.write(&cell, was).map_err(|source| system("set back", &cell, source))
        })
    }

    fn asked_and_took(effect: &GovernorEffect) -> Option<(&str, &str)> {
        Some((&effect.asked, &effect.took))
    }
}

impl Governor {
    fn cell(&self, name: &str) -> PathBuf {
        Path::new("/sys/devices/system/cpu").join(format!("cpu{}/cpufreq", self.cpu)).join(name)
    }

    /// The present governor.
    fn read(&self, platform: &dyn Platform) -> std::io::Result<String> {
        platform.read(&self.cell("scaling_governor"))
    }
}
