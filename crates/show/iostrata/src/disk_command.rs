//! `iostrata disk`: emulated disks, started and left behind, listed, made to fail, stopped.
//!
//! Invariant: a disk is identified by the journal of its start, never by its number alone; a server
//! that hangs keeps no command waiting for ever.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use iostrata_change::{
    Change, ChangeError, Effect, JournalState, Owner, Platform, ServedDisk, Session, StateDir,
    StopError, System, served_disks, stop_served,
};
use iostrata_linux::host::{Root, describe_host, device_counters, parse_stat};
use iostrata_plan::disk::{DiskModel, DiskSpec};
use iostrata_run::host::DeviceCounters;
use iostrata_run::{
    DiskFaultDocument, DiskListDocument, DiskRefusal, DiskRow, DiskStartDocument, DiskStopDocument,
    ProbeDocument,
};
use iostrata_sim::emudisk::{
    Client, ClientError, DiskStats, Fault, Power, ServeArguments, ServeOptions, Store, changes,
};
use iostrata_sim::model::{self, MeasuredDisk};
use iostrata_stats::units;

use crate::args::{DiskAction, DiskArgs, DiskListArgs, FaultArgs, StartArgs, StopArgs};
use crate::display::{print_json, print_text};
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// How long a server may take to report what arrived; one that answers at all does so at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &DiskArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        DiskAction::Start(args) => start(args, interruption),
        DiskAction::List(args) => list(args),
        DiskAction::Fault(args) => fault(args),
        DiskAction::Stop(args) => stop(args),
        DiskAction::Serve(args) => serve(&args.words, interruption),
    }
}

/// A disk with the arguments that it was started with.
struct FoundDisk {
    disk: ServedDisk,
    asked: ServeArguments,
}

/// The disks of this user, those whose server was killed too.
fn found() -> Vec<FoundDisk> {
    let disks = served_disks(&StateDir::of_user(), &System::new());
    disks.into_iter().filter_map(asked).collect()
}

fn asked(disk: ServedDisk) -> Option<FoundDisk> {
    let mut words = disk.arguments.get(iostrata_sim::emudisk::COMMAND.len()..)?.to_vec();
    words.push(disk.at.to_str()?.to_owned());
    Some(FoundDisk { asked: ServeArguments::parse(&words).ok()?, disk })
}

/// The disk of this device.
///
/// # Errors
/// When there is none: then those that there are are named.
fn of_device(device: &Path) -> Result<FoundDisk, ExitError> {
    let node = node(device);
    let mut all = found();
    if let Some(at) = all.iter().position(|one| one.disk.device == node) {
        return Ok(all.swap_remove(at));
    }
    let names: Vec<String> = all.iter().map(|one| one.disk.device.display().to_string()).collect();
    let there = match names.as_slice() {
        [] => "there is none; iostrata disk start makes one".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    Err(ExitError::Usage(format!("{} is no emulated disk; {there}", device.display())))
}

/// `loop3` is `/dev/loop3`, and links of udev lead to the node.
fn node(device: &Path) -> PathBuf {
    let node = Path::new("/dev").join(device);
    std::fs::canonicalize(&node).unwrap_or(node)
}

/// What arrived at a disk; `None` when its server does not answer.
fn stats(disk: &ServedDisk) -> Option<DiskStats> {
    let client = Client::at(&disk.at);
    within(move || client.stats().ok()).flatten()
}

/// What a call comes to, unless a server that hangs keeps it waiting.
fn within<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::channel();
    let asking = std::thread::Builder::new().name("asking".to_owned());
    asking.spawn(move || tell.send(act())).ok()?;
    told.recv_timeout(PATIENCE).ok()
}

