//! Scratch.
#![allow(clippy::print_stdout, clippy::unwrap_used)]
use iostrata_diagnose::*;
use iostrata_run::*;
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let run = RunReader::open(dir.as_ref()).unwrap();
    let host = run.manifest().host.clone().unwrap();
    let events = run.events();
    for s in suspect(events, &host) {
        println!(
            "suspect {} {:?}",
            s.id.name(),
            s.confirm.iter().map(|p| &p.id).collect::<Vec<_>>()
        );
    }
    let mut d = summarise(host, events, ProbeEnd::default());
    for r in &d.rungs {
        println!(
            "{:24} {:12?} {:10.1} {:?} n{} {} app {:.1?} dev {:.1?} {:?}",
            r.name,
            r.layer,
            r.value,
            r.value_ci95.map(|c| [c[0].round(), c[1].round()]),
            r.value_n,
            r.unit,
            r.latency_us,
            r.device_latency_us,
            r.verdicts.iter().collect::<Vec<_>>()
        );
    }
    d.rungs.clear();
    for c in &d.curves {
        println!("CURVE {} knee {:?}: {}", c.name, c.knee_x, c.text);
        for p in &c.points {
            println!(
                "   {} {:.1} mean {:.1?} p99 {:.1?}",
                p.x, p.value, p.latency_mean_us, p.latency_p99_us
            );
        }
    }
    d.curves.clear();
    println!(
        "{}",
        serde_json::to_string_pretty(&(
            &d.headline,
            &d.losses,
            &d.findings,
            &d.advice,
            &d.redo_table,
            &d.verifications
        ))
        .unwrap()
    );
}
