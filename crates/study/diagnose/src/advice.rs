//! What to change: settings with their reasons, risk and undo.
//!
//! Invariant: every line rests on findings, and nothing is advised that every server does by
//! default or that could only be right elsewhere. Barriers are never turned off; the doublewrite is
//! never turned off, because a server that does not request atomic writes does not get them.
//! Schedulers were not compared without root, so that nothing is advised about them; a queue only
//! where it was seen to be full and is shorter than any driver makes it.
//!
//! Limits and mount options that stand between the server and its device.

use iostrata_plan::{Layer, rung};
use iostrata_run::host::{CgroupVersion, IoLimit, LimitScope, PathKind};
use iostrata_run::{Advice, Finding, ProbeHost, RedoRow, Risk};
use iostrata_stats::units::{bytes, count, microseconds, percent, seconds};

use crate::finding::above::LIMIT_ABOVE_DEVICE;
use crate::finding::alignment::MISALIGNED_START;
use crate::finding::cache::DIRECT_IO_IGNORED;
use crate::finding::capped::VOLUME_CAP;
use crate::finding::fell::LIMIT_SET_MEANWHILE;
use crate::finding::known_limit::{lifting, limit_words};
use crate::finding::place::{
    BARRIERS_OFF, FILE_SYSTEM_BETWEEN, LOOP_WITHOUT_DIRECT_IO, SYNC_MOUNT,
};
use crate::finding::queue::SMALL_QUEUE;
use crate::finding::quota::CPU_QUOTA;
use crate::finding::seek::{ROTATIONAL_FLAG_WRONG, SEEK_COST};
use crate::finding::sizing::FLUSH_CAPACITY;
use crate::finding::steady::LASTING_RATE;
use crate::finding::write_back::SMALL_DIRTY_LIMIT;
use crate::pair::{
    DSYNC_BEATS_FDATASYNC, FSYNC_JOURNAL_COST, MIXED_FILE_LOCK, PER_FILE_WRITE_LOCK,
};
use crate::server_setting::{Family, ServerSetting};
use crate::withheld::is_withheld;

/// What to change, the most telling first.
pub(crate) fn advise(findings: &[Finding], host: &ProbeHost) -> Vec<Advice> {
    let found = Found { findings };
    let mut advice = Vec::new();
    advice.extend(own_volume(&found));
    advice.extend(mount_option(&found));
    advice.extend(direct_loop(&found));
    advice.extend(lift_limits(&found, host));
    advice.extend(lift_new(&found));
    advice.extend(raise_cap(&found));
    advice.extend(cpu_quota(&found, host));
    advice.extend(barriers(&found));
    advice.extend(aligned_start(&found));
    advice.extend(nr_requests(&found, host));
    advice.extend(dirty_limit(&found));
    advice.extend(data_files(&found));
    advice.extend(data_journal(&found, host));
    advice.extend(flush_method(&found, host));
    advice.extend(fdatasync(&found));
    advice.extend(write_through(&found));
    advice.extend(flush_neighbors(&found));
    advice.extend(io_capacity_max(&found));
    advice
}

/// Whether advice fits a setting to the storage instead of repairing something.
pub(crate) fn is_fitting(advice: &Advice) -> bool {
    let facts = [FLUSH_CAPACITY, SEEK_COST, ROTATIONAL_FLAG_WRONG];
    advice.why.iter().all(|why| facts.contains(&why.as_str()))
}

/// Findings by id.
pub(crate) struct Found<'f> {
    findings: &'f [Finding],
}

impl<'f> Found<'f> {
    pub fn get(&self, id: &str) -> Option<&'f Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }

    /// A figure of a finding's evidence.
    pub fn number(&self, id: &str, name: &str) -> Option<f64> {
        self.get(id)?.evidence.get(name)?.as_f64()
    }

    /// A word of a finding's evidence.
    pub fn word(&self, id: &str, name: &str) -> Option<&'f str> {
        self.get(id)?.evidence.get(name)?.as_str()
    }
}