fn fault(args: &FaultArgs) -> Result<(), ExitError> {
    if args.tear.is_some() && args.power_cut != Some(true) {
        let why = "--tear applies to a power cut; give it with --power-cut".to_owned();
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

/// What to send to the server, in order.
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
        "name a fault: --eio RANGE, --eio-rate PER_MILLION, --slow MS, \
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

fn set(found: &FoundDisk, fault: &Fault) -> Result<(), ExitError> {
    let client = Client::at(&found.disk.at);
    let (wanted, device) = (fault.clone(), found.disk.device.display());
    match within(move || client.control(&wanted)) {
        Some(Ok(())) => Ok(()),
        Some(Err(error @ ClientError::Refused { .. })) => Err(ExitError::Usage(error.to_string())),
        Some(Err(error)) => Err(ExitError::NotHere(error.to_string())),
        None => Err(ExitError::NotHere(format!(
            "{device} did not accept `{fault}` in time; see iostrata disk list"
        ))),
    }
}

/// Runs the command.
///
/// # Errors
/// When stdout cannot be written.
fn list(args: &DiskListArgs) -> Result<(), ExitError> {
    // What a killed server left is for `restore`, and was mentioned.
    let disks = found().into_iter().filter(|one| one.disk.is_served);
    let document = DiskListDocument { disks: disks.map(|one| row(&one)).collect() };
    match args.common.json {
        true => print_json(&document),
        false => print_text(&list_text(&document)),
    }
}

fn row(found: &FoundDisk) -> DiskRow {
    let FoundDisk { disk, asked } = found;
    let stats = stats(disk);
    let stats = stats.as_ref();
    let is_of_a_run = !disk.is_left_behind();
    DiskRow {
        device: disk.device.display().to_string(),
        model: asked.disk.to_string(),
        size_bytes: asked.size_bytes,
        pid: disk.process.pid,
        run_pid: is_of_a_run.then_some(disk.owner.pid),
        in_use: in_use(found),
        answers: stats.is_some(),
        reads: stats.map(|stats| stats.reads),
        writes: stats.map(|stats| stats.writes),
        flushes: stats.map(|stats| stats.flushes),
        merged: stats.and_then(|_| merged(found)),
        depth_max: stats.map(|stats| stats.depth_max),
        depth_mean: stats.map(|stats| stats.depth_mean),
        read_bytes: stats.map(|stats| stats.read_bytes),
        write_bytes: stats.map(|stats| stats.write_bytes),
        in_order_pct: stats.map(|stats| stats.in_order * 100.0),
        late: stats.map(|stats| stats.late),
        errors_injected: stats.map(|stats| stats.errors_injected),
        unflushed_bytes: stats.map(|stats| stats.unflushed_bytes),
        store_bytes: stats.map(|stats| stats.store_bytes),
        has_power: stats.map(|stats| stats.power == Power::On),
        power_cuts: stats.map(|stats| stats.cuts),
    }
}

fn in_use(found: &FoundDisk) -> Option<String> {
    let system = System::new();
    let device = &found.disk.device;
    let mounts = system.mounts().unwrap_or_default();
    if let Some(mount) = mounts.iter().find(|mount| Path::new(&mount.source) == device) {
        return Some(format!("mounted at {}", mount.at.display()));
    }
    let openers = system.openers(device);
    (!openers.is_empty()).then(|| format!("open by {}", openers.join(", ")))
}

/// Requests that the kernel merged, as it counts them for the device.
fn merged(found: &FoundDisk) -> Option<u64> {
    let name = found.disk.device.file_name()?.to_str()?;
    let merged = |counters: DeviceCounters| counters.reads_merged + counters.writes_merged;
    let now = device_counters(&Root::system(), name).map(merged)?;
    // The device may have served other files before.
    now.checked_sub(parse_stat(&found.disk.stat).map(merged)?)
}

fn list_text(document: &DiskListDocument) -> String {
    if document.disks.is_empty() {
        return "There is no emulated disk; iostrata disk start makes one.\n".to_owned();
    }
    document.disks.iter().map(row_text).collect()
}

fn row_text(row: &DiskRow) -> String {
    let size = units::bytes(row.size_bytes as f64);
    let mut text = format!("{}: {}, {size}, process {}", row.device, row.model, row.pid);
    if let Some(run) = row.run_pid {
        text += &format!(", of a run (process {run})");
    }
    if let Some(by) = &row.in_use {
        text += &format!(", {by}");
    }
    if row.has_power == Some(false) {
        text += ", without power";
    }
    text.push('\n');
    let (Some(reads), Some(writes), Some(flushes)) = (row.reads, row.writes, row.flushes) else {
        return text + "  its server does not answer; iostrata disk stop takes it away\n";
    };
    let merged = row.merged.map_or_else(|| "an unknown number".to_owned(), |n| n.to_string());
    let depth = match (row.depth_mean, row.depth_max) {
        (Some(mean), Some(max)) => format!("{mean:.1} at a time (at most {max})"),
        _ => String::new(),
    };
    text + &format!(
        "  {reads} reads, {writes} writes, {flushes} flushes, {merged} merged; {depth}\n"
    )
}

/// The measurement that a disk names; `None` for a model with a name.
///
/// # Errors
/// When the file cannot be read, is no probe's document, or lacks what the model needs.
pub fn measured(disk: &DiskSpec) -> Result<Option<MeasuredDisk>, ExitError> {
    match &disk.model {
        DiskModel::Probe(file) => read(file).map(Some),
        _ => Ok(None),
    }
}

fn read(file: &Path) -> Result<MeasuredDisk, ExitError> {
    let bad = |why: String| {
        ExitError::Usage(format!(
            "probe:{}: {why}; write the file with `iostrata probe DIR --json > FILE`",
            file.display()
        ))
    };
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    let document: ProbeDocument = serde_json::from_str(&text)
        .map_err(|error| bad(format!("it is not what a probe prints ({error})")))?;
    MeasuredDisk::from_probe(&document)
        .map_err(|error| ExitError::Usage(format!("probe:{}: {error}", file.display())))
}

/// Where the contents are to live: the word `memory`, or a directory.
///
/// # Errors
/// When there is no such directory, or not the room for what may be written.
pub fn store(args: &StartArgs) -> Result<Store, ExitError> {
    let most = args.store_limit.map_or(args.size, |limit| limit.min(args.size));
    if args.store == Path::new("memory") {
        let host = describe_host(&Root::system());
        if let Some(available) = host.memory_available_bytes {
            fits(most, available, "of memory are available now", "--store DIR on a disk")?;
        }
        return Ok(Store::Memory);
    }
    let dir = directory(&args.store)?;
    let stat = rustix::fs::statvfs(&dir)
        .map_err(|error| ExitError::Usage(format!("--store {}: {error}", dir.display())))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    fits(most, free, &format!("are free in {}", dir.display()), "--store another directory")?;
    Ok(Store::File { dir })
}

fn fits(most: u64, there: u64, place: &str, other: &str) -> Result<(), ExitError> {
    if most <= there {
        return Ok(());
    }
    let (most, there) = (units::bytes(most as f64), units::bytes(there as f64));
    Err(ExitError::Usage(format!(
        "the disk may come to hold {most}, and {there} {place}; take a smaller --size, {other}, or \
         --store-limit SIZE for a disk that is never filled"
    )))
}

fn directory(dir: &Path) -> Result<PathBuf, ExitError> {
    let bad = |why: &str| {
        ExitError::Usage(format!("--store {}: {why}; name memory or a directory", dir.display()))
    };
    let real = std::fs::canonicalize(dir).map_err(|error| bad(&error.to_string()))?;
    if !real.is_dir() {
        return Err(bad("it is not a directory"));
    }
    Ok(real)
}

/// Serves until it is unmounted or signalled to end.
///
/// # Errors
/// When the words are none of `disk start`, or the disk cannot be served.
fn serve(words: &[OsString], interruption: &Interruption) -> Result<(), ExitError> {
    let asked =
        ServeArguments::parse(words).map_err(|error| ExitError::Usage(error.to_string()))?;
    let options = ServeOptions {
        measured: measured(&asked.disk)?,
        disk: asked.disk,
        size_bytes: asked.size_bytes,
        store: asked.store,
        store_limit_bytes: asked.store_limit_bytes,
        seed: asked.seed,
    };
    iostrata_sim::emudisk::serve(&asked.at, options, interruption.flag())
        .map_err(|error| ExitError::NotHere(error.to_string()))
}

fn start(args: &StartArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let state = StateDir::of_user();
    let asked = arguments(args, &state)?;
    if !rustix::process::geteuid().is_root() {
        return Err(ExitError::NotHere(
            "an emulated disk needs root: it mounts a file system and attaches a loop device; run \
             it with sudo"
                .to_owned(),
        ));
    }
    let program = std::env::current_exe()
        .map_err(|error| ExitError::NotHere(format!("cannot find this program: {error}")))?;
    let changes = changes(&program, &asked, true).map_err(|e| ExitError::Usage(e.to_string()))?;
    let system = System::new().stopping_on(interruption.flag().clone());
    let session =
        Session::begin(&state, system).map_err(|error| ExitError::NotHere(error.to_string()))?;
    let (device, server) = leave_behind(session, changes, interruption)?;
    let document = DiskStartDocument {
        device: device.display().to_string(),
        model: asked.disk.to_string(),
        size_bytes: asked.size_bytes,
        pid: server.pid,
    };
    match args.common.json {
        true => print_json(&document),
        false => print_text(&start_text(&document, &asked)),
    }
}

/// The arguments of the server, checked as far as the request itself goes.
fn arguments(args: &StartArgs, state: &StateDir) -> Result<ServeArguments, ExitError> {
    let measured = measured(&args.model)?;
    let bad =
        |error: String| ExitError::Usage(format!("disk start --model {}: {error}", args.model));
    let options = ServeOptions {
        disk: args.model.clone(),
        size_bytes: args.size,
        store: Store::Memory,
        store_limit_bytes: args.store_limit,
        seed: args.seed,
        measured,
    };
    options.check().map_err(|error| bad(error.to_string()))?;
    model::drive(&args.model, args.size, options.measured.as_ref(), args.seed)
        .map_err(|error| bad(error.to_string()))?;
    let this = Owner::this();
    // Next to the journals and not in a directory of their own, so that the last disk to go leaves
    // nothing that another one is about to use.
    let at = state.path().join(format!("disk-{}-{}", this.pid, this.start_ticks));
    Ok(ServeArguments {
        at,
        disk: args.model.clone(),
        size_bytes: args.size,
        store: store(args)?,
        store_limit_bytes: args.store_limit,
        seed: args.seed,
    })
}

/// Makes both changes and leaves them behind. Dropping the session undoes what was made.
fn leave_behind(
    mut session: Session,
    changes: [Change; 2],
    interruption: &Interruption,
) -> Result<(PathBuf, Owner), ExitError> {
    let mut device = None;
    for change in changes {
        let applied = session.apply(change);
        if interruption.is_set() {
            drop(session);
            return Err(ExitError::Interrupted(interruption.exit_code()));
        }
        if let Effect::Loop(attached) = applied.map_err(ending)?.effect {
            device = Some(attached.device);
        }
    }
    let Some(device) = device else {
        return Err(ExitError::Bug("the changes of a disk hold no loop device".to_owned()));
    };
    let server = session.hand_over().map_err(ending)?;
    Ok((device, server))
}

fn ending(error: ChangeError) -> ExitError {
    ExitError::NotHere(error.to_string())
}

fn start_text(document: &DiskStartDocument, asked: &ServeArguments) -> String {
    let DiskStartDocument { device, model, size_bytes, pid } = document;
    let size = units::bytes(*size_bytes as f64);
    let place = match &asked.store {
        Store::Memory => "in memory".to_owned(),
        Store::File { dir } => format!("in {}", dir.display()),
    };
    format!(
        "{device}: {size}, with the timing of {}\n  model {model}, contents {place}, served by \
         process {pid}\nTo remove it with its contents: iostrata disk stop {device}\n",
        model_words(&asked.disk)
    )
}

/// With `--all` what cannot be stopped is an error after everything that can be is.
fn stop(args: &StopArgs) -> Result<(), ExitError> {
    let mut document = DiskStopDocument { stopped: Vec::new(), refused: Vec::new() };
    let mut failed = None;
    if let Some(device) = &args.device {
        let found = of_device(device)?;
        stop_one(&found)?;
        document.stopped.push(found.disk.device.display().to_string());
    } else if args.all == Some(true) {
        // Those of a run go with it.
        let own = found().into_iter().filter(|one| one.disk.is_left_behind());
        for found in own {
            let device = found.disk.device.display().to_string();
            match stop_one(&found) {
                Ok(()) => document.stopped.push(device),
                Err(ending) => {
                    document.refused.push(DiskRefusal { device, why: ending.to_string() });
                    failed.get_or_insert(ending);
                }
            }
        }
    } else {
        return Err(ExitError::Usage("name a device, or --all".to_owned()));
    }
    match args.common.json {
        true => print_json(&document)?,
        false => print_text(&stop_text(&document))?,
    }
    failed.map_or(Ok(()), Err)
}

fn stop_one(found: &FoundDisk) -> Result<(), ExitError> {
    let device = found.disk.device.display();
    let report = stop_served(&StateDir::of_user(), &System::new(), &found.disk);
    let report = report.map_err(|error| match error {
        StopError::InUse { .. } | StopError::OfARun { .. } => ExitError::Usage(error.to_string()),
        StopError::Change(_) | StopError::Journal(_) => ExitError::NotHere(error.to_string()),
    })?;
    if report.state == JournalState::Settled {
        return Ok(());
    }
    let things: Vec<String> = report.things.iter().map(ToString::to_string).collect();
    let why = report.error.unwrap_or_else(|| things.join("; "));
    Err(ExitError::NotHere(format!(
        "{device} is not completely removed: {why}; release it and run iostrata restore"
    )))
}

fn stop_text(document: &DiskStopDocument) -> String {
    if document.stopped.is_empty() && document.refused.is_empty() {
        return "There is no emulated disk to stop.\n".to_owned();
    }
    let stopped = document.stopped.iter().map(|device| format!("{device} is removed.\n"));
    let refused = document.refused.iter().map(|one| format!("{}\n", one.why));
    stopped.chain(refused).collect()
}

/// What a disk is, in words.
fn model_words(disk: &DiskSpec) -> String {
    let mut words = match &disk.model {
        DiskModel::Hdd7k2 => "a disk of 7,200 turns a minute".to_owned(),
        DiskModel::Hdd10k => "a disk of 10,000 turns a minute".to_owned(),
        DiskModel::Hdd15k => "a disk of 15,000 turns a minute".to_owned(),
        DiskModel::Raid10Hdd => match disk.spindles {
            Some(spindles) => format!("{spindles} disks of 15,000 turns a minute in RAID 10"),
            None => "an array of disks of 15,000 turns a minute in RAID 10".to_owned(),
        },
        DiskModel::SsdSata => "flash behind SATA".to_owned(),
        DiskModel::Nvme => "flash behind NVMe, its cache protected against power loss".to_owned(),
        DiskModel::NvmeNoPlp => "flash behind NVMe, its cache not protected".to_owned(),
        DiskModel::CloudBurst => "a cloud volume that lives on burst credits".to_owned(),
        DiskModel::Probe(file) => format!("the device that {} measured", file.display()),
    };
    if let Some(depth) = disk.queue_depth {
        words += &format!(", {depth} commands at a time");
    }
    if let Some(is_on) = disk.write_cache {
        words += if is_on { ", its write cache on" } else { ", its write cache off" };
    }
    if let Some(flush) = disk.flush {
        words += &format!(", a flush at least {} ms", flush.as_secs_f64() * 1000.0);
    }
    if let Some(credits) = disk.credits {
        words += &format!(", {credits} credits at the beginning");
    }
    words
}

#[cfg(test)]
mod tests {
    use iostrata_run::{DiskListDocument, DiskRow};

    #[test]
    fn options_are_said() {
        let disk = "raid10-hdd,spindles=34,queue=1,cache=off,flush=2ms".parse().unwrap();
        assert_eq!(
            super::model_words(&disk),
            "34 disks of 15,000 turns a minute in RAID 10, 1 commands at a time, its write cache \
             off, a flush at least 2 ms"
        );
    }

    #[test]
    fn a_disk_of_a_run_names_its_process() {
        let row = DiskRow {
            device: "/dev/loop3".to_owned(),
            model: "hdd-15k".to_owned(),
            run_pid: Some(4711),
            ..DiskRow::default()
        };
        let text = super::list_text(&DiskListDocument { disks: vec![row] });
        assert!(text.contains(", of a run (process 4711)"), "{text}");
    }
}
