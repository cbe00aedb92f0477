//! The plan as a whole: can every point be run, do compared points do equal work, do bounds hold?

use std::collections::BTreeSet;
use std::time::Duration;

use iostrata_plan::{IoApi, IoSpec, Point, rung};
use iostrata_run::host::PathFacts;

use super::blocks::Part;
use super::budget::{ProbeOptions, Shape, Transactions, announce};

fn shape() -> Shape {
    Shape {
        dir: "/data".into(),
        direct: true,
        writes: true,
        deep_api: IoApi::IoUring,
        apis: vec![IoApi::Sync, IoApi::Libaio, IoApi::IoUring],
        read_bytes: 1 << 30,
        write_bytes: 256 << 20,
        log_bytes: 64 << 20,
        block_bytes: 4096,
        time_factor: 1.0,
        point_write_bytes_max: 128 << 20,
        point_time_max: Duration::from_secs(30),
        precision: 0.03,
        lasting: None,
    }
}

fn options() -> ProbeOptions {
    ProbeOptions {
        dir: "/data".into(),
        read_only: false,
        write_bytes_max: 24 << 30,
        size_bytes: None,
        time_max: None,
        point_time: None,
        precision: 0.03,
        below_is_unknown: None,
        transactions: Transactions::NotAsked,
        verify: false,
        precondition: false,
        lasting: None,
    }
}

fn points(shape: &Shape) -> Vec<(Part, Point, u32)> {
    let of = |part: &Part| {
        let blocks = part.blocks(shape, &[], 1 << 30);
        let part = *part;
        blocks.into_iter().flat_map(move |block| {
            block.points.into_iter().map(move |point| (part, point, block.replicates))
        })
    };
    Part::ALL.iter().flat_map(of).collect()
}

#[test]
fn every_point_can_be_run_and_has_its_own_name() {
    for deep_api in [IoApi::IoUring, IoApi::Libaio, IoApi::Sync] {
        let shape = Shape { deep_api, ..shape() };
        let mut ids = BTreeSet::new();
        for (part, point, replicates) in points(&shape) {
            let again = matches!(part, Part::Reference(_));
            assert!(ids.insert(point.id.clone()) || again, "{} comes twice", point.id);
            assert!(point.metric.stream < point.streams.len(), "{}", point.id);
            for stream in &point.streams {
                assert_eq!(stream.spec.check(), Ok(()), "{} {}", point.id, stream.name);
            }
            assert!(replicates >= 3 || part == Part::Sustained || again, "{}", point.id);
        }
        assert!(ids.len() > 40, "{}", ids.len());
    }
}

#[test]
fn points_that_are_compared_differ_in_one_thing() {
    let all = points(&shape());
    let spec = |id: &str| -> IoSpec {
        let (_, point, _) = all.iter().find(|(_, point, _)| point.id == id).unwrap();
        point.streams[0].spec.clone()
    };
    for kind in ["write", "mixed", "unwritten", "buffered"] {
        let (mut one, eight) =
            (spec(&format!("{kind}_16k_files_1")), spec(&format!("{kind}_16k_files_8")));
        one.files = 8;
        assert_eq!(one, eight, "{kind}");
    }
    let (mut append, overwrite) = (spec("append_16k"), spec("overwrite_16k"));
    append.preparation = overwrite.preparation;
    assert_eq!(append, overwrite);
    let (mut buffered, direct) = (spec("flushed_16k_buffered"), spec("flushed_16k_direct"));
    buffered.direct = true;
    assert_eq!(buffered, direct);
    let (mut fsync, fdatasync) = (spec("commit_fsync"), spec("commit_fdatasync"));
    fsync.flush = fdatasync.flush;
    assert_eq!(fsync, fdatasync);
    for api in ["sync", "libaio", "io_uring"] {
        let one = spec(&format!("read_16k_{api}_16"));
        assert_eq!(one.jobs * one.depth, 16, "{api}");
    }
}

fn facts(free_bytes: u64) -> PathFacts {
    let root = iostrata_linux::host::Root::system();
    let mut facts = iostrata_linux::host::describe_path(&root, std::path::Path::new("/")).unwrap();
    facts.free_bytes = Some(free_bytes);
    facts
}