/// Where a setting is set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SettingPlace {
    MyCnf,
    DataDirectory,
    MountOption,
    Schema,
    ControlGroup,
    Sysctl,
    Sysfs,
    PartitionTable,
    LoopSetup,
    Volume,
}

impl SettingPlace {
    pub(crate) fn name(self) -> &'static str {
        match self {
            SettingPlace::MyCnf => "my.cnf [mysqld]",
            SettingPlace::DataDirectory => "place of the data",
            SettingPlace::MountOption => "mount option",
            SettingPlace::Schema => "schema",
            SettingPlace::ControlGroup => "control group",
            SettingPlace::Sysctl => "sysctl",
            SettingPlace::Sysfs => "/sys/block/DEVICE/queue",
            SettingPlace::PartitionTable => "partition table",
            SettingPlace::LoopSetup => "losetup",
            SettingPlace::Volume => "provider of the volume",
        }
    }
}

/// One line of advice without risk. A server's setting brings its releases, defaults and manual.
pub(crate) fn line(
    setting: &str,
    value: impl Into<String>,
    place: SettingPlace,
    why: &[&str],
    text: String,
    undo: &str,
) -> Advice {
    let of_server = ServerSetting::of(setting);
    let section = match of_server.and_then(ServerSetting::only_in) {
        Some(Family::MariaDb) => "my.cnf [mariadb]",
        _ => place.name(),
    };
    Advice {
        setting: setting.to_owned(),
        value: value.into(),
        default: of_server.map(ServerSetting::defaults),
        versions: of_server.and_then(ServerSetting::versions),
        source: of_server.map(ServerSetting::source),
        where_: section.to_owned(),
        why: why.iter().map(|id| (*id).to_owned()).collect(),
        text,
        risk: Risk::None,
        undo: undo.to_owned(),
        expected: None,
    }
}

const CAPACITY_SETTING: &str = "innodb_io_capacity_max";
/// The default of servers before MySQL 8.4: what takes more needs no bound.
const DEFAULT: f64 = 2_000.0;
/// InnoDB's smallest value.
pub(crate) const LEAST: f64 = 100.0;

pub(super) fn io_capacity_max(found: &Found<'_>) -> Option<Advice> {
    if is_withheld(found.findings) {
        return None;
    }
    let number = |name: &str| found.number(FLUSH_CAPACITY, name);
    let (pages, p99_us) = (number("pages_per_s")?, number("commit_p99_us")?);
    let objective_us = number("commit_p99_objective_us")?;
    let percent = number("commit_percentile").unwrap_or(99.0);
    let lasting = number("pages_per_s_lasting").unwrap_or(pages);
    let most = two_digits(lasting, f64::floor).max(LEAST);
    if most >= DEFAULT {
        return None;
    }
    let lasting_words = match lasting < pages {
        true => format!("; but only {} pages/s last", count(lasting)),
        false => found.number(LASTING_RATE, "seen_s").map_or_else(String::new, |seen_s| {
            format!("; no more than {} of writes was seen", seconds(seen_s))
        }),
    };
    let text = format!(
        "No more: at {} pages/s the {percent:.0}th percentile of commits is {} (objective {}), \
         doublewrite included{lasting_words}. It is an upper bound; innodb_io_capacity is to cover \
         what the load dirties (watch measures it).",
        count(pages),
        microseconds(p99_us),
        microseconds(objective_us)
    );
    let undo = format!("SET GLOBAL {CAPACITY_SETTING} to the value before");
    let why = [FLUSH_CAPACITY];
    Some(line(CAPACITY_SETTING, format!("{most}"), SettingPlace::MyCnf, &why, text, &undo))
}

/// Rounded to two significant digits, down or up: more would pretend a precision that nothing has.
pub(crate) fn two_digits(value: f64, round: fn(f64) -> f64) -> f64 {
    let step = 10.0_f64.powf(value.max(1.0).log10().floor() - 1.0).max(1.0);
    // What is a whole number of steps stays one.
    let steps = value / step;
    let nearest = steps.round();
    let whole = if (steps - nearest).abs() < 1e-9 { nearest } else { round(steps) };
    whole * step
}

