//! Runs that were cut off, had no writes, or lack any points at all.

use iostrata_diagnose::{ProbeEnd, summarise, suspect, verify_points};
use iostrata_plan::OpKind;
use iostrata_run::{Event, Unavailable};
use proptest::prelude::*;

use crate::support::{Disk, Random, document, found, host, probe};

#[test]
fn nothing_measured_says_so() {
    let document = summarise(host(), &[], ProbeEnd { interrupted: true, ..ProbeEnd::default() });
    assert_eq!(document.headline, ["Nothing was measured."]);
    let mut filling = summarise(host(), &[], ProbeEnd::default());
    assert!(!filling.headline.join(" ").contains("needs to change"));
    let why = "in 22 s only 9 MiB could be written";
    let left_out = Unavailable::left_out("every rung", why, "--max-time");
    filling = summarise(host(), &[Event::Unavailable(left_out)], ProbeEnd::default());
    assert_eq!(filling.headline[1], "In 22 s only 9 MiB could be written.");
    assert!(document.interrupted && document.rungs.is_empty() && document.advice.is_empty());
}

#[test]
fn reads_alone_bring_no_word_about_writes() {
    let reads: Vec<Event> = probe(&Disk::default(), &host(), 1)
        .into_iter()
        .filter(|event| match event {
            Event::Replicate(one) => one.point.streams.iter().all(|s| !s.spec.mix.writes()),
            _ => false,
        })
        .collect();
    let document = summarise(host(), &reads, ProbeEnd::default());
    assert!(document.advice.is_empty() && document.redo_table.is_empty());
    let text = document.headline.join(" ");
    assert!(text.contains("reads/s") && !text.contains("commit"), "{text}");
    assert!(text.contains("Nothing needs to change as far as reads go."), "{text}");
}

#[test]
fn parts_that_were_left_out_are_named_beside_the_advice() {
    let mut events: Vec<Event> = probe(&Disk::default(), &host(), 1);
    events.retain(|event| match event {
        Event::Replicate(one) => one.point.streams.iter().all(|s| !s.spec.mix.writes()),
        _ => false,
    });
    let why = "the 110 s that the probe may take were over";
    for what in ["the sync laboratory", "sustained writes"] {
        events.push(Event::Unavailable(Unavailable::left_out(what, why, "--max-time")));
    }
    let text = summarise(host(), &events, ProbeEnd::default()).headline.join(" ");
    assert!(!text.contains("Nothing needs to change"), "{text}");
    assert!(
        text.contains("Not measured: the sync laboratory; sustained writes (the 110 s"),
        "{text}"
    );
}

#[test]
fn an_interrupted_run_is_said_to_be_one() {
    let events = probe(&Disk::default(), &host(), 2);
    let end = ProbeEnd { interrupted: true, bytes_written: 7, duration_s: 3.0 };
    let document = summarise(host(), &events[..40], end);
    assert_eq!((document.bytes_written, document.interrupted), (7, true));
    assert!(document.headline.iter().any(|line| line.contains("stopped before its end")));
}

#[test]
fn a_part_that_failed_is_no_clean_bill() {
    let mut events = probe(&Disk::default(), &host(), 1);
    events.retain(|event| match event {
        Event::Replicate(one) => one.point.streams.iter().all(|s| !s.spec.mix.writes()),
        _ => false,
    });
    let failed = Unavailable::failed("4 KiB random reads", "reading /f failed: I/O error");
    events.push(Event::Unavailable(failed));
    let text = summarise(host(), &events, ProbeEnd::default()).headline.join(" ");
    assert!(text.contains("No change is needed, as far as was measured."), "{text}");
    assert!(text.contains("Not measured: 4 KiB random reads (reading /f failed"), "{text}");
}

#[test]
fn a_run_ends_as_its_last_line_says() {
    let mut events = probe(&Disk::default(), &host(), 2);
    let finished = ProbeEnd { bytes_written: 1 << 30, duration_s: 100.0, interrupted: false };
    assert_eq!(ProbeEnd::of(&events), finished);
    events.pop();
    let killed = ProbeEnd::of(&events);
    assert!(killed.interrupted && killed.duration_s > 10.0 && killed.bytes_written > 0);
    // A run that was stopped and went on until it was killed.
    events.insert(3, Event::Interrupted { at_s: 1.0, bytes_written: 7 });
    assert_eq!(ProbeEnd::of(&events), killed);
}

