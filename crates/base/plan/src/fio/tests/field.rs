//! Forms that people write and fio takes: each in a job of a few lines.

use std::path::Path;

use super::{plan, plan_in};
use crate::fio::stand_in::Desk;
use crate::fio::{FioError, FioPlan, FioRequest, FioStream, parse};
use crate::{Distribution, Flush, FlushMethod, IoApi, Mix, Verify, Zone};

const MIB: u64 = 1 << 20;

fn job(lines: &str) -> FioPlan {
    plan(&format!("[a]\n{lines}\n")).unwrap_or_else(|error| panic!("{lines}: {error}"))
}

fn stream(plan: &FioPlan) -> &FioStream {
    plan.streams().next().unwrap()
}

fn refusal(lines: &str) -> String {
    plan(&format!("[a]\n{lines}\n")).unwrap_err().to_string()
}

fn warnings(plan: &FioPlan) -> Vec<String> {
    plan.warnings.iter().map(ToString::to_string).collect()
}

/// Bytes before the files' part, of each file's part, and what is moved.
fn amount(lines: &str) -> (u64, u64, u64) {
    let plan = job(lines);
    let spec = &stream(&plan).spec;
    (spec.variation.offset_bytes, spec.file_bytes(), spec.variation.io_bytes_max.unwrap())
}

#[test]
fn a_log_without_a_name_has_that_of_the_job() {
    let logs = |lines: &str| job(lines).waves[0].jobs[0].logs.clone();
    let found = logs("size=1m\nwrite_bw_log\nwrite_iops_log=x\nwrite_lat_log=");
    assert_eq!(found.bandwidth.as_deref(), Some("a"));
    assert_eq!((found.iops.as_deref(), found.latency.as_deref()), (Some("x"), Some("a")));
    let found = logs("size=1m\nnumjobs=2\nname=b\nwrite_bw_log");
    assert_eq!(found.bandwidth.as_deref(), Some("b"));
}

#[test]
fn filesize_is_where_the_file_ends_and_size_what_is_moved() {
    for (lines, expected) in [
        ("filesize=8m", (0, 8 * MIB, 8 * MIB)),
        ("filesize=8m\noffset=1m", (MIB, 7 * MIB, 7 * MIB)),
        ("filesize=8m\nsize=4m", (0, 8 * MIB, 4 * MIB)),
        ("filesize=8m\nsize=4m\noffset=1m", (MIB, 7 * MIB, 4 * MIB)),
        ("filesize=8m\nsize=999g", (0, 8 * MIB, 8 * MIB)),
        ("filesize=4m\nnrfiles=2\nsize=4m", (0, 4 * MIB, 4 * MIB)),
        ("filesize=8m\nsize=50%", (0, 4 * MIB, 4 * MIB)),
        ("filesize=8m\nsize=50%\noffset=6m", (6 * MIB, 2 * MIB, 2 * MIB)),
        ("filesize=8m\nio_size=20m", (0, 8 * MIB, 20 * MIB)),
        ("size=8m\noffset=1m", (MIB, 8 * MIB, 8 * MIB)),
    ] {
        assert_eq!(amount(&format!("rw=randwrite\n{lines}")), expected, "{lines}");
    }
    let beyond = refusal("filesize=8m\noffset=8m");
    assert_eq!(beyond, "j.fio:3: offset=8m: it is not within the filesize of 8M");
    let clones = job("filesize=8m\nfilename=f\nnumjobs=2\noffset_increment=2m");
    let second = &clones.streams().nth(1).unwrap().spec;
    assert_eq!((second.variation.offset_bytes, second.file_bytes()), (2 * MIB, 6 * MIB));
}

#[test]
fn a_pass_with_gaps_ends_a_job_that_says_no_io_size() {
    let gaps = "rw=write:112k\nbs=16k\nfilesize=8m\noffset=120k";
    assert_eq!(amount(gaps).2, 63 * 16384);
    assert_eq!(amount(&format!("{gaps}\nio_size=8m")).2, 8 * MIB);
}

#[test]
fn a_file_that_is_not_there_is_filled_up_to_its_size() {
    assert_eq!(amount("fill_device=1\nrw=write\nsize=4m"), (0, 4 * MIB, 4 * MIB));
    let desk = Desk::default().with_data("/dev/x", 64 * MIB);
    let text = "[a]\nfill_device=1\nrw=write\nsize=4m\nfilename=/dev/x\n";
    assert_eq!(stream(&plan_in(desk, text).unwrap()).spec.size_bytes, 64 * MIB);
}

#[test]
fn files_of_different_sizes_are_warned_of() {
    let desk = Desk::default().with_data("x", 8 * MIB).with_data("y", 2 * MIB);
    let found = plan_in(desk.clone(), "[a]\nfilename=x:y\n").unwrap();
    assert_eq!(stream(&found).spec.size_bytes, 4 * MIB);
    let expected = "j.fio:2: filename=x:y: files of one job have one size: 2M of each are used";
    assert_eq!(warnings(&found), [expected]);
    let found = plan_in(desk, "[a]\nfilename=x:y\nsize=2m\n").unwrap();
    assert_eq!(warnings(&found), [""; 0]);
}

