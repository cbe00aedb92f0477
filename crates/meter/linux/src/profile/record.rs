//! Reading the kernel's records out of bytes.
//!
//! Layout (perf_event_open(2), with the sample format of `attribute`): an 8 byte header
//! `type u32, misc u16, size u16`, then the body; a record that is no sample ends with the same
//! `pid u32, tid u32, time u64` that a sample begins with. Invariant: odd or cut records are
//! skipped, never a panic; nothing is read past the bytes given.

use perf_event_open_sys::bindings::{
    PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES, PERF_RECORD_MISC_CPUMODE_MASK,
    PERF_RECORD_MISC_SWITCH_OUT, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, PERF_RECORD_MISC_USER,
    PERF_RECORD_SAMPLE, PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE,
};

const HEADER_BYTES: usize = 8;
/// Process, thread and time, as they stand in every record.
const STAMP_BYTES: usize = 16;
/// From here up, an entry of a call chain is a marker (PERF_CONTEXT_MAX), not an address.
const MARKER_MIN: u64 = -4095_i64 as u64;

/// Who, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Process; 0 for an idle processor.
    pub(crate) pid: u32,
    /// Thread.
    pub(crate) tid: u32,
    /// CLOCK_MONOTONIC, in ns.
    pub(crate) at_ns: u64,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RingRecord<'a> {
    /// A task was interrupted, or is about to leave its processor.
    Sample { stamp: Stamp, in_program: bool, chain: Chain<'a> },
    /// The task stops running; `preempted` while it could have gone on.
    Leave { stamp: Stamp, preempted: bool },
    /// The task begins to run.
    Enter { stamp: Stamp },
    /// The buffer was full and so many records before this one are missing.
    Lost { at_ns: Option<u64>, records: u64 },
}

/// The kernel part of a call chain: addresses, the innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain<'a> {
    bytes: &'a [u8],
}

impl Chain<'_> {
    /// The addresses, without the markers between kernel and program.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        let (words, _) = self.bytes.as_chunks();
        words.iter().map(|word| u64::from_ne_bytes(*word)).filter(|&word| word < MARKER_MIN)
    }
}

/// The records in some bytes, in order.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = RingRecord<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let header: &[u8; HEADER_BYTES] = rest.first_chunk()?;
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let misc = u32::from(u16::from_ne_bytes([header[4], header[5]]));
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        let record = rest.get(..size.max(HEADER_BYTES))?;
        rest = &rest[record.len()..];
        Some(decode(kind, misc, &record[HEADER_BYTES..]))
    })
    .flatten()
}

fn decode(kind: u32, misc: u32, body: &[u8]) -> Option<RingRecord<'_>> {
    match kind {
        PERF_RECORD_SAMPLE => {
            let stamp = stamp(body)?;
            let count = usize::try_from(word(body, STAMP_BYTES)?).ok()?;
            let chain = body.get(STAMP_BYTES + 8..)?;
            let bytes = chain.get(..count.checked_mul(8)?)?;
            let in_program = misc & PERF_RECORD_MISC_CPUMODE_MASK == PERF_RECORD_MISC_USER;
            Some(RingRecord::Sample { stamp, in_program, chain: Chain { bytes } })
        }
        PERF_RECORD_SWITCH | PERF_RECORD_SWITCH_CPU_WIDE => {
            let stamp = trailing_stamp(body)?;
            if misc & PERF_RECORD_MISC_SWITCH_OUT == 0 {
                return Some(RingRecord::Enter { stamp });
            }
            let preempted = misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0;
            Some(RingRecord::Leave { stamp, preempted })
        }
        PERF_RECORD_LOST => {
            let at_ns = trailing_stamp(body).map(|stamp| stamp.at_ns);
            Some(RingRecord::Lost { at_ns, records: word(body, 8)? })
        }
        PERF_RECORD_LOST_SAMPLES => {
            let at_ns = trailing_stamp(body).map(|stamp| stamp.at_ns);
            Some(RingRecord::Lost { at_ns, records: word(body, 0)? })
        }
        _ => None,
    }
}

fn trailing_stamp(body: &[u8]) -> Option<Stamp> {
    stamp(&body[body.len().checked_sub(STAMP_BYTES)?..])
}

