//! Job files as people write them, and the resulting plans.

use std::time::Duration;

use super::{files, plan, plan_in};
use crate::fio::stand_in::Desk;
use crate::fio::{FioPlan, FioRequest, parse};
use crate::{
    Access, BlockShare, BlockSizes, Blocks, Distribution, FileCall, FileOrder, Flow, Flush,
    FlushMethod, IoApi, Mix, Pacing, Preparation, RateProcess, Sharing, Step, Strides, SyncWrites,
    Verify, ZipfTheta, Zone,
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
    let missing = files(&["b.fio"], &["missing"], &desk).unwrap_err();
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
    let drawn = |text: &str| {
        spec(&format!("rw=randread\nrandom_distribution={text}")).variation.distribution
    };
    assert_eq!(drawn("pareto:0.3"), Some(Distribution::Pareto(0.3)));
    assert_eq!(drawn("normal:25"), Some(Distribution::Normal(25.0)));
    let zone = |requests_pct, size_pct| Zone { requests_pct, size_pct };
    let zones = Distribution::Zoned(vec![zone(90.0, 10.0), zone(10.0, 90.0)]);
    assert_eq!(drawn("zoned:90/10:10/90"), Some(zones));
    let mapped = spec("rw=write\nioengine=mmap\ndirect=1\niodepth=8");
    assert_eq!((mapped.api, mapped.direct, mapped.depth), (IoApi::Mmap, false, 1));
    assert_eq!(mapped.sync, SyncWrites::RwfDsync, "each write is written back");
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
fn empty_directions_ranges_and_shares_are_as_in_fio() {
    let spec = |text: &str| {
        let plan = plan(&format!("[a]\nsize=1m\n{text}\n"));
        only(&plan.unwrap_or_else(|error| panic!("{error}"))).spec.clone()
    };
    let one = BlockSizes::One;
    let share = |bytes, weight| BlockShare { bytes, weight };
    let both = |read, write| Blocks::ByKind { read, write };
    let half = BlockSizes::Shares(vec![share(8192, 50), share(16384, 50)]);
    for (text, expected) in [
        ("rw=randrw\nbssplit=,8k/50:16k/50", both(one(4096), half.clone())),
        ("rw=randrw\nbssplit=8k/50:16k/50,", both(half.clone(), one(4096))),
        ("rw=randrw\nbs=2k\nbssplit=8k/50:16k/50,", both(half.clone(), one(2048))),
        ("rw=trim\nbssplit=,,8k/50:16k/50", both(half.clone(), half.clone())),
        ("rw=rw\nbs=8k,", both(one(8192), one(4096))),
        ("rw=rw\nbs=,8k", both(one(4096), one(8192))),
    ] {
        assert_eq!(spec(text).variation.blocks, expected, "{text}");
    }
    assert_eq!(spec("rw=read\nbssplit=20k-28k/100").block_bytes, 20_480, "fio reads the first");
    let random = |text: &str| (spec(text).access, spec(text).variation.random_pct);
    let covered = Access::Coverage;
    for (text, expected) in [
        ("rw=randrw\npercentage_random=100,0", (covered, Some([100, 0]))),
        ("rw=randrw\npercentage_random=0,25,0", (covered, Some([0, 25]))),
        ("rw=randread\npercentage_random=100,0", (covered, None)),
        ("rw=randwrite\npercentage_random=100,0", (Access::Sequential, None)),
        ("rw=randread\npercentage_random=,50,", (covered, None)),
        ("rw=randtrim\npercentage_random=0,0,30", (covered, Some([0, 30]))),
    ] {
        assert_eq!(random(text), expected, "{text}");
    }
    let align = |text: &str| spec(&format!("rw=randrw\n{text}")).variation.align_bytes;
    assert_eq!(align("bs=4k\nblockalign=4k"), None, "it is so anyway");
    assert_eq!(align("bs=4k\nba=16k"), Some([16_384; 2]));
    assert_eq!(align("bs=4k,8k\nba=0,512"), Some([4096, 512]));
    assert_eq!(spec("rw=trimwrite").variation.io_bytes_max, Some(2 << 20));
    assert_eq!(spec("rw=randtrim\nioengine=libaio\niodepth=4").mix, Mix::Trim);
    assert_eq!(spec("rw=read\nbs=128m\nsize=1g").block_bytes, 128 << 20);
}

#[test]
fn shares_of_a_device_are_those_of_fio() {
    let desk = || Desk::default().with_data("/dev/x", 1_000_000);
    let of = |text: &str| {
        let found = plan_in(desk(), &format!("[a]\nfilename=/dev/x\n{text}\n"));
        let found = found.unwrap_or_else(|error| panic!("{text}: {error}"));
        let one = |one: &crate::fio::FioStream| {
            (one.spec.variation.offset_bytes, one.spec.file_bytes() / 4096)
        };
        found.streams().map(one).collect::<Vec<_>>()
    };
    assert_eq!(of("offset=10%"), [(102_400, 219)]);
    assert_eq!(of("offset=10%\noffset_align=64k"), [(131_072, 212)]);
    assert_eq!(of("offset=10%\nsize=10%"), [(102_400, 24)]);
    assert_eq!(of("size=0"), [(0, 244)]);
    assert_eq!(of("size=0\noffset=500k"), [(512_000, 119)]);
    assert_eq!(of("size=100%%\noffset=50%"), [(503_808, 121)]);
    assert_eq!(of("size=50%\noffset=60%"), [(602_112, 97)]);
    let clones = of("size=10%\noffset_increment=40%\nnumjobs=3");
    assert_eq!(clones, [(0, 24), (400_000, 24), (800_000, 24)]);
    let near_the_end = of("size=500k\noffset_increment=300k\nnumjobs=3");
    assert_eq!(near_the_end, [(0, 125), (307_200, 125), (614_400, 94)]);
}

#[test]
fn a_device_that_is_not_there_is_refused_and_planned_where_nothing_is_run() {
    let desk = Desk::default().with_file("j.fio", "[a]\nfilename=/dev/sdq\nsize=10%\n");
    let mut request = FioRequest { files: vec!["j.fio".into()], ..FioRequest::default() };
    let refused = parse(&request, &desk).unwrap_err().to_string();
    assert_eq!(refused, "j.fio:2: filename=/dev/sdq: no such device");
    request.plans_only = true;
    let planned = parse(&request, &desk).unwrap();
    assert_eq!(only(&planned).spec.size_bytes, (1 << 40) / 10 / 4096 * 4096);
    assert!(planned.warnings[0].text.starts_with("/dev/sdq is not there"), "{planned:?}");
    let desk = Desk::default().with_file("j.fio", "[a]\nfilename=none\nsize=10%%\n");
    let planned = parse(&request, &desk).unwrap();
    assert_eq!(only(&planned).spec.size_bytes, (1 << 40) / 10 / 4096 * 4096);
    assert!(planned.warnings[0].text.starts_with("none is not there"), "{planned:?}");
    request.plans_only = false;
    let refused = parse(&request, &desk).unwrap_err().to_string();
    assert!(refused.contains("it is a share of a file that does not exist"), "{refused}");
    let touched = plan("[a]\nioengine=null\nfilename=/dev/sdq\nsize=1m\n");
    assert!(touched.is_ok(), "it is never opened");
}

#[test]
fn what_stands_before_the_first_section_holds_for_all() {
    let found = plan("bs=8k\nsize=1m\n[a]\n").unwrap();
    assert_eq!(only(&found).spec.block_bytes, 8192);
}

#[test]
fn jobs_that_only_make_files_are_beside_no_others() {
    let found = plan("[global]\nsize=1m\n[a]\ncreate_only=1\n[b]\n[c]\n").unwrap();
    assert_eq!(names(&found), [vec!["a"], vec!["b", "c"]]);
}

#[test]
fn blocks_that_no_file_holds_are_not_drawn() {
    let text = "[a]\nsize=1m\nrw=write\nbssplit=4k/50:64k/40:2m/10\n";
    let found = plan(text).unwrap();
    let share = |bytes, weight| BlockShare { bytes, weight };
    let left = BlockSizes::Shares(vec![share(4096, 50), share(65_536, 40)]);
    let blocks = Blocks::ByKind { read: left.clone(), write: left };
    assert_eq!(only(&found).spec.variation.blocks, blocks);
    assert!(found.warnings[0].text.contains("never drawn"), "{:?}", found.warnings);
    assert_eq!(
        only(&plan("[a]\nrw=trim\nsize=8g\nbs=2300m\n").unwrap()).spec.block_bytes,
        2300 << 20
    );
    assert!(plan("[a]\nrw=read\nsize=8g\nbs=2g\n").is_err(), "no buffer is that large");
}

#[test]
fn what_is_too_small_here_is_planned_where_nothing_is_run() {
    let desk = Desk::default()
        .with_data("/dev/x", 1_000_000)
        .with_file("j.fio", "[a]\nfilename=/dev/x\nsize=5%\nbs=1m\nrw=trim\n")
        .with_file("g.fio", "[global]\nsize=1m\n");
    let mut request = FioRequest { files: vec!["j.fio".into()], ..FioRequest::default() };
    let refused = parse(&request, &desk).unwrap_err().to_string();
    assert!(refused.starts_with("j.fio:3: size=5%: smaller than one block"), "{refused}");
    request.plans_only = true;
    assert_eq!(only(&parse(&request, &desk).unwrap()).spec.size_bytes, 1 << 20);
    request.files = vec!["g.fio".into()];
    let nothing = parse(&request, &desk).unwrap();
    assert!(nothing.waves.is_empty() && nothing.warnings.len() == 1, "{nothing:?}");
    request.plans_only = false;
    assert!(parse(&request, &desk).is_err());
}

#[test]
fn contents_are_verified_by_every_method_with_a_checksum() {
    let verify = |text: &str| {
        let found = plan(&format!("[a]\nsize=1m\n{text}\n"));
        only(&found.unwrap_or_else(|error| panic!("{error}"))).spec.variation.verify.clone()
    };
    assert_eq!(
        verify("rw=write\nverify=crc32c"),
        Some(Verify { reads_back: true, ..Verify::default() })
    );
    assert_eq!(verify("rw=write\nverify=sha512\ndo_verify=0"), Some(Verify::default()));
    let pattern = verify("rw=read\nverify=pattern\nverify_pattern=0x0102").unwrap();
    assert_eq!(pattern.pattern, [1, 2]);
    assert_eq!(verify("rw=read\nverify=0"), None);
    assert!(verify("rw=write\nverify=null").is_some_and(|one| one.is_unchecked));
    let again = plan("[a]\nsize=1m\nrw=randwrite\nfsync=1\nverify=md5\nverify_only=1\n").unwrap();
    assert_eq!((only(&again).spec.mix, only(&again).spec.flush), (Mix::Read, None));
    for (text, expected) in [
        ("rw=trim\nverify=md5", "j.fio:4: verify=md5: what is discarded has no content"),
        ("rw=read\nverify=pattern\nverify_pattern=x", "j.fio:5: verify_pattern=x: write up to 512"),
        ("rw=write\nverify=crc99", "j.fio:4: verify=crc99: there is no such method"),
    ] {
        let error = plan(&format!("[a]\nsize=1m\n{text}\n")).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn clones_have_processors_and_a_filled_device_is_used_whole() {
    let found = plan("[a]\nsize=1m\ncpus_allowed=1,4-5\ngroup_reporting\nnumjobs=2\n").unwrap();
    assert_eq!(only(&found).spec.variation.cpus, [1, 4, 5]);
    let split = "[a]\nsize=1m\ncpus_allowed=1,4-5\ncpus_allowed_policy=split\ngroup_reporting\n\
                 numjobs=4\n";
    let cpus: Vec<Vec<u32>> =
        plan(split).unwrap().streams().map(|one| one.spec.variation.cpus.clone()).collect();
    assert_eq!(cpus, [[1], [4], [5], [1]]);
    assert!(plan("[a]\nsize=1m\ncpus_allowed=7-1\n").is_err());
    let filled = "[a]\nfilename=/dev/x\nsize=64k\nrw=write\nfill_device=1\n";
    let filled = plan_in(Desk::default().with_data("/dev/x", 1 << 20), filled).unwrap();
    assert_eq!(only(&filled).spec.size_bytes, 1 << 20);
    let missing = plan("[a]\nrw=write\nfill_device=1\n").unwrap_err().to_string();
    assert!(missing.contains("a.0.0 does not exist yet"), "{missing}");
}

#[test]
fn logs_are_replayed_on_their_files_or_on_another() {
    let log = "fio version 3 iolog\n0 a add\n5 a read 0 4096\n9 b write 8192 512\n9 b sync 0 0\n";
    let desk = || Desk::default().with_file("log", log).with_file("bad", "x");
    let of = |text: &str| plan_in(desk(), &format!("[j]\nread_iolog=log\n{text}\n"));
    let found = of("").unwrap();
    let stream = only(&found);
    assert_eq!(stream.paths, [std::path::Path::new("a"), std::path::Path::new("b")]);
    assert_eq!((stream.spec.mix, stream.spec.block_bytes), (Mix::Both { read_pct: 50 }, 512));
    assert_eq!(stream.spec.file_bytes(), 8704, "each file is as long as the log reaches");
    let replay = stream.spec.variation.replay.clone().unwrap();
    assert!(replay.stalls && replay.flushes && !replay.is_fdatasync, "{replay:?}");
    let redirected = of("replay_redirect=c\nreplay_no_stall=1\nloops=2").unwrap();
    assert_eq!(only(&redirected).paths, [std::path::Path::new("c")]);
    assert_eq!(only(&redirected).spec.variation.io_bytes_max, Some(2 * 4608));
    let bad = plan_in(desk(), "[j]\nread_iolog=bad\n").unwrap_err().to_string();
    assert!(bad.starts_with("j.fio:2: read_iolog=bad: it begins with no"), "{bad}");
}

#[test]
fn a_global_name_names_no_job() {
    let found = plan("[global]\nname=all\nsize=1m\n[a]\n[b]\nname=c\n").unwrap();
    let jobs: Vec<&str> = found.waves[0].jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(jobs, ["a", "c"]);
    assert_eq!(found.waves[0].jobs[0].streams[0].paths, [std::path::Path::new("a.0.0")]);
}

#[test]
fn passes_begin_without_a_cache_where_fio_drops_it() {
    let drops = |text: &str| {
        let text = format!("[a]\nsize=1m\nruntime=2\ntime_based\n{text}\n");
        only(&plan(&text).unwrap()).spec.variation.drops_each_pass
    };
    assert!(drops("rw=read") && drops("rw=randread"));
    for never in ["direct=1", "invalidate=0", "rw=read\nnrfiles=2", "rw=randread\nnorandommap"] {
        assert!(!drops(never), "{never}");
    }
    assert!(!drops("time_based=0"));
}

#[test]
fn engines_that_call_for_room_or_cut_files_are_no_writes() {
    let call = |text: &str| {
        let found = plan(&format!("[a]\nsize=1m\n{text}\n"))?;
        let spec = &only(&found).spec;
        let begins =
            if spec.mix == Mix::Trim { Preparation::Fallocated } else { Preparation::Empty };
        assert_eq!((spec.api, spec.preparation), (IoApi::Sync, begins));
        Ok::<_, crate::fio::FioError>(spec.variation.call)
    };
    assert_eq!(call("ioengine=falloc\nrw=randtrim"), Ok(Some(FileCall::Allocate)));
    assert_eq!(call("ioengine=ftruncate\nrw=write"), Ok(Some(FileCall::Truncate)));
    let mixed = call("ioengine=ftruncate\nrw=randrw").unwrap_err().to_string();
    assert!(mixed.starts_with("j.fio:4: rw=randrw: ftruncate only cuts"), "{mixed}");
    let reads = plan("[a]\nsize=1m\nioengine=falloc\nrw=read\n").unwrap();
    assert!(only(&reads).spec.changes_files(), "it makes room");
}

#[test]
fn jobs_have_weights_in_a_flow() {
    let flow = |text: &str| only(&plan(text).unwrap()).spec.variation.flow;
    let one = Flow { id: 3, weight: 8, wait: Duration::from_micros(100) };
    assert_eq!(flow("[a]\nsize=1m\nflow=8\nflow_id=3\nflow_sleep=100\n"), Some(one));
    assert_eq!(flow("[a]\nsize=1m\nflow=0\n"), None);
}

#[test]
fn jobs_wait_for_named_ones() {
    let found = plan("[global]\nsize=1m\n[a]\n[b]\nwait_for=a\n[c]\nwait_for=a\n").unwrap();
    assert_eq!(names(&found), [vec!["a"], vec!["b", "c"]]);
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
    let process = RateProcess::Fixed;
    for (text, read_iops, write_iops) in [
        ("rate_iops=30,10", Some(30.0), Some(10.0)),
        ("rate_iops=30", Some(30.0), Some(30.0)),
        ("rate=1m,", Some(256.0), None),
        ("rate=,512k", None, Some(128.0)),
        ("rate=1m,0", Some(256.0), None),
    ] {
        let mixed = spec(&format!("rw=randrw\nrwmixread=90\n{text}"));
        let pacing = Pacing::Directions { read_iops, write_iops, process };
        assert_eq!((mixed.pacing, mixed.mix), (pacing, Mix::Both { read_pct: 90 }), "{text}");
    }
    assert_eq!(spec("rw=randrw\nrate=0,").pacing, Pacing::Closed);
    assert_eq!(spec("rw=read\nrate_iops=,100").pacing, Pacing::Closed);
    let poisson = spec("rate_iops=10\nrate_process=poisson").pacing;
    assert_eq!(poisson, Pacing::Open { rate_iops: 10.0, process: RateProcess::Poisson });
}

#[test]
fn what_cannot_be_run_names_line_option_and_reason() {
    for (text, expected) in [
        ("ioengine=rbd", "j.fio:3: ioengine=rbd: there is no such engine here"),
        ("ioengine=splice", "j.fio:3: ioengine=splice: this way to the kernel"),
        ("percentage_random=101\nrw=randread", "j.fio:3: percentage_random=101: it is a share"),
        ("wait_for=b", "j.fio:3: wait_for=b: no job before it has this name"),
        ("ss=iops", "j.fio:3: ss=iops: write for example iops:2%"),
        ("ss=bw:5", "j.fio:3: ss=bw:5: a limit of bandwidth is a share"),
        ("direct=1\nba=1000\nrw=randread", "j.fio:4: ba=1000: direct I/O needs whole sectors"),
        ("rw=sideways", "j.fio:3: rw=sideways: there is no such direction"),
        ("zonemode=strided", "j.fio:3: zonemode=strided: zones have no size"),
        ("zonemode=zbd", "j.fio:3: zonemode=zbd: zoned devices are not known"),
        ("bs=4q", "j.fio:3: bs=4q: `q` is no unit of size"),
        ("direct=1\nbs=100", "j.fio:4: bs=100: out of range"),
        ("bs=16\nrw=write\nverify=md5", "j.fio:3: bs=16: out of range"),
        ("direct=1\nbs=1000", "j.fio:4: bs=1000: direct I/O needs whole sectors"),
        ("direct=yes", "j.fio:3: direct=yes: use 0 or 1"),
        ("numjobs=0", "j.fio:3: numjobs=0: out of range"),
        ("bs=2m", "j.fio:2: size=1m: smaller than one block"),
        ("random_distribution=pareto:9\nrw=randread", "j.fio:3: random_distribution=pareto"),
        (
            "random_distribution=zoned:60/10:30/20\nrw=randread",
            "j.fio:3: random_distribution=zoned",
        ),
        (
            "random_distribution=zipf:1\nrw=randread",
            "j.fio:3: random_distribution=zipf:1: the skew",
        ),
        ("fsync=3\nfdatasync=2\nrw=write", "j.fio:4: fdatasync=2: fsync and fdatasync"),
        ("bssplit=4k/60:8k/60", "j.fio:3: bssplit=4k/60:8k/60: the shares add up to 120"),
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

#[test]
fn values_are_read_as_fio_reads_them() {
    let spec = |text: &str| {
        let plan = plan(&format!("[a]\nsize=1m\n{text}\n"));
        only(&plan.unwrap_or_else(|error| panic!("{text}: {error}"))).spec.clone()
    };
    assert_eq!(spec("rw=read\nbs=4k-8k").block_bytes, 4096, "what follows is not read");
    let range = BlockSizes::Range { least: 512, most: 1024 };
    let blocks = Blocks::ByKind { read: range.clone(), write: range };
    assert_eq!(spec("rw=read\nbsrange=512/25:1k:25:2k:25").variation.blocks, blocks);
    assert_eq!(spec("rw=read:-8k").variation.step, Step::Back(8192));
    assert_eq!(spec("rw=read:12k").variation.io_bytes_max, Some(1 << 20), "it begins again");
    // 85 blocks of 8k and gaps of 4k; the next one has no room.
    assert_eq!(spec("rw=read:4k\nbs=8k").variation.io_bytes_max, Some(85 * 8192));
    let zones = |text: &str| spec(&format!("rw=randread\nrandom_distribution=zoned:{text}"));
    let zone = |requests_pct, size_pct| Zone { requests_pct, size_pct };
    let expected = Distribution::Zoned(vec![zone(50.0, 10.0), zone(30.0, 45.0), zone(20.0, 45.0)]);
    assert_eq!(zones("50/10:30/:20/").variation.distribution, Some(expected));
    let drained = spec("ioengine=libaio\niodepth=4\niodepth_low=8").variation.reap_min;
    assert_eq!(drained, 1);
    let batch = spec("ioengine=libaio\niodepth=4\niodepth_batch_complete=16").variation.reap_min;
    assert_eq!(batch, 4, "no more than the depth");
    let offloaded = spec("io_submit_mode=offload\niodepth=8");
    assert_eq!((offloaded.api, offloaded.depth), (IoApi::IoUring, 8));
    assert_eq!(spec("rw=write\nbs=100").block_bytes, 100, "the page cache takes any length");
    assert!(spec("rw=read\nbsrange=1k-8k\nbs_unaligned=1").variation.bs_unaligned);
    assert!(!spec("thread=32").processes, "any count is a yes");
    assert_eq!(spec("runtime=2min").runtime, Some(Duration::from_secs(120)));
    let said = plan("[a]\nsize=1m\nruntime=2min\n").unwrap().warnings;
    assert!(said[0].text.contains("fio takes it for microseconds"), "{said:?}");
    let ranged = plan("[a]\nfilesize=1m-3m\nnrfiles=4\n").unwrap();
    assert_eq!(only(&ranged).spec.file_bytes(), 2 << 20);
    assert!(ranged.warnings[0].text.contains("the middle"), "{:?}", ranged.warnings);
}

#[test]
fn strided_zones_are_asked_for_by_mode_or_by_size() {
    let zones = |text: &str| {
        let plan = plan(&format!("[a]\nsize=1m\nrw=read\n{text}\n")).unwrap();
        only(&plan).spec.variation.strides
    };
    let of = |moved_bytes, zone_bytes, skipped_bytes| {
        Some(Strides { moved_bytes, zone_bytes, skipped_bytes })
    };
    assert_eq!(zones("zonesize=64k"), of(65_536, 65_536, 0));
    let all = "zonemode=strided\nzonesize=64k\nzonerange=32k\nzoneskip=16k";
    assert_eq!(zones(all), of(65_536, 32_768, 16_384));
    assert_eq!(zones("zonesize=64k\nzonemode=none"), None);
    assert_eq!(zones("zonesize=64k\nnrfiles=2"), None, "it works with one file only");
}

#[test]
fn a_file_without_a_size_is_planned_where_nothing_is_run() {
    let desk = Desk::default().with_file("j.fio", "[a]\nfilename=none\noffset=4k\n");
    let mut request = FioRequest { files: vec!["j.fio".into()], ..FioRequest::default() };
    assert!(parse(&request, &desk).unwrap_err().to_string().contains("say size="));
    request.plans_only = true;
    let planned = parse(&request, &desk).unwrap();
    assert_eq!(only(&planned).spec.size_bytes, (1 << 40) - 4096);
    assert!(planned.warnings[0].to_string().starts_with("j.fio:1: [a]: none is not there"));
}