/// Files advised where the curve over files gives no number.
const FILES: f64 = 8.0;

pub(super) fn data_files(found: &Found<'_>) -> Option<Advice> {
    let why: Vec<&str> = [PER_FILE_WRITE_LOCK, MIXED_FILE_LOCK]
        .into_iter()
        .filter(|&id| found.get(id).is_some())
        .collect();
    let first = *why.first()?;
    let files = found
        .number(PER_FILE_WRITE_LOCK, "files_enough")
        .filter(|&files| files > 1.0)
        .unwrap_or(FILES);
    let loss = found.get(first)?.effect_pct?;
    let text = format!(
        "One busy file takes {loss:.0} % less than eight; {files} files are enough. Keep \
         innodb_file_per_table on. Partition a table only where most writes go to it: ALTER TABLE \
         rebuilds it, each unique key must hold the partitioning column, and MySQL allows no \
         foreign keys there."
    );
    let undo = "ALTER TABLE ... REMOVE PARTITIONING";
    let advice =
        line("number of data files", format!("{files}"), SettingPlace::Schema, &why, text, undo);
    Some(Advice { risk: Risk::Rebuild, ..advice })
}

/// A queue of fewer requests than this was set by hand: no driver of a fast device starts so low.
const QUEUE_BY_HAND_MAX: f64 = 16.0;
/// A usual queue; the driver caps it at what it has.
const QUEUE_USUAL: &str = "256";
/// Attachments that really take only a few requests at a time.
const FEW_AT_A_TIME: [&str; 2] = ["usb", "mmc"];

/// Raising a processor quota that ran out.
pub(super) fn cpu_quota(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let id = CPU_QUOTA;
    found.get(id)?;
    let cgroup = &host.machine.cgroup;
    let group = cgroup.cpu_quota_group.as_deref()?;
    let cpus = cgroup.cpu_quota_cpus?;
    let (file, value) = match cgroup.cpu_quota_version? {
        CgroupVersion::V1 => ("cpu.cfs_quota_us", "-1"),
        CgroupVersion::V2 => ("cpu.max", "max"),
    };
    let text = format!(
        "The group may use {cpus:.2} processors and runs out of them while the storage waits. \
         Raise the quota, or lift it if it is not meant to be there."
    );
    let undo = format!("set it to {cpus:.2} processors again");
    Some(line(&format!("{file} of {group}"), value, SettingPlace::ControlGroup, &[id], text, &undo))
}

/// A longer queue, where the one in use is too short for anything.
pub(super) fn nr_requests(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let mut named = [SMALL_QUEUE, LIMIT_ABOVE_DEVICE].into_iter();
    let id = named.find(|id| found.number(id, "queue_requests").is_some())?;
    let size = found.number(id, "queue_requests")?;
    let name = found.word(id, "device")?;
    let device = host.path.devices.iter().find(|device| device.name == name)?;
    let few = device.transport.as_deref().is_some_and(|how| FEW_AT_A_TIME.contains(&how));
    if size >= QUEUE_BY_HAND_MAX || few {
        return None;
    }
    let text = format!(
        "The queue holds {size} requests and more are waiting. Read it back after writing it: the \
         kernel caps it at what the driver has room for."
    );
    let undo = format!("write {size} to it again");
    let setting = format!("nr_requests of {name}");
    Some(line(&setting, QUEUE_USUAL, SettingPlace::Sysfs, &[id], text, &undo))
}

/// Dirty data that a database host may hold: enough for bursts of buffered writes, and written back
/// before a sync waits for long.
const DIRTY_BYTES: u64 = 256 << 20;

