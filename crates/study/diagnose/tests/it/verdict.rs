//! The sentences agree with each other, with the figures, and with what was not measured.

use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_plan::OpKind;
use iostrata_run::{Event, ProbeDocument, Refusal, Unavailable};
use iostrata_stats::{Verdict, Verdicts, paired};

use crate::support::{Disk, document, found, host, loss_ids, probe, probe_points, probe_with};

#[test]
fn a_commit_has_one_latency_everywhere() {
    let document = document(&Disk { noise: 0.1, ..Disk::default() }, &host(), 3);
    let rung = document.rungs.iter().find(|rung| rung.name == "commit_fdatasync").unwrap();
    let curve = document.curves.iter().find(|curve| curve.name == "commit").unwrap();
    let evidence = &found(&document, "commit_rate").unwrap().evidence;
    assert_eq!(curve.points[0].rung, rung.name);
    assert_eq!(curve.points[0].latency_mean_us, rung.latency_us);
    assert_eq!(evidence["commit_us"].as_f64(), rung.latency_us);
}

#[test]
fn a_rate_of_zero_is_no_figure() {
    let mut events = probe(&Disk::default(), &host(), 4);
    for event in &mut events {
        let Event::Replicate(one) = event else { continue };
        if one.point.id == "sustained_16k" {
            let write = one.streams[0].ops.get_mut(OpKind::Write).unwrap();
            (write.ios, write.iops) = (0, write.iops.scaled(0.0));
        }
    }
    let document = summarise(host(), &events, ProbeEnd::default());
    assert!(document.rungs.iter().all(|rung| rung.name != "sustained_16k"));
    assert_eq!(document.unknown_of("sustained_16k").unwrap().why, Refusal::NothingCompleted);
}

#[test]
fn what_cannot_be_told_apart_is_no_clean_bill() {
    let mut open = 0;
    for seed in 0..20 {
        let disk = Disk { noise: 0.5, ..Disk::default() };
        let document = document(&disk, &host(), seed);
        let text = document.headline.join(" ");
        assert!(document.compared > 10, "{}", document.compared);
        if !document.undecided.is_empty() && document.losses.is_empty() {
            open += 1;
            assert!(text.contains("stayed open"), "{text}");
        }
    }
    assert!(open > 0, "no seed left anything open");
}

/// The planned points of a probe, as they were before anything was confirmed.
fn planned(disk: &Disk, seed: u64) -> Vec<Event> {
    let all = probe(disk, &host(), seed).into_iter();
    all.take_while(|event| !matches!(event, Event::Suspected { .. })).collect()
}

const ONE_FILE: [&str; 2] = ["write_16k_files_8", "write_16k_files_1"];

#[test]
fn where_nothing_was_decided_it_is_said() {
    let mut open = 0;
    for seed in 0..20 {
        let mut events = planned(&Disk { noise: 0.5, ..Disk::default() }, seed);
        events.retain(|event| match event {
            Event::Replicate(one) => ONE_FILE.contains(&one.point.id.as_str()),
            _ => false,
        });
        let document = summarise(host(), &events, ProbeEnd::default());
        assert_eq!(document.compared, 1);
        if !document.undecided.is_empty() {
            open += 1;
            let text = document.headline.join(" ");
            assert!(
                text.contains("the interval of 1 comparison of equal work holds a loss and none"),
                "{text}"
            );
        }
    }
    assert!(open > 0, "every seed was decided");
}

/// What becomes of a true loss of the writes to one file, in probes that compare nothing else, each
/// confirmed where it suspects one.
#[derive(Debug, Default)]
struct Judged {
    probes: u32,
    /// Shown, or small and named as measurable.
    named: u32,
    undecided: u32,
    /// Neither.
    cleared: u32,
    /// Cleared, with an upper bound below the true cost.
    none: u32,
    /// The upper bound lies below the true cost.
    understated: u32,
}

