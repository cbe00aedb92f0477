//! What makes a job's writes durable: flushes after so many of them, flags of the file, one flush
//! at the end.
//!
//! Invariant: a workload has one kind of flush; two are taken where one is due whenever the other
//! is.

use crate::{Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, RangeSteps, SyncWrites};

use super::error::Why;
use super::settings::Settings;
use super::value;

/// Puts a job's durability options into its workload.
pub(super) fn set(settings: &Settings, spec: &mut IoSpec) {
    // As in fio, direct has each write written back: there is no way around the cache.
    if spec.api == IoApi::Mmap && std::mem::take(&mut spec.direct) && spec.mix.writes() {
        spec.sync = SyncWrites::RwfDsync;
    }
    if !spec.mix.writes() {
        return;
    }
    spec.flush = flush(settings);
    let sync = settings.value("sync", |text| match text {
        "0" | "none" => Ok(SyncWrites::None),
        "" | "1" | "sync" => Ok(SyncWrites::Sync),
        "dsync" => Ok(SyncWrites::Dsync),
        _ => Err(Why::new("use none, sync or dsync")),
    });
    spec.sync = sync.unwrap_or(spec.sync);
    if spec.api == IoApi::Mmap && spec.sync != SyncWrites::None {
        spec.sync = SyncWrites::RwfDsync;
    }
    spec.variation.end_flush = settings.switch("end_fsync").unwrap_or(false);
}

/// The flushes between writes. As in fio, if several are due at once, only the first one here is
/// made.
fn flush(settings: &Settings) -> Option<Flush> {
    let every = |name| settings.value(name, value::count).filter(|every| *every > 0);
    let ranges = settings.value("sync_file_range", range).filter(|(_, every)| *every > 0);
    let asked = [
        ("fsync", every("fsync").map(|every| (FlushMethod::Fsync, every))),
        ("fdatasync", every("fdatasync").map(|every| (FlushMethod::Fdatasync, every))),
        ("sync_file_range", ranges),
    ];
    let mut asked = asked.into_iter().filter_map(|(name, flush)| Some((name, flush?)));
    let (mut name, (mut method, mut every)) = asked.next()?;
    for (other, (other_method, other_every)) in asked {
        let (kept, left_out, text) = if other_every.is_multiple_of(every) {
            (name, other, format!("ignored: there is an {name} whenever it is due"))
        } else if every.is_multiple_of(other_every) && other == "fdatasync" {
            (other, name, format!("every flush is an {other}, with {name}'s among them"))
        } else {
            let why = format!("{name} and {other} are both given; use one of them");
            let asked = [settings.peek(name), settings.peek(other)].into_iter().flatten();
            let last = asked.max_by_key(|one| one.origin.order());
            last.into_iter().for_each(|one| settings.refuse(one, Why::new(why.clone())));
            continue;
        };
        settings.peek(left_out).into_iter().for_each(|one| settings.note(one, &text));
        if kept == other {
            (name, method, every) = (other, other_method, other_every);
        }
    }
    Some(Flush { method, every, scope: FlushScope::File, count: FlushCount::Writes })
}

/// `wait_before,write:8`: what the call does, and after how many writes.
fn range(text: &str) -> Result<(FlushMethod, u32), Why> {
    let (asked, every) = match text.rsplit_once(':') {
        Some((asked, every)) => (asked, value::count(every)?),
        None => (text, 1),
    };
    let mut steps = RangeSteps::default();
    for step in asked.split(',') {
        match step.trim() {
            "wait_before" => steps.wait_before = true,
            "write" => steps.write = true,
            "wait_after" => steps.wait_after = true,
            _ => {
                let why = "use wait_before, write and wait_after, then :N for every N writes, such \
                           as wait_before,write:8";
                return Err(Why::new(why));
            }
        }
    }
    Ok((FlushMethod::SyncFileRange(steps), every))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_says_its_steps_and_after_how_many_writes() {
        let steps = |wait_before, write, wait_after| {
            FlushMethod::SyncFileRange(RangeSteps { wait_before, write, wait_after })
        };
        assert_eq!(range("write:8"), Ok((steps(false, true, false), 8)));
        assert_eq!(range("wait_before,write"), Ok((steps(true, true, false), 1)));
        assert_eq!(range("wait_before,write,wait_after:2"), Ok((steps(true, true, true), 2)));
        for text in ["8", "foo:2", ":", "", "write:x", "wait_before:4,write:8"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
