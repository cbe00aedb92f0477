//! The rules on hand-made runs.
#![allow(clippy::unwrap_used)]

use iostrata_run::host::Iostat;
use iostrata_run::{
    KernelThen, QueueComparison, QueueDevice, QueueDocument, QueuePoint, QueueQuestion,
    QueueReader, QueueReplicate, QueueRun,
};
use iostrata_stats::{Conclusion, LatencyUs, Verdict, Verdicts};

use super::{QUEUE_POST_ROWS, conclude_queue};

const INDEX_BYTES: u64 = 4_500_000_000;

fn device(text: &str, is_rotational: bool, spindles: u32, queue_depth: u32) -> QueueDevice {
    let title = format!("the {text}");
    QueueDevice { device: text.into(), title, is_rotational, spindles, queue_depth }
}

/// A run with three replicates around its figures.
fn run(device: &str, kernel: KernelThen, nr_requests: u64, rate: f64, p99_us: f64) -> QueueRun {
    let iostat = Iostat {
        writes_per_s: 600.0,
        write_kib_per_s: 4_800.0,
        write_await_ms: Some(240.0),
        queue_size: 144.0,
        util_pct: 100.0,
        ..Iostat::default()
    };
    let replicate = |spread: f64| QueueReplicate {
        rows_per_hour: rate * spread,
        reached_h: Some(77e6 / rate / spread),
        iostat,
        reader_us_p99: Some(p99_us * spread),
    };
    let point = QueuePoint {
        rows: QUEUE_POST_ROWS[2],
        index_bytes: INDEX_BYTES,
        rows_per_hour: rate,
        rows_per_hour_ci95: Some([rate * 0.97, rate * 1.03]),
        rows_per_hour_n: 3,
        reached_h: Some(77e6 / rate),
        reached_h_ci95: None,
        reached_h_n: 3,
        iostat,
        reader: Some(QueueReader {
            latency_us: LatencyUs { p99: p99_us, ..LatencyUs::default() },
            latency_us_p99_ci95: None,
            latency_us_p99_n: 3,
            rows_per_hour: rate * 0.9,
            rows_per_hour_ci95: None,
            rows_per_hour_n: 3,
            reads: 1000,
        }),
        replicates: [0.99, 1.0, 1.01].map(replicate).to_vec(),
        verdicts: Verdicts::none(),
    };
    QueueRun {
        nr_requests,
        nr_requests_taken: if kernel == KernelThen::Today {
            nr_requests.min(2048)
        } else {
            nr_requests
        },
        device: device.into(),
        kernel,
        index_bytes: INDEX_BYTES,
        rows_per_hour: rate,
        rows_per_hour_ci95: point.rows_per_hour_ci95,
        rows_per_hour_n: 3,
        iostat,
        reader: point.reader.clone(),
        measured_s: 100.0,
        points: vec![point],
        verdicts: Verdicts::none(),
    }
}

fn concluded(mut document: QueueDocument) -> QueueDocument {
    conclude_queue(&mut document);
    document
}

fn facts() -> QueueDocument {
    use KernelThen::{Today, Y2009};
    QueueDocument {
        devices: vec![
            device("pair", true, 2, 64),
            device("pair,queue=1", true, 2, 1),
            device("array", true, 34, 64),
            device("flash", false, 1, 32),
        ],
        runs: vec![
            run("pair", Y2009, 100_000, 4e6, 8e6),
            run("pair", Y2009, 128, 1e6, 2e5),
            run("pair", Today, 128, 5e6, 1e5),
            run("pair", Today, 100_000, 5.01e6, 1e5),
            run("pair,queue=1", Y2009, 128, 0.5e6, 4e5),
            run("pair,queue=1", Y2009, 100_000, 3e6, 9e6),
            run("array", Y2009, 128, 12e6, 1e4),
            run("array", Y2009, 100_000, 24e6, 1e6),
            run("flash", Y2009, 128, 90e6, 900.0),
            run("flash", Y2009, 100_000, 90e6, 900.0),
        ],
        ..QueueDocument::default()
    }
}

fn effect<'a>(
    document: &'a QueueDocument,
    what: QueueQuestion,
    device: &str,
    kernel: KernelThen,
) -> &'a QueueComparison {
    let is = |effect: &&QueueComparison| {
        effect.what == what && effect.device == device && effect.kernel == kernel
    };
    document.effects.iter().find(is).unwrap()
}

#[test]
fn one_thing_is_compared_at_a_time() {
    let document = concluded(facts());
    let of = |what, device, kernel| effect(&document, what, device, kernel).ratio;
    let near = |found: f64, want: f64| assert!((found / want - 1.0).abs() < 1e-9, "{found} {want}");
    near(of(QueueQuestion::NrRequests, "pair", KernelThen::Y2009), 4.0);
    near(of(QueueQuestion::NrRequests, "array", KernelThen::Y2009), 2.0);
    near(of(QueueQuestion::NrRequests, "flash", KernelThen::Y2009), 1.0);
    near(of(QueueQuestion::CommandQueue, "pair", KernelThen::Y2009), 2.0);
    near(of(QueueQuestion::Spindles, "array", KernelThen::Y2009), 12.0);
    near(of(QueueQuestion::Reader, "pair", KernelThen::Y2009), 40.0);
    let kernels: Vec<f64> = document
        .effects
        .iter()
        .filter(|effect| effect.what == QueueQuestion::Kernel)
        .map(|effect| effect.ratio)
        .collect();
    assert_eq!(kernels.len(), 2);
    near(kernels[0], 5.0);
    near(kernels[1], 1.25);
    let flash = effect(&document, QueueQuestion::NrRequests, "flash", KernelThen::Y2009);
    assert_eq!(flash.conclusion, Conclusion::NoMeasurableDifference);
    assert!(flash.text.contains("by less than 5 %"), "{}", flash.text);
}

