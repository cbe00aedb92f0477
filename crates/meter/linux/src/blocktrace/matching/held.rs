//! Bios that another task brought to the queue for a call that waits.
//!
//! An I/O limit takes a bio away from its caller and lets a kernel worker bring it later; so do
//! encrypted devices. Such a bio names no call. It is given to the call without a bio of its own
//! that it fits into: same direction, same length where the call says,
//! begun before the bio arrived and ended after it was complete; of several the one that ended
//! first, since a call returns soon after its bio. Limits let requests of one direction through in
//! their order, so that a wrong choice exchanges two calls and leaves the mean as it is.
//! Write-back is left alone: nobody waits for it, and the kernel marks it so.

use std::collections::{BTreeSet, HashMap};

use super::calls::Calls;
use super::requests::DoneBio;
use crate::blocktrace::event::{CallKind, RequestKind};

/// Calls are looked at up to this many for one bio; more do not end nearly at the same time.
const TRIED_MAX: usize = 4096;

/// Calls without a bio, in the order of their ends.
type Bare = HashMap<(CallKind, Option<u64>), BTreeSet<(u64, usize)>>;

/// Gives bios that a kernel worker brought to calls without a bio. Returns how many of them went
/// without.
pub(super) fn claim(bios: &mut [DoneBio], calls: &mut Calls, is_limited: bool) -> u64 {
    let mut bare: Bare = HashMap::new();
    for (number, call) in calls.all() {
        if let (true, Some(ended)) = (call.is_bare(), call.ended_ns) {
            bare.entry((call.kind, call.bytes)).or_default().insert((ended, number));
        }
    }
    let is_waited_for = |bio: &DoneBio| bio.is_sync || bio.kind == RequestKind::Read;
    let is_lonely = |bio: &DoneBio| bio.call.is_none() && bio.by_worker && is_waited_for(bio);
    let mut lonely: Vec<&mut DoneBio> = bios.iter_mut().filter(|bio| is_lonely(bio)).collect();
    lonely.sort_by_key(|bio| bio.completed_ns);
    let mut unclaimed = 0;
    for bio in lonely {
        match take_fitting(&mut bare, calls, bio) {
            Some(call) => {
                calls.give(call, bio.queued_ns, bio.completed_ns, bio.bytes, is_limited);
                bio.call = Some(call);
            }
            None => unclaimed += 1,
        }
    }
    unclaimed
}

fn take_fitting(bare: &mut Bare, calls: &Calls, bio: &DoneBio) -> Option<usize> {
    let kind = match bio.kind {
        RequestKind::Read => CallKind::Read,
        RequestKind::Write => CallKind::Write,
        _ => return None,
    };
    let fits = |number: usize| calls.get(number).is_some_and(|call| call.began_ns <= bio.queued_ns);
    let best = |bytes: Option<u64>| {
        let ends = bare.get(&(kind, bytes))?.range((bio.completed_ns, 0)..);
        ends.take(TRIED_MAX).find(|(_, number)| fits(*number)).copied()
    };
    let (known, unknown) = (best(Some(bio.bytes)), best(None));
    let (chosen, bytes) = match (known, unknown) {
        (Some(known), Some(unknown)) if unknown < known => (unknown, None),
        (Some(known), _) => (known, Some(bio.bytes)),
        (None, unknown) => (unknown?, None),
    };
    bare.get_mut(&(kind, bytes))?.remove(&chosen);
    Some(chosen.1)
}