#[test]
fn what_is_announced_is_a_bound() {
    let announcement = announce(&options(), &facts(100 << 30)).unwrap();
    assert!(announcement.file_bytes_max * 2 < 100 << 30);
    assert!(announcement.written_bytes_max <= 24 << 30);
    assert!(announcement.time_max <= Duration::from_secs(120));
    let shape = Shape { point_write_bytes_max: announcement.point_write_bytes_max, ..shape() };
    let asked: u64 = points(&shape)
        .iter()
        .filter(|(part, ..)| *part != Part::Sustained)
        .flat_map(|(_, point, replicates)| {
            let writes = point.streams.iter().filter_map(|stream| stream.spec.write_bytes_max);
            writes.map(|bytes| bytes * u64::from(*replicates)).collect::<Vec<_>>()
        })
        .sum();
    let left = announcement.written_bytes_max
        - announcement.file_bytes_max
        - announcement.sustained_write_bytes_max;
    assert!(asked <= left, "{asked} of {left}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_figures() {
    let refused = |change: fn(&mut ProbeOptions), free_bytes| {
        let mut options = options();
        change(&mut options);
        announce(&options, &facts(free_bytes)).unwrap_err().to_string()
    };
    let message = refused(|_| (), 100 << 20);
    assert!(message.contains("100 MiB free; free at least 160 MiB"), "{message}");
    assert!(message.contains("a smaller --size, down to 16M"), "{message}");
    let message = refused(|options| options.write_bytes_max = 1024, 100 << 30);
    assert!(message.contains("--max-write 1K") && !message.contains("free"), "{message}");
    let message = refused(|options| options.size_bytes = Some(50 << 30), 100 << 30);
    assert!(message.contains("--size 50G") && message.contains("100 GiB"), "{message}");
    let message = refused(|options| options.size_bytes = Some(4096), 100 << 30);
    assert!(message.contains("--size 4K"), "{message}");
    let few = |options: &mut ProbeOptions| {
        (options.write_bytes_max, options.size_bytes) = (1 << 30, Some(1 << 30));
    };
    let message = refused(few, 100 << 30);
    assert!(message.contains("--max-write 1G"), "{message}");
}

#[test]
fn the_files_fit_into_the_free_space() {
    for free_mib in [161_u64, 200, 300, 384, 500, 800, 1200, 4000, 100_000] {
        let announced = announce(&options(), &facts(free_mib << 20)).unwrap();
        assert!(announced.file_bytes_max * 10 <= (free_mib << 20) * 9, "{free_mib}: {announced:?}");
        // Shrunk no more than needed.
        let is_used = announced.file_bytes_max * 10 + (90 << 20) > (free_mib << 20) * 9;
        let most_mib = (free_mib / 6).min(1024);
        assert!(is_used || announced.read_bytes == most_mib << 20, "{free_mib}: {announced:?}");
    }
}

#[test]
fn every_rung_that_something_names_is_measured() {
    let planned: BTreeSet<String> =
        points(&shape()).into_iter().map(|(_, point, _)| point.id).collect();
    let missing: Vec<_> = rung::ALL.iter().filter(|id| !planned.contains(**id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_is_written_first_and_for_longer_is_announced_and_bounded() {
    let of = |precondition, lasting: Option<u64>, time_max: Option<u64>| {
        let seconds = Duration::from_secs;
        let (lasting, time_max) = (lasting.map(seconds), time_max.map(seconds));
        let options = ProbeOptions { precondition, lasting, time_max, ..options() };
        announce(&options, &facts(100 << 30)).unwrap()
    };
    let usual = of(false, None, None);
    let longer = of(true, Some(1_800), None);
    assert_eq!(usual.precondition_bytes_max, 0);
    assert_eq!(longer.time_max, usual.time_max + Duration::from_secs(600 + 1_800 - 12));
    assert_eq!(longer.usual_time(), usual.time_max);
    let all = longer.file_bytes_max
        + longer.precondition_bytes_max
        + longer.sustained_write_bytes_max
        + 106 * longer.point_write_bytes_max;
    assert!(all <= longer.written_bytes_max, "{longer:?}");
    assert!(longer.sustained_write_bytes_max > usual.sustained_write_bytes_max);
    // The time for the whole bounds both.
    let short = of(true, Some(60), Some(200));
    assert_eq!(short.time_max, Duration::from_secs(200));
    assert!(short.usual_time() >= Duration::from_secs(70), "{short:?}");
    let block = super::blocks::precondition(&shape(), 1 << 30, Duration::from_secs(9));
    let spec = &block.points[0].streams[0].spec;
    assert_eq!((spec.write_bytes_max, spec.runtime), (Some(1 << 30), Some(Duration::from_secs(9))));
    assert_eq!(spec.check(), Ok(()));
    let lasting = Shape { lasting: Some(Duration::from_secs(99)), ..shape() };
    let blocks = Part::Sustained.blocks(&lasting, &[], 1 << 30);
    assert_eq!(blocks[0].points[0].streams[0].spec.runtime, Some(Duration::from_secs(99)));
}