#[test]
fn the_verdict_says_what_the_figures_say() {
    let headline = concluded(facts()).headline;
    let first = &headline[0];
    for words in ["from 128 to 100,000", "4x [4, 4]", "less than 5 % (1.000x", "of 2009", "4.5 GB"]
    {
        assert!(first.contains(words), "`{words}` is missing in: {first}");
    }
    let all = headline.join(" ");
    for words in [
        "34 spindles instead of 2",
        "99th percentile 8 s instead of 200 ms",
        "takes 2,048",
        "5x [5, 5] those of the kernel of 2009, nr_requests 128",
    ] {
        assert!(all.contains(words), "`{words}` is missing in: {all}");
    }
}

#[test]
fn other_figures_make_another_verdict() {
    let mut facts = facts();
    for run in facts.runs.iter_mut().filter(|run| run.device == "flash" && run.nr_requests > 128) {
        run.points[0].replicates.iter_mut().for_each(|one| one.rows_per_hour *= 2.0);
    }
    for run in facts.runs.iter_mut().filter(|run| run.device == "pair" && run.nr_requests > 128) {
        run.points[0].replicates.iter_mut().for_each(|one| one.rows_per_hour /= 8.0);
    }
    for run in facts.runs.iter_mut().filter(|run| run.device == "pair,queue=1") {
        run.points[0].replicates.iter_mut().for_each(|one| one.rows_per_hour *= 4.0);
    }
    let document = concluded(facts);
    let first = &document.headline[0];
    assert!(first.contains("lowers rows per hour to 0.5x"), "{first}");
    let against = document.contradictions.join(" ");
    for words in
        ["very helpful on its disk", "not helpful on flash", "expects more rows", "save seeks"]
    {
        assert!(against.contains(words), "`{words}` is missing in: {against}");
    }
}

#[test]
fn what_is_not_steady_concludes_nothing() {
    let mut facts = facts();
    for run in facts.runs.iter_mut().filter(|run| run.device == "pair" && run.nr_requests == 128) {
        run.points[0].verdicts.add(Verdict::NotSteady);
    }
    let document = concluded(facts);
    let of = |what| document.effects.iter().find(|one| one.what == what && one.device == "pair");
    let rows = of(QueueQuestion::NrRequests).unwrap();
    assert_eq!((rows.conclusion, rows.ratio_ci95), (Conclusion::NoMeasurableDifference, None));
    assert_eq!(of(QueueQuestion::Reader).unwrap().conclusion, Conclusion::Higher);
    let first = &document.headline[0];
    assert!(first.contains("(not steady enough to conclude from)"), "{first}");
    assert!(rows.text.contains("not steady enough"), "{}", rows.text);
}

#[test]
fn what_was_not_simulated_is_not_mentioned() {
    let mut facts = facts();
    facts.runs.retain(|run| run.device == "flash" || run.kernel == KernelThen::Today);
    facts.devices.retain(|device| device.device == "flash" || device.device == "pair");
    let document = concluded(facts);
    let all = document.headline.join(" ");
    assert!(!all.contains("spindles") && !all.contains("command queueing"), "{all}");
    assert!(document.then.is_empty(), "the post's kernel was not simulated on its disk");
    let none = QueueDocument { runs: vec![], devices: vec![], ..self::facts() };
    assert_eq!(concluded(none).headline, ["Nothing was simulated."]);
}

#[test]
fn printed_figures_stand_beside_those_at_as_many_rows() {
    let document = concluded(facts());
    let rows: Vec<_> = document.then.iter().filter(|row| row.rows == QUEUE_POST_ROWS[2]).collect();
    let named = |start: &str| &rows.iter().find(|row| row.row.text.starts_with(start)).unwrap().row;
    let writes = named("w/s");
    assert_eq!((writes.then, writes.now, writes.now_n), (Some(756.03), Some(600.0), 3));
    assert!((writes.times.unwrap() - 600.0 / 756.03).abs() < 1e-12);
    assert_eq!(named("avgrq-sz").now, Some(16.0), "8 KiB are 16 sectors");
    assert!((named("svctm").now.unwrap() - 1.0 / 0.6).abs() < 1e-9);
    assert_eq!(named("wrqm/s").now, Some(0.0));
    // Nothing was simulated at 13 million rows; the post's figures stand alone.
    let early = document.then.iter().filter(|row| row.rows == QUEUE_POST_ROWS[0]);
    assert!(early.clone().count() > 5 && early.clone().all(|row| row.row.now.is_none()));
    let against = document.contradictions.join(" ");
    assert!(against.contains("wrqm/s 0 (post 9.03)"), "{against}");
}

#[test]
fn one_replicate_concludes_nothing() {
    let mut facts = facts();
    for point in facts.runs.iter_mut().flat_map(|run| &mut run.points) {
        point.replicates.truncate(1);
    }
    let document = concluded(facts);
    let effect = effect(&document, QueueQuestion::NrRequests, "pair", KernelThen::Y2009);
    assert_eq!((effect.conclusion, effect.ratio_ci95), (Conclusion::TooFewPairs, None));
    assert!(document.headline[0].contains("too few replicates"), "{:?}", document.headline);
}
