//! How the text of one option becomes a value.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use iostrata_plan::study::IoLimits;
use iostrata_plan::{
    Access, BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, ValueError, Words, ZipfTheta, block_range,
};
use iostrata_stats::units::{parse_duration, parse_size};

/// Values of one option, as clap passes them on whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

/// `1`, `0`, `true`, `false`, `yes`, `no`, `on`, `off`.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("write 1 or 0".to_owned()),
    }
}

/// A size in bytes.
pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// A number of things.
pub fn whole<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|letter| letter.is_ascii_digit()) {
        return Err(format!("`{text}` is not a whole number; write for example 8"));
    }
    if digits.len() < text.len() {
        return Err(format!("`{text}` is negative; write for example 8"));
    }
    let number = text.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| format!("`{text}` is too large"))
}

/// A whole number of percent.
pub fn percent(text: &str) -> Result<u8, String> {
    let number = whole(text.trim_end_matches('%'))?;
    if number > 100 {
        return Err(format!("`{text}` is more than everything; use 0 to 100"));
    }
    Ok(number)
}

/// A number that may have a fraction.
pub fn number(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("`{text}` is not a number; write for example 500"))
}

/// A positive number in thousandths.
pub fn milli(text: &str) -> Result<u64, String> {
    let thousandths = (number(text)? * 1e3).round();
    // A limit below a hundredth stops what it limits.
    if !(10.0..=1e9).contains(&thousandths) {
        return Err(format!("`{text}` is out of range; write for example 1.5"));
    }
    Ok(thousandths as u64)
}

/// Limits of I/O in the words of the kernel's io.max: `riops=500,wbps=50M`.
pub fn io_limits(text: &str) -> Result<IoLimits, String> {
    let mut limits = IoLimits::default();
    for one in text.split(',') {
        let (word, number) = one.split_once('=').unwrap_or((one, ""));
        let limit = match word {
            "riops" => &mut limits.read_iops,
            "wiops" => &mut limits.write_iops,
            "rbps" => &mut limits.read_bytes_per_s,
            "wbps" => &mut limits.write_bytes_per_s,
            _ => return Err(format!("`{word}` is no limit; use riops, wiops, rbps and wbps")),
        };
        let most = if word.ends_with("iops") { whole(number)? } else { size(number)? };
        if most == 0 {
            return Err(format!("`{one}` lets nothing through; use 1 or more"));
        }
        *limit = Some(most);
    }
    Ok(limits)
}

/// A percentile: `99`, `p99` or `99.9`.
pub fn percentile(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix('p').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|number| *number > 0.0 && *number < 100.0);
    number.ok_or_else(|| format!("`{text}` is not a percentile; write for example 99 or p99.9"))
}

/// A block size in bytes.
pub fn block(text: &str) -> Result<u32, String> {
    let bytes = u32::try_from(size(text)?).ok();
    let fits = |bytes: &u32| (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(bytes);
    bytes.filter(fits).ok_or_else(|| format!("`{text}` is out of range; {}", block_range()))
}

/// A duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// How long something may take.
pub fn bound(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("`{text}` leaves no time; write for example 30, 5m or 1h")),
        time => Ok(time),
    }
}

/// A share: `0.03` or `3%`.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text, 1.0),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is not a share; write 0.03 or 3%"))?;
    Ok(number / unit)
}

/// Where random requests go: `uniform`, `zipf:0.99`, `coverage`.
pub fn distribution(text: &str) -> Result<Access, String> {
    // What cannot be drawn by is refused with the option's name, by the check of the whole.
    match text.split_once(':') {
        Some(("zipf", theta)) => match theta.parse() {
            Ok(theta) => Ok(Access::Zipfian(ZipfTheta(theta))),
            Err(_) => Err(format!("`{theta}` is not a skew; write for example zipf:0.99")),
        },
        _ => text.parse().map_err(|error: ValueError| error.to_string()),
    }
}

/// One word of a closed set.
pub fn word<T: Words + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let possible = T::WORDS.iter().map(|word| {
        let value = PossibleValue::new(word.name).aliases(word.aliases.iter().copied());
        if word.help.is_empty() { value } else { value.help(word.help) }
    });
    PossibleValuesParser::new(possible.collect::<Vec<_>>())
        .try_map(|text| T::of(&text).ok_or("there is no such value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_told_what_is_wrong_with_it() {
        assert_eq!(whole::<u32>("8"), Ok(8));
        for (text, why) in [
            ("-1", "negative"),
            ("1.5", "not a whole number"),
            ("", "not a whole number"),
            ("-", "not a whole number"),
            ("4294967296", "too large"),
        ] {
            let error = whole::<u32>(text).unwrap_err();
            assert!(error.contains(why) && error.contains(text), "{text}: {error}");
        }
        assert_eq!((percent("70%"), percent("100")), (Ok(70), Ok(100)));
        assert!(percent("101").unwrap_err().contains("0 to 100"));
        assert!(bound("0s").unwrap_err().contains("no time"));
        assert!(number("x").is_err() && number("inf").is_err());
    }

    #[test]
    fn limits_are_read_in_the_words_of_the_kernel() {
        let limits = io_limits("riops=500,wbps=50M").unwrap();
        let wanted = IoLimits {
            read_iops: Some(500),
            write_bytes_per_s: Some(50 << 20),
            ..IoLimits::default()
        };
        assert_eq!(limits, wanted);
        for (text, why) in [("iops=5", "is no limit"), ("wiops=0", "lets nothing"), ("rbps", "")] {
            let error = io_limits(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(milli("1.5"), Ok(1_500));
        assert!(milli("0").is_err() && milli("-1").is_err());
    }
}