/// Room for dirty pages in bytes: a ratio of much memory is gigabytes that one sync waits for.
pub(super) fn dirty_limit(found: &Found<'_>) -> Option<Advice> {
    let id = SMALL_DIRTY_LIMIT;
    let (setting, value) = (found.word(id, "setting")?, found.word(id, "value")?);
    let text = format!(
        "{setting} = {value} stops buffered writers long before the device is busy. {} hold their \
         bursts and still keep a sync short; set vm.dirty_background_bytes to a quarter of it, so \
         that write-back begins before writers wait.",
        bytes(DIRTY_BYTES as f64)
    );
    let undo = format!("sysctl {setting}={value}");
    let value = DIRTY_BYTES.to_string();
    Some(line("vm.dirty_bytes", value, SettingPlace::Sysctl, &[id], text, &undo))
}

/// A start on a boundary.
pub(super) fn aligned_start(found: &Found<'_>) -> Option<Advice> {
    let id = MISALIGNED_START;
    let device = found.word(id, "device")?;
    let what = found.word(id, "begin_of")?;
    let text = format!(
        "Partition tools begin at 1 MiB by themselves. The {what} has to be made anew, which \
         destroys what is on it: back up first, restore afterwards."
    );
    let place =
        if what == "partition" { SettingPlace::PartitionTable } else { SettingPlace::LoopSetup };
    let setting = format!("first byte of {device}");
    let advice = line(&setting, "1048576", place, &[id], text, "restore the volume as it was");
    Some(Advice { risk: Risk::Rebuild, ..advice })
}

/// A volume instead of a file system that passes requests on.
pub(super) fn own_volume(found: &Found<'_>) -> Option<Advice> {
    let id = FILE_SYSTEM_BETWEEN;
    found.get(id)?;
    let text = "Every request passes what stands between, and no setting of the server changes \
                that. Mount a disk at the data directory (a container: a volume) and probe it there."
        .to_owned();
    let (setting, value) = ("data directory", "a volume of its own");
    Some(line(setting, value, SettingPlace::DataDirectory, &[id], text, "move the data back"))
}

/// A mount without the option that makes writes wait.
pub(super) fn mount_option(found: &Found<'_>) -> Option<Advice> {
    let id = SYNC_MOUNT;
    let option = found.word(id, "mount_option")?;
    let text = format!(
        "{option} makes the file system wait for the device where nothing asked for it. What a \
         server has to have durable it syncs itself."
    );
    let undo = format!("mount with {option} again");
    Some(line(option, "off", SettingPlace::MountOption, &[id], text, &undo))
}

/// A loop device that does not go through the page cache.
pub(super) fn direct_loop(found: &Found<'_>) -> Option<Advice> {
    let id = LOOP_WITHOUT_DIRECT_IO;
    let device = found.word(id, "device")?;
    let text = "Reads and writes then reach what holds the file, and are not kept in memory twice."
        .to_owned();
    let setting = format!("direct I/O of {device}");
    let undo = format!("losetup --direct-io=off /dev/{device}");
    Some(line(&setting, "on", SettingPlace::LoopSetup, &[id], text, &undo))
}

/// Lifting every limit that is known to hold this process back, where it was seen to: the limit
/// that was used up, or all where that is not known.
pub(super) fn lift_limits(found: &Found<'_>, host: &ProbeHost) -> Vec<Advice> {
    let id = LIMIT_ABOVE_DEVICE;
    if found.get(id).is_none() {
        return Vec::new();
    }
    let (group, device) = (found.word(id, "limit_cgroup"), found.word(id, "limit_device"));
    let is_it = |limit: &&IoLimit| match (group, device) {
        (Some(group), Some(device)) => limit.cgroup == group && limit.device == device,
        _ => limit.scope == LimitScope::Process,
    };
    host.path.limits.iter().filter(is_it).flat_map(|limit| lift(limit, id)).collect()
}

/// Lifting the limit that was set while the run went on.
pub(super) fn lift_new(found: &Found<'_>) -> Vec<Advice> {
    let id = LIMIT_SET_MEANWHILE;
    let limit = found.get(id).and_then(|finding| finding.evidence.get("limit"));
    let limit = limit.and_then(|limit| serde_json::from_value(limit.clone()).ok());
    limit.map(|limit| lift(&limit, id)).unwrap_or_default()
}