#[test]
fn trials_before_and_after_are_shown() {
    let disk = Disk::default().with("write_16k_files_1", 0.4);
    let mut events = probe(&disk, &host(), 3);
    let groups = verify_points(&host(), &events);
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].len(), 2);
    let mut random = Random::new(4);
    for number in 0..4 {
        for point in &groups[0] {
            let mut replicate = disk.measure(point, number, &mut random, &Default::default());
            if point.id.ends_with("before") {
                let write = replicate.streams[0].ops.get_mut(OpKind::Write).unwrap();
                write.iops = write.iops.scaled(0.4);
            }
            events.push(Event::Replicate(Box::new(replicate)));
        }
    }
    let document = summarise(host(), &events, ProbeEnd::default());
    let tried = &document.verifications;
    assert_eq!(tried.len(), 1);
    assert!(tried[0].confirmed && tried[0].after > 2.0 * tried[0].before, "{tried:?}");
    assert!(document.rungs.iter().all(|rung| !rung.name.starts_with("verify_")));
    assert!(verify_points(&host(), &probe(&Disk::default(), &host(), 5)).is_empty());
}

#[test]
fn a_point_measured_twice_counts_once() {
    let events = probe(&Disk::default(), &host(), 6);
    let twice: Vec<Event> = events.iter().chain(&events).cloned().collect();
    let rungs = |events: &[Event]| summarise(host(), events, ProbeEnd::default()).rungs;
    assert_eq!(rungs(&events), rungs(&twice));
    assert!(found(&document(&Disk::default(), &host(), 6), "commit_rate").is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn any_part_of_any_run_is_read_without_a_panic(
        seed in 0u64..1_000,
        keep in 1u64..100,
        factor in 0.01f64..5.0,
        flush_us in 1.0f64..20_000.0,
    ) {
        let disk = Disk { flush_us, noise: 0.2, ..Disk::default() }
            .with("write_16k_files_1", factor)
            .with("commit_fsync", factor);
        let mut random = Random::new(seed);
        let part: Vec<Event> = probe(&disk, &host(), seed)
            .into_iter()
            .filter(|_| random.next() % 100 < keep)
            .collect();
        let document = summarise(host(), &part, ProbeEnd::default());
        prop_assert!(!document.headline.is_empty() && document.headline.len() <= 5);
        for one in suspect(&part, &host()) {
            prop_assert!(!one.confirm.is_empty());
        }
        for finding in &document.findings {
            prop_assert!(finding.effect_pct.is_none_or(|pct| pct > 0.0 && pct <= 100.0));
        }
        for advice in &document.advice {
            prop_assert!(!advice.why.is_empty() && !advice.undo.is_empty());
        }
    }
}

#[test]
fn storage_that_failed_is_the_first_sentence() {
    let mut events: Vec<Event> = probe(&Disk::default(), &host(), 1);
    events.truncate(60);
    let why = "writing /data/f at offset 0 failed: Input/output error";
    let mut broken = Unavailable::broken("overwrites", why);
    broken.kernel_lines = vec!["I/O error, dev vda, sector 8".to_owned()];
    events.push(Event::Unavailable(broken));
    events.push(Event::Finished { at_s: 20.0, bytes_written: 1 });
    let document = summarise(host(), &events, ProbeEnd::of(&events));
    let text = document.headline.join(" ");
    assert!(document.headline[0].starts_with("The storage failed"), "{text}");
    assert!(document.headline[0].contains("I/O error, dev vda, sector 8"), "{text}");
    assert!(!text.contains("Nothing needs") && !text.contains("costs"), "{text}");
    assert!(text.contains("What to change cannot be said: the storage failed"), "{text}");
    events.insert(0, Event::Unavailable(Unavailable::without_room("overwrites", "no space")));
    let full = summarise(host(), &events, ProbeEnd::of(&events));
    assert!(full.headline[0].starts_with("The file system filled up"), "{:?}", full.headline);
}
