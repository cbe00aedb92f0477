//! Values as job files write them: sizes, times, counts, switches, ranges, lists.
//!
//! Invariant: the same text means what it means to fio 3.33, and the error for a text that is no
//! value names what would have been one. In fio's way `k` and `ki` are 1024 and `kib` is 1000,
//! unless `kb_base=1000` turns that round.

use std::time::Duration;

use super::arithmetic::evaluate;
use super::error::Why;

/// The value of `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base(u32);

impl Base {
    /// Of a file that does not set it.
    pub(super) const FIO: Self = Self(1024);

    /// The value of `kb_base`.
    pub(super) fn of(text: &str) -> Result<Self, Why> {
        match text {
            "1024" => Ok(Self(1024)),
            "1000" => Ok(Self(1000)),
            _ => Err(Why::new("use 1024 or 1000")),
        }
    }

    fn multiple(self, unit: &str) -> Result<f64, Why> {
        // As in fio, what stands behind a separator is not read: `4k-8k` and `4k/25` are 4k.
        let unit = unit.split([':', '-', ',', '/', '*']).next().unwrap_or_default();
        let unit = unit.trim_end().to_ascii_lowercase();
        let (letter, rest) = unit.split_at(unit.len().min(1));
        let power = match letter {
            "" | "b" if rest.is_empty() => return Ok(1.0),
            "k" => 1,
            "m" => 2,
            "g" => 3,
            "t" => 4,
            "p" => 5,
            "e" => 6,
            _ => return Err(unknown_unit(&unit)),
        };
        let base = match rest {
            "" | "b" | "i" => self.0,
            "ib" if self.0 == 1024 => 1000,
            "ib" => 1024,
            _ => return Err(unknown_unit(&unit)),
        };
        Ok(f64::from(base).powi(power))
    }
}

fn unknown_unit(unit: &str) -> Why {
    Why::new(format!("`{unit}` is no unit of size; use k, m, g or t"))
}

/// A number and the letters behind it. `0x` begins a hexadecimal one.
fn split(text: &str) -> Result<(f64, &str), Why> {
    let no_number = || Why::new(format!("`{text}` is no number"));
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let value = u64::from_str_radix(&hex[..end], 16).map_err(|_| no_number())?;
        return Ok((value as f64, &hex[end..]));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = text[..end].parse().map_err(|_| no_number())?;
    Ok((value, text[end..].trim_start()))
}

/// A number by itself or an expression in parentheses, each part converted by `unit`.
fn number(text: &str, unit: &dyn Fn(&str) -> Result<f64, Why>) -> Result<f64, Why> {
    let text = text.trim();
    let one = |text: &str| {
        let (value, letters) = split(text)?;
        Ok(value * unit(letters)?)
    };
    let value = if text.starts_with('(') { evaluate(text, &one)? } else { one(text)? };
    if (0.0..9e18).contains(&value) {
        Ok(value)
    } else {
        Err(Why::new(format!("`{text}` is out of range")))
    }
}

/// Bytes.
pub(super) fn size(text: &str, base: Base) -> Result<u64, Why> {
    number(text, &|unit| base.multiple(unit)).map(|bytes| bytes.round() as u64)
}

/// Bytes of a block; never 0.
pub(super) fn block(text: &str, base: Base) -> Result<u32, Why> {
    match u32::try_from(size(text, base)?) {
        Ok(0) => Err(Why::new("a block has at least 512 bytes")),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(Why::new("a block is at most 1g, of trims 4g")),
    }
}

/// A plain count.
pub(super) fn count(text: &str) -> Result<u32, Why> {
    let value = size(text, Base::FIO)?;
    u32::try_from(value).map_err(|_| Why::new(format!("`{text}` is too many")))
}

/// A share in percent, with or without its sign.
pub(super) fn share(text: &str) -> Result<u8, Why> {
    let number = text.trim();
    let number = number.strip_suffix('%').unwrap_or(number);
    match count(number)? {
        share if share <= 100 => Ok(share as u8),
        _ => Err(Why::new("it is a share in percent; use 0 to 100")),
    }
}

