//! The text of a setting as a value, and the value as the name of a level.
//!
//! Invariant: texts that mean the same (`4k`, `4096`) become the same value and the same name.

use iostrata_units::{Size, parse_size};

use super::{Choice, Setting, Takes};
use crate::disk::{DiskSpec, DiskSpecError};
use crate::study::nearest::nearest;
use crate::{Access, ZipfTheta};

/// The word for no emulated disk.
const NO_DISK: &str = "none";

/// The checked value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// One word of a few.
    Choice(Choice),
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
}

/// Why a text is no value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {fix}")]
pub struct ValueError {
    /// What is wrong with it.
    pub why: String,
    /// What to write instead.
    pub fix: String,
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
            Takes::Choice(words) => choice(text, words),
            Takes::Count(least, most) => count(text, least, most),
            Takes::Bytes(least) => bytes(text, least),
            Takes::Switch => switch(text),
            Takes::Number(most) => number(text, most),
            Takes::Options(between) => options(text, between),
            Takes::Distribution => distribution(text),
            Takes::Disk => disk(text),
        }
    }

    /// The name of a value as a level.
    pub fn label(&self, value: &SettingValue) -> String {
        match (value, self.takes) {
            (SettingValue::Choice(choice), Takes::Choice(words)) => {
                let word = words.iter().find(|(_, other)| other == choice);
                word.map_or("?", |(word, _)| word).to_owned()
            }
            (SettingValue::Choice(choice), _) => format!("{choice:?}"),
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
        }
    }

    /// What its value may be, for documents.
    pub fn values(&self) -> String {
        match self.takes {
            Takes::Choice(words) => {
                let words: Vec<String> =
                    words.iter().map(|(word, _)| format!("`{word}`")).collect();
                words.join(", ")
            }
            Takes::Count(0, u64::MAX) => "a whole number".to_owned(),
            Takes::Count(least, most) => format!("{least} to {most}"),
            Takes::Bytes(_) => "a size".to_owned(),
            Takes::Switch => "`true`, `false`".to_owned(),
            Takes::Number(_) => "a number".to_owned(),
            Takes::Options(',') => "`\"defaults\"` or `\"noatime,nodiratime\"`".to_owned(),
            Takes::Options(_) => "`\"defaults\"` or `\"-i size=512\"`".to_owned(),
            Takes::Distribution => "`uniform`, `coverage`, `zipf:0.99`".to_owned(),
            Takes::Disk => {
                "`none`, `hdd-15k`, `hdd-15k,queue=1`, `nvme-no-plp,flush=2ms`".to_owned()
            }
        }
    }
}

fn choice(text: &str, words: &[(&'static str, Choice)]) -> Result<SettingValue, ValueError> {
    let known = |word: &str| words.iter().find(|(name, _)| *name == word);
    let found = known(text).or_else(|| known(&text.to_ascii_lowercase()));
    if let Some((_, choice)) = found {
        return Ok(SettingValue::Choice(*choice));
    }
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let list = names.join(", ");
    match nearest(text, names.into_iter()) {
        Some(near) => refuse("there is no such value", format!("did you mean `{near}`? ({list})")),
        None => refuse("there is no such value", format!("use one of {list}")),
    }
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

fn bytes(text: &str, least: u64) -> Result<SettingValue, ValueError> {
    match parse_size(text) {
        Ok(bytes) if bytes >= least => Ok(SettingValue::Bytes(bytes)),
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

fn distribution(text: &str) -> Result<SettingValue, ValueError> {
    let access = match text.split_once(':') {
        None if text == "uniform" || text == "random" => Some(Access::Uniform),
        None if text == "coverage" => Some(Access::Coverage),
        None if text == "zipf" => Some(Access::Zipfian(ZipfTheta(0.99))),
        Some(("zipf", theta)) => match theta.parse::<f64>() {
            Ok(theta) if theta > 0.0 && theta < 1.0 => Some(Access::Zipfian(ZipfTheta(theta))),
            Ok(_) => {
                return refuse("the skew is out of range", "use above 0 and below 1: zipf:0.99");
            }
            Err(_) => None,
        },
        _ => None,
    };
    match access {
        Some(access) => Ok(SettingValue::Access(access)),
        None => refuse("there is no such value", "use uniform, coverage or zipf:0.99"),
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
            ("random_distribution", "zipf:2", "above 0 and below 1"),
            ("direct", "maybe", "true or false"),
            ("disk", "hdd-15", "did you mean `hdd-15k`?"),
            ("disk", "floppy", "and none for no emulated disk"),
            ("disk", "hdd-15k,spindles=4", "docs/disks.md"),
        ] {
            let error = Setting::named(setting).unwrap().parse(text).unwrap_err();
            assert!(error.fix.contains(fix), "{setting} {text}: {error}");
        }
    }
}
