//! What every drive promises, tried on each that the catalogue knows.

use std::collections::HashMap;

use iostrata_spec::disk::{DiskModel, DiskSpec};
use proptest::prelude::*;

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
    let make = || model::drive(spec, CAPACITY_BYTES, None, 3).unwrap();
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
    Ok(())
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