fn judged(true_pct: f64, noise: f64) -> Judged {
    let probes = if std::env::var_os("IOSTRATA_SOAK").is_some() { 4_000 } else { 400 };
    let mut judged = Judged { probes, ..Judged::default() };
    for seed in 0..u64::from(probes) {
        let disk = Disk { noise, ..Disk::default() }.with(ONE_FILE[1], 1.0 - true_pct / 100.0);
        let events = probe_points(&disk, &host(), seed, &ONE_FILE);
        let document = summarise(host(), &events, ProbeEnd::default());
        assert_eq!(document.compared, 1);
        let text = document.headline.join(" ");
        // A finding rests on what confirms it; all replicates together may show a little less.
        let is_lost = !document.losses.is_empty() || !loss_ids(&document).is_empty();
        let is_open = !document.undecided.is_empty();
        let is_small = !document.small_losses.is_empty();
        assert_eq!(text.contains("No layer costs more than "), !is_lost && !is_open, "{text}");
        let is_wide = document.loss_at_most_pct.is_some_and(|most| most >= 50.0);
        assert_eq!(
            text.contains("That rules out little"),
            is_wide && !is_lost && !is_open,
            "{text}"
        );
        let is_named_small = is_small && !is_lost;
        assert_eq!(text.contains("Measured, below the threshold: "), is_named_small, "{text}");
        match (is_lost || is_small, is_open) {
            (true, _) => judged.named += 1,
            (false, true) => judged.undecided += 1,
            (false, false) => judged.cleared += 1,
        }
        let most_pct = document.loss_at_most_pct.filter(|_| !is_lost && !is_open);
        let is_understated = most_pct.is_some_and(|most| most < true_pct);
        judged.understated += u32::from(is_understated);
        judged.none += u32::from(is_understated && !is_small);
    }
    judged
}

impl Judged {
    /// Whether at most this share of the probes, in percent, came to so many.
    fn is_at_most(&self, count: u32, percent: f64) -> bool {
        100.0 * f64::from(count) <= percent * f64::from(self.probes)
    }
}

#[test]
fn a_loss_below_its_threshold_is_not_called_none() {
    let judged = judged(10.0, 0.03);
    assert!(judged.none == 0 && !judged.is_at_most(judged.named, 80.0), "{judged:?}");
    // The end of a 99 % interval lies on the wrong side in 0.5 %.
    assert!(judged.is_at_most(judged.understated, 1.25), "{judged:?}");
}

#[test]
fn a_pair_that_loses_nothing_is_decided() {
    for (noise, undecided_pct) in [(0.01, 0.0), (0.03, 0.5), (0.05, 6.0)] {
        let judged = judged(0.0, noise);
        assert!(judged.is_at_most(judged.undecided, undecided_pct), "{noise}: {judged:?}");
    }
}

#[test]
fn a_failed_confirmation_clears_nothing() {
    let judged = judged(30.0, 0.15);
    assert!(judged.is_at_most(judged.cleared.max(judged.understated), 1.5), "{judged:?}");
}

#[test]
fn a_confirmation_that_was_cut_short_decides_nothing() {
    let mut open = 0;
    for seed in 0..20 {
        let mut events = planned(&Disk { noise: 0.5, ..Disk::default() }, seed);
        let twice = events.iter().filter_map(|event| match event {
            Event::Replicate(one)
                if one.replicate < 2 && ONE_FILE.contains(&one.point.id.as_str()) =>
            {
                let mut again = one.clone();
                again.replicate += 100;
                again.started_s += 1_000.0;
                Some(Event::Replicate(again))
            }
            _ => None,
        });
        let twice: Vec<Event> = twice.collect();
        assert_eq!(twice.len(), 4);
        let confirm = ONE_FILE.map(str::to_owned).to_vec();
        events.push(Event::Suspected { id: "per_file_write_lock".to_owned(), confirm });
        events.extend(twice);
        let document = summarise(host(), &events, ProbeEnd::default());
        open += usize::from(document.undecided.iter().any(|loss| loss.to == ONE_FILE[1]));
    }
    assert!(open > 0, "two pairs cleared every suspicion");
}

/// Planned replicates at one rate of the writes to one file, and confirming ones at others.
fn confirmed_events(planned_rate: f64, confirming: [f64; 3]) -> Vec<Event> {
    let at = |rate: f64, seed: u64| {
        let disk = Disk { noise: 0.001, ..Disk::default() }.with(ONE_FILE[1], rate);
        probe_points(&disk, &host(), seed, &ONE_FILE).into_iter().filter_map(|event| match event {
            Event::Replicate(one) if one.replicate < 4 => Some(one),
            _ => None,
        })
    };
    let mut events: Vec<Event> = at(planned_rate, 1).map(Event::Replicate).collect();
    let confirm = ONE_FILE.map(str::to_owned).to_vec();
    events.push(Event::Suspected { id: "per_file_write_lock".to_owned(), confirm });
    for (rate, number) in confirming.into_iter().zip(4..) {
        events.extend(at(rate, 2).filter(|one| one.replicate == 0).map(|mut one| {
            (one.replicate, one.started_s) = (number, one.started_s + 1_000.0);
            Event::Replicate(one)
        }));
    }
    events
}

