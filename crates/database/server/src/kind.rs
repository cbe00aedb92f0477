//! How values travel: between the seam's whole numbers and what servers call decimals and moments.
//!
//! Invariant: whatever is written here is read back as the same value, as a parameter, as a literal
//! and as a field of LOAD DATA. Amounts never pass through floating point.

use std::io::Write as _;

use iostrata_database::target::{ColumnType, Rows, Value};
use mysql::Value as Raw;

const DAY_S: i64 = 86_400;

/// What a column's values are on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// A whole number.
    Number,
    /// An amount with all its digits and those behind the point.
    Amount(u8, u8),
    /// A date with a time of day.
    Moment,
    /// Characters.
    Text,
}

impl From<ColumnType> for ValueKind {
    fn from(of: ColumnType) -> Self {
        match of {
            ColumnType::Int { .. } => Self::Number,
            ColumnType::Decimal { digits, scale } => Self::Amount(digits, scale),
            ColumnType::DateTime => Self::Moment,
            ColumnType::Char(_) | ColumnType::Varchar(_) | ColumnType::LongText => Self::Text,
        }
    }
}

/// A value as a parameter of a prepared statement.
#[inline]
pub(crate) fn parameter(value: Value<'_>, kind: ValueKind) -> Raw {
    match (value, kind) {
        (Value::Null, _) => Raw::NULL,
        (Value::Text(text), _) => Raw::Bytes(text.to_vec()),
        (Value::Int(number), ValueKind::Amount(_, scale)) => {
            let mut text = Vec::with_capacity(16);
            amount(number, scale, &mut text);
            Raw::Bytes(text)
        }
        (Value::Int(seconds), ValueKind::Moment) => {
            let (year, month, day) = date_of(seconds.div_euclid(DAY_S));
            let second = seconds.rem_euclid(DAY_S);
            let part = |unit: i64, of: i64| (second / unit % of) as u8;
            Raw::Date(year as u16, month, day, part(3600, 24), part(60, 60), part(1, 60), 0)
        }
        (Value::Int(number), ValueKind::Number | ValueKind::Text) => Raw::Int(number),
    }
}

/// A value as a literal. Without backslash escapes only quotes are doubled, as `sql_mode` has it.
pub(crate) fn literal(value: Value<'_>, kind: ValueKind, has_backslash: bool, out: &mut Vec<u8>) {
    match (value, kind) {
        (Value::Null, _) => out.extend_from_slice(b"NULL"),
        (Value::Int(_), ValueKind::Moment) => {
            out.push(b'\'');
            plain(value, kind, out);
            out.push(b'\'');
        }
        (Value::Int(_), _) => plain(value, kind, out),
        (Value::Text(text), _) if std::str::from_utf8(text).is_err() => {
            out.extend_from_slice(b"x'");
            text.iter().for_each(|byte| push(out, format_args!("{byte:02x}")));
            out.push(b'\'');
        }
        (Value::Text(text), _) => {
            out.push(b'\'');
            for byte in text {
                match byte {
                    b'\'' => out.extend_from_slice(b"''"),
                    b'\\' if has_backslash => out.extend_from_slice(b"\\\\"),
                    0 if has_backslash => out.extend_from_slice(b"\\0"),
                    byte => out.push(*byte),
                }
            }
            out.push(b'\'');
        }
    }
}

/// A value as a field of LOAD DATA with its default escapes.
pub(crate) fn field(value: Value<'_>, kind: ValueKind, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"\\N"),
        Value::Int(_) => plain(value, kind, out),
        Value::Text(text) => {
            for byte in text {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    0 => out.extend_from_slice(b"\\0"),
                    byte => out.push(*byte),
                }
            }
        }
    }
}

