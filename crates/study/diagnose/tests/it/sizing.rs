//! Findings about flushing from the database-shaped load: percentiles over all replicates, every
//! lower rate held, and what fell short.

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_plan::OpKind;
use iostrata_run::{Event, PooledLatencies, PooledLatency, ProbeDocument};
use iostrata_stats::Percentile;

use crate::support::{Disk, found, host, probe};

/// The tail of commits at each level, in microseconds: what was seen and its interval.
type Tails = [[f64; 3]; 6];

/// A probe whose commits at each level have these tails over all replicates, from `n` commits.
fn with_tails(disk: &Disk, tails: &Tails, n: u64) -> ProbeDocument {
    with_moments(disk, tails, n, |_| None)
}

/// The same with the moments at which commits lay beyond each percentile.
fn with_moments(
    disk: &Disk,
    tails: &Tails,
    n: u64,
    moments: impl Fn(f64) -> Option<u64>,
) -> ProbeDocument {
    let mut events = probe(disk, &host(), 1);
    for (number, [us, low, high]) in tails.iter().enumerate() {
        let percentiles = [90.0, 95.0, 98.0, 99.0].map(|percent| Percentile {
            percent,
            us: *us,
            us_ci95: Some([*low, *high]),
            moments: moments(percent),
        });
        events.push(Event::Pooled(Box::new(PooledLatencies {
            point: format!("database_level_{number}"),
            replicates: vec![0, 1, 2],
            latencies: vec![PooledLatency {
                stream: "redo".to_owned(),
                op: OpKind::Sync,
                n,
                percentiles: percentiles.to_vec(),
            }],
        })));
    }
    summarise(host(), &events, ProbeEnd::default())
}

fn sharp(us: f64) -> [f64; 3] {
    [us, 0.9 * us, 1.1 * us]
}

/// Storage that takes every page rate of the plan.
fn roomy() -> Disk {
    Disk { pages_per_s_max: 1e6, ..Disk::default() }
}

fn number(document: &ProbeDocument, name: &str) -> Option<f64> {
    found(document, "flush_capacity")?.evidence.get(name)?.as_f64()
}

#[test]
fn what_all_replicates_say_counts_and_not_the_middle_one() {
    // Each replicate by itself has a tail of a hundred microseconds.
    let tails = [sharp(100.0), sharp(900.0), sharp(900.0), sharp(9e3), sharp(9e3), sharp(9e4)];
    let document = with_tails(&roomy(), &tails, 2_000);
    assert_eq!(number(&document, "pages_per_s"), Some(5_000.0));
    assert_eq!(number(&document, "pages_per_s_missed"), Some(10_000.0));
    assert_eq!(number(&document, "commit_p99_us"), Some(900.0));
    assert_eq!(number(&document, "commit_percentile"), Some(99.0));
}

#[test]
fn a_percentile_of_few_stalls_is_not_quoted() {
    for (stalls, percent) in [(10, 99.0), (9, 98.0)] {
        let of = |percent: f64| Some(if percent >= 99.0 { stalls } else { 64 });
        let document = with_moments(&roomy(), &[sharp(100.0); 6], 100_000, of);
        assert_eq!(number(&document, "commit_percentile"), Some(percent), "{stalls} stalls");
    }
}

#[test]
fn the_percentile_that_is_quoted_has_enough_beyond_it() {
    let tails = [sharp(100.0); 6];
    for (n, percent) in [(1_000, 99.0), (999, 98.0), (500, 98.0), (499, 95.0), (150, 90.0)] {
        let document = with_tails(&roomy(), &tails, n);
        assert_eq!(number(&document, "commit_percentile"), Some(percent), "of {n}");
        let text = &found(&document, "flush_capacity").unwrap().text;
        assert!(text.contains(&format!("{percent} % of commits")), "{text}");
    }
}

#[test]
fn a_rate_is_held_only_when_every_lower_one_is() {
    let tails = [sharp(100.0), sharp(100.0), sharp(5e3), sharp(100.0), sharp(100.0), sharp(9e4)];
    let document = with_tails(&roomy(), &tails, 2_000);
    assert_eq!(number(&document, "pages_per_s"), Some(2_000.0));
    // The level that missed lies below two that held: the limit is not there.
    assert_eq!(number(&document, "pages_per_s_missed"), Some(30_000.0));
}

#[test]
fn what_may_or_may_not_hold_is_neither_held_nor_missed() {
    let unsure = [1_900.0, 1_500.0, 2_900.0];
    let tails = [sharp(100.0), sharp(100.0), unsure, unsure, sharp(9e4), sharp(9e4)];
    let document = with_tails(&roomy(), &tails, 2_000);
    assert_eq!(number(&document, "pages_per_s"), Some(2_000.0));
    assert_eq!(number(&document, "pages_per_s_missed"), Some(20_000.0));
    let all_unsure = [sharp(100.0), unsure, unsure, unsure, unsure, unsure];
    let document = with_tails(&roomy(), &all_unsure, 2_000);
    assert!(found(&document, "flush_capacity").is_none(), "nothing is known");
}

#[test]
fn what_fell_short_is_named_with_what_it_asked_for() {
    // Pages are done, reads are not: the page rate is no contradiction.
    let mut events = probe(&roomy(), &host(), 2);
    for event in &mut events {
        let Event::Replicate(one) = event else { continue };
        if one.point.id != "database_level_5" {
            continue;
        }
        for stream in one.streams.iter_mut().filter(|stream| stream.name == "readers") {
            let read = stream.ops.get_mut(OpKind::Read).unwrap();
            read.iops = read.iops.scaled(0.6);
        }
    }
    let document = summarise(host(), &events, ProbeEnd::default());
    let text = &found(&document, "flush_capacity").unwrap().text;
    assert!(text.contains("at 30 K pages/s only 600 of 1 K reads/s are done"), "{text}");
}
