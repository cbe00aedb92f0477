//! From the disk that a user wrote to the drive that behaves like it.
//!
//! Purpose: the one place where names of models meet parameters.
//! Invariant: every model that a [`DiskSpec`] can name gives a drive, or an error with its fix.

mod catalogue;
mod error;
mod options;

use iostrata_plan::disk::{DiskModel, DiskSpec};

pub use crate::drive::table::MeasuredDisk;
pub use catalogue::{Citation, Model, Origin, Parameter, catalogue};
pub use error::ModelError;

use crate::drive::Drive;
use crate::drive::cloud::{Cloud, CloudParameters};
use crate::drive::flash::{Flash, FlashParameters};
use crate::drive::hdd::{HDD_7K2, HDD_10K, HDD_15K, Hdd, HddParameters};
use crate::drive::raid::{BATTERY_512M, ProtectedDrive, RAID10_15K, Raid};
use crate::drive::table::MeasuredDrive;

/// Smallest disk of any model.
const CAPACITY_BYTES_MIN: u64 = 1 << 20;
/// Largest disk of any model: the largest volume of a cloud.
const CAPACITY_BYTES_MAX: u64 = 16 << 40;
/// Largest sector of any model.
const SECTOR_BYTES: u64 = 4096;

/// The drive that `plan` describes, with `capacity_bytes`; `measured` is from its probe document,
/// for `probe:FILE`. Equal arguments give drives that behave equally.
///
/// # Errors
/// When the model does not have an option of the spec, the capacity does not fit it, or a measured
/// disk comes without its measurement.
pub fn drive(
    spec: &DiskSpec,
    capacity_bytes: u64,
    measured: Option<&MeasuredDisk>,
    seed: u64,
) -> Result<Box<dyn Drive>, ModelError> {
    check_capacity(spec, capacity_bytes)?;
    options::check_credits(spec)?;
    let hdd = |sheet: HddParameters| -> Result<Box<dyn Drive>, ModelError> {
        Ok(Box::new(Hdd::new(options::hdd(spec, sheet)?, capacity_bytes, seed)))
    };
    let flash = |sheet: FlashParameters| -> Result<Box<dyn Drive>, ModelError> {
        Ok(Box::new(Flash::new(options::flash(spec, sheet)?, capacity_bytes, seed)))
    };
    match &spec.model {
        DiskModel::Hdd7k2 => hdd(HDD_7K2),
        DiskModel::Hdd10k => hdd(HDD_10K),
        DiskModel::Hdd15k => hdd(HDD_15K),
        DiskModel::Raid10Hdd => Ok(match options::raid(spec, RAID10_15K, BATTERY_512M) {
            (array, Some(cache)) => {
                Box::new(ProtectedDrive::array(array, cache, capacity_bytes, seed))
            }
            (array, None) => Box::new(Raid::new(array, capacity_bytes, seed)),
        }),
        DiskModel::SsdSata => flash(FlashParameters::x25_e()),
        DiskModel::Nvme => flash(FlashParameters::p4500()),
        DiskModel::NvmeNoPlp => flash(FlashParameters::evo_970_plus()),
        DiskModel::CloudBurst => {
            let parameters = options::cloud(spec, CloudParameters::gp2())?;
            let volume = Cloud::new(parameters, capacity_bytes, seed);
            Ok(Box::new(match spec.credits {
                Some(credits) => volume.with_credits(f64::from(credits)),
                None => volume,
            }))
        }
        DiskModel::Probe(file) => {
            let Some(measured) = measured else {
                return Err(ModelError::ProbeMissing { file: file.clone() });
            };
            let table = MeasuredDrive::new(measured.clone(), capacity_bytes, seed);
            Ok(Box::new(options::table(spec, table)?))
        }
    }
}

