//! How the text of one option becomes a value.

use std::time::Duration;

use iostrata_spec::{Access, BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, ZipfTheta, block_range};
use iostrata_units::{parse_duration, parse_size};

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
    match text.split_once(':') {
        None if matches!(text, "uniform" | "random") => Ok(Access::Uniform),
        None if text == "coverage" => Ok(Access::Coverage),
        None if text == "zipf" => Ok(Access::Zipfian(ZipfTheta(0.99))),
        Some(("zipf", theta)) => theta
            .parse()
            .map(|theta| Access::Zipfian(ZipfTheta(theta)))
            .map_err(|_| format!("`{theta}` is not a skew; write for example zipf:0.99")),
        _ => Err("use uniform, zipf:0.99 or coverage".to_owned()),
    }
}
