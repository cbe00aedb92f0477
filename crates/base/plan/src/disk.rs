//! Which disk to emulate, as users write it: a model and what differs from its data sheet.
//!
//! Invariant: what is printed parses back to the same disk. The parameters behind a name are not
//! here; they belong to the models themselves.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::study::nearest::nearest;

/// A disk that is known by name, or one that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DiskModel {
    /// A disk of 7,200 turns a minute.
    Hdd7k2,
    /// A disk of 10,000 turns a minute.
    Hdd10k,
    /// A disk of 15,000 turns a minute.
    Hdd15k,
    /// Disks of 15,000 turns in mirrored pairs, striped, behind a battery-backed cache.
    Raid10Hdd,
    /// Flash behind SATA.
    SsdSata,
    /// Flash behind NVMe, its cache protected against power loss.
    Nvme,
    /// The same without the protection: a flush writes.
    NvmeNoPlp,
    /// A volume of a cloud that lives on burst credits.
    CloudBurst,
    /// A device that a probe measured: the document that it printed.
    Probe(PathBuf),
}

impl DiskModel {
    /// Every model that has a name.
    pub const NAMED: [DiskModel; 8] = [
        DiskModel::Hdd7k2,
        DiskModel::Hdd10k,
        DiskModel::Hdd15k,
        DiskModel::Raid10Hdd,
        DiskModel::SsdSata,
        DiskModel::Nvme,
        DiskModel::NvmeNoPlp,
        DiskModel::CloudBurst,
    ];

    /// Its name; of a measured one, how its kind is written.
    pub fn name(&self) -> &'static str {
        match self {
            DiskModel::Hdd7k2 => "hdd-7k2",
            DiskModel::Hdd10k => "hdd-10k",
            DiskModel::Hdd15k => "hdd-15k",
            DiskModel::Raid10Hdd => "raid10-hdd",
            DiskModel::SsdSata => "ssd-sata",
            DiskModel::Nvme => "nvme",
            DiskModel::NvmeNoPlp => "nvme-no-plp",
            DiskModel::CloudBurst => "cloud-burst",
            DiskModel::Probe(_) => "probe:FILE",
        }
    }
}

/// A disk to emulate: `hdd-15k`, `hdd-15k,queue=1,cache=off`, `nvme-no-plp,flush=2ms`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskSpec {
    /// The model.
    pub model: DiskModel,
    /// Commands that it takes at a time, instead of the model's own.
    pub queue_depth: Option<u32>,
    /// Whether its volatile write cache is on, instead of as the model ships.
    pub write_cache: Option<bool>,
    /// What a flush takes at least, instead of the model's own.
    pub flush: Option<Duration>,
    /// Disks in the array, for models that are one; mirrored pairs, so an even number.
    pub spindles: Option<u32>,
    /// Requests above its baseline that it can pay for at the beginning, for models that live on
    /// credits, instead of a full bucket.
    #[serde(default)]
    pub credits: Option<u32>,
}

/// Why a text is not a disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DiskSpecError {
    /// No such model.
    #[error(
        "`{found}` is not a disk model{}; models: hdd-7k2, hdd-10k, hdd-15k, raid10-hdd, \
         ssd-sata, nvme, nvme-no-plp, cloud-burst, probe:FILE",
        did_you_mean(.meant)
    )]
    Model {
        /// The text.
        found: String,
        /// The nearest name.
        meant: Option<&'static str>,
    },
    /// A `probe:` without a file.
    #[error("`probe:` needs the file of a probe's JSON after the colon")]
    ProbeFile,
    /// No such option.
    #[error(
        "`{found}` in the disk `{disk}` is not an option; options: queue=N, cache=on|off, \
         flush=TIME, spindles=N, credits=N"
    )]
    Option {
        /// The text of the option.
        found: String,
        /// The whole text.
        disk: String,
    },
    /// A value out of its bounds.
    #[error("`{found}` in the disk `{disk}` is out of bounds: {bounds}")]
    Value {
        /// The text of the option.
        found: String,
        /// The whole text.
        disk: String,
        /// What would have been taken.
        bounds: &'static str,
    },
}