/// A time; a bare number is in `bare` units.
pub(super) fn time(text: &str, bare: Duration) -> Result<Duration, Why> {
    // An expression is computed in microseconds, whatever the option.
    let one_s = if text.trim().starts_with('(') { 1e-6 } else { bare.as_secs_f64() };
    let unit = |unit: &str| {
        // As in fio, only letters right behind a number are its unit.
        let unit = if unit.starts_with(char::is_alphabetic) { unit } else { "" };
        let seconds = match unit.to_ascii_lowercase().as_str() {
            "" => return Ok(1.0),
            "d" => 86_400.0,
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" | "msec" => 1e-3,
            "us" | "usec" => 1e-6,
            other => match unit_in_words(other) {
                Some((seconds, _)) => seconds,
                None => {
                    let known = "use us, ms, s, m, h or d";
                    return Err(Why::new(format!("`{other}` is no unit of time; {known}")));
                }
            },
        };
        Ok(seconds / one_s)
    };
    let seconds = number(text, &unit)? * one_s;
    Duration::try_from_secs_f64(seconds).map_err(|_| Why::new(format!("`{text}` is too long")))
}

/// Seconds of a unit that is written out, and its short form.
fn unit_in_words(unit: &str) -> Option<(f64, &'static str)> {
    match unit {
        "sec" | "secs" | "second" | "seconds" => Some((1.0, "s")),
        "min" | "mins" | "minute" | "minutes" => Some((60.0, "m")),
        "hr" | "hrs" | "hour" | "hours" => Some((3600.0, "h")),
        "day" | "days" => Some((86_400.0, "d")),
        _ => None,
    }
}

/// The short form of a unit that is written out behind a number: fio takes it for microseconds.
pub(super) fn short_unit(text: &str) -> Option<&'static str> {
    let letters = text.trim().trim_start_matches(|c: char| c.is_ascii_digit());
    unit_in_words(&letters.trim().to_ascii_lowercase()).map(|(_, short)| short)
}

/// Whether a text is a product without parentheses, of which as in fio the first number counts.
pub(super) fn is_product(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '*' | '.' | ' ');
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains('*')
        && text.chars().all(is_part)
}

/// 0 or 1; an option without a value is 1, and as in fio every other count is, too.
pub(super) fn switch(text: &str) -> Result<bool, Why> {
    match text.trim() {
        "" => Ok(true),
        text => text.parse().map(|count: u32| count > 0).map_err(|_| Why::new("use 0 or 1")),
    }
}

/// A number with decimals.
pub(super) fn decimal(text: &str) -> Result<f64, Why> {
    let value: Option<f64> = text.trim().parse().ok();
    value.filter(|value| value.is_finite()).ok_or_else(|| Why::new("it is no number"))
}

/// The parts of `a`, `a,b` or `a,b,c`: reads, writes, trims. A missing part is the last one given;
/// an empty one, as the last of `a,`, is `None`: the default.
pub(super) fn by_direction(text: &str) -> [Option<&str>; 3] {
    let parts: Vec<Option<&str>> =
        text.split(',').map(|part| Some(part.trim()).filter(|part| !part.is_empty())).collect();
    let at = |number: usize| parts[number.min(parts.len() - 1)];
    [at(0), at(1), at(2)]
}

/// `1,5,8-15`: numbers and ranges of them, rising.
pub(super) fn numbers(text: &str) -> Result<Vec<u32>, Why> {
    let mut numbers = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (low, high) = range(part);
        let (low, high) = (count(low)?, count(high)?);
        if low > high || high >= 4096 {
            return Err(Why::new("write numbers such as 0,4-7"));
        }
        numbers.extend(low..=high);
    }
    match numbers.is_empty() {
        true => Err(Why::new("write numbers such as 0,4-7")),
        false => Ok(numbers),
    }
}

/// Bytes as `0xdeadbeef` writes them, in its order, those between quotes, and numbers, their
/// smallest byte first: one behind the other. `None` where they hold the block's offset, as `%o`.
pub(super) fn pattern(text: &str) -> Result<Option<Vec<u8>>, Why> {
    const BYTES_MAX: usize = 512;
    let wrong = || Why::new("write up to 512 bytes as 0xdeadbeef, 255 or \"text\"");
    let (mut bytes, mut rest, mut has_offset) = (Vec::new(), text, false);
    while !rest.is_empty() {
        let (part, behind) = if let Some(offset) = rest.strip_prefix("%o") {
            has_offset = true;
            (Vec::new(), offset)
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let (part, behind) = quoted.split_once('"').ok_or_else(wrong)?;
            (part.as_bytes().to_vec(), behind)
        } else if let Some(digits) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            hexadecimal(digits).ok_or_else(wrong)?
        } else {
            decimal_bytes(rest).ok_or_else(wrong)?
        };
        bytes.extend(part);
        rest = behind;
    }
    match (has_offset, (1..=BYTES_MAX).contains(&bytes.len())) {
        (true, _) => Ok(None),
        (false, true) => Ok(Some(bytes)),
        (false, false) => Err(wrong()),
    }
}