fn lift(limit: &IoLimit, why: &str) -> Vec<Advice> {
    let words = limit_words(limit);
    let text = format!(
        "The group allows {words} on {}, which is less than the device gives. Lift it if it is not \
         meant to be there.",
        limit.device
    );
    let undo = format!("set it to {words} again");
    let one = |(file, value): (String, String)| {
        let setting = format!("{file} of {}", limit.cgroup);
        line(&setting, value, SettingPlace::ControlGroup, &[why], text.clone(), &undo)
    };
    lifting(limit).into_iter().map(one).collect()
}

/// Turning barriers on again.
pub(super) fn barriers(found: &Found<'_>) -> Option<Advice> {
    let option = found.word(BARRIERS_OFF, "mount_option")?;
    let text = format!(
        "{option} keeps flushes from the device: commits that were acknowledged may be lost in a \
         power cut."
    );
    let undo = format!("mount with {option} again");
    Some(line("barrier", "1", SettingPlace::MountOption, &[BARRIERS_OFF], text, &undo))
}

const PAGE_WRITES_SETTING: &str = "innodb_flush_neighbors";

pub(super) fn flush_neighbors(found: &Found<'_>) -> Option<Advice> {
    let us = |id| found.number(id, "random_read_us");
    // On a capped volume a neighbour costs a request of the cap, whatever a seek takes.
    let is_capped = found.get(VOLUME_CAP).is_some();
    if let Some(seek_us) = us(SEEK_COST).filter(|_| !is_capped) {
        let text = format!(
            "A random access costs {}: writing the dirty neighbours of a page along with it saves \
             seeks.",
            microseconds(seek_us)
        );
        return Some(neighbors("1", SEEK_COST, text));
    }
    let read_us = us(ROTATIONAL_FLAG_WRONG)?;
    let text = format!(
        "A random read takes {}: there are no seeks to save, so writing neighbours only adds \
         writes. MariaDB writes them here because the kernel calls the device rotational; MySQL \
         before 8.0 does on any device; MySQL 8.0 and later has 0.",
        microseconds(read_us)
    );
    Some(neighbors("0", ROTATIONAL_FLAG_WRONG, text))
}

fn neighbors(value: &str, why: &str, text: String) -> Advice {
    line(PAGE_WRITES_SETTING, value, SettingPlace::MyCnf, &[why], text, UNDO)
}

const UNDO: &str = "SET GLOBAL innodb_flush_neighbors to the value before";

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_024.0 * MIB;
/// Redo per second of a small, a usual, a busy and an extreme server.
const RATES_MIB_PER_S: [f64; 4] = [1.0, 5.0, 20.0, 100.0];
/// How much redo the log should hold, in seconds.
pub(crate) const HOLDS_S: f64 = 1_800.0;
/// Bounds of a sensible log: below, every burst stalls; above, MySQL takes no larger one. MariaDB
/// names no bound.
pub(crate) const CAPACITY_BYTES: [f64; 2] = [0.25 * GIB, 512.0 * GIB];
/// The largest that MySQL took before 8.0.34.
pub(crate) const CAPACITY_BYTES_MAX_OLD: f64 = 128.0 * GIB;
/// Redo per page that it leaves dirty. OLTP makes a few hundred bytes per change and changes a page
/// several times before it is flushed; insert loads make more per page and drain faster.
const REDO_BYTES_PER_DIRTY_PAGE: f64 = 4_096.0;

/// Bytes rounded to what a person would write: quarters of a GiB, then whole ones.
pub(crate) fn whole(bytes: f64) -> f64 {
    let step = if bytes < 4.0 * GIB { GIB / 4.0 } else { GIB };
    (bytes / step).round().max(1.0) * step
}

