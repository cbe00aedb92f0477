use iostrata_plan::{Better, Layer};
use iostrata_run::host::DeviceFacts;
use iostrata_run::{Curve, CurvePoint, ProbeDocument, Rung};
use iostrata_stats::Verdicts;

use super::*;
use crate::bench::{BenchOutcome, BenchWindow, Load, run};
use crate::drive::Drive;
use crate::model::ModelError;

/// Rungs of a device that was never there.
const RUNGS: [(&str, f64); 20] = [
    ("read_4k_depth_1", 9_800.0),
    ("read_4k_depth_2", 18_900.0),
    ("read_4k_depth_4", 36_200.0),
    ("read_4k_depth_8", 61_400.0),
    ("read_4k_depth_16", 84_300.0),
    ("read_4k_depth_32", 94_900.0),
    ("read_4k_depth_64", 96_100.0),
    ("read_16k_depth_1", 7_200.0),
    ("read_16k_depth_4", 21_400.0),
    ("read_16k_depth_8", 27_000.0),
    ("read_16k_depth_16", 31_900.0),
    ("read_16k_depth_64", 33_000.0),
    ("overwrite_16k", 11_000.0),
    ("write_16k_files_8", 16_200.0),
    ("sustained_16k", 15_800.0),
    ("commit_fdatasync", 1_230.0),
    ("commit_fdatasync_4", 3_900.0),
    ("commit_fdatasync_16", 7_100.0),
    ("flush_empty", 310.0),
    ("clock_read", 20.0),
];

/// What a probe printed, with those rungs.
fn sample() -> ProbeDocument {
    let text = include_str!("../../../../../base/run/tests/fixtures/v1/result.json");
    let mut probe: ProbeDocument = serde_json::from_str(text).unwrap();
    let write_cache = Some("write back".to_owned());
    probe.host.path.devices = vec![DeviceFacts { write_cache, ..DeviceFacts::named("sdx") }];
    probe.rungs = RUNGS
        .map(|(name, value)| Rung {
            name: name.to_owned(),
            title: String::new(),
            layer: Layer::Device,
            value,
            value_ci95: None,
            value_n: 1,
            value_range: None,
            unit: "1/s".to_owned(),
            better: Better::Higher,
            latency_us: None,
            device_latency_us: None,
            bound: None,
            verdicts: Verdicts::default(),
        })
        .to_vec();
    probe.curves = vec![Curve {
        name: "read_4k".to_owned(),
        title: String::new(),
        axis: "requests in flight".to_owned(),
        unit: "reads/s".to_owned(),
        text: String::new(),
        points: vec![CurvePoint {
            rung: "read_4k_depth_1".to_owned(),
            x: 1.0,
            value: 9_800.0,
            value_ci95: None,
            value_n: 1,
            latency_mean_us: Some(102.0),
            latency_p99_us: Some(218.0),
        }],
        knee_x: None,
    }];
    probe
}

fn value(probe: &ProbeDocument, name: &str) -> f64 {
    probe.rungs.iter().find(|rung| rung.name == name).unwrap().value
}

fn bench(table: MeasuredDrive, load: &Load) -> BenchOutcome {
    let mut table = table;
    run(&mut table, load, BenchWindow::seconds(0.1, 4.0), 1).unwrap()
}

fn table(probe: &ProbeDocument) -> MeasuredDrive {
    MeasuredDrive::new(MeasuredDisk::from_probe(probe).unwrap(), 1 << 30, 1)
}

/// Every measured depth gives the measured rate within 5 %.
fn agrees(probe: &ProbeDocument) {
    let mut checked = 0;
    let mut check = |name: &str, load: Load| {
        let Some(rung) = probe.rungs.iter().find(|rung| rung.name == name) else { return };
        let found = bench(table(probe), &load).iops.value;
        assert!((found / rung.value - 1.0).abs() < 0.05, "{name}: {found} for {}", rung.value);
        checked += 1;
    };
    for depth in [1, 2, 4, 8, 16, 32, 64, 128] {
        check(&format!("read_4k_depth_{depth}"), Load::random_read(depth));
        let page = Load { block_bytes: 16_384, ..Load::random_read(depth) };
        check(&format!("read_16k_depth_{depth}"), page);
    }
    for (depth, name) in [(1, "overwrite_16k"), (8, "write_16k_files_8"), (32, "sustained_16k")] {
        check(name, Load { block_bytes: 16_384, ..Load::random_write(depth) });
    }
    for (depth, name) in
        [(1, "commit_fdatasync"), (4, "commit_fdatasync_4"), (16, "commit_fdatasync_16")]
    {
        check(name, Load { flush_every: Some(1), ..Load::random_write(depth) });
    }
    assert!(checked >= 10, "{checked} rungs were found");
}