/// The bytes of hexadecimal digits, and what stands behind them: another number begins with `0x`.
fn hexadecimal(text: &str) -> Option<(Vec<u8>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let is_next = text[end..].starts_with(['x', 'X']) && text[..end].ends_with('0');
    let end = if is_next { end - 1 } else { end };
    let digits = format!("{}{}", if end % 2 == 1 { "0" } else { "" }, &text[..end]);
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| (bytes, &text[end..]))
}

/// The bytes of a decimal number, and what stands behind it.
fn decimal_bytes(text: &str) -> Option<(Vec<u8>, &str)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let is_next = digits[end..].starts_with(['x', 'X']) && digits[..end].ends_with('0');
    let end = text.len() - digits.len() + if is_next { end - 1 } else { end };
    let number: i32 = text[..end].parse().ok()?;
    let all = number.to_le_bytes();
    let used = all.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    Some((all[..used].to_vec(), &text[end..]))
}

/// `low-high` or `low:high`, in either order; a single value is both.
pub(super) fn range(text: &str) -> (&str, &str) {
    text.split_once(['-', ':']).map_or((text, text), |(low, high)| (low.trim(), high.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_what_fio_makes_of_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4ki", 4096),
            ("4kib", 4000),
            ("1mib", 1_000_000),
            ("0x10000", 65_536),
            ("2g", 2 << 30),
            ("(64k * 2)", 131_072),
            ("100b", 100),
            ("4k-8k", 4096),
            ("4k/25", 4096),
            ("512/25:1k", 512),
        ] {
            assert_eq!(size(text, Base::FIO), Ok(bytes), "{text}");
        }
        assert_eq!(size("4k", Base(1000)), Ok(4000));
        assert_eq!(size("4kib", Base(1000)), Ok(4096));
    }

    #[test]
    fn times_have_the_unit_of_their_option() {
        let (second, micro) = (Duration::from_secs(1), Duration::from_micros(1));
        assert_eq!(time("2", second), Ok(Duration::from_secs(2)));
        assert_eq!(time("2", micro), Ok(Duration::from_micros(2)));
        assert_eq!(time("2m", micro), Ok(Duration::from_secs(120)));
        assert_eq!(time("500msec", second), Ok(Duration::from_millis(500)));
        assert_eq!(time("100*8", second), Ok(Duration::from_secs(100)));
        assert_eq!(time("2min", micro), Ok(Duration::from_secs(120)));
        assert_eq!((short_unit("2min"), short_unit("1 hour")), (Some("m"), Some("h")));
        assert_eq!((short_unit("2m"), short_unit("min")), (None, Some("m")));
        assert_eq!(time("(1000*1000)", second), Ok(second));
        assert_eq!(time("(2*1ms)", second), Ok(Duration::from_millis(2)));
    }

    #[test]
    fn numbers_and_patterns_are_those_of_fio() {
        assert_eq!(numbers("0,4-6"), Ok(vec![0, 4, 5, 6]));
        assert_eq!(pattern("0xdeadbeef"), Ok(Some(vec![0xde, 0xad, 0xbe, 0xef])));
        assert_eq!(pattern("0xabc"), Ok(Some(vec![0x0a, 0xbc])));
        assert_eq!(pattern("\"abc\""), Ok(Some(b"abc".to_vec())));
        for text in ["", "x", "0x", "0xg1", "\"\"", "0x\u{e4}\u{e4}"] {
            assert!(pattern(text).is_err() && numbers(text).is_err(), "{text}");
        }
        assert!(numbers("5-1").is_err() && numbers("0-99999999").is_err());
    }

    #[test]
    fn what_is_no_value_is_an_error() {
        for text in ["", "k", "-4k", "4x", "4 kk", "..", "99999999999t", "1e9", "(4k"] {
            assert!(size(text, Base::FIO).is_err(), "{text}");
        }
        assert!(switch("yes").is_err() && switch("32") == Ok(true) && switch("0") == Ok(false));
        assert!(time("5 weeks", Duration::ZERO).is_err());
    }
}
