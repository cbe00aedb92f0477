//! Queues of made-up disks: what a longer one does is found on the disk that it was measured on,
//! and nowhere else.

use iostrata_diagnose::{ProbeEnd, summarise_study};
use iostrata_plan::study::{Cell, Extent, MeasuringOverrides, StudyPlan, StudySpec};
use iostrata_run::host::{DeviceCounters, DeviceDelta, EmulatedDisk, Evidence, QueueReadback};
use iostrata_run::{DeviceMetric, Event, Finding, StreamFigures, StudyDocument, Unavailable};
use iostrata_stats::Conclusion;

use crate::support::{Random, host, study};

const STUDY: &str = "
name = 'queue'
title = 'queue'
[base]
filesystem = 'ext4'
rw = 'randwrite'
scheduler = 'mq-deadline'
[factors]
disk = ['hdd-15k', 'ssd-sata']
workers = [1, 64]
nr_requests = [32, 128, 1024, 100000]
[measure]
replicates = 4
[then]
source = 'a paper'
machine = 'something'
[[then.figure]]
text = 'avgrq-sz'
value = 8.01
metric = 'device_request_sectors'
at = { disk = 'hdd-15k', workers = 64, nr_requests = 128 }
[[then.figure]]
text = 'await'
value = 247.03
metric = 'device_await_ms'
at = { disk = 'hdd-15k', workers = 64, nr_requests = 128 }
";

/// What a made-up disk does with a queue of so many requests.
#[derive(Clone, Copy)]
struct Does {
    iops: f64,
    sectors: f64,
    late: f64,
}

type Storage = fn(disk: &str, workers: u32, queue: u64) -> Does;

fn plan() -> StudyPlan {
    let spec = StudySpec::parse(STUDY, "queue.toml").unwrap();
    spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap()
}

/// What the kernel takes; nothing where it refuses.
type Kernel = fn(asked: u64) -> Option<u64>;

fn asked(cell: &Cell) -> u64 {
    cell.level("nr_requests").unwrap().parse().unwrap()
}

fn evidence(cell: &Cell, took: u64, does: Does) -> Evidence {
    evidence_of(cell, asked(cell), took, does)
}

fn evidence_of(cell: &Cell, asked: u64, took: u64, does: Does) -> Evidence {
    let writes = (does.iops * 10.0) as u64;
    let counters = DeviceCounters {
        writes,
        sectors_written: (writes as f64 * does.sectors) as u64,
        write_ms: writes * 20,
        queue_ms: 10_000 * took,
        ..DeviceCounters::default()
    };
    let taken = |attribute: &str, asked: String, took: String| QueueReadback {
        attribute: attribute.to_owned(),
        asked,
        took,
    };
    Evidence {
        seconds: 10.0,
        device_delta: Some(DeviceDelta { seconds: 10.0, counters }),
        queue: vec![
            taken("scheduler", "mq-deadline".to_owned(), "mq-deadline".to_owned()),
            taken("nr_requests", asked.to_string(), took.to_string()),
        ],
        emulated: Some(EmulatedDisk {
            model: cell.level("disk").unwrap().to_owned(),
            reads: 0,
            writes,
            flushes: 0,
            read_bytes: 0,
            write_bytes: writes * 4096,
            in_order: 0,
            late: (writes as f64 * does.late) as u64,
            depth_max: 32,
        }),
        ..Evidence::default()
    }
}

fn replicate(cell: &Cell, number: u32, took: u64, does: Does) -> Event {
    let mut event = replicate_of(cell, number, does.iops);
    if let Event::Replicate(one) = &mut event {
        one.evidence = Some(evidence(cell, took, does));
    }
    event
}

fn replicate_of(cell: &Cell, number: u32, iops: f64) -> Event {
    let stream = StreamFigures { duration_s: Some(10.0), ..study::stream(iops) };
    study::replicate(cell, number, stream)
}

fn document(storage: Storage, kernel: Kernel) -> StudyDocument {
    let plan = plan();
    let mut random = Random::new(5);
    let mut events = Vec::new();
    for number in 0..plan.measuring.replicates {
        for cell in &plan.cells {
            let Some(took) = kernel(asked(cell)) else {
                let why = format!("nr_requests {} of loop0: Invalid argument", asked(cell));
                let missing = Unavailable::impossible(cell.title.as_str(), why, None);
                events.push(Event::Unavailable(missing));
                continue;
            };
            let mut does = storage(cell.level("disk").unwrap(), cell.workload.jobs, took);
            does.iops *= 1.0 + 0.01 * random.normal();
            events.push(replicate(cell, number, took, does));
        }
    }
    summarise_study(host(), &plan, &events, ProbeEnd::default())
}

