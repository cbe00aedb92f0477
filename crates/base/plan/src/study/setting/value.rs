//! The text of a setting as a value, and the value as the name of a level.
//!
//! Invariant: texts that mean the same (`4k`, `4096`) become the same value and the same name.

use iostrata_stats::units::{Size, parse_size};

use super::{ENGINE, Setting, Takes, WordSet};
use crate::disk::{DiskSpec, DiskSpecError};
use crate::words::unknown;
use crate::{Access, ValueError};

/// Servers that can be a target.
const FLAVOURS: [&str; 2] = ["mariadb", "mysql"];
/// The word for no emulated disk.
const NO_DISK: &str = "none";

/// The checked value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// One word of a closed set, as it is shown.
    Word(&'static str),
    /// A whole number.
    Count(u64),
    /// Bytes.
    Bytes(u64),
    /// Yes or no.
    Switch(bool),
    /// Any number.
    Number(f64),
    /// Options; none of them for the defaults.
    Options(Vec<String>),
    /// Where random requests go.
    Access(Access),
    /// An emulated disk; absent for the storage that is there.
    Disk(Option<DiskSpec>),
    /// The value of a database's setting; sizes in one form.
    Text(String),
}

fn refuse<T>(why: impl Into<String>, fix: impl Into<String>) -> Result<T, ValueError> {
    Err(ValueError { why: why.into(), fix: fix.into() })
}

impl Setting {
    /// The value that a text means.
    ///
    /// # Errors
    /// When the setting does not take it.
    pub fn parse(&self, text: &str) -> Result<SettingValue, ValueError> {
        match self.takes {
            Takes::Word(words) => word(text, words),
            Takes::Count(least, most) => count(text, least, most),
            Takes::Bytes(least, most) => bytes(text, least, most),
            Takes::Switch => switch(text),
            Takes::Number(most) => number(text, most),
            Takes::Options(between) => options(text, between),
            Takes::Distribution => text.parse().map(SettingValue::Access),
            Takes::Disk => disk(text),
            Takes::Database => database(text),
            Takes::Text => plain(text),
        }
    }

    /// The name of a value as a level.
    pub fn label(&self, value: &SettingValue) -> String {
        match (value, self.takes) {
            (SettingValue::Word(word), _) => (*word).to_owned(),
            (SettingValue::Count(count), _) => count.to_string(),
            (SettingValue::Bytes(bytes), _) => Size(*bytes).to_string(),
            (SettingValue::Switch(on), _) => on.to_string(),
            (SettingValue::Number(number), _) => number.to_string(),
            (SettingValue::Options(options), _) if options.is_empty() => "defaults".to_owned(),
            (SettingValue::Options(options), Takes::Options(between)) => {
                options.join(between.encode_utf8(&mut [0; 4]))
            }
            (SettingValue::Options(options), _) => options.join(","),
            (SettingValue::Access(access), _) => match access {
                Access::Zipfian(theta) => format!("zipf:{}", theta.0),
                Access::Coverage => "coverage".to_owned(),
                Access::Uniform | Access::Sequential => "uniform".to_owned(),
            },
            (SettingValue::Disk(None), _) => NO_DISK.to_owned(),
            (SettingValue::Disk(Some(disk)), _) => disk.to_string(),
            (SettingValue::Text(text), _) => text.clone(),
        }
    }

