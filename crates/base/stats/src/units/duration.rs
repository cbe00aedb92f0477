//! Durations. A bare number is seconds.

use std::time::Duration;

use crate::units::{UnitError, split};

const EXAMPLE: &str = "30, 100ms, 5m or 1h";

/// The duration in a text such as `30`, `2.5s`, `100ms`, `5m`, `1h`.
///
/// # Errors
/// When there is no number, the unit is unknown, or the duration is over a thousand years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text, EXAMPLE)?;
    let seconds_per_unit = match unit.as_str() {
        "" | "s" | "sec" => 1.0,
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => {
            let found = text.to_owned();
            return Err(UnitError::UnknownUnit { found, unit, known: "ns, us, ms, s, m, h, d" });
        }
    };
    let seconds = number * seconds_per_unit;
    if seconds > 3.2e10 {
        return Err(UnitError::TooLarge { found: text.to_owned() });
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds() {
        for (text, expected) in [
            ("30", Duration::from_secs(30)),
            ("0.5", Duration::from_millis(500)),
            ("100ms", Duration::from_millis(100)),
            ("20us", Duration::from_micros(20)),
            ("5m", Duration::from_secs(300)),
            ("1h", Duration::from_secs(3600)),
        ] {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn odd_texts_are_refused() {
        for text in ["", "ms", "-1", "5 weeks", "1e400", "99999999999h"] {
            assert!(parse_duration(text).is_err(), "{text} was taken");
        }
        let negative = parse_duration("-5s").unwrap_err().to_string();
        assert!(negative.starts_with("`-5s` is negative; write for example"), "{negative}");
    }
}