fn found<'a>(document: &'a StudyDocument, id: &str) -> Vec<&'a Finding> {
    document.findings.iter().filter(|finding| finding.id == id).collect()
}

fn clamps(asked: u64) -> Option<u64> {
    Some(asked.min(1024))
}

fn refuses(asked: u64) -> Option<u64> {
    (asked <= 1024).then_some(asked)
}

/// Sorting pays where there is something to sort; flash does not care beyond what it takes at once.
fn of_2009(disk: &str, workers: u32, queue: u64) -> Does {
    let sorted = f64::from(workers).min(queue as f64);
    match disk {
        "hdd-15k" if workers > 1 && queue > 128 => Does { iops: 900.0, sectors: 35.2, late: 0.0 },
        "hdd-15k" => Does { iops: 150.0 + sorted, sectors: 8.0, late: 0.0 },
        _ if queue < 64 => Does { iops: 20_000.0, sectors: 8.0, late: 0.0 },
        _ => Does { iops: 30_000.0, sectors: 8.0, late: 0.0 },
    }
}

#[test]
fn what_a_longer_queue_does_is_said_of_the_disk_that_it_does_it_on() {
    let document = document(of_2009, clamps);
    let [helps] = found(&document, "longer_queue_helps")[..] else {
        panic!("{:#?}", document.findings)
    };
    for words in ["on hdd-15k at 1 of 2 workloads", "workers 64", "from 4.0 to 17.6 KiB", "1024"] {
        assert!(helps.text.contains(words), "{words}: {}", helps.text);
    }
    let [low, high] = helps.effect_pct_ci95.unwrap();
    let truth = 100.0 * (900.0 / 214.0 - 1.0);
    assert!(low < truth && truth < high, "{truth} in {low} {high}");
    let [none] = found(&document, "longer_queue_no_difference")[..] else {
        panic!("{:#?}", document.findings)
    };
    let words = "from 128 to 1024 requests, makes no difference that matters on ssd-sata at 2 of 2";
    assert!(none.text.contains(words), "{}", none.text);
    assert!(found(&document, "longer_queue_hurts").is_empty());
    assert!(document.headline[0].contains("longer request queue helps on hdd-15k"));
    let change = document.queue_changes.iter().find(|one| one.points[0].contains("w64")).unwrap();
    assert_eq!((change.took, change.ratio_n), ([128, 1024], 4), "the default, not the shortest");
    let queue = change.device.iter().find(|one| one.metric == DeviceMetric::QueueSize).unwrap();
    assert_eq!((queue.from, queue.to, queue.conclusion), (128.0, 1024.0, Conclusion::Higher));
}

#[test]
fn lengths_that_the_kernel_did_not_take_are_named() {
    let clamped = document(of_2009, clamps);
    let [said] = found(&clamped, "queue_length_refused")[..] else { panic!() };
    assert!(said.text.contains("of 100000 with mq-deadline the kernel took 1024"), "{}", said.text);
    let refused = document(of_2009, refuses);
    let [said] = found(&refused, "queue_length_refused")[..] else { panic!() };
    assert!(said.text.contains("the kernel refused 100000 with mq-deadline"), "{}", said.text);
    assert!(said.text.contains("the longest measured is 1024"), "{}", said.text);
    let taken = document(of_2009, Some);
    assert!(found(&taken, "queue_length_refused").is_empty());
}

#[test]
fn nothing_is_claimed_where_nothing_is_there() {
    let same: Storage = |_, _, _| Does { iops: 500.0, sectors: 8.0, late: 0.0 };
    let document = document(same, clamps);
    assert!(found(&document, "longer_queue_helps").is_empty(), "{:#?}", document.findings);
    assert!(found(&document, "longer_queue_hurts").is_empty());
    assert_eq!(found(&document, "longer_queue_no_difference").len(), 2, "once for each disk");
    assert!(document.queue_changes.iter().all(|one| one.text.contains("no measurable difference")));
}

