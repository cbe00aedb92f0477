use crate::rig::{Case, run};
use iostrata_settings::PolicyName;
use iostrata_sim::flush::FlushChange;
#[test]
fn show() {
    let mut cases = vec![("stall".to_owned(), Case::stall())];
    for redo in ["100M", "500M"] {
        for iops in [800.0, 1500.0, 4000.0] {
            cases.push((format!("{redo} {iops}"), Case { redo, iops, ..Case::stall() }));
        }
    }
    for (n, c) in [
        ("half", FlushChange::IopsLimit(750.0)),
        ("x2", FlushChange::Load(2.0)),
        ("x0.5", FlushChange::Load(0.5)),
    ] {
        cases
            .push((n.to_owned(), Case { changes: vec![(180.0, c)], span_s: 480, ..Case::stall() }));
    }
    for policy in [PolicyName::PageCleaner56, PolicyName::PageCleaner57, PolicyName::PageCleaner84]
    {
        cases.push((policy.to_string(), Case { policy, ..Case::stall() }));
    }
    let only = std::env::var("CASE").ok();
    for (name, case) in cases {
        if only.as_ref().is_some_and(|o| *o != name) {
            continue;
        }
        let from = if case.changes.is_empty() { 60 } else { 240 };
        let (own, led) = (run(&case, false), run(&case, true));
        println!(
            "{name:16} own mean {:6.0} worst {:.2} p/t {:.2} | led mean {:6.0} worst {:.2} age {:.2} p/t {:.2} moves {}",
            own.mean(from),
            own.worst(from),
            own.pages_per_txn,
            led.mean(from),
            led.worst(from),
            led.age_max(from),
            led.pages_per_txn,
            led.moves.len()
        );
        if only.is_some() {
            let mut io = 200.0;
            for (at, s) in led.seconds.iter().enumerate() {
                for m in &led.moves {
                    if m.0 as usize == at && m.1 == iostrata_tune::Lever::IoCapacity {
                        io = m.2;
                    }
                }
                println!(
                    "{at:4} tps {:6.0} age {:5.1}% dirty {:6.0} flushed {:6.0} io {io:5} | own tps {:6.0} age {:5.1}% flushed {:6.0}",
                    s.commits,
                    100.0 * s.checkpoint_age as f64 / led.wall_age as f64,
                    s.dirty_pages,
                    s.flushed_pages,
                    own.seconds[at].commits,
                    100.0 * own.seconds[at].checkpoint_age as f64 / own.wall_age as f64,
                    own.seconds[at].flushed_pages
                );
            }
        }
    }
}
