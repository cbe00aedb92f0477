//! Facts of the place: what is mounted there and what the device promises.

use iostrata_plan::{Layer, rung};
use iostrata_run::FindingKind;
use iostrata_stats::units::bytes;

use crate::below::{self, FileSystemBetween, in_memory};
use crate::case::Case;
use crate::figure::{application_latency_us, median};
use crate::statement::Statement;

/// Names in the catalogue.
pub(crate) const FILE_SYSTEM_BETWEEN: &str = "file_system_between";
pub(crate) const LOOP_WITHOUT_DIRECT_IO: &str = "loop_without_direct_io";
pub(crate) const SYNC_MOUNT: &str = "sync_mount";
pub(crate) const BARRIERS_OFF: &str = "barriers_off";
pub(crate) const NOT_A_LOCAL_DISK: &str = "not_a_local_disk";
/// Options that stop a file system from flushing the device.
const NO_BARRIER: [&str; 2] = ["nobarrier", "barrier=0"];
/// Pages of the database.
const PAGE_BYTES: u64 = 16 << 10;

pub(crate) fn barriers_off(case: &Case<'_, '_>) -> Option<Statement> {
    let options = &case.host.path.mount_options;
    let option = options.iter().find(|option| NO_BARRIER.contains(&option.as_str()))?;
    let text = format!(
        "The file system is mounted with {option}: it never flushes the device, and a power cut may \
         lose commits that were acknowledged or leave the file system damaged."
    );
    let found = Statement::new(Layer::Filesystem, 0, text);
    Some(found.with("mount_option", option.as_str()))
}

/// What the path lies on where that is memory.
pub(crate) fn not_a_local_disk(case: &Case<'_, '_>) -> Option<Statement> {
    let (path, memory) = (&case.host.path, in_memory(case.host)?);
    let text = format!(
        "{} lies in memory ({memory}): nothing here survives a power cut, and no disk was \
         measured.",
        path.path
    );
    let found = Statement::new(Layer::Host, 0, text);
    Some(found.with_some("file_system", path.file_system.clone()))
}

pub(crate) fn file_system_between(case: &Case<'_, '_>) -> Option<Statement> {
    let path = &case.host.path;
    let between = FileSystemBetween::of(case.host)?;
    let text = format!(
        "{} {}. Give the data a volume of its own; what is below it was not measured.",
        path.path,
        between.words()
    );
    let found = Statement::new(Layer::Filesystem, 0, text);
    Some(found.with("between", between.name()).with_some("file_system", path.file_system.clone()))
}

pub(crate) fn loop_without_direct_io(case: &Case<'_, '_>) -> Option<Statement> {
    let name = below::buffered_loop(case.host)?;
    let text = format!(
        "{name} goes through the page cache: memory answers its reads and takes its writes. Set it \
         up with direct I/O (losetup --direct-io=on) to measure what holds its file."
    );
    Some(Statement::new(Layer::Block, 0, text).with("device", name))
}

/// No flash reads 4 KiB at random in less, through a virtual machine's host.
const FLASH_READ_US: f64 = 45.0;
const HOST_MEMORY: &str = "memory of the virtual machine's host";

pub(crate) fn cache_below(case: &Case<'_, '_>) -> Option<Statement> {
    let reads = case.log.seen(rung::READ_4K_DEPTH_1)?;
    let read = reads.replicates.first()?;
    // Most hosts keep no cache of their own for a disk: only reads too fast for any disk reveal
    // one.
    let is_memory = || {
        let each = reads.replicates.iter().filter_map(|one| application_latency_us(one));
        median(each.collect()).is_some_and(|us| us < FLASH_READ_US)
    };
    let of_host = || (below::is_served_by_host(case.host) && is_memory()).then_some(HOST_MEMORY);
    let cache = below::cache_below(case.host).or_else(of_host)?;
    let read_bytes = read.point.streams.first()?.spec.size_bytes;
    let text = format!(
        "The reads went to {} of files, which {cache} may hold: they may be faster than the disks. \
         A --size beyond that memory shows it.",
        bytes(read_bytes as f64)
    );
    let found = Statement::new(Layer::Device, 0, text);
    Some(found.with("read_bytes", read_bytes).with("cache", cache))
}

/// Options that make each write, or each change of a directory, wait for the device.
const SYNC: [(&str, &str); 3] = [
    ("sync", "every write waits until it is durable"),
    ("dirsync", "every change of a directory waits until it is durable"),
    ("wsync", "every change of a directory waits until it is durable"),
];

/// The option that a mount has of these.
pub(crate) fn sync_option<'c>(case: &Case<'c, '_>) -> Option<(&'c str, &'static str)> {
    let options = &case.host.path.mount_options;
    SYNC.iter().find_map(|(name, what)| {
        let option = options.iter().find(|option| option.as_str() == *name)?;
        Some((option.as_str(), *what))
    })
}

pub(crate) fn sync_mount(case: &Case<'_, '_>) -> Option<Statement> {
    let (option, what) = sync_option(case)?;
    let text = format!(
        "The file system is mounted with {option}: {what}. A server syncs by itself what has to be \
         durable; mount without it."
    );
    let found = match option {
        "sync" => Statement::new(Layer::Filesystem, 0, text),
        _ => Statement::new(Layer::Filesystem, 0, text).of_kind(FindingKind::Caution),
    };
    Some(found.with("mount_option", option))
}

pub(crate) fn atomic_writes_promised(case: &Case<'_, '_>) -> Option<Statement> {
    let devices = &case.host.path.devices;
    let least = devices.iter().map(|device| device.atomic_write_bytes_max.unwrap_or(0)).min()?;
    if least < PAGE_BYTES {
        return None;
    }
    let text = format!(
        "Every device below promises that writes of up to {} are never torn. Only a server that \
         asks for such writes may do without its doublewrite.",
        bytes(least as f64)
    );
    let found = Statement::new(Layer::Device, 0, text);
    Some(found.with("atomic_write_bytes_max", least))
}
