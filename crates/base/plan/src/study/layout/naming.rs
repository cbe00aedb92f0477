//! Names and titles of points.
//!
//! Invariant: a name is snake case and stays the same when levels are added elsewhere.

use crate::disk::{DiskModel, DiskSpec};
use crate::study::LevelAt;
use crate::study::setting::{OF_SECOND, Setting, SettingId, SettingValue};
use crate::{Rw, Words};

/// Longest part of a name that one level makes, in characters.
const TOKEN_CHARS_MAX: usize = 24;

/// The part of a name that a level makes.
pub(in crate::study) fn token(setting: Option<Setting>, label: &str) -> String {
    let is_second = setting.is_some_and(|setting| setting.name.starts_with(OF_SECOND));
    let token = plain_token(setting, label);
    if is_second { format!("second_{token}") } else { token }
}

fn plain_token(setting: Option<Setting>, label: &str) -> String {
    let plain = snake(label);
    let Some(setting) = setting else {
        return if plain.is_empty() { "level".to_owned() } else { plain };
    };
    match (setting.parse(label), &*setting.short) {
        (Ok(SettingValue::Switch(true)), _) => setting.name.to_string(),
        (Ok(SettingValue::Switch(false)), _) if setting.id == SettingId::Direct => {
            "buffered".to_owned()
        }
        (Ok(SettingValue::Switch(false)), _) => format!("no_{}", setting.name),
        (Ok(SettingValue::Count(_) | SettingValue::Bytes(_) | SettingValue::Number(_)), short) => {
            format!("{short}{plain}")
        }
        (Ok(SettingValue::Word(_)), _) if label == "none" => format!("no_{}", setting.name),
        (Ok(SettingValue::Disk(None)), _) => "own_storage".to_owned(),
        (Ok(SettingValue::Disk(Some(disk))), _) => disk_token(&disk),
        // A word identifies its setting; a number does not.
        (Ok(SettingValue::Text(_)), _) if !plain.starts_with(|c: char| c.is_ascii_digit()) => plain,
        (Ok(SettingValue::Text(_)), short) => format!("{short}{plain}"),
        (_, "") => plain,
        (_, short) => format!("{short}_{plain}"),
    }
}

/// `hdd_15k_q1_cache_off`.
fn disk_token(disk: &DiskSpec) -> String {
    let model = match &disk.model {
        DiskModel::Probe(file) => {
            format!("probe_{}", file.file_stem().unwrap_or_default().to_string_lossy())
        }
        model => model.name().to_owned(),
    };
    let mut name = snake(&model);
    if let Some(depth) = disk.queue_depth {
        name.push_str(&format!("_q{depth}"));
    }
    if let Some(is_on) = disk.write_cache {
        name.push_str(if is_on { "_cache_on" } else { "_cache_off" });
    }
    if let Some(flush) = disk.flush {
        name.push_str(&format!("_flush{}us", flush.as_micros()));
    }
    if let Some(spindles) = disk.spindles {
        name.push_str(&format!("_s{spindles}"));
    }
    if let Some(credits) = disk.credits {
        name.push_str(&format!("_credits{credits}"));
    }
    name
}

