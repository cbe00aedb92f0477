//! Whether a job's blocks are verified, and by what.
//!
//! Invariant: whichever checksum is named, blocks have our own seal; only a pattern of the job
//! stands in its place.

use crate::variation::Verify;
use crate::{IoSpec, Mix, SyncWrites};

use super::error::Why;
use super::settings::Settings;
use super::times::Times;
use super::value;

/// The methods of fio by which each block is verified with a checksum.
const VERIFY_METHODS: [&str; 20] = [
    "crc32c",
    "crc32c-intel",
    "crc32",
    "crc16",
    "crc7",
    "crc64",
    "md5",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "1",
    "pattern_hdr",
    "crc32-intel",
    "sha",
];

/// Puts a job's verification options into its workload.
pub(super) fn set(settings: &Settings, spec: &mut IoSpec, times: Times) {
    let asked = settings.value("verify", |text| match text {
        "0" | "none" => Ok(false),
        "pattern" | "null" => Ok(true),
        method if VERIFY_METHODS.contains(&method) => Ok(true),
        _ => Err(Why::new("there is no such method; use crc32c")),
    });
    let (Some(true), Some(assignment)) = (asked, settings.peek("verify")) else { return };
    let reads_back = settings.switch("do_verify").unwrap_or(true);
    if spec.mix == Mix::Trim || spec.mix == Mix::TrimWrite {
        settings.refuse(assignment, Why::new("what is discarded has no content to verify"));
    }
    let loops = if reads_back && spec.mix.writes() { loops(settings, times) } else { 0 };
    let pattern = match assignment.value.as_str() {
        "pattern" => pattern(settings),
        _ => Vec::new(),
    };
    let is_unchecked = assignment.value == "null";
    spec.variation.verify = Some(Verify { reads_back, loops, pattern, is_unchecked });
    if settings.switch("verify_only").unwrap_or(false) && spec.mix == Mix::Write {
        // What an earlier run wrote is read in the same order.
        (spec.mix, spec.flush, spec.sync) = (Mix::Read, None, SyncWrites::None);
        spec.variation.end_flush = false;
    }
}

/// The parts behind each of which blocks are read back: as in fio, each loop.
fn loops(settings: &Settings, times: Times) -> u32 {
    if times.time_based {
        let text = "blocks are read back when the bytes are moved: not with time_based";
        settings.peek("verify").into_iter().for_each(|one| settings.note(one, text));
        return 0;
    }
    settings.value("loops", value::count).filter(|loops| *loops > 1).unwrap_or(0)
}

/// The bytes that blocks repeat; none where they hold their offsets, which a seal has, too.
fn pattern(settings: &Settings) -> Vec<u8> {
    match settings.value("verify_pattern", value::pattern) {
        Some(Some(bytes)) => bytes,
        Some(None) => {
            let text = "blocks have a seal with their offset, and no pattern";
            settings.peek("verify_pattern").into_iter().for_each(|one| settings.note(one, text));
            Vec::new()
        }
        None => Vec::new(),
    }
}
