//! Recordings of servers as one picture: the throughput of each, all at one scale.
//!
//! Invariant: panels stand in the order in which the runs were named, two beside each other, so
//! that whoever names them chooses what is above what.

use iostrata_run::WatchDocument;

use crate::report::chart::{Chart, Course, Line, Lines, Plot, Scale, Slices, solid};
use crate::report::colour::Colour;
use crate::report::document::{Panels, Sheet};
use crate::report::words;

const RATE: &str = "transactions/s";

/// The picture of recordings with the names that they go by; nothing where no one tells
/// transactions.
pub(crate) fn sheet(runs: &[(&str, &WatchDocument)]) -> Option<Sheet> {
    let told: Vec<(&str, &WatchDocument, Vec<f64>)> =
        runs.iter().filter_map(|(name, run)| Some((*name, *run, rates(run)?))).collect();
    let all = told.iter().flat_map(|(_, _, rates)| rates.iter().copied());
    let top = 1.05 * all.fold(1.0, f64::max);
    let charts: Vec<Chart> = told
        .iter()
        .enumerate()
        .map(|(at, (name, run, rates))| chart(at, name, run, rates.clone(), top))
        .collect();
    let legend = vec![(solid(Colour::Line(0)), RATE.to_owned())];
    let panels = Panels { legend, charts, has_switch: false };
    let title = "Throughput of servers, second by second".to_owned();
    (!told.is_empty()).then(|| Sheet { title, says: says(&told), panels })
}

/// Transactions per second of each sample; where the server did not answer it did none.
fn rates(run: &WatchDocument) -> Option<Vec<f64>> {
    let samples = run.samples.get(1..)?;
    let is_told = samples.iter().any(|one| one.tps.is_some());
    is_told.then(|| samples.iter().map(|one| one.tps.unwrap_or(0.0)).collect())
}

fn chart(at: usize, name: &str, run: &WatchDocument, values: Vec<f64>, top: f64) -> Chart {
    let width_s = run.duration_s / values.len().max(1) as f64;
    let slices = Slices { width_s, values, unit: RATE, title: name.to_owned() };
    let line = Line {
        name: String::new(),
        stroke: solid(Colour::Line(0)),
        course: Course::Slices(slices),
        marked: None,
    };
    let lines = Lines::new("s", RATE, vec![line]).panel(Scale::Shared(top));
    Chart::new(format!("recording-{at}"), name, Plot::Lines(lines))
}

/// What was recorded: the servers, for how long.
fn says(told: &[(&str, &WatchDocument, Vec<f64>)]) -> String {
    let mut servers: Vec<String> = Vec::new();
    for (_, run, _) in told {
        let server = format!("{} {}", run.target.flavour, run.target.version);
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let longest = told.iter().map(|(_, run, _)| run.duration_s).fold(0.0, f64::max);
    format!("{}, up to {}.", servers.join(", "), words::value(longest, "s"))
}

#[cfg(test)]
mod tests {
    use iostrata_run::{WatchSample, WatchTarget};

    use super::*;
    use crate::report::svg;

    fn run(rates: &[Option<f64>]) -> WatchDocument {
        let samples = rates.iter().map(|tps| WatchSample { tps: *tps, ..WatchSample::default() });
        let target = WatchTarget {
            flavour: "mariadb".to_owned(),
            version: "10.11".to_owned(),
            ..WatchTarget::default()
        };
        WatchDocument {
            target,
            duration_s: 10.0,
            samples: samples.collect(),
            ..WatchDocument::default()
        }
    }

    #[test]
    fn each_run_is_a_panel_and_what_tells_nothing_is_none() {
        let (high, low) = (run(&[None, Some(400.0), None]), run(&[None, Some(40.0), Some(50.0)]));
        let silent = run(&[None, None]);
        let drawn = sheet(&[("before", &high), ("silent", &silent), ("after", &low)]).unwrap();
        let drawn = svg::sheet(&drawn);
        assert!(drawn.contains(">before<") && drawn.contains(">after<"), "{drawn}");
        assert!(!drawn.contains("silent"), "{drawn}");
        assert!(drawn.contains("mariadb 10.11, up to 10"), "{drawn}");
        assert!(sheet(&[("silent", &silent)]).is_none());
    }
}
