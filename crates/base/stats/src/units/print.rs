//! Quantities as a reader sees them: three significant digits and a unit.
//!
//! Every view uses these, so that one number reads the same in the terminal, the report and the
//! Markdown. They round; the digits are in the JSON.

/// Three significant digits without trailing zeros, never in scientific notation.
fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { "-".to_owned() };
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    for (size, unit) in steps {
        if value.abs() >= *size * 0.9995 {
            return format!("{}{unit}", digits(value / size));
        }
    }
    match steps.last() {
        Some((size, unit)) => format!("{}{unit}", digits(value / size)),
        None => digits(value),
    }
}

/// Bytes in powers of 1024: `4 KiB`, `1.5 GiB`.
pub fn bytes(value: f64) -> String {
    const KIB: f64 = 1024.0;
    let steps = [
        (KIB * KIB * KIB * KIB, " TiB"),
        (KIB * KIB * KIB, " GiB"),
        (KIB * KIB, " MiB"),
        (KIB, " KiB"),
        (1.0, " B"),
    ];
    scaled(value, &steps)
}

/// A count or a rate of requests in powers of 1000: `104 K`, `1.82 M`.
pub fn count(value: f64) -> String {
    scaled(value, &[(1e9, " G"), (1e6, " M"), (1e3, " K"), (1.0, "")])
}

/// A rate of something per second: `104 K/s`.
pub fn rate(value: f64) -> String {
    let text = count(value);
    if text.contains(' ') { format!("{text}/s") } else { format!("{text} /s") }
}

/// A latency given in microseconds, in the unit that reads best: `85 ns`, `20.3 us`, `5.1 ms`.
pub fn microseconds(value: f64) -> String {
    scaled(value, &[(1e6, " s"), (1e3, " ms"), (1.0, " us"), (1e-3, " ns")])
}

/// How often: `once`, `4 times`.
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A duration given in seconds: `340 ms`, `12.5 s`, `2 min`.
pub fn seconds(value: f64) -> String {
    if value >= 119.5 {
        return format!("{} min", digits(value / 60.0));
    }
    microseconds(value * 1e6)
}

/// A share given in percent: `12.3 %`.
pub fn percent(value: f64) -> String {
    if value.abs() < 0.05 {
        return "0 %".to_owned();
    }
    if value.abs() < 10.0 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// A count with all its digits: `100,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let comma = |place: usize| place > 0 && (digits.len() - place).is_multiple_of(3);
    let letter = |(place, letter)| [comma(place).then_some(','), Some(letter)];
    digits.chars().enumerate().flat_map(letter).flatten().collect()
}

/// Text whose first letter is a capital.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_unit_that_reads_best() {
        assert_eq!(bytes(4096.0), "4 KiB");
        assert_eq!(bytes(1.5 * 1024.0 * 1024.0 * 1024.0), "1.5 GiB");
        assert_eq!(count(104_321.0), "104 K");
        assert_eq!(count(17.0), "17");
        assert_eq!(rate(1_820_000.0), "1.82 M/s");
        assert_eq!(microseconds(0.0853), "85.3 ns");
        assert_eq!(microseconds(20.26), "20.3 us");
        assert_eq!(microseconds(5_100.0), "5.1 ms");
        assert_eq!(microseconds(999.9), "1 ms");
        assert_eq!(seconds(0.34), "340 ms");
        assert_eq!(seconds(180.0), "3 min");
        assert_eq!(percent(0.01), "0 %");
        assert_eq!(percent(-3.25), "-3.2 %");
        assert_eq!(count(0.0), "0");
        assert_eq!([128, 1_024, 100_000].map(grouped), ["128", "1,024", "100,000"]);
    }
}