/// The table for the measured flush capacity; empty where none was measured.
pub(crate) fn redo_table(findings: &[Finding]) -> Vec<RedoRow> {
    let found = Found { findings };
    let pages_per_s = found.number(FLUSH_CAPACITY, "pages_per_s");
    let Some(pages_per_s) = pages_per_s.filter(|&pages| pages > 0.0 && !is_withheld(findings))
    else {
        return Vec::new();
    };
    RATES_MIB_PER_S
        .iter()
        .map(|mib| {
            let rate = mib * MIB;
            let capacity = (rate * HOLDS_S).clamp(CAPACITY_BYTES[0], CAPACITY_BYTES[1]);
            RedoRow {
                redo_bytes_per_s: rate,
                redo_capacity_bytes: capacity as u64,
                drain_s: capacity / REDO_BYTES_PER_DIRTY_PAGE / pages_per_s,
            }
        })
        .collect()
}

/// The mount option that keeps data out of the journal.
const DATA_JOURNAL: &str = "data=journal";

fn journals_data(host: &ProbeHost) -> bool {
    host.path.mount_options.iter().any(|option| option == DATA_JOURNAL)
}

/// The journal for metadata alone: direct I/O is then done.
pub(super) fn data_journal(found: &Found<'_>, host: &ProbeHost) -> Option<Advice> {
    let id = DIRECT_IO_IGNORED;
    found.get(id).filter(|_| journals_data(host))?;
    let text = format!(
        "{DATA_JOURNAL} writes every page twice and through the page cache. data=ordered, the \
         default, journals metadata alone and lets direct I/O through; the server's doublewrite \
         protects pages in either case. It takes a mount, not a remount."
    );
    let undo = format!("mount with {DATA_JOURNAL} again");
    Some(line("data", "ordered", SettingPlace::MountOption, &[id], text, &undo))
}

/// Nothing is advised for places in memory, where a mount option brings direct I/O back, or of ZFS,
/// whose own cache answers either way. MariaDB 11.0 and later has a switch of its own for it.
pub(super) fn flush_method(found: &Found<'_>, host: &ProbeHost) -> Vec<Advice> {
    let id = DIRECT_IO_IGNORED;
    let is_zfs = host.path.file_system.as_deref() == Some("zfs");
    if host.path.kind == PathKind::Tmpfs || journals_data(host) || is_zfs {
        return Vec::new();
    }
    let text = match found.word(id, "behaviour") {
        None => return Vec::new(),
        Some("refused") => "O_DIRECT is refused here; say so instead of relying on the fallback.",
        Some(_) => {
            "O_DIRECT is accepted and not done here. With O_DIRECT some servers do not flush the \
             doublewrite file, because direct writes need none of the page cache's flushing; with \
             fsync they do."
        }
    };
    let one = |setting: &str, value: &str, undo: &str| {
        line(setting, value, SettingPlace::MyCnf, &[id], text.to_owned(), undo)
    };
    vec![
        one("innodb_flush_method", "fsync", "innodb_flush_method=O_DIRECT"),
        one("innodb_data_file_buffering", "ON", "SET GLOBAL innodb_data_file_buffering=OFF"),
    ]
}

pub(super) fn fdatasync(found: &Found<'_>) -> Option<Advice> {
    let id = FSYNC_JOURNAL_COST;
    let pair = (found.word(id, "from")?, found.word(id, "to")?);
    if pair != (rung::COMMIT_FDATASYNC, rung::COMMIT_FSYNC) {
        return None;
    }
    let (slow, fast) = (found.number(id, "to_value")?, found.number(id, "from_value")?);
    let text = format!(
        "fdatasync makes {} commits per second durable, fsync {}. It keeps everything that is \
         needed to read the data back. MariaDB calls fdatasync anyway.",
        count(fast),
        count(slow)
    );
    let undo = "SET GLOBAL innodb_use_fdatasync=OFF";
    Some(line("innodb_use_fdatasync", "ON", SettingPlace::MyCnf, &[id], text, undo))
}

/// Share of the commits of 16 committers by fdatasync that O_DSYNC must make, too.
const AS_GOOD: f64 = 0.95;

