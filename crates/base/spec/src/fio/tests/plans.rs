//! Job files as people write them, and what they come to.

use std::time::Duration;

use super::{files, plan, plan_in};
use crate::fio::FioPlan;
use crate::fio::stand_in::Desk;
use crate::{
    Access, BlockSizes, Blocks, FileOrder, Flush, FlushMethod, IoApi, Mix, Pacing, Preparation,
    RateProcess, Sharing, Step, SyncWrites, ZipfTheta,
};

fn names(plan: &FioPlan) -> Vec<Vec<&str>> {
    plan.waves
        .iter()
        .map(|wave| {
            wave.jobs.iter().flat_map(|job| &job.streams).map(|one| one.name.as_str()).collect()
        })
        .collect()
}

fn only(plan: &FioPlan) -> &crate::fio::FioStream {
    let mut streams = plan.streams();
    let (first, second) = (streams.next(), streams.next());
    assert!(second.is_none(), "there is more than one stream");
    first.unwrap()
}

#[test]
fn a_database_like_job() {
    let text = "[global]\n\
        ; as an engine writes its pages\n\
        ioengine=libaio\ndirect=1\nbs=16k\nruntime=60\ntime_based\ngroup_reporting\n\
        [pages]\nrw=randrw\nrwmixread=70\niodepth=32\nnumjobs=4\nsize=10g\nfilename=/data/t\n\
        [log]\nioengine=psync\nrw=write\nbs=512\nfdatasync=1\nsize=1g\n";
    let plan = plan(text).unwrap();
    assert_eq!(names(&plan), [["pages", "log"]]);
    let pages = &plan.waves[0].jobs[0].streams[0];
    assert_eq!((pages.spec.api, pages.spec.direct, pages.spec.depth), (IoApi::Libaio, true, 32));
    assert_eq!((pages.spec.mix, pages.spec.access), (Mix::Both { read_pct: 70 }, Access::Coverage));
    assert_eq!((pages.spec.jobs, pages.spec.variation.sharing), (4, Sharing::Whole));
    assert_eq!((pages.spec.block_bytes, pages.spec.size_bytes), (16384, 10 << 30));
    assert_eq!(pages.spec.runtime, Some(Duration::from_secs(60)));
    assert_eq!(pages.spec.variation.io_bytes_max, None, "it is time based");
    assert_eq!(pages.paths, [std::path::Path::new("/data/t")]);
    assert!(pages.spec.processes, "fio's jobs are processes unless they say thread");
    let log = &plan.waves[0].jobs[1].streams[0];
    assert_eq!((log.spec.api, log.spec.depth, log.spec.block_bytes), (IoApi::Sync, 1, 512));
    let flush = log.spec.flush.unwrap();
    assert!(matches!(flush, Flush { method: FlushMethod::Fdatasync, every: 1, .. }));
    assert_eq!(log.spec.preparation, Preparation::Fallocated);
    assert_eq!(log.paths, [std::path::Path::new("log.0.0")]);
    assert_eq!(plan.warnings, []);
}

#[test]
fn globals_hold_for_jobs_below_them_until_said_otherwise() {
    let text = "[global]\nsize=1m\nbs=4k\n[a]\n[global]\nbs=8k\n[b]\n[c]\nbs=2k\n";
    let blocks: Vec<u32> =
        plan(text).unwrap().streams().map(|stream| stream.spec.block_bytes).collect();
    assert_eq!(blocks, [4096, 8192, 2048]);
}

#[test]
fn files_and_stonewalls_make_waves_and_groups() {
    let desk = Desk::default()
        .with_file("a.fio", "[global]\nsize=1m\n[a]\n[b]\nnew_group\n[c]\nstonewall\n")
        .with_file("b.fio", "[d]\nsize=1m\n[e]\nsize=1m\nstonewall\n");
    let plan = files(&["a.fio", "b.fio"], &[], &desk).unwrap();
    assert_eq!(names(&plan), [vec!["a", "b"], vec!["c"], vec!["d"], vec!["e"]]);
    let groups: Vec<u32> =
        plan.waves.iter().flat_map(|wave| &wave.jobs).map(|job| job.group).collect();
    assert_eq!(groups, [0, 1, 2, 3, 4]);
    let chosen = files(&["a.fio"], &["b"], &desk).unwrap();
    assert_eq!(names(&chosen), [["b"]]);
    let missing = files(&["b.fio"], &["nobody"], &desk).unwrap_err();
    assert!(missing.to_string().contains("there are d, e"), "{missing}");
    let globals =
        Desk::default().with_file("a.fio", "[global]\nsize=1m\n[a]\n").with_file("b.fio", "[d]\n");
    let error = files(&["a.fio", "b.fio"], &[], &globals).unwrap_err();
    assert!(error.to_string().starts_with("b.fio:1: [d]: d.0.0 does not exist yet"), "{error}");
    let hidden = Desk::default().with_file("a.fio", "[a]\nfilename=/dev/x\n").with_hidden("/dev/x");
    let error = files(&["a.fio"], &[], &hidden).unwrap_err().to_string();
    assert!(error.contains("the size of /dev/x is not known: Permission denied"), "{error}");
}