#[test]
fn a_directory_that_is_not_there_is_refused_before_anything_runs() {
    let desk = Desk::default().without_directory("/none");
    let text = "[a]\nsize=1m\ndirectory=/none\n";
    let error = plan_in(desk.clone(), text).unwrap_err().to_string();
    assert_eq!(error, "j.fio:3: directory=/none: there is no directory /none; create it");
    let desk = desk.with_file("j.fio", text);
    let files = vec!["j.fio".into()];
    let request = FioRequest { files, plans_only: true, ..FioRequest::default() };
    assert_eq!(stream(&parse(&request, &desk).unwrap()).paths, [Path::new("/none/a.0.0")]);
}

#[test]
fn engines_have_all_their_names() {
    for name in ["aio", "linuxaio", "libaio"] {
        let found = job(&format!("size=1m\nioengine={name}\niodepth=4"));
        let spec = &stream(&found).spec;
        assert_eq!((spec.api, spec.depth), (IoApi::Libaio, 4), "{name}");
    }
    for (name, expected) in [
        ("windowsaio", "it is an engine of another system; use libaio or io_uring"),
        ("/opt/x.so", "engines of one's own cannot be loaded; use libaio, io_uring or sync"),
        ("external:x", "engines of one's own cannot be loaded; use libaio, io_uring or sync"),
    ] {
        let error = refusal(&format!("size=1m\nioengine={name}"));
        assert_eq!(error, format!("j.fio:3: ioengine={name}: {expected}"));
    }
}

#[test]
fn shares_may_have_a_percent_sign() {
    let found = job("size=1m\nrw=randrw\nrwmixread=70%\npercentage_random=50%,100%");
    let spec = &stream(&found).spec;
    assert_eq!(spec.mix, Mix::Both { read_pct: 70 });
    assert_eq!(spec.variation.random_pct, Some([50, 100]));
    let found = job("size=1m\nrw=randrw\nrwmixwrite=20%\nbssplit=4k/50%:8k/50%");
    assert_eq!(stream(&found).spec.mix, Mix::Both { read_pct: 80 });
    assert!(refusal("size=1m\nrw=randrw\nrwmixread=170%").contains("use 0 to 100"));
}

#[test]
fn a_product_without_parentheses_is_its_first_number_as_in_fio() {
    let found = job("size=8m*2\nioengine=libaio\niodepth=32*4");
    let spec = &stream(&found).spec;
    assert_eq!((spec.size_bytes, spec.depth), (8 * MIB, 32));
    let text = "as in fio, what is behind the number is not read; put it in parentheses";
    let expected =
        [format!("j.fio:2: size=8m*2: {text}"), format!("j.fio:4: iodepth=32*4: {text}")];
    assert_eq!(warnings(&found), expected);
    assert_eq!(warnings(&job("size=(2*4m)\nfilename=2*4m")), [""; 0]);
}

#[test]
fn both_kinds_of_flushes_are_one() {
    let flush = |lines: &str| {
        let found = job(&format!("size=1m\nrw=write\n{lines}"));
        let Some(Flush { method, every, .. }) = stream(&found).spec.flush else {
            panic!("{lines}")
        };
        (method, every, warnings(&found).pop().unwrap_or_default())
    };
    let (method, every, warning) = flush("fsync=4\nfdatasync=8");
    assert_eq!((method, every), (FlushMethod::Fsync, 4));
    assert_eq!(warning, "j.fio:5: fdatasync=8: ignored: there is an fsync whenever it is due");
    let (method, every, warning) = flush("fdatasync=1\nfsync=100");
    assert_eq!((method, every), (FlushMethod::Fdatasync, 1));
    assert_eq!(warning, "j.fio:5: fsync=100: every flush is an fdatasync, with fsync's among them");
    let error = refusal("size=1m\nrw=write\nfsync=3\nfdatasync=2");
    assert!(error.contains("both given; use one of them"), "{error}");
}

#[test]
fn patterns_are_numbers_and_texts_one_behind_the_other() {
    let pattern = |text: &str| {
        let found = job(&format!("size=1m\nrw=write\nverify=pattern\nverify_pattern={text}"));
        let Some(Verify { pattern, .. }) = stream(&found).spec.variation.verify.clone() else {
            panic!("{text}")
        };
        (pattern, warnings(&found).pop().unwrap_or_default())
    };
    assert_eq!(pattern("0xff").0, [0xff]);
    assert_eq!(pattern("0").0, [0]);
    assert_eq!(pattern("258").0, [2, 1], "the smallest byte of a number first");
    assert_eq!(pattern("-12").0, [0xf4, 0xff, 0xff, 0xff]);
    assert_eq!(pattern("0xff\"ab\"-12").0, b"\xffab\xf4\xff\xff\xff");
    assert_eq!(pattern("0xde0xad").0, [0xde, 0xad]);
    let (sealed, warning) = pattern("0xff%o");
    assert_eq!(sealed, [0; 0]);
    assert!(warning.ends_with("blocks have a seal with their offset, and no pattern"), "{warning}");
    assert!(refusal("size=1m\nrw=write\nverify=pattern\nverify_pattern=\"a").contains("512 bytes"));
}

