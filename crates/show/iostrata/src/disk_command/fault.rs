//! `iostrata disk fault`.

use iostrata_run::DiskFaultDocument;
use iostrata_sim::emudisk::{Client, ClientError, DiskStats, Fault, Power};
use iostrata_stats::units;

use super::{Found, of_device, stats, within};
use crate::args::FaultArgs;
use crate::display::{print_json, print_text};
use crate::exit_error::ExitError;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &FaultArgs) -> Result<(), ExitError> {
    if args.tear.is_some() && args.power_cut != Some(true) {
        let why = "--tear says what a power cut leaves; give it with --power-cut".to_owned();
        return Err(ExitError::Usage(why));
    }
    let found = of_device(&args.device)?;
    let device = found.disk.device.display().to_string();
    let stats = stats(&found.disk).ok_or_else(|| {
        ExitError::NotHere(format!(
            "the server of {device} (process {}) does not answer; iostrata disk stop {device} takes \
             the disk away",
            found.disk.process.pid
        ))
    })?;
    let faults = faults(args, &stats)?;
    for fault in &faults {
        check(fault, &device, &stats)?;
        set(&found, fault)?;
    }
    let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
    if args.common.json {
        return print_json(&DiskFaultDocument { device, faults });
    }
    print_text(&format!("{device}: {}\n", faults.join(", ")))
}

/// What to tell the server, in order.
fn faults(args: &FaultArgs, stats: &DiskStats) -> Result<Vec<Fault>, ExitError> {
    let one = [&args.eio, &args.eio_rate, &args.slow, &args.stall].into_iter().flatten().next();
    if let Some(fault) = one {
        return Ok(vec![fault.clone()]);
    }
    if let Some(bytes) = args.store_limit {
        return Ok(vec![Fault::StoreLimit(bytes)]);
    }
    if args.power_cut == Some(true) {
        return Ok(vec![Fault::PowerCut { tear: args.tear, seed: None }]);
    }
    if args.power_on == Some(true) {
        return Ok(vec![Fault::PowerOn]);
    }
    if args.none == Some(true) {
        let mut all = vec![Fault::Eio(None), Fault::EioRate(0), Fault::Slow(0), Fault::Stall(None)];
        all.extend((stats.power == Power::Off).then_some(Fault::PowerOn));
        return Ok(all);
    }
    Err(ExitError::Usage(
        "say what shall go wrong: --eio RANGE, --eio-rate PER_MILLION, --slow MS, \
         --stall LENGTH/PERIOD, --power-cut, --power-on, --store-limit SIZE or --none"
            .to_owned(),
    ))
}

/// What the server would take but cannot happen.
fn check(fault: &Fault, device: &str, stats: &DiskStats) -> Result<(), ExitError> {
    match fault {
        Fault::Eio(Some(range)) if range.start >= stats.size_bytes => {
            Err(ExitError::Usage(format!(
                "--eio {}-{} lies beyond the end of {device}, which has {} ({} bytes)",
                range.start,
                range.end,
                units::bytes(stats.size_bytes as f64),
                stats.size_bytes
            )))
        }
        _ => Ok(()),
    }
}

fn set(found: &Found, fault: &Fault) -> Result<(), ExitError> {
    let client = Client::at(&found.disk.at);
    let (wanted, device) = (fault.clone(), found.disk.device.display());
    match within(move || client.control(&wanted)) {
        Some(Ok(())) => Ok(()),
        Some(Err(error @ ClientError::Refused { .. })) => Err(ExitError::Usage(error.to_string())),
        Some(Err(error)) => Err(ExitError::NotHere(error.to_string())),
        None => Err(ExitError::NotHere(format!(
            "{device} did not take `{fault}` in time; iostrata disk list says how it is"
        ))),
    }
}