    /// What its value may be, for documents.
    pub fn values(&self) -> String {
        match self.takes {
            Takes::Word(words) => {
                let words = (words.names)().into_iter().map(|word| format!("`{word}`"));
                words.collect::<Vec<_>>().join(", ")
            }
            Takes::Count(0, u64::MAX) => "a whole number".to_owned(),
            Takes::Count(least, most) => format!("{least} to {most}"),
            Takes::Bytes(_, u64::MAX) => "a size".to_owned(),
            Takes::Bytes(least, most) => format!("{} to {}", Size(least), Size(most)),
            Takes::Switch => "`true`, `false`".to_owned(),
            Takes::Number(_) => "a number".to_owned(),
            Takes::Options(',') => "`\"defaults\"` or `\"noatime,nodiratime\"`".to_owned(),
            Takes::Options(_) => "`\"defaults\"` or `\"-i size=512\"`".to_owned(),
            Takes::Distribution => "`uniform`, `coverage`, `zipf:0.99`".to_owned(),
            Takes::Disk => {
                "`none`, `hdd-15k`, `hdd-15k,queue=1`, `nvme-no-plp,flush=2ms`".to_owned()
            }
            Takes::Database => {
                "`engine`, `mariadb`, `mysql`, `mariadb-10.11`, `mysql-9.7`".to_owned()
            }
            Takes::Text => "what the database takes".to_owned(),
        }
    }
}

fn word(text: &str, words: WordSet) -> Result<SettingValue, ValueError> {
    let found = (words.name_of)(text).map(SettingValue::Word);
    found.ok_or_else(|| unknown(text, &(words.names)()))
}

fn count(text: &str, least: u64, most: u64) -> Result<SettingValue, ValueError> {
    let fix = match most {
        u64::MAX if least == 0 => "use 0 or more".to_owned(),
        u64::MAX => format!("use {least} or more"),
        _ => format!("use {least} to {most}"),
    };
    match text.parse::<u64>() {
        Ok(count) if (least..=most).contains(&count) => Ok(SettingValue::Count(count)),
        Ok(_) => refuse("out of range", fix),
        Err(_) => refuse("not a whole number", fix),
    }
}

fn bytes(text: &str, least: u64, most: u64) -> Result<SettingValue, ValueError> {
    match parse_size(text) {
        Ok(bytes) if (least..=most).contains(&bytes) => Ok(SettingValue::Bytes(bytes)),
        Ok(_) if most < u64::MAX => {
            refuse("out of range", format!("use {} to {}", Size(least), Size(most)))
        }
        Ok(_) => refuse("too small", format!("use {} or more", Size(least))),
        Err(error) => refuse(error.to_string(), "write a size such as 4k, 512M or 1.5G"),
    }
}

fn switch(text: &str) -> Result<SettingValue, ValueError> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(SettingValue::Switch(true)),
        "false" | "0" | "no" | "off" => Ok(SettingValue::Switch(false)),
        _ => refuse("neither true nor false", "write true or false"),
    }
}

fn number(text: &str, most: f64) -> Result<SettingValue, ValueError> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(number) if (0.0..=most).contains(&number) => {
            // -0 and 0 are one level.
            Ok(SettingValue::Number(number + 0.0))
        }
        Ok(_) => refuse("out of range", format!("use 0 to {most}")),
        Err(_) => refuse("not a number", format!("use 0 to {most}")),
    }
}

fn options(text: &str, between: char) -> Result<SettingValue, ValueError> {
    if text == "defaults" {
        return Ok(SettingValue::Options(Vec::new()));
    }
    let options: Vec<String> = text
        .split(between)
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect();
    let odd =
        |option: &String| option.chars().any(|c| c.is_control() || (between == ',' && c == ' '));
    if options.is_empty() || options.iter().any(odd) {
        let example = if between == ',' { "noatime,nodiratime" } else { "-i size=512" };
        return refuse("no list of options", format!("write \"defaults\" or \"{example}\""));
    }
    Ok(SettingValue::Options(options))
}

/// Sizes with a unit are written in one form; everything else is the database's affair.
fn plain(text: &str) -> Result<SettingValue, ValueError> {
    let text = text.trim();
    if text.is_empty() || text.chars().any(char::is_control) {
        return refuse("is no value", "write what the database takes, such as \"128M\"");
    }
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    let size = parse_size(text).ok().filter(|_| has_unit);
    Ok(SettingValue::Text(size.map_or_else(|| text.to_owned(), |size| Size(size).to_string())))
}