/// A number, an amount or a moment without quotes; nothing else.
fn plain(value: Value<'_>, kind: ValueKind, out: &mut Vec<u8>) {
    let Value::Int(number) = value else { return };
    match kind {
        ValueKind::Amount(_, scale) => amount(number, scale, out),
        ValueKind::Moment => {
            let (year, month, day) = date_of(number.div_euclid(DAY_S));
            let second = number.rem_euclid(DAY_S);
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            push(
                out,
                format_args!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
            );
        }
        ValueKind::Number | ValueKind::Text => push(out, format_args!("{number}")),
    }
}

/// A constant of a declaration, in the column's unit.
pub(crate) fn constant(number: i64, kind: ValueKind) -> String {
    let mut out = Vec::new();
    plain(Value::Int(number), kind, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn amount(number: i64, scale: u8, out: &mut Vec<u8>) {
    if scale == 0 {
        return push(out, format_args!("{number}"));
    }
    let unit = 10_u64.saturating_pow(u32::from(scale));
    let (sign, size) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    let (whole, rest, width) = (size / unit, size % unit, usize::from(scale));
    push(out, format_args!("{sign}{whole}.{rest:0width$}"));
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

/// Adds what a server gave to the rows. `None` when it is nothing that such a column holds.
#[inline]
pub(crate) fn take(raw: Option<&Raw>, kind: ValueKind, out: &mut Rows) -> Option<()> {
    let value = match (raw?, kind) {
        (Raw::NULL, _) => Value::Null,
        (Raw::Bytes(text), kind) => return take_bytes(text, kind, out),
        (Raw::Int(number), ValueKind::Number) => Value::Int(*number),
        (Raw::UInt(number), ValueKind::Number) => Value::Int(i64::try_from(*number).ok()?),
        (Raw::Int(number), ValueKind::Amount(_, scale)) => {
            Value::Int(number.checked_mul(10_i64.checked_pow(u32::from(scale))?)?)
        }
        (Raw::Date(year, month, day, hour, minute, second, _), ValueKind::Moment) => {
            let days = days_of(i64::from(*year), *month, *day);
            let [hour, minute, second] = [hour, minute, second].map(|part| i64::from(*part));
            Value::Int(days * DAY_S + hour * 3600 + minute * 60 + second)
        }
        (Raw::Int(number), ValueKind::Text) => {
            out.push(Value::Text(number.to_string().as_bytes()));
            return Some(());
        }
        _ => return None,
    };
    out.push(value);
    Some(())
}

/// The same of what came as characters.
#[inline]
pub(crate) fn take_bytes(text: &[u8], kind: ValueKind, out: &mut Rows) -> Option<()> {
    out.push(match kind {
        ValueKind::Text => Value::Text(text),
        ValueKind::Number => Value::Int(scaled(text, 0)?),
        ValueKind::Amount(_, scale) => Value::Int(scaled(text, scale)?),
        ValueKind::Moment => Value::Int(moment(text)?),
    });
    Some(())
}

/// Where so many characters end; so many bytes where the text is no UTF-8.
pub(crate) fn characters_end(text: &[u8], most: usize) -> usize {
    let end = match std::str::from_utf8(text) {
        Ok(text) => text.char_indices().nth(most).map(|(at, _)| at),
        Err(_) => Some(most),
    };
    end.unwrap_or(text.len()).min(text.len())
}

/// A decimal text as a whole number of the smallest unit; digits behind it must be zero.
fn scaled(text: &[u8], scale: u8) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut number = 0_i64;
    let mut behind: Option<u8> = None;
    for byte in digits {
        match (byte, behind) {
            (b'.', None) => behind = Some(0),
            (b'0', Some(places)) if places == scale => {}
            (b'0'..=b'9', places) if places.is_none_or(|places| places < scale) => {
                number = number.checked_mul(10)?.checked_sub(i64::from(byte - b'0'))?;
                behind = places.map(|places| places + 1);
            }
            _ => return None,
        }
    }
    let missing = u32::from(scale - behind.unwrap_or(0));
    let number = number.checked_mul(10_i64.checked_pow(missing)?)?;
    if negative { Some(number) } else { number.checked_neg() }
}

/// `YYYY-MM-DD HH:MM:SS`, with or without a fraction, as seconds since 1970.
fn moment(text: &[u8]) -> Option<i64> {
    let part = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.iter().try_fold(0_i64, |sum, byte| {
            byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'))
        })
    };
    let days = days_of(part(0, 4)?, part(5, 7)? as u8, part(8, 10)? as u8);
    Some(days * DAY_S + part(11, 13)? * 3600 + part(14, 16)? * 60 + part(17, 19)?)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here, so that
/// the odd day is the last one; 400 of them have 146 097 days.
fn days_of(year: i64, month: u8, day: u8) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// The date so many days after 1970-01-01.
fn date_of(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year + i64::from(month <= 2), month as u8, day as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: Value<'_>, kind: ValueKind) -> String {
        let mut out = Vec::new();
        literal(value, kind, true, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn read(raw: Raw, kind: ValueKind) -> Option<i64> {
        let mut rows = Rows::new(1);
        take(Some(&raw), kind, &mut rows)?;
        Some(rows.get(0, 0).int())
    }

    #[test]
    fn amounts_keep_their_units() {
        for (number, scale, text) in [
            (-1000, 2, "-10.00"),
            (5, 4, "0.0005"),
            (-7, 2, "-0.07"),
            (30_000_000, 2, "300000.00"),
            (12, 0, "12"),
        ] {
            let kind = ValueKind::Amount(12, scale);
            assert_eq!(written(Value::Int(number), kind), text);
            assert_eq!(read(Raw::Bytes(text.into()), kind), Some(number));
        }
        let cents = ValueKind::Amount(12, 2);
        for (text, number) in [("3", Some(300)), ("3.5", Some(350)), ("3.5000", Some(350))] {
            assert_eq!(read(Raw::Bytes(text.into()), cents), number);
        }
        for text in ["3.005", "1e3", "x", "1.2.3", "99999999999999999999"] {
            assert_eq!(read(Raw::Bytes(text.into()), cents), None, "{text}");
        }
        assert_eq!(constant(91, ValueKind::Number), "91");
        assert_eq!(constant(1050, cents), "10.50");
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_868_799, "2000-02-29 23:59:59"),
            (1_709_164_800, "2024-02-29 00:00:00"),
            (4_102_444_800, "2100-01-01 00:00:00"),
            (4_107_542_400, "2100-03-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
        ] {
            assert_eq!(written(Value::Int(seconds), ValueKind::Moment), format!("'{text}'"));
            assert_eq!(read(Raw::Bytes(text.into()), ValueKind::Moment), Some(seconds));
        }
    }

    #[test]
    fn quotes_are_escaped_as_the_mode_has_it() {
        let text = Value::Text(b"it's \\ \0");
        assert_eq!(written(text, ValueKind::Text), "'it''s \\\\ \\0'");
        let mut out = Vec::new();
        literal(text, ValueKind::Text, false, &mut out);
        assert_eq!(out, b"'it''s \\ \0'");
        assert_eq!(written(Value::Text(&[0xff, 0x27]), ValueKind::Text), "x'ff27'");
        out.clear();
        field(Value::Text(b"a\tb\nc\\N"), ValueKind::Text, &mut out);
        field(Value::Null, ValueKind::Text, &mut out);
        assert_eq!(out, b"a\\tb\\nc\\\\N\\N");
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read_back(
            number: i64,
            scale in 0_u8..10,
            seconds in 0..253_402_300_800_i64,
        ) {
            let kind = ValueKind::Amount(18, scale);
            prop_assert_eq!(read(parameter(Value::Int(number), kind), kind), Some(number));
            let moment = parameter(Value::Int(seconds), ValueKind::Moment);
            prop_assert_eq!(read(moment, ValueKind::Moment), Some(seconds));
        }
    }
}
