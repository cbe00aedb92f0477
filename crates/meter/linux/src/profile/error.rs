//! What can go wrong while profiling, and what the system says to somebody who may not sample the
//! kernel.
//!
//! Invariant: a refusal names the value found and a fix for exactly that.

use std::str::FromStr;
use std::{fs, io};

use rustix::io::Errno;

use crate::profile::event::Reach;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The system does not let this process sample the kernel.
    #[error("the kernel may not be sampled: {why}; {fix}")]
    NotPermitted {
        /// What forbids it, with the value found.
        why: String,
        /// What to do.
        fix: String,
    },
    /// The kernel has no way to sample.
    #[error("this kernel cannot sample: {source}; it needs CONFIG_PERF_EVENTS")]
    Unsupported {
        /// What the system said.
        source: io::Error,
    },
    /// A rate of 0, or one above what the kernel allows.
    #[error("a profile at {found} Hz is not possible; choose 1 to {max}")]
    Rate {
        /// Samples per second that were asked for.
        found: u32,
        /// The kernel's limit (kernel.perf_event_max_sample_rate).
        max: u32,
    },
    /// The system refused a step that it normally grants.
    #[error("{doing} failed: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The steps came in the wrong order.
    #[error("a profiler was asked to {asked} while it was {state}; the order is start, stop, take")]
    OutOfOrder {
        /// The step asked for.
        asked: &'static str,
        /// What the profiler was doing.
        state: &'static str,
    },
    /// The thread that drains the buffers ended by itself.
    #[error("the thread that reads the samples ended unexpectedly; this is a bug")]
    ReaderGone,
}

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const RATE_MAX: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// A number in a file; absent when it cannot be read.
fn number<T: FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Whether a refusal is about permission.
fn is_refusal(source: &io::Error) -> bool {
    matches!(Errno::from_io_error(source), Some(Errno::ACCESS | Errno::PERM))
}

/// Whether an error is about permission.
pub(crate) fn is_refusal_error(error: &ProfileError) -> bool {
    matches!(error, ProfileError::NotPermitted { .. })
}

/// Refuses a rate that the kernel would refuse.
pub(crate) fn check_rate(hz: u32) -> Result<(), ProfileError> {
    let max = number(RATE_MAX).unwrap_or(100_000);
    if (1..=max).contains(&hz) { Ok(()) } else { Err(ProfileError::Rate { found: hz, max }) }
}

/// Why an event could not be opened.
pub(crate) fn explain(source: io::Error, reach: Reach) -> ProfileError {
    if is_refusal(&source) {
        let is_root = rustix::process::geteuid().is_root();
        return refusal(number(PARANOID), is_root, reach);
    }
    match Errno::from_io_error(&source) {
        Some(Errno::NOSYS | Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP) => {
            ProfileError::Unsupported { source }
        }
        _ => ProfileError::System { doing: "opening a kernel event (perf_event_open)", source },
    }
}

fn refusal(paranoid: Option<i32>, is_root: bool, reach: Reach) -> ProfileError {
    // 0 allows events of whole processors, 1 the kernel's part of one's own tasks.
    let enough = match reach {
        Reach::Machine => 0,
        Reach::Own => 1,
    };
    let why = match paranoid {
        None => "kernel.perf_event_paranoid cannot be read".to_owned(),
        Some(value) if is_root || value <= enough => format!(
            "kernel.perf_event_paranoid is {value}, and yet perf_event_open is refused, as in a \
             container without CAP_PERFMON"
        ),
        Some(value) => {
            format!("kernel.perf_event_paranoid is {value} and this process lacks CAP_PERFMON")
        }
    };
    let in_container = is_root || paranoid.is_none_or(|value| value <= enough);
    let fix = if in_container {
        "start the container with --cap-add PERFMON (or --privileged)".to_owned()
    } else {
        format!("run as root, or once as root: sysctl kernel.perf_event_paranoid={enough}")
    };
    ProfileError::NotPermitted { why, fix }
}

/// The note for a profile that fell back to this process.
pub(crate) fn only_own(refused: &ProfileError) -> String {
    format!("only this process was sampled, without kernel threads and idle processors: {refused}")
}

/// The note for a kernel that hides its addresses.
pub(crate) fn hidden_symbols() -> String {
    "the kernel hides its addresses, so no function has a name and no time a layer; run as root, \
     or once as root: sysctl kernel.kptr_restrict=0"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(paranoid: Option<i32>, is_root: bool, reach: Reach) -> String {
        refusal(paranoid, is_root, reach).to_string()
    }

    #[test]
    fn a_refusal_names_the_value_and_the_fix() {
        let machine = text(Some(2), false, Reach::Machine);
        assert!(machine.contains("perf_event_paranoid is 2"), "{machine}");
        assert!(machine.contains("sysctl kernel.perf_event_paranoid=0"), "{machine}");
        let own = text(Some(3), false, Reach::Own);
        assert!(own.contains("is 3") && own.contains("perf_event_paranoid=1"), "{own}");
    }

    #[test]
    fn root_in_a_container_is_told_about_the_capability() {
        for text in [text(Some(2), true, Reach::Own), text(None, false, Reach::Machine)] {
            assert!(text.contains("--cap-add PERFMON"), "{text}");
            assert!(!text.contains("sysctl"), "{text}");
        }
    }

    #[test]
    fn refusals_and_missing_events_are_told_apart() {
        assert!(is_refusal(&Errno::ACCESS.into()) && is_refusal(&Errno::PERM.into()));
        assert!(!is_refusal(&Errno::NOENT.into()));
        let missing = explain(Errno::NOSYS.into(), Reach::Own);
        assert!(matches!(missing, ProfileError::Unsupported { .. }), "{missing}");
        let other = explain(Errno::MFILE.into(), Reach::Own);
        assert!(matches!(other, ProfileError::System { .. }), "{other}");
    }
}