#[test]
fn a_queue_that_takes_throughput_is_told() {
    let worse: Storage = |disk, _, queue| {
        let iops = if disk == "ssd-sata" && queue > 128 { 300.0 } else { 500.0 };
        Does { iops, sectors: 8.0, late: 0.0 }
    };
    let document = document(worse, clamps);
    let [hurts] = found(&document, "longer_queue_hurts")[..] else { panic!() };
    assert!(hurts.text.contains("takes throughput on ssd-sata at 2 of 2"), "{}", hurts.text);
    assert!(hurts.text.contains("its requests stay at 4.0 KiB"), "{}", hurts.text);
}

#[test]
fn an_emulation_that_was_late_proves_nothing() {
    let late: Storage = |disk, _, _| {
        let late = if disk == "ssd-sata" { 0.5 } else { 0.0 };
        Does { iops: 500.0, sectors: 8.0, late }
    };
    let document = document(late, clamps);
    let [caution] = found(&document, "emulation_late")[..] else { panic!() };
    assert!(caution.text.contains("at 8 of 16 points"), "{}", caution.text);
    let [none] = found(&document, "longer_queue_no_difference")[..] else { panic!() };
    assert!(none.text.contains("on hdd-15k"), "{}", none.text);
}

#[test]
fn no_difference_is_claimed_only_for_workloads_that_were_measured_well() {
    let late: Storage = |_, workers, _| {
        let late = if workers > 1 { 0.5 } else { 0.0 };
        Does { iops: 500.0, sectors: 8.0, late }
    };
    let document = document(late, clamps);
    let said = found(&document, "longer_queue_no_difference");
    assert_eq!(said.len(), 2);
    for finding in said {
        assert!(finding.text.contains("at 1 of 2 workloads"), "{}", finding.text);
        assert!(finding.text.ends_with("too little is known of the others"), "{}", finding.text);
    }
}

#[test]
fn printed_columns_of_iostat_stand_beside_those_of_today() {
    let document = document(of_2009, clamps);
    let row = |text: &str| document.then.iter().find(|row| row.text == text).unwrap();
    let sectors = row("avgrq-sz");
    assert_eq!((sectors.unit.as_str(), sectors.then), ("sectors", Some(8.01)));
    assert!((sectors.now.unwrap() - 8.0).abs() < 0.01, "{sectors:?}");
    assert_eq!(row("await").now, Some(20.0));
}

#[test]
fn a_study_without_queues_or_with_two_replicates_says_nothing_of_them() {
    let mut plan = plan();
    let cells: Vec<Cell> = plan.cells.clone();
    let events: Vec<Event> = (0..2)
        .flat_map(|number| cells.iter().map(move |cell| (number, cell)))
        .map(|(number, cell)| {
            let took = asked(cell).min(1024);
            let does = of_2009(cell.level("disk").unwrap(), cell.workload.jobs, took);
            replicate(cell, number, took, does)
        })
        .collect();
    let is_said = |document: &StudyDocument| {
        document.findings.iter().any(|finding| finding.id.starts_with("longer_queue"))
    };
    let two = summarise_study(host(), &plan, &events, ProbeEnd::default());
    assert!(!is_said(&two), "{:#?}", two.findings);
    plan.factors.retain(|factor| factor.factor != "nr_requests");
    let none = summarise_study(host(), &plan, &events, ProbeEnd::default());
    assert!(none.queue_changes.is_empty() && !is_said(&none));
}

#[test]
fn a_file_system_is_set_against_the_raw_device_of_its_own_disk() {
    let text = STUDY.split("[factors]").next().unwrap().replace("filesystem = 'ext4'\n", "")
        + "nr_requests = 128\n[factors]\ndisk = ['hdd-15k', 'ssd-sata']\nfilesystem = ['raw', 'ext4']";
    let spec = StudySpec::parse(&text, "disks.toml").unwrap();
    let plan = spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap();
    let mut events = Vec::new();
    for number in 0..4 {
        for cell in &plan.cells {
            let iops = if cell.level("disk") == Some("hdd-15k") { 500.0 } else { 30_000.0 };
            let iops = iops * (1.0 + 0.001 * f64::from(number));
            let does = Does { iops, sectors: 8.0, late: 0.0 };
            let mut event = replicate_of(cell, number, iops);
            if let Event::Replicate(one) = &mut event {
                one.evidence = Some(evidence_of(cell, 128, 128, does));
            }
            events.push(event);
        }
    }
    let document = summarise_study(host(), &plan, &events, ProbeEnd::default());
    assert!(found(&document, "filesystem_loss").is_empty(), "{:#?}", document.findings);
}
