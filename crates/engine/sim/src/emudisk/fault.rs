//! What can go wrong with a disk on request, as one line of text each, and the requests that fail
//! for it although the disk could answer.
//!
//! Invariant: what is printed parses back to the same fault.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use iostrata_stats::Random;

/// The smallest piece that a disk writes whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tear {
    /// A sector of 512 bytes.
    Sector,
    /// A block of 4096 bytes.
    Block,
}

impl Tear {
    /// Its size in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Sector => 512,
            Self::Block => 4096,
        }
    }
}

/// A pause in which nothing is answered, and how often it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// How long a pause lasts, in ms.
    pub lasts_ms: u32,
    /// From the start of one pause to the start of the next, in ms.
    pub every_ms: u32,
}

/// One command to a served disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Requests that touch these bytes fail with EIO; `None` ends it.
    Eio(Option<Range<u64>>),
    /// So many requests of a million fail with EIO; 0 ends it.
    EioRate(u32),
    /// Every request takes so many ms longer; 0 ends it.
    Slow(u32),
    /// Nothing is answered for a while, again and again; `None` ends it.
    Stall(Option<Stall>),
    /// The power fails.
    PowerCut {
        /// Each piece of each write that is not flushed is kept or lost by itself; absent: every
        /// write that was done and is not flushed is lost.
        tear: Option<Tear>,
        /// What is kept; absent: goes on from the seed of the disk.
        seed: Option<u64>,
    },
    /// The power is back.
    PowerOn,
    /// The contents may take so many bytes.
    StoreLimit(u64),
}

/// Most that requests can be slowed by; more would look like a hung device to the kernel.
pub const SLOW_MS_MAX: u32 = 60_000;
/// All of a million.
const MILLION: u32 = 1_000_000;

/// Why a line is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such command.
    #[error(
        "`{found}` is not a fault; write one of: eio FROM-TO, eio none, eio-rate PER_MILLION, \
         slow MS, stall MS/EVERY_MS, stall none, power-cut [tear 512|4096] [seed N], power-on, store-limit BYTES"
    )]
    Unknown {
        /// The line.
        found: String,
    },
    /// A value that it does not take.
    #[error("`{found}` in `{line}` is out of bounds: {bounds}")]
    Value {
        /// The value.
        found: String,
        /// The line.
        line: String,
        /// What would have been taken.
        bounds: &'static str,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eio(None) => f.write_str("eio none"),
            Self::Eio(Some(range)) => write!(f, "eio {}-{}", range.start, range.end),
            Self::EioRate(rate) => write!(f, "eio-rate {rate}"),
            Self::Slow(ms) => write!(f, "slow {ms}"),
            Self::Stall(None) => f.write_str("stall none"),
            Self::Stall(Some(stall)) => write!(f, "stall {}/{}", stall.lasts_ms, stall.every_ms),
            Self::PowerCut { tear, seed } => {
                f.write_str("power-cut")?;
                if let Some(tear) = tear {
                    write!(f, " tear {}", tear.bytes())?;
                }
                seed.map_or(Ok(()), |seed| write!(f, " seed {seed}"))
            }
            Self::PowerOn => f.write_str("power-on"),
            Self::StoreLimit(bytes) => write!(f, "store-limit {bytes}"),
        }
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(line: &str) -> Result<Self, FaultError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let out = |found: &str, bounds| FaultError::Value {
            found: found.to_owned(),
            line: line.trim().to_owned(),
            bounds,
        };
        match words[..] {
            ["eio", "none"] => Ok(Self::Eio(None)),
            ["eio", text] => {
                let bounds = "two sizes as 1M-2M, the first below the second";
                parse_range(text).map(|range| Self::Eio(Some(range))).ok_or(out(text, bounds))
            }
            ["eio-rate", text] => {
                let rate = text.parse().ok().filter(|rate| *rate <= MILLION);
                rate.map(Self::EioRate).ok_or(out(text, "0 to 1000000 of a million requests"))
            }
            ["slow", text] => {
                let ms = text.parse().ok().filter(|ms| *ms <= SLOW_MS_MAX);
                ms.map(Self::Slow).ok_or(out(text, "0 to 60000 ms"))
            }
            ["stall", "none"] => Ok(Self::Stall(None)),
            ["stall", text] => {
                let bounds = "a pause and a longer period of at most 60000 ms, as 50/1000";
                parse_stall(text).map(|stall| Self::Stall(Some(stall))).ok_or(out(text, bounds))
            }
            ["power-cut", ref rest @ ..] => parse_cut(rest, out),
            ["power-on"] => Ok(Self::PowerOn),
            ["store-limit", text] => {
                let bytes = iostrata_stats::units::parse_size(text);
                bytes.map(Self::StoreLimit).map_err(|_| out(text, "a size as 512M"))
            }
            _ => Err(FaultError::Unknown { found: line.trim().to_owned() }),
        }
    }
}

fn parse_stall(text: &str) -> Option<Stall> {
    let (lasts, every) = text.split_once('/')?;
    let (lasts_ms, every_ms) = (lasts.parse().ok()?, every.parse().ok()?);
    let is_pause = 0 < lasts_ms && lasts_ms < every_ms && every_ms <= SLOW_MS_MAX;
    is_pause.then_some(Stall { lasts_ms, every_ms })
}