#[test]
fn zones_may_have_sizes_in_bytes() {
    let zones = |lines: &str| {
        let found = job(&format!("rw=randread\n{lines}"));
        match stream(&found).spec.variation.distribution.clone() {
            Some(Distribution::Zoned(zones)) => zones,
            other => panic!("{other:?}"),
        }
    };
    let zone = |requests_pct, size_pct| Zone { requests_pct, size_pct };
    let expected = [zone(60.0, 25.0), zone(30.0, 50.0), zone(10.0, 25.0)];
    assert_eq!(zones("size=8m\nrandom_distribution=zoned_abs:60/2m:30/4m:10/2m"), expected);
    let rest = "size=8m\nrandom_distribution=zoned_abs:60/2m:30/4m:10/";
    assert_eq!(zones(rest), expected, "the last one has what is left");
    let beyond = "size=8m\nrandom_distribution=zoned_abs:60/2m:40/100g";
    assert_eq!(zones(beyond), [zone(60.0, 25.0), zone(40.0, 75.0)]);
    let error = refusal("size=1m\nrw=randread\nrandom_distribution=zoned_abs:60/2m:30/2m");
    assert!(error.contains("add up to 100 percent"), "{error}");
}

#[test]
fn a_block_of_fios_kibibytes_says_what_it_is() {
    let error = refusal("size=1m\ndirect=1\nbs=4KiB");
    assert!(error.ends_with("; in fio's way 4KiB is 4000 bytes, and 4k is 4096"), "{error}");
    assert!(!refusal("size=1m\ndirect=1\nbs=4000").contains("fio's way"));
}

#[test]
fn each_loop_is_read_back() {
    let loops = |text: &str| {
        let found = job(text);
        assert_eq!(warnings(&found), [""; 0]);
        found
            .streams()
            .next()
            .and_then(|one| one.spec.variation.verify.clone())
            .map(|one| one.loops)
    };
    assert_eq!(loops("size=1m\nrw=write\nverify=crc32c\nloops=3"), Some(3));
    assert_eq!(loops("size=1m\nrw=write\nverify=crc32c"), Some(0));
    assert_eq!(loops("size=1m\nrw=write\nverify=crc32c\nloops=3\ndo_verify=0"), Some(0));
}

#[test]
fn a_job_without_a_name_is_refused() {
    assert_eq!(refusal("size=1m\nname="), "j.fio:3: name: a job has a name; write name=NAME");
}

#[test]
fn a_job_that_is_called_like_a_device_runs_on_it() {
    let desk = || Desk::default().with_data("/dev/x", MIB);
    let plan = plan_in(desk(), "[global]\nrw=read\nbs=64k\n[/dev/x]\n").unwrap();
    let found = stream(&plan);
    assert_eq!((&found.paths, found.spec.size_bytes), (&vec!["/dev/x".into()], MIB));
    let error = plan_in(desk(), "[/dev/y]\nrw=read\n").unwrap_err().to_string();
    assert!(error.contains("[/dev/y]: /dev/y: no such device"), "{error}");
    let in_memory = plan_in(desk(), "[/dev/shm/f]\nrw=read\nsize=1m\n").unwrap();
    assert_ne!(stream(&in_memory).paths, [Path::new("/dev/shm/f")]);
}

#[test]
fn what_is_appended_begins_where_the_files_end() {
    let desk = || Desk::default().with_data("f", 8192).with_data("g", 4096);
    let begin = |text: &str| {
        let found = plan_in(desk(), &format!("[a]\nsize=64k\nrw=write\nfile_append=1\n{text}\n"));
        found.map(|plan| stream(&plan).spec.variation.offset_bytes)
    };
    assert_eq!(begin("filename=f\noffset=512"), Ok(8192), "whatever offset says");
    assert_eq!(begin("filename=new"), Ok(0));
    let differ = begin("filename=f:g").unwrap_err().to_string();
    assert!(differ.contains("file_append=1: its files end at different places"), "{differ}");
    let none = begin("filename=f\nfile_append=0").unwrap();
    assert_eq!(none, 0);
}

#[test]
fn flushes_that_are_due_at_once_are_one() {
    let flush = |text: &str| {
        let found = plan(&format!("[a]\nsize=1m\nrw=write\n{text}\n"))?;
        let flush = stream(&found).spec.flush.map(|flush| (flush.method, flush.every));
        Ok::<_, FioError>((flush, warnings(&found)))
    };
    let (ranges, said) = flush("fsync=4\nsync_file_range=write:8").unwrap();
    assert_eq!(ranges, Some((FlushMethod::Fsync, 4)));
    assert_eq!(
        said,
        ["j.fio:5: sync_file_range=write:8: ignored: there is an fsync whenever it is due"]
    );
    let both = flush("fsync=4\nsync_file_range=write:2").unwrap_err().to_string();
    assert!(both.contains("fsync and sync_file_range are both given"), "{both}");
}