fn confirmed_by(planned_rate: f64, confirming: [f64; 3]) -> ProbeDocument {
    summarise(host(), &confirmed_events(planned_rate, confirming), ProbeEnd::default())
}

#[test]
fn a_loss_stands_by_its_confirmation_not_by_the_mean_of_all() {
    // Of all seven the whole interval lies beyond 20 %; the confirming three hold none and any.
    let scattered = confirmed_by(0.4, [0.2, 0.2, 1.5]);
    // The confirming three lose 10 % for certain; all seven 29 %, from 13 %.
    let smaller = confirmed_by(0.6, [0.9, 0.9, 0.9]);
    for document in [scattered, smaller] {
        assert!(document.losses.is_empty(), "{:?}", document.losses);
        assert_eq!(document.undecided.len(), 1, "{:?}", document.headline);
    }
    assert_eq!(confirmed_by(0.6, [0.6, 0.6, 0.6]).losses.len(), 1);
}

/// Marks as many of the planned replicates, the last ones first, with a verdict.
fn mark(events: &mut [Event], verdict: Verdict, count: usize) {
    let planned = events.iter_mut().filter_map(|event| match event {
        Event::Replicate(one) if one.replicate < 4 => Some(one),
        _ => None,
    });
    planned.collect::<Vec<_>>().into_iter().rev().take(count).for_each(|one| {
        one.verdicts.add(verdict);
    });
}

#[test]
fn three_undisturbed_pairs_are_compared_alone_and_two_are_not() {
    let pairs_left = |disturbed: usize| {
        let disk = Disk { noise: 0.01, ..Disk::default() }.with(ONE_FILE[1], 0.3);
        let mut events = probe_points(&disk, &host(), 1, &ONE_FILE);
        events.retain(|event| matches!(event, Event::Replicate(one) if one.replicate < 4));
        mark(&mut events, Verdict::Steal, 2 * disturbed);
        let document = summarise(host(), &events, ProbeEnd::default());
        document.losses.iter().map(|loss| loss.loss_pct_n).collect::<Vec<u64>>()
    };
    assert_eq!([0, 1, 2, 4].map(pairs_left), [[4], [3], [4], [4]]);
}

#[test]
fn half_of_the_replicates_in_doubt_ask_for_the_whole_interval() {
    // Of all seven pairs the loss is 26 %, from 13 to 37 %; the loss of the confirming three is
    // 38 %.
    let scattered = || confirmed_events(0.85, [0.6, 0.62, 0.64]);
    let losses = |mut events: Vec<Event>, in_doubt: usize| {
        mark(&mut events, Verdict::NotSteady, in_doubt);
        summarise(host(), &events, ProbeEnd::default()).losses.len()
    };
    let [low, high] =
        summarise(host(), &scattered(), ProbeEnd::default()).losses[0].loss_pct_ci95.unwrap();
    assert!(low < 20.0 && 20.0 < high, "{low} {high}");
    assert_eq!([6, 7].map(|in_doubt| losses(scattered(), in_doubt)), [1, 0], "7 of 14 are half");
    assert_eq!(losses(confirmed_events(0.6, [0.6, 0.62, 0.64]), 8), 1, "all of it beyond 20 %");
}

/// A loss whose interval reaches beyond the threshold in percent is none where a request takes
/// hardly longer; how much longer follows from the rate, since as many are in flight.
#[test]
fn the_time_of_a_request_at_most_follows_from_the_rate() {
    let disk = Disk { write_us: 6.0, above_us: 2.0, noise: 0.01, ..Disk::default() };
    let events = probe_points(&disk.with(ONE_FILE[1], 0.78), &host(), 5, &ONE_FILE);
    let document = summarise(host(), &events, ProbeEnd::default());
    let rates = ONE_FILE.map(|id| {
        let of_point = events.iter().filter_map(|event| match event {
            Event::Replicate(one) if one.point.id == id => {
                Some(one.streams[0].ops[OpKind::Write].as_ref()?.iops.value)
            }
            _ => None,
        });
        of_point.collect::<Vec<f64>>()
    });
    let most_pct = paired(&rates[0], &rates[1]).unwrap().loss_pct_max();
    let most_us = document.loss_at_most_us.unwrap();
    // Eight threads, each of which waits for its request.
    let alone_us = 8e6 / (rates[0].iter().sum::<f64>() / rates[0].len() as f64);
    let expected_us = 8e6 / (8e6 / alone_us * (1.0 - most_pct / 100.0)) - alone_us;
    assert!((most_us / expected_us - 1.0).abs() < 0.02, "{most_us} {expected_us}");
    assert!(document.small_losses.len() == 1 && document.loss_at_most_pct.is_none());
}