#[test]
fn streams_of_any_job_name_can_be_told_apart() {
    let found = plan("[a b/\u{e4}]\nsize=1m\n[a b]\nsize=1m\n[a b]\nsize=1m\n").unwrap();
    assert_eq!(names(&found), [["a_b__", "a_b", "a_b-2"]]);
    assert_eq!(found.waves[0].jobs[0].name, "a b/\u{e4}");
}

#[test]
fn clones_have_files_delays_and_seeds_of_their_own() {
    let text = "[a]\nsize=1m\nnumjobs=3\nnrfiles=2\nstartdelay=1-2\ndirectory=/x:/y\n";
    let found = plan(text).unwrap();
    assert_eq!(names(&found), [["a.0", "a.1", "a.2"]]);
    let streams: Vec<_> = found.streams().collect();
    let paths: Vec<String> =
        streams[1].paths.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(paths, ["/y/a.1.0", "/y/a.1.1"]);
    assert_eq!(streams[0].spec.variation.file_order, FileOrder::RoundRobin(1));
    let delays: Vec<_> = streams.iter().map(|one| one.spec.variation.start_delay).collect();
    assert!(delays.iter().all(|delay| (1.0..2.0).contains(&delay.as_secs_f64())), "{delays:?}");
    assert!(delays[0] != delays[1] && streams[0].spec.seed != streams[1].spec.seed);
    let again = plan(text).unwrap();
    assert_eq!(found, again, "a plan is the same each time");
    let grouped = plan("[a]\nsize=1m\nnumjobs=3\nnrfiles=2\ngroup_reporting\n").unwrap();
    let stream = only(&grouped);
    assert_eq!((stream.spec.jobs, stream.spec.files, stream.paths.len()), (3, 2, 6));
    assert_eq!(stream.spec.variation.sharing, Sharing::Own);
    let apart = plan("[a]\nsize=1m\nnumjobs=2\nfilename=f\noffset_increment=1m\n").unwrap();
    let offsets: Vec<u64> = apart.streams().map(|one| one.spec.variation.offset_bytes).collect();
    assert_eq!(offsets, [0, 1 << 20]);
}

#[test]
fn sizes_come_from_the_file_or_from_what_exists() {
    let on_disk = |text: &str| plan_in(Desk::default().with_data("/dev/x", 100 << 20), text);
    for (text, size, io) in [
        ("size=1m", 1 << 20, 1 << 20),
        ("size=1m\nio_size=4m", 1 << 20, 4 << 20),
        ("size=1m\nloops=3", 1 << 20, 3 << 20),
        ("size=1m\nnumber_ios=7", 1 << 20, 7 * 4096),
        ("filesize=256k\nnrfiles=2\nsize=4m", 512 << 10, 512 << 10),
        ("filename=/dev/x", 100 << 20, 100 << 20),
        ("filename=/dev/x\nsize=25%", 25 << 20, 25 << 20),
        ("filename=/dev/x\noffset=10%", 90 << 20, 90 << 20),
        ("filename=/dev/x:/dev/x\nsize=8m", 8 << 20, 8 << 20),
        ("size=$ncpus*1024*1024", 2 << 20, 2 << 20),
        ("size=(64k*2)", 128 << 10, 128 << 10),
    ] {
        let plan = on_disk(&format!("[a]\n{text}\n")).unwrap_or_else(|e| panic!("{text}: {e}"));
        let spec = &only(&plan).spec;
        assert_eq!((spec.size_bytes, spec.variation.io_bytes_max), (size, Some(io)), "{text}");
    }
}

#[test]
fn requests_in_all_their_forms() {
    let spec = |text: &str| {
        let plan = plan(&format!("[a]\nsize=1m\n{text}\n"));
        only(&plan.unwrap_or_else(|error| panic!("{error}"))).spec.clone()
    };
    assert_eq!(spec("rw=randread:8").variation.step, Step::Run(8));
    assert_eq!(spec("rw=randread:8\nrw_sequencer=identical").variation.step, Step::Repeat(8));
    assert_eq!(spec("rw=write:4k").variation.step, Step::Skip(4096));
    assert_eq!(spec("readwrite=rw\nrwmixwrite=30").mix, Mix::Both { read_pct: 70 });
    assert_eq!(spec("rw=randread\nnorandommap").access, Access::Uniform);
    let zipf = spec("rw=randread\nrandom_distribution=zipf:1.2").access;
    assert_eq!(zipf, Access::Zipfian(ZipfTheta(1.2)));
    let two = spec("rw=randrw\nbs=4k,16k");
    let by_kind =
        |read, write| Blocks::ByKind { read: BlockSizes::One(read), write: BlockSizes::One(write) };
    assert_eq!((two.variation.blocks, two.block_bytes), (by_kind(4096, 16384), 4096));
    assert_eq!(spec("rw=write\nbs=4k,16k").block_bytes, 16384);
    let range = spec("rw=read\nbsrange=4k-16k");
    let expected = BlockSizes::Range { least: 4096, most: 16384 };
    assert_eq!(range.variation.blocks, Blocks::ByKind { read: expected.clone(), write: expected });
    assert_eq!(spec("rw=write\nsync=1").sync, SyncWrites::Sync);
    assert_eq!(spec("buffered=0").direct, spec("direct=1").direct);
    assert!(!spec("direct=1\nbuffered=1").direct, "the later one counts");
    let drained = spec("ioengine=libaio\niodepth=16\niodepth_low=4").variation.reap_min;
    assert_eq!(drained, 12);
}