/// `engine`, or `mariadb` or `mysql`, with or without a version behind it.
fn database(text: &str) -> Result<SettingValue, ValueError> {
    let name = text.trim().to_ascii_lowercase();
    let (flavour, version) = match name.split_once('-') {
        Some((flavour, version)) => (flavour, Some(version)),
        None => (name.as_str(), None),
    };
    let is_number = |part: &str| (1..=4).contains(&part.len()) && part.parse::<u16>().is_ok();
    let is_version =
        |version: &str| version.split('.').count() <= 3 && version.split('.').all(is_number);
    match (FLAVOURS.contains(&flavour), version) {
        _ if name == ENGINE => Ok(SettingValue::Text(name)),
        (true, None) => Ok(SettingValue::Text(name)),
        (true, Some(version)) if is_version(version) => Ok(SettingValue::Text(name)),
        (true, Some(_)) => refuse("is no version", format!("write it so: {flavour}-10.11")),
        (false, _) => Err(unknown(text, &[ENGINE, FLAVOURS[0], FLAVOURS[1]])),
    }
}

fn disk(text: &str) -> Result<SettingValue, ValueError> {
    if text.eq_ignore_ascii_case(NO_DISK) {
        return Ok(SettingValue::Disk(None));
    }
    match text.parse::<DiskSpec>() {
        Ok(disk) => Ok(SettingValue::Disk(Some(disk))),
        // Its text holds the fix already.
        Err(error @ DiskSpecError::Model { .. }) => {
            refuse("there is no such disk", format!("{error}, and none for no emulated disk"))
        }
        Err(error) => {
            refuse(error.to_string(), "see docs/disks.md for the disks and their options")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(setting: &str, text: &str) -> String {
        let setting = Setting::named(setting).unwrap();
        setting.label(&setting.parse(text).unwrap())
    }

    #[test]
    fn texts_that_mean_the_same_have_the_same_name() {
        assert_eq!(label("bs", "4k"), "4K");
        assert_eq!(label("bs", "4096"), "4K");
        assert_eq!(label("direct", "1"), "true");
        assert_eq!(label("rate_pct", "70%"), "70");
        assert_eq!(label("mount_options", "noatime, nodiratime"), "noatime,nodiratime");
        assert_eq!(label("mount_options", "defaults"), "defaults");
        assert_eq!(label("mkfs_options", "-i size=512"), "-i size=512");
        assert_eq!(label("random_distribution", "zipf"), "zipf:0.99");
        assert_eq!(label("rw", "RandRead"), "randread");
        assert_eq!(label("disk", "HDD_15K, queue=1"), "hdd-15k,queue=1");
        assert_eq!(label("target", "MariaDB-10.11"), "mariadb-10.11");
        assert_eq!(label("disk", "nvme,flush=2ms"), label("disk", "nvme,flush=2000us"));
    }

    #[test]
    fn what_is_not_taken_says_what_is() {
        for (setting, text, fix) in [
            ("rw", "randraed", "did you mean `randread`?"),
            ("workers", "0", "use 1 to 4096"),
            ("workers", "four", "use 1 to 4096"),
            ("size", "1X", "write a size"),
            ("memory_limit", "1M", "use 32M or more"),
            ("rate_pct", "nan", "use 0 to"),
            ("mount_options", ",", "write \"defaults\""),
            ("random_distribution", "zipf:5", "above 0 and up to 4, but not 1"),
            ("random_distribution", "zipf:1", "but not 1"),
            ("bs", "2G", "use 512 to 1G"),
            ("direct", "maybe", "true or false"),
            ("disk", "hdd-15", "did you mean `hdd-15k`?"),
            ("disk", "floppy", "and none for no emulated disk"),
            ("disk", "hdd-15k,spindles=4", "docs/disks.md"),
            ("target", "oracle", "use one of engine, mariadb, mysql"),
            ("target", "mariadb-ten", "mariadb-10.11"),
            ("target", "engine-2", "did you mean `engine`?"),
        ] {
            let error = Setting::named(setting).unwrap().parse(text).unwrap_err();
            assert!(error.fix.contains(fix), "{setting} {text}: {error}");
        }
    }
}