fn stamp(body: &[u8]) -> Option<Stamp> {
    let bytes: &[u8; STAMP_BYTES] = body.first_chunk()?;
    let half =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Some(Stamp { pid: half(0), tid: half(4), at_ns: word(bytes, 8)? })
}

fn word(body: &[u8], at: usize) -> Option<u64> {
    body.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = (HEADER_BYTES + body.len()) as u16;
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes(), body].concat()
    }

    fn stamp_bytes(stamp: Stamp) -> Vec<u8> {
        [&stamp.pid.to_ne_bytes()[..], &stamp.tid.to_ne_bytes(), &stamp.at_ns.to_ne_bytes()]
            .concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    const STAMP: Stamp = Stamp { pid: 10, tid: 11, at_ns: 123_456_789_012 };
    const KERNEL: u64 = -128_i64 as u64;
    const USER: u64 = -512_i64 as u64;

    #[test]
    fn samples_and_switches_in_order() {
        let chain = [KERNEL, 0xffff_ffff_8100_0001, 0xffff_ffff_8100_0002, USER];
        let sample = [stamp_bytes(STAMP), words(&[4]), words(&chain)].concat();
        let program = [stamp_bytes(STAMP), words(&[0])].concat();
        let wide = [words(&[0]), stamp_bytes(STAMP)].concat();
        let lost = [words(&[7, 55]), stamp_bytes(STAMP)].concat();
        let bytes = [
            record(PERF_RECORD_SAMPLE, 1, &sample),
            record(PERF_RECORD_SAMPLE, 2, &program),
            record(PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT as u16, &wide),
            record(5, 0, &words(&[1, 2, 3])),
            record(PERF_RECORD_SWITCH, 0, &stamp_bytes(STAMP)),
            record(PERF_RECORD_LOST, 0, &lost),
            record(PERF_RECORD_LOST_SAMPLES, 0, &lost[8..]),
        ]
        .concat();
        let mut found = records(&bytes);
        let Some(RingRecord::Sample { stamp, in_program, chain }) = found.next() else { panic!() };
        assert_eq!((stamp, in_program), (STAMP, false));
        let addresses: Vec<u64> = chain.addresses().collect();
        assert_eq!(addresses, [0xffff_ffff_8100_0001, 0xffff_ffff_8100_0002]);
        assert!(matches!(found.next(), Some(RingRecord::Sample { in_program: true, .. })));
        assert_eq!(found.next(), Some(RingRecord::Leave { stamp: STAMP, preempted: false }));
        assert_eq!(found.next(), Some(RingRecord::Enter { stamp: STAMP }));
        let gap = RingRecord::Lost { at_ns: Some(STAMP.at_ns), records: 55 };
        assert_eq!(found.next(), Some(gap.clone()));
        assert_eq!(found.next(), Some(gap));
        assert_eq!(found.next(), None);
    }

    #[test]
    fn a_preempted_task_is_marked() {
        let misc = (PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) as u16;
        let bytes = record(PERF_RECORD_SWITCH, misc, &stamp_bytes(STAMP));
        let found = records(&bytes).next();
        assert_eq!(found, Some(RingRecord::Leave { stamp: STAMP, preempted: true }));
    }

    #[test]
    fn a_chain_longer_than_its_record_is_skipped() {
        let sample = [stamp_bytes(STAMP), words(&[u64::MAX]), words(&[1])].concat();
        let bytes = [
            record(PERF_RECORD_SAMPLE, 1, &sample),
            record(PERF_RECORD_SWITCH, 0, &stamp_bytes(STAMP)),
        ]
        .concat();
        assert_eq!(records(&bytes).collect::<Vec<_>>(), [RingRecord::Enter { stamp: STAMP }]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            prop_assert!(records(&bytes).count() <= bytes.len() / HEADER_BYTES);
        }

        #[test]
        fn odd_bodies_are_read_without_a_panic(
            kind in 0_u32..20,
            misc in any::<u16>(),
            body in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let bytes = record(kind, misc, &body);
            prop_assert!(records(&bytes).count() <= 1);
        }
    }
}