#[test]
fn rates_become_schedules() {
    let spec = |text: &str| {
        let plan = plan(&format!("[a]\nsize=1m\n{text}\n"));
        only(&plan.unwrap_or_else(|error| panic!("{error}"))).spec.clone()
    };
    let open = |rate_iops| Pacing::Open { rate_iops, process: RateProcess::Fixed };
    assert_eq!(spec("rate=4m").pacing, open(1024.0));
    assert_eq!(spec("rw=write\nrate_iops=10,20").pacing, open(20.0));
    assert_eq!(spec("bssplit=4k/50:12k/50\nrate=8m").pacing, open(1024.0));
    let mixed = spec("rw=randrw\nrate_iops=30,10");
    assert_eq!((mixed.pacing, mixed.mix), (open(40.0), Mix::Both { read_pct: 75 }));
    let poisson = spec("rate_iops=10\nrate_process=poisson").pacing;
    assert_eq!(poisson, Pacing::Open { rate_iops: 10.0, process: RateProcess::Poisson });
}

#[test]
fn what_cannot_be_run_names_line_option_and_reason() {
    for (text, expected) in [
        ("ioengine=rbd", "j.fio:3: ioengine=rbd: there is no such engine here"),
        ("ioengine=posixaio", "j.fio:3: ioengine=posixaio: this way to the kernel"),
        ("rw=trim", "j.fio:3: rw=trim: nothing is discarded"),
        ("rw=sideways", "j.fio:3: rw=sideways: there is no such direction"),
        ("bs=100", "j.fio:3: bs=100: out of range"),
        ("bs=4q", "j.fio:3: bs=4q: `q` is no unit of size"),
        ("direct=1\nbs=1000", "j.fio:4: bs=1000: direct I/O needs whole sectors"),
        ("direct=yes", "j.fio:3: direct=yes: use 0 or 1"),
        ("numjobs=0", "j.fio:3: numjobs=0: out of range"),
        ("bs=2m", "j.fio:2: size=1m: smaller than one block"),
        ("random_distribution=pareto:0.9\nrw=randread", "j.fio:3: random_distribution=pareto"),
        (
            "random_distribution=zipf:1\nrw=randread",
            "j.fio:3: random_distribution=zipf:1: the skew",
        ),
        ("rate=1m\nrate_iops=1", "j.fio:4: rate_iops=1: rate is given too"),
        ("rw=rw\nrate=1m,0", "j.fio:4: rate=1m,0: one direction"),
        ("fsync=1\nfdatasync=1\nrw=write", "j.fio:4: fdatasync=1: fsync and fdatasync"),
        ("bssplit=4k/60:8k/60", "j.fio:3: bssplit=4k/60:8k/60: the shares add up to 120"),
        ("write_lat_log=x\nrw=rw", "j.fio:3: write_lat_log=x: the series"),
        ("ioengine=libaio\niodepth=4\niodepth_low=8", "j.fio:5: iodepth_low=8: the depth is 4"),
        ("filename=-", "j.fio:3: filename=-: name files"),
        ("size=50%", "j.fio:3: size=50%: it is a share of a file that does not exist"),
        ("offset=${NOT_SET}", "j.fio:3: offset=${NOT_SET}: the environment has no NOT_SET"),
        ("frobnicate=1", "j.fio:3: frobnicate=1: there is no such option"),
    ] {
        let error = plan(&format!("[a]\nsize=1m\n{text}\n")).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let nothing = plan("[global]\nsize=1m\n").unwrap_err().to_string();
    assert!(nothing.starts_with("j.fio: job file: there is no job"), "{nothing}");
}

#[test]
fn a_section_that_is_not_there_is_refused_with_those_that_are() {
    let environment = Desk::default().with_file("j.fio", "[global]\nsize=1m\n[b]\n[a]\n");
    let of = |only: &[&str]| files(&["j.fio"], only, &environment);
    let names = "j.fio: --section c: there is no such section; there are a, b";
    assert_eq!(of(&["a", "c"]).unwrap_err().to_string(), names);
    assert_eq!(of(&["a"]).unwrap().waves[0].jobs.len(), 1);
    assert!(of(&["global"]).is_err(), "it is no job");
}