/// Only where group commit does not lose what one committer gains.
pub(super) fn write_through(found: &Found<'_>) -> Option<Advice> {
    let id = DSYNC_BEATS_FDATASYNC;
    let loss = found.get(id)?.effect_pct?;
    let (dsync, fdatasync) =
        (found.number(id, "dsync_of_16")?, found.number(id, "fdatasync_of_16")?);
    if dsync < AS_GOOD * fdatasync {
        return None;
    }
    let text = format!(
        "With one committer O_DSYNC is durable in one trip to the device; fdatasync loses {} \
         against it. 16 committers make {} commits/s by O_DSYNC and {} by fdatasync. Group commit \
         shares a sync: compare under your load before you keep it.",
        percent(loss),
        count(dsync),
        count(fdatasync)
    );
    let undo = "innodb_log_file_write_through=OFF";
    Some(line("innodb_log_file_write_through", "ON", SettingPlace::MyCnf, &[id], text, undo))
}

/// Raising caps that no setting of the server gets round.
pub(super) fn raise_cap(found: &Found<'_>) -> Vec<Advice> {
    let id = VOLUME_CAP;
    if found.get(id).is_none_or(|finding| finding.layer != Layer::Device) {
        return Vec::new();
    }
    let one = |setting: &str, value: String, more: &str| {
        let text = format!(
            "Only a larger or faster volume, or more that is paid for, raises the cap; no setting \
             of the server does. More requests in flight only wait. {more}"
        );
        line(setting, value, SettingPlace::Volume, &[id], text, "the size or class before")
    };
    let requests = found.number(id, "cap_iops").map(|cap| {
        let more = "Larger requests carry more bytes for the same count.";
        one("IOPS of the volume", format!("above {}", count(cap)), more)
    });
    let capped = found.number(id, "cap_bytes_per_s");
    let capped = capped.or_else(|| found.number(id, "also_cap_bytes_per_s")).map(|cap| {
        let more = "Compressed pages and fewer writes of the same page need less of it.";
        one("throughput of the volume", format!("above {}/s", bytes(cap)), more)
    });
    requests.into_iter().chain(capped).collect()
}

#[cfg(test)]
mod tests {
    use iostrata_run::FindingKind;

    use super::*;

    fn advised(pages_per_s: f64) -> Option<Advice> {
        let numbers = [
            ("pages_per_s", pages_per_s),
            ("commit_p99_us", 900.0),
            ("commit_p99_objective_us", 1e3),
        ];
        let findings = [Finding {
            id: FLUSH_CAPACITY.to_owned(),
            kind: FindingKind::Sizing,
            text: String::new(),
            layer: Layer::Transactions,
            effect_pct: None,
            effect_pct_ci95: None,
            effect_pct_n: 3,
            evidence: numbers.map(|(name, value)| (name.to_owned(), value.into())).into(),
        }];
        io_capacity_max(&Found { findings: &findings })
    }

    #[test]
    fn storage_that_takes_less_than_servers_ask_for_bounds_them() {
        let advice = advised(400.0).unwrap();
        assert_eq!((advice.setting.as_str(), advice.value.as_str()), (CAPACITY_SETTING, "400"));
        assert!(advice.text.contains("upper bound"), "{}", advice.text);
        assert_eq!(advised(2_000.0), None);
        assert_eq!(advised(50_000.0), None);
    }

    #[test]
    fn rounds_to_two_digits() {
        let down = [8_613.0, 4_300.0, 999.9, 7.9, 0.0].map(|value| two_digits(value, f64::floor));
        assert_eq!(down, [8_600.0, 4_300.0, 990.0, 7.0, 0.0]);
        let all = [3.0, 101.0, 612.4, 1_234.0, 19_999.0, 40_000.0];
        let up = all.map(|value| two_digits(value, f64::ceil));
        assert_eq!(up, [3.0, 110.0, 620.0, 1_300.0, 20_000.0, 40_000.0]);
    }
}