fn check_capacity(spec: &DiskSpec, capacity_bytes: u64) -> Result<(), ModelError> {
    let (model, found_bytes) = (spec.model.name(), capacity_bytes);
    if capacity_bytes < CAPACITY_BYTES_MIN {
        return Err(ModelError::TooSmall { model, found_bytes, least_bytes: CAPACITY_BYTES_MIN });
    }
    if capacity_bytes > CAPACITY_BYTES_MAX {
        return Err(ModelError::TooLarge { model, found_bytes, most_bytes: CAPACITY_BYTES_MAX });
    }
    if !capacity_bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(ModelError::Uneven { found_bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{BenchWindow, Load, run};

    const GIB: u64 = 1 << 30;

    fn of(text: &str, capacity_bytes: u64) -> Result<Box<dyn Drive>, ModelError> {
        drive(&text.parse().unwrap(), capacity_bytes, None, 1)
    }

    fn error(text: &str) -> String {
        of(text, 8 * GIB).err().unwrap().to_string()
    }

    #[test]
    fn every_named_model_gives_a_drive_that_does_requests() {
        for model in DiskModel::NAMED {
            let spec = DiskSpec::of(model);
            let mut drive = drive(&spec, 8 * GIB, None, 1).unwrap();
            assert_eq!(drive.facts().capacity_bytes, 8 * GIB);
            let load = Load { read_pct: 50, flush_every: Some(10), ..Load::random_read(4) };
            let found = run(drive.as_mut(), &load, BenchWindow::seconds(0.1, 1.0), 1).unwrap();
            assert!(found.read.is_some() && found.write.is_some() && found.flush.is_some());
        }
    }

    #[test]
    fn equal_arguments_give_equal_drives() {
        for model in DiskModel::NAMED {
            let outcome = |seed| {
                let mut drive = drive(&DiskSpec::of(model.clone()), 8 * GIB, None, seed).unwrap();
                let load = Load { read_pct: 50, flush_every: Some(10), ..Load::random_read(4) };
                run(drive.as_mut(), &load, BenchWindow::seconds(0.1, 0.5), 1).unwrap()
            };
            assert_eq!(outcome(7), outcome(7), "{}", model.name());
        }
    }

    #[test]
    fn options_are_applied() {
        for (text, depth, volatile) in [
            ("ssd-sata,queue=4", 4, true),
            ("ssd-sata,cache=off", 32, false),
            ("nvme-no-plp,cache=on", 1023, true),
            ("nvme,queue=64,flush=1ms", 64, false),
            ("cloud-burst,queue=16", 16, false),
            ("hdd-15k,queue=1,cache=off", 1, false),
            ("hdd-7k2,cache=on", 32, true),
            ("raid10-hdd,spindles=4,queue=64", 64, false),
        ] {
            let facts = of(text, 8 * GIB).unwrap().facts();
            assert_eq!(facts.queue_depth, depth, "{text}");
            assert_eq!(facts.volatile_bytes > 0, volatile, "{text}");
        }
    }

    #[test]
    fn credits_say_when_the_bucket_runs_dry() {
        // A floor of 100 per second: 5,800 credits last 2 s at 3,000 per second.
        let rate = |text: &str, from_s| {
            let mut drive = of(text, 8 * GIB).unwrap();
            let window = BenchWindow::seconds(from_s, 1.0);
            run(drive.as_mut(), &Load::random_read(32), window, 1).unwrap().iops.value
        };
        assert!((rate("cloud-burst,credits=5800", 0.5) / 3_000.0 - 1.0).abs() < 0.02);
        assert!((rate("cloud-burst,credits=5800", 3.0) / 100.0 - 1.0).abs() < 0.02);
        assert!((rate("cloud-burst", 3.0) / 3_000.0 - 1.0).abs() < 0.02);
    }

    #[test]
    fn a_flush_takes_at_least_what_is_asked() {
        let names = ["hdd-15k", "ssd-sata", "nvme", "nvme-no-plp", "cloud-burst", "raid10-hdd"];
        for name in names {
            let mut drive = of(&format!("{name},flush=7ms"), 8 * GIB).unwrap();
            let load = Load { flush_every: Some(1), ..Load::random_write(1) };
            let found = run(drive.as_mut(), &load, BenchWindow::seconds(0.5, 2.0), 1).unwrap();
            let flush = found.flush.unwrap().latency_us;
            assert!(flush.p50 >= 6_950.0 && flush.mean >= 7_000.0, "{name}: {flush:?}");
        }
    }

    #[test]
    fn a_queue_of_one_makes_all_depths_alike() {
        for name in ["hdd-15k", "ssd-sata", "nvme", "nvme-no-plp", "cloud-burst"] {
            let rate = |depth| {
                let mut drive = of(&format!("{name},queue=1"), 8 * GIB).unwrap();
                let load = Load::random_read(depth);
                run(drive.as_mut(), &load, BenchWindow::seconds(0.1, 10.0), 1).unwrap().iops.value
            };
            let (single, deep) = (rate(1), rate(32));
            let ratio: f64 = deep / single;
            assert!((ratio - 1.0).abs() < 0.1, "{name}: {deep} at depth 32, {single} at 1");
        }
    }

    #[test]
    fn options_that_a_model_does_not_have_are_refused() {
        assert!(error("nvme,cache=off").contains("nvme has no option `cache`: its write cache"));
        assert!(error("nvme,cache=on").contains("leave it out"));
        assert!(error("cloud-burst,cache=off").contains("several machines"));
        let spindles = |model| {
            let spec = DiskSpec { spindles: Some(4), ..DiskSpec::of(model) };
            drive(&spec, 8 * GIB, None, 1).err().unwrap().to_string()
        };
        let credits = DiskSpec { credits: Some(4), ..DiskSpec::of(DiskModel::Nvme) };
        let refused = drive(&credits, 8 * GIB, None, 1).err().unwrap().to_string();
        assert!(refused.contains("only cloud-burst"), "{refused}");
        for model in [DiskModel::Hdd15k, DiskModel::Nvme, DiskModel::CloudBurst] {
            assert!(spindles(model).contains("only raid10-hdd"));
        }
    }

    #[test]
    fn sizes_and_probes_that_do_not_fit_are_refused() {
        let size = |bytes| of("nvme", bytes).err().unwrap().to_string();
        assert!(size(4096).contains("at least 1 MiB"), "{}", size(4096));
        assert!(size(u64::MAX / 2).contains("at most"));
        assert!(size((1 << 20) + 512).contains("multiple of 4096"));
        assert!(error("probe:/tmp/p.json").contains("probe:/tmp/p.json needs"));
    }
}