fn did_you_mean(name: &Option<&'static str>) -> String {
    name.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// Longest flush; longer ones would look like a hung device to the kernel.
const FLUSH_MAX: Duration = Duration::from_secs(10);
const QUEUE_DEPTH_MAX: u32 = 4096;
const SPINDLES_MAX: u32 = 256;
/// What the bucket of a volume holds.
const CREDITS_MAX: u32 = 5_400_000;

impl DiskSpec {
    /// The model as its data sheet has it.
    pub fn of(model: DiskModel) -> Self {
        Self {
            model,
            queue_depth: None,
            write_cache: None,
            flush: None,
            spindles: None,
            credits: None,
        }
    }

    fn set(&mut self, option: &str, disk: &str) -> Result<(), DiskSpecError> {
        let unknown = || DiskSpecError::Option { found: option.to_owned(), disk: disk.to_owned() };
        let out = |bounds| {
            move || DiskSpecError::Value { found: option.to_owned(), disk: disk.to_owned(), bounds }
        };
        let (name, value) = option.split_once('=').ok_or_else(unknown)?;
        match name.trim() {
            "queue" => {
                let bounds = out("the queue takes 1 to 4096 commands");
                let depth = value.parse().ok().filter(|n| (1..=QUEUE_DEPTH_MAX).contains(n));
                self.queue_depth = Some(depth.ok_or_else(bounds)?);
            }
            "cache" => {
                self.write_cache = Some(match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(out("the write cache is on or off")()),
                });
            }
            "flush" => {
                let bounds = out("a flush takes 0 to 10s, as 20us or 2ms");
                let time = iostrata_stats::units::parse_duration(value).ok();
                let time = time.filter(|time| *time <= FLUSH_MAX);
                self.flush = Some(time.ok_or_else(bounds)?);
            }
            "spindles" => {
                let bounds = out("raid10-hdd takes an even number of disks from 2 to 256");
                let is_array = self.model == DiskModel::Raid10Hdd;
                let count = value.parse().ok().filter(|n: &u32| {
                    is_array && n.is_multiple_of(2) && (2..=SPINDLES_MAX).contains(n)
                });
                self.spindles = Some(count.ok_or_else(bounds)?);
            }
            "credits" => {
                let bounds = out("cloud-burst takes 0 to 5400000 credits");
                let has_bucket = self.model == DiskModel::CloudBurst;
                let credits = value.parse().ok().filter(|n| has_bucket && *n <= CREDITS_MAX);
                self.credits = Some(credits.ok_or_else(bounds)?);
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

impl FromStr for DiskSpec {
    type Err = DiskSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.trim().split(',');
        let name = parts.next().unwrap_or_default().trim();
        let model = match name.strip_prefix("probe:") {
            Some("") => return Err(DiskSpecError::ProbeFile),
            Some(file) => DiskModel::Probe(PathBuf::from(file)),
            None => named(name)?,
        };
        let mut disk = Self::of(model);
        for option in parts {
            disk.set(option.trim(), text)?;
        }
        Ok(disk)
    }
}

fn named(name: &str) -> Result<DiskModel, DiskSpecError> {
    let lower = name.to_ascii_lowercase().replace('_', "-");
    let mut known = DiskModel::NAMED.iter();
    known.find(|model| model.name() == lower).cloned().ok_or_else(|| {
        let names = DiskModel::NAMED.iter().map(DiskModel::name);
        DiskSpecError::Model { found: name.to_owned(), meant: nearest(&lower, names) }
    })
}

impl fmt::Display for DiskSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            DiskModel::Probe(file) => write!(f, "probe:{}", file.display())?,
            model => f.write_str(model.name())?,
        }
        if let Some(depth) = self.queue_depth {
            write!(f, ",queue={depth}")?;
        }
        if let Some(is_on) = self.write_cache {
            write!(f, ",cache={}", if is_on { "on" } else { "off" })?;
        }
        if let Some(flush) = self.flush {
            write!(f, ",flush={}us", flush.as_micros())?;
        }
        if let Some(spindles) = self.spindles {
            write!(f, ",spindles={spindles}")?;
        }
        if let Some(credits) = self.credits {
            write!(f, ",credits={credits}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(text: &str) -> DiskSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_is_printed_parses_back() {
        for text in [
            "hdd-15k",
            "hdd-7k2,queue=1,cache=off",
            "raid10-hdd,spindles=34",
            "nvme-no-plp,flush=2000us",
            "cloud-burst,credits=20000",
            "probe:/tmp/p.json,queue=32",
        ] {
            assert_eq!(disk(text).to_string(), text);
        }
        for model in DiskModel::NAMED {
            assert_eq!(disk(model.name()).model, model);
        }
        assert_eq!(disk("HDD_15K").model, DiskModel::Hdd15k);
        assert_eq!(disk("nvme,flush=2ms").flush, Some(Duration::from_millis(2)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |text: &str| text.parse::<DiskSpec>().unwrap_err().to_string();
        assert!(said("hdd-15").contains("did you mean `hdd-15k`"), "{}", said("hdd-15"));
        assert!(said("floppy").contains("models: hdd-7k2"));
        assert!(said("").contains("is not a disk model"));
        assert!(said("probe:").contains("needs the file"));
        assert!(said("nvme,queue=0").contains("1 to 4096"));
        assert!(said("nvme,cache=maybe").contains("on or off"));
        assert!(said("nvme,speed=9").contains("options: queue=N"));
        assert!(said("nvme,fast").contains("options: queue=N"));
        assert!(said("raid10-hdd,spindles=3").contains("even number"));
        assert!(said("hdd-15k,spindles=4").contains("raid10-hdd takes"));
        assert!(said("nvme,flush=11s").contains("0 to 10s"));
        assert!(said("cloud-burst,credits=5400001").contains("0 to 5400000"));
        assert!(said("nvme,credits=1").contains("cloud-burst takes"));
    }
}