#[test]
fn two_points_are_one_comparison_in_whatever_direction() {
    for seed in 0..20 {
        let document = document(&Disk { noise: 0.5, ..Disk::default() }, &host(), seed);
        let apis = |loss: &&iostrata_run::Loss| {
            let both = [loss.from.as_str(), loss.to.as_str()];
            both.contains(&"read_16k_io_uring_16") && both.contains(&"read_16k_libaio_16")
        };
        assert!(document.undecided.iter().filter(apis).count() <= 1);
    }
    assert_eq!(document(&Disk::default(), &host(), 1).compared, 14);
}

#[test]
fn a_layer_costs_at_most_what_the_worst_pair_may() {
    const MIXED: [&str; 2] = ["mixed_16k_files_8", "mixed_16k_files_1"];
    let both = [ONE_FILE, MIXED].concat();
    let events = probe_points(&Disk::default(), &host(), 3, &both);
    let most_pct = |ids: &[&str]| {
        let is_of = |event: &&Event| match event {
            Event::Replicate(one) => ids.contains(&one.point.id.as_str()),
            _ => false,
        };
        let events: Vec<Event> = events.iter().filter(is_of).cloned().collect();
        summarise(host(), &events, ProbeEnd::default()).loss_at_most_pct.unwrap()
    };
    let (write, mixed) = (most_pct(&ONE_FILE), most_pct(&MIXED));
    assert!(write != mixed && most_pct(&both) == write.max(mixed), "{write} {mixed}");
}

#[test]
fn a_full_disk_is_no_clean_bill() {
    let all = probe(&Disk::default(), &host(), 6);
    let mut events: Vec<Event> = all.into_iter().take(80).collect();
    let missing = Unavailable::without_room("durable commits", "no space is left");
    events.push(Event::Unavailable(missing));
    let document = summarise(host(), &events, ProbeEnd::default());
    let text = document.headline.join(" ");
    assert!(text.contains("the file system filled up"), "{text}");
    assert!(text.contains("Not measured: durable commits (no space is left)."), "{text}");
    assert!(!text.contains("Nothing needs to change"), "{text}");
    assert!(document.incomplete.is_some());
}

#[test]
fn a_star_stands_only_where_less_may_be_concluded() {
    let disturbed = |noise: f64, verdict: Verdict| {
        let disk = Disk { noise, ..Disk::default() };
        let verdicts = |_: &str| [verdict].into_iter().collect::<Verdicts>();
        let events = probe_with(&disk, &host(), 7, verdicts);
        let document = summarise(host(), &events, ProbeEnd::default());
        let starred = document.rungs.iter().filter(|rung| rung.verdicts.has(verdict)).count();
        (starred, document.rungs.len())
    };
    let (starred, _) = disturbed(0.01, Verdict::Steal);
    assert_eq!(starred, 1, "only what was measured once: the others agree with each other");
    let (starred, all) = disturbed(0.4, Verdict::Steal);
    assert!(starred > all / 2, "{starred} of {all}: what was stolen moved the figures");
    let (starred, all) = disturbed(0.01, Verdict::CpuLimited);
    assert_eq!(starred, all, "the storage could have done more");
    assert_eq!(disturbed(0.01, Verdict::ClockFallback).0, 0, "said once, for the run");
}

#[test]
fn an_undecided_comparison_whose_middle_is_a_gain_has_no_cost_below_zero() {
    let mut gains = 0;
    for seed in 0..20 {
        let document = document(&Disk { noise: 0.5, ..Disk::default() }, &host(), seed);
        for loss in document.undecided.iter().filter(|loss| loss.loss_pct <= 0.0) {
            gains += 1;
            assert!(loss.text.contains("cost nothing in these windows: "), "{}", loss.text);
        }
    }
    assert!(gains > 0, "no seed left a gain open");
}