fn snake(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().take(TOKEN_CHARS_MAX) {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    name.trim_end_matches('_').to_owned()
}

/// A level in a reader's words.
pub(in crate::study) fn words(setting: Option<Setting>, at: &LevelAt) -> String {
    let label = &at.level;
    let Some(setting) = setting else { return label.clone() };
    let plural = if label == "1" { "" } else { "s" };
    match (setting.id, setting.parse(&at.level)) {
        (SettingId::Rw, _) => {
            Rw::of(label).map_or_else(|| label.clone(), |rw| rw.words().to_owned())
        }
        (SettingId::Filesystem, _) if label == "raw" => "raw device".to_owned(),
        (SettingId::Filesystem | SettingId::Bs | SettingId::Ioengine, _) => label.clone(),
        (SettingId::Disk, Ok(SettingValue::Disk(None))) => "own storage".to_owned(),
        (SettingId::Disk, _) => match label.split_once(',') {
            Some((model, options)) => format!("{model} with {}", options.replace(',', " ")),
            None => label.clone(),
        },
        (SettingId::Workers, _) => format!("{label} worker{plural}"),
        (SettingId::Scheduler, _) if label != "none" => label.clone(),
        (SettingId::Files, _) => format!("{label} file{plural}"),
        (SettingId::Volumes, _) => format!("{label} volume{plural}"),
        (SettingId::Iodepth, _) => format!("depth {label}"),
        (SettingId::RatePct | SettingId::RateTps, Ok(SettingValue::Number(0.0))) => {
            "closed loop".to_owned()
        }
        (SettingId::RateTps, _) => format!("{label} transactions/s"),
        (SettingId::Database(name), _) => {
            let whose = if name.starts_with(OF_SECOND) { "second engine's " } else { "" };
            let own = name.split_once('.').map_or(&*name, |(_, own)| own);
            format!("{whose}{} {label}", own.replace('_', " "))
        }
        (SettingId::Target, _) => target_words(label),
        (SettingId::Warehouses, _) => format!("{label} warehouse{plural}"),
        (SettingId::Objects, _) => format!("{label} objects"),
        (SettingId::ReadPct, _) => format!("{label} % reads"),
        (SettingId::CommitRows, _) => format!("{label} row{plural} a commit"),
        (SettingId::RedoVolume, Ok(SettingValue::Switch(true))) => "redo apart".to_owned(),
        (SettingId::RedoVolume, _) => "redo with the data".to_owned(),
        (SettingId::Readers, _) if label == "0" => "no reader".to_owned(),
        (SettingId::Readers, _) => format!("{label} concurrent reader{plural}"),
        (SettingId::SecondWorkers, _) if label == "0" => "no second engine".to_owned(),
        (SettingId::SecondWorkers, _) => format!("{label} worker{plural} on a second engine"),
        (SettingId::SecondRowUpdates, _) => format!("{label} rows a transaction on the second"),
        (SettingId::SecondRateTps, Ok(SettingValue::Number(0.0))) => {
            "closed loop on the second".to_owned()
        }
        (SettingId::SecondRateTps, _) => format!("{label} transactions/s on the second"),
        (SettingId::RatePct, _) => format!("{label} % of the limit"),
        (SettingId::Direct, Ok(SettingValue::Switch(false))) => "buffered".to_owned(),
        (_, Ok(SettingValue::Switch(true))) => setting.name.replace('_', " "),
        (_, Ok(SettingValue::Switch(false))) => format!("no {}", setting.name.replace('_', " ")),
        _ => format!("{} {label}", setting.name),
    }
}

/// `MariaDB 10.11`, `MySQL`, `engine`.
fn target_words(label: &str) -> String {
    match label.split_once('-').unwrap_or((label, "")) {
        ("mariadb", version) => format!("MariaDB {version}").trim_end().to_owned(),
        ("mysql", version) => format!("MySQL {version}").trim_end().to_owned(),
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_short_and_snake_case() {
        let of = |name: &str, label: &str| token(Setting::named(name), label);
        assert_eq!(of("filesystem", "ext4"), "ext4");
        assert_eq!(of("bs", "16K"), "16k");
        assert_eq!(of("workers", "128"), "w128");
        assert_eq!(of("files", "1"), "f1");
        assert_eq!(of("direct", "false"), "buffered");
        assert_eq!(of("scheduler", "mq-deadline"), "mq_deadline");
        assert_eq!(of("scheduler", "none"), "no_scheduler");
        assert_eq!(of("rate_pct", "99.5"), "rate99_5");
        assert_eq!(of("mount_options", "noatime,nodiratime"), "mount_noatime_nodiratime");
        assert_eq!(of("disk", "none"), "own_storage");
        assert_eq!(of("disk", "hdd-15k"), "hdd_15k");
        assert_eq!(of("disk", "hdd-7k2,queue=1,cache=off"), "hdd_7k2_q1_cache_off");
        assert_eq!(of("disk", "raid10-hdd,spindles=34"), "raid10_hdd_s34");
        assert_eq!(of("disk", "cloud-burst,credits=9"), "cloud_burst_credits9");
        assert_eq!(of("disk", "nvme,flush=2000us"), "nvme_flush2000us");
        assert_eq!(of("disk", "probe:/tmp/My Disk.json"), "probe_my_disk");
        assert_eq!(token(None, "O_DIRECT + fsync"), "o_direct_fsync");
        assert_eq!(token(None, "\u{e9}"), "level");
    }
}