#[test]
fn measured_depths_give_the_measured_rates() {
    agrees(&sample());
}

#[test]
fn a_real_probe_is_reproduced() {
    let Some(file) = std::env::var_os("IOSTRATA_PROBE") else {
        eprintln!("skipped: IOSTRATA_PROBE does not name what `iostrata probe --json` printed");
        return;
    };
    agrees(&serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap());
}

#[test]
fn between_measured_depths_and_sizes_it_lies_between() {
    let probe = sample();
    let at = |load: &Load| bench(table(&probe), load).iops.value;
    let (four, six, eight) =
        (at(&Load::random_read(4)), at(&Load::random_read(6)), at(&Load::random_read(8)));
    assert!(four < six && six < eight, "{four} {six} {eight}");
    let sized = |bytes| at(&Load { block_bytes: bytes, ..Load::random_read(4) });
    assert!(sized(16_384) < sized(8_192) && sized(8_192) < sized(4_096));
    assert!(sized(65_536) < sized(16_384), "larger ones go on at the same price per byte");
    assert_eq!(sized(512), sized(4_096));
}

#[test]
fn single_reads_have_the_measured_tail() {
    let probe = sample();
    let points = &probe.curves.iter().find(|curve| curve.name == "read_4k").unwrap().points;
    let want = points[0].latency_p99_us.unwrap() / points[0].latency_mean_us.unwrap();
    let found = bench(table(&probe), &Load::random_read(1)).read.unwrap().latency_us;
    assert!((found.p99 / found.mean / want - 1.0).abs() < 0.1, "{found:?} for {want}");
}

#[test]
fn an_empty_flush_costs_what_was_measured_and_at_least_what_is_asked() {
    let probe = sample();
    let flush = Load { flush_every: Some(0), ..Load::random_write(1) };
    let found = bench(table(&probe), &flush).flush.unwrap().latency_us;
    let want = value(&probe, "flush_empty");
    assert!((found.mean / want - 1.0).abs() < 0.05, "{found:?} for {want}");
    let slow = table(&probe).with_flush_ns_min(10_000_000);
    let found = bench(slow, &flush).flush.unwrap().latency_us;
    assert_eq!((found.max, found.mean), (10_000.0, 10_000.0));
}

#[test]
fn work_that_was_done_stays_done_when_another_comes() {
    let mut probe = sample();
    // Without a spread the first is done after 1 / 9,800 s when it stays alone.
    probe.curves.clear();
    let mut table = table(&probe);
    let read = |id| Request { id, command: Command::Read, at_bytes: 0, bytes: 4096 };
    table.submit(0, read(1));
    let alone_ns = table.next_event_ns().unwrap();
    assert_eq!(alone_ns, 102_041);
    table.submit(alone_ns / 2, read(2));
    // Half is done; the other half goes at the speed of two: 1 / 18,900 s for a whole.
    let both_ns = table.next_event_ns().unwrap();
    let want_ns = alone_ns as f64 / 2.0 + 1e9 / 18_900.0 / 2.0;
    assert!((both_ns as f64 - want_ns).abs() < 2.0, "{both_ns} for {want_ns}");
}

#[test]
fn a_shorter_queue_is_a_lower_rate() {
    let probe = sample();
    let found = bench(table(&probe).with_queue_depth(1), &Load::random_read(32)).iops.value;
    let want = value(&probe, "read_4k_depth_1");
    assert!((found / want - 1.0).abs() < 0.05, "{found} for {want}");
}

#[test]
fn a_write_back_device_is_volatile() {
    let mut probe = sample();
    assert!(table(&probe).facts().volatile_bytes > 0);
    for device in &mut probe.host.path.devices {
        device.write_cache = Some("write through".to_owned());
    }
    assert_eq!(table(&probe).facts().volatile_bytes, 0);
}

#[test]
fn a_probe_without_writes_is_not_enough() {
    let mut probe = sample();
    probe.rungs.retain(|rung| !rung.name.contains("write") && rung.name != "sustained_16k");
    let error = MeasuredDisk::from_probe(&probe).unwrap_err();
    assert!(matches!(error, ModelError::ProbeIncomplete { what: "overwrites of 16 KiB", .. }));
    probe.rungs.clear();
    let error = MeasuredDisk::from_probe(&probe).unwrap_err();
    assert!(error.to_string().contains("random reads of 4 KiB"), "{error}");
}
