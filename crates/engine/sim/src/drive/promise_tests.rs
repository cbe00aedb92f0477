//! What every drive promises, tried on each that the catalogue knows.

use std::collections::HashMap;

use iostrata_plan::disk::{DiskModel, DiskSpec};
use proptest::prelude::*;

use super::raid::{BATTERY_512M, Protected, ProtectedCacheParameters};
use super::{Command, Done, Drive, Request};
use crate::model;

const CAPACITY_BYTES: u64 = 1 << 30;

/// A request, how long after the one before it comes, and whether the caller looks in between.
fn arrival() -> impl Strategy<Value = (Request, u64, bool)> {
    let command = prop_oneof![
        4 => Just(Command::Read),
        4 => Just(Command::Write),
        1 => Just(Command::WriteThrough),
        1 => Just(Command::Flush),
    ];
    let gap_ns = prop_oneof![Just(0), 0..100_000_u64, 0..20_000_000_u64];
    (command, 0..CAPACITY_BYTES / 512, 0..600_u32, gap_ns, any::<bool>()).prop_map(
        |(command, sector, sectors, gap_ns, looks)| {
            let sectors = sectors.min((CAPACITY_BYTES / 512 - sector) as u32);
            let request = match command {
                Command::Flush => Request { id: 0, command, at_bytes: 0, bytes: 0 },
                _ => {
                    let bytes = sectors.max(1) * 512;
                    Request { id: 0, command, at_bytes: sector * 512, bytes }
                }
            };
            (request, gap_ns, looks)
        },
    )
}

/// Lets the drive live through the arrivals and says what was done, in the order handed out.
fn live(drive: &mut dyn Drive, arrivals: &[(Request, u64, bool)]) -> (Vec<u64>, Vec<Done>) {
    let (mut now_ns, mut done, mut came_ns) = (0, Vec::new(), Vec::new());
    for (id, (request, gap_ns, looks)) in arrivals.iter().enumerate() {
        let until_ns = now_ns + gap_ns;
        while *looks && drive.next_event_ns().is_some_and(|next_ns| next_ns <= until_ns) {
            now_ns = drive.next_event_ns().unwrap().max(now_ns);
            drive.advance(now_ns, &mut done);
        }
        now_ns = until_ns;
        drive.submit(now_ns, Request { id: id as u64, ..*request });
        came_ns.push(now_ns);
    }
    let mut idle_ns = None;
    while let Some(next_ns) = drive.next_event_ns() {
        assert!(next_ns >= now_ns || !done.is_empty() || idle_ns.is_none(), "time goes on");
        now_ns = next_ns.max(now_ns);
        drive.advance(now_ns, &mut done);
        idle_ns = Some(now_ns);
    }
    (came_ns, done)
}

fn check(spec: &DiskSpec, arrivals: &[(Request, u64, bool)]) -> Result<(), TestCaseError> {
    check_drive(spec, &|| model::drive(spec, CAPACITY_BYTES, None, 3).unwrap(), arrivals)
}

fn check_drive(
    spec: &DiskSpec,
    make: &dyn Fn() -> Box<dyn Drive>,
    arrivals: &[(Request, u64, bool)],
) -> Result<(), TestCaseError> {
    let (came_ns, done) = live(make().as_mut(), arrivals);
    let mut done_ns: HashMap<u64, u64> = HashMap::new();
    for window in done.windows(2) {
        prop_assert!(window[0].at_ns <= window[1].at_ns, "{spec}: handed out in order");
    }
    for Done { id, at_ns } in &done {
        prop_assert!(done_ns.insert(*id, *at_ns).is_none(), "{spec}: {id} is done twice");
        prop_assert!(*at_ns >= came_ns[*id as usize], "{spec}: {id} is done before it came");
    }
    prop_assert_eq!(done_ns.len(), arrivals.len(), "{}: all are done", spec);
    prop_assert_eq!(live(make().as_mut(), arrivals).1, done, "{}: by its seed alone", spec);
    // Whether the caller looks at every event or only when it submits must not matter.
    let blind: Vec<_> = arrivals.iter().map(|(request, gap, _)| (*request, *gap, false)).collect();
    let eager: Vec<_> = arrivals.iter().map(|(request, gap, _)| (*request, *gap, true)).collect();
    let moments = |arrivals: &[_]| {
        let (_, mut done) = live(make().as_mut(), arrivals);
        done.sort_by_key(|done| (done.at_ns, done.id));
        done
    };
    prop_assert_eq!(moments(&blind), moments(&eager), "{}: however often it is asked", spec);
    prop_assert_eq!(waited(make().as_mut(), arrivals), moments(&eager), "{}: who only waits", spec);
    Ok(())
}

/// The same for one who looks only when something may be done, and finds nothing done before.
fn waited(drive: &mut dyn Drive, arrivals: &[(Request, u64, bool)]) -> Vec<Done> {
    let (mut now_ns, mut done) = (0, Vec::new());
    for (id, (request, gap_ns, _)) in arrivals.iter().enumerate() {
        wait(drive, now_ns + gap_ns, &mut now_ns, &mut done);
        drive.submit(now_ns, Request { id: id as u64, ..*request });
    }
    wait(drive, u64::MAX, &mut now_ns, &mut done);
    assert_eq!(drive.next_done_ns(), None, "nothing is in flight");
    done.sort_by_key(|done| (done.at_ns, done.id));
    done
}

fn wait(drive: &mut dyn Drive, until_ns: u64, now_ns: &mut u64, done: &mut Vec<Done>) {
    while let Some(next_ns) = drive.next_done_ns().filter(|next_ns| *next_ns <= until_ns) {
        let (before, asked_ns) = (done.len(), next_ns);
        drive.advance(next_ns.max(*now_ns), done);
        let early = done[before..].iter().find(|done| done.at_ns < asked_ns);
        assert!(early.is_none(), "{early:?} is done before {asked_ns}, when nothing may be");
        *now_ns = next_ns.max(*now_ns);
    }
    *now_ns = if until_ns == u64::MAX { *now_ns } else { until_ns };
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_model_keeps_its_promises(arrivals in prop::collection::vec(arrival(), 1..120)) {
        for model in DiskModel::NAMED {
            let spec = DiskSpec::of(model);
            check(&spec, &arrivals)?;
            let protected = || -> Box<dyn Drive> {
                let cache = ProtectedCacheParameters { cache_bytes: 1 << 20, ..BATTERY_512M };
                let drive = model::drive(&spec, CAPACITY_BYTES, None, 3).unwrap();
                Box::new(Protected::before(drive, cache))
            };
            check_drive(&spec, &protected, &arrivals)?;
            if let Ok(shallow) = format!("{spec},queue=2").parse() {
                check(&shallow, &arrivals)?;
            }
            if let Ok(through) = format!("{spec},cache=off").parse::<DiskSpec>()
                && model::drive(&through, CAPACITY_BYTES, None, 1).is_ok()
            {
                check(&through, &arrivals)?;
            }
        }
    }
}