fn parse_range(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once('-')?;
    let range = iostrata_stats::units::parse_size(from).ok()?
        ..iostrata_stats::units::parse_size(to).ok()?;
    (!range.is_empty()).then_some(range)
}

fn parse_cut(
    words: &[&str],
    out: impl Fn(&str, &'static str) -> FaultError,
) -> Result<Fault, FaultError> {
    let (mut tear, mut seed) = (None, None);
    let mut rest = words;
    while let [name, after @ ..] = rest {
        let value = after.first().copied().unwrap_or_default();
        match *name {
            "tear" => {
                tear = Some(match value {
                    "512" => Tear::Sector,
                    "4096" => Tear::Block,
                    _ => return Err(out(value, "tear takes 512 or 4096 bytes")),
                });
            }
            "seed" => {
                let number = value.parse().map_err(|_| out(value, "seed takes a whole number"))?;
                seed = Some(number);
            }
            _ => return Err(out(name, "power-cut takes tear 512|4096 and seed N")),
        }
        rest = &after[1..];
    }
    Ok(Fault::PowerCut { tear, seed })
}

/// What fails.
#[derive(Debug)]
pub(crate) struct Errors {
    /// Whether anything does; checked first, so that a sound disk pays nothing.
    are_asked_for: AtomicBool,
    wanted: Mutex<ErrorPlan>,
    injected: AtomicU64,
}

#[derive(Debug)]
struct ErrorPlan {
    range: Option<Range<u64>>,
    per_million: u64,
    random: Random,
}

impl Errors {
    pub(crate) fn new(seed: u64) -> Self {
        let wanted = ErrorPlan { range: None, per_million: 0, random: Random::new(seed) };
        Self {
            are_asked_for: AtomicBool::new(false),
            wanted: Mutex::new(wanted),
            injected: AtomicU64::new(0),
        }
    }

    /// How many requests failed for it.
    pub(crate) fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }

    pub(crate) fn set_range(&self, range: Option<Range<u64>>) {
        self.set(|wanted| wanted.range = range);
    }

    pub(crate) fn set_rate(&self, per_million: u32) {
        self.set(|wanted| wanted.per_million = per_million.into());
    }

    fn set(&self, change: impl FnOnce(&mut ErrorPlan)) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut wanted);
        let any = wanted.range.is_some() || wanted.per_million > 0;
        self.are_asked_for.store(any, Ordering::Release);
    }

    /// Whether a request on these bytes fails; counted when it does.
    pub(crate) fn hit(&self, bytes: Range<u64>) -> bool {
        if !self.are_asked_for.load(Ordering::Acquire) {
            return false;
        }
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let touches = |bad: &Range<u64>| bytes.start < bad.end && bad.start < bytes.end;
        let is_hit = wanted.range.as_ref().is_some_and(touches)
            || wanted.random.below(MILLION.into()) < wanted.per_million;
        self.injected.fetch_add(is_hit.into(), Ordering::Relaxed);
        is_hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_parses_back() {
        for line in [
            "eio none",
            "eio 4096-8192",
            "eio-rate 1000000",
            "slow 0",
            "stall none",
            "stall 50/1000",
            "power-cut",
            "power-cut tear 512",
            "power-cut tear 4096 seed 7",
            "power-cut seed 0",
            "power-on",
            "store-limit 1048576",
        ] {
            let fault: Fault = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(fault.to_string(), line);
        }
        assert_eq!("eio 1M-2M\n".parse(), Ok(Fault::Eio(Some(1 << 20..2 << 20))));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |line: &str| line.parse::<Fault>().unwrap_err().to_string();
        assert!(said("explode").contains("`explode` is not a fault; write one of"));
        assert!(said("").contains("is not a fault"));
        assert!(said("eio 2M-1M").contains("the first below the second"));
        assert!(said("eio 5").contains("`5` in `eio 5`"));
        assert!(said("eio-rate 1000001").contains("of a million"));
        assert!(said("slow 60001").contains("60000 ms"));
        for text in ["stall 50", "stall 0/9", "stall 9/9", "stall 1/60001", "stall a/b"] {
            assert!(said(text).contains("as 50/1000"), "{text}");
        }
        assert!(said("power-cut tear").contains("512 or 4096"));
        assert!(said("power-cut tear 1024").contains("512 or 4096"));
        assert!(said("power-cut seed x").contains("whole number"));
        assert!(said("power-cut now").contains("takes tear"));
        assert!(said("store-limit lots").contains("as 512M"));
    }

    #[test]
    fn only_what_was_asked_for_fails() {
        let errors = Errors::new(1);
        assert!(!errors.hit(0..u64::MAX));
        errors.set_range(Some(4096..8192));
        let hits = [0..4096, 4095..4097, 5000..5001, 8191..9000, 8192..9000];
        assert_eq!(hits.map(|bytes| errors.hit(bytes)), [false, true, true, true, false]);
        errors.set_range(None);
        errors.set_rate(500_000);
        let hits = (0..1000).filter(|at| errors.hit(*at..at + 1)).count();
        assert!((400..600).contains(&hits), "{hits} of 1000 at half");
        errors.set_rate(0);
        assert!(!errors.hit(4096..8192));
        assert_eq!(errors.injected(), 3 + hits as u64);
    }
}
