//! What `iostrata fio` prints and logs, compared with what fio prints and logs for the same jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

use serde_json::Value;

use crate::fio::fio_is_installed;
use crate::harness::{Bench, stderr, stdout, usual_or_soak};

/// The version whose output is compared.
const VERSION: &str = "fio-3.33";

/// Every key of a job that reads, writes and flushes, as fio 3.33 writes it in json+.
const KEYS: &str = include_str!("../golden/fio/keys.txt");

/// Jobs that are quick on both sides. A global section holds for all.
const JOBS: [(&str, &str); 21] = [
    ("read", "[a]\nrw=read\nsize=1m\nioengine=sync\n"),
    ("write", "[a]\nrw=write\nsize=1m\nioengine=sync\n"),
    ("randrw", "[global]\nsize=1m\n[a]\nrw=randrw\nioengine=libaio\niodepth=4\nfsync=16\n"),
    (
        "group",
        "[global]\nsize=1m\n[a]\nrw=randread\nnumjobs=3\ngroup_reporting\nioengine=libaio\n\
         direct=1\n",
    ),
    ("clones", "[a]\nrw=randread\nnumjobs=2\nsize=1m\nioengine=sync\n"),
    ("fdatasync", "[a]\nrw=write\nsize=256k\nbs=2300\nioengine=sync\nfdatasync=1\n"),
    ("libaio", "[a]\nrw=randwrite\nsize=1m\nioengine=libaio\niodepth=8\ndirect=1\n"),
    (
        "logs",
        "[a]\nrw=randrw\nsize=1m\nioengine=libaio\nruntime=1\ntime_based\nrate_iops=2000\n\
         write_bw_log=l\nwrite_lat_log=l\nwrite_iops_log=l\nlog_avg_msec=250\n",
    ),
    (
        "waves",
        "[global]\nsize=1m\nioengine=sync\n[a]\nrw=read\ndescription=first\n[b]\nstonewall\n\
         rw=write\n",
    ),
    ("timed", "[a]\nrw=randread\nsize=1m\nioengine=sync\nruntime=1\ntime_based\nrate_iops=2000\n"),
    (
        "percentiles of all",
        "[a]\nrw=write\nsize=1m\nioengine=libaio\nlat_percentiles=1\nslat_percentiles=1\n",
    ),
    (
        "percentiles of the whole",
        "[a]\nrw=write\nsize=256k\nioengine=sync\nfdatasync=8\nlat_percentiles=1\n\
         clat_percentiles=0\n",
    ),
    ("no percentiles", "[a]\nrw=read\nsize=1m\nioengine=sync\nclat_percentiles=0\n"),
    (
        "target of latency",
        "[a]\nrw=randread\nsize=1m\nioengine=libaio\ndirect=1\niodepth=4\nruntime=1\ntime_based\n\
         latency_target=100ms\nlatency_window=100ms\nlatency_percentile=90\n",
    ),
    (
        "steady",
        "[a]\nrw=read\nsize=1m\nioengine=null\nrate_iops=2000\nruntime=5\ntime_based\n\
         ss=iops:90%\nss_dur=2\n",
    ),
    (
        "never steady",
        "[a]\nrw=read\nsize=1m\nioengine=null\nrate_iops=2000\nruntime=2\ntime_based\n\
         ss=bw_slope:0%\nss_dur=4\n",
    ),
    (
        "without a time to be steady in",
        "[a]\nrw=read\nsize=1m\nioengine=null\nrate_iops=2000\nruntime=1\ntime_based\n\
         ss=iops:90%\n",
    ),
    ("files that are made", "[a]\nioengine=filecreate\nfilesize=4k\nnrfiles=20\n"),
    ("files that are looked at", "[a]\nioengine=filestat\nfilesize=4k\nnrfiles=20\n"),
    ("files that are deleted", "[a]\nioengine=filedelete\nfilesize=4k\nnrfiles=20\nrw=write\n"),
    ("null", "[a]\nrw=randrw\nsize=4m\nioengine=null\npercentile_list=50:99\n"),
];

fn bench(jobs: &str) -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.path("j.fio"), jobs).unwrap();
    bench
}

/// The program on a job file.
fn ours(bench: &Bench, options: &str) -> Output {
    let output = bench.line(&format!("fio j.fio --quiet {options}"));
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// fio on the same one.
fn theirs(bench: &Bench, options: &str) -> Output {
    let mut fio = Command::new("fio");
    fio.args(options.split_whitespace()).arg("j.fio").current_dir(bench.path(""));
    fio.output().unwrap()
}

/// Both at the same time, the program in the first directory and fio in the second.
fn both([of_ours, of_theirs]: &[Bench; 2], options: &str) -> (Output, Output) {
    std::thread::scope(|scope| {
        let fio = scope.spawn(|| theirs(of_theirs, options));
        (ours(of_ours, options), fio.join().unwrap())
    })
}

/// Whether that version of fio is there; prints it when it is not.
fn fio_is_comparable() -> bool {
    if !fio_is_installed() {
        return false;
    }
    let version = Command::new("fio").arg("--version").output().unwrap();
    let is_same = stdout(&version).trim() == VERSION;
    if !is_same {
        eprintln!("skipped: fio is not {VERSION}");
    }
    is_same
}

/// The document in a text that may begin with notes of fio.
fn document(text: &str) -> Value {
    serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
}

/// Every key of a document with the type of its value. What is named by a job, a percentile or a
/// bucket that there happens to be is one key.
fn keys(document: &Value) -> BTreeMap<String, &'static str> {
    let mut keys = BTreeMap::new();
    walk(document, String::new(), &mut keys);
    keys
}

fn walk(value: &Value, path: String, keys: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_named_by_chance =
        [" options", "/bins", "disk_util"].iter().any(|name| path.ends_with(name));
    keys.insert(path.clone(), kind);
    match value {
        Value::Object(fields) if !is_named_by_chance => {
            for (name, value) in fields {
                walk(value, format!("{path}/{name}"), keys);
            }
        }
        Value::Array(values) if is_named_by_chance => {
            let first = values.first().unwrap_or(&Value::Null);
            walk(first, format!("{path}/0"), keys);
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                walk(value, format!("{path}/{at}"), keys);
            }
        }
        _ => {}
    }
}

/// Keys of fio's that ours lacks or has with another type, and keys of ours that fio has not.
fn differences(
    ours: &BTreeMap<String, &'static str>,
    theirs: &BTreeMap<String, &str>,
) -> Vec<String> {
    let lacking = theirs.iter().filter(|(key, kind)| ours.get(*key) != Some(*kind));
    let lacking = lacking.map(|(key, kind)| format!("{key} {kind}: {:?}", ours.get(key)));
    let is_ours = |key: &str| key.contains("/iostrata") || key.ends_with("/job_start");
    let added = ours.keys().filter(|key| !theirs.contains_key(*key) && !is_ours(key));
    lacking.chain(added.map(|key| format!("{key} is not fio's"))).collect()
}

#[test]
fn json_has_every_key_of_the_table_with_its_type() {
    let bench = bench(JOBS[2].1);
    let ours = keys(&document(&stdout(&ours(&bench, "--output-format=json+"))));
    let table = KEYS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (key, kind) = line.rsplit_once(' ').unwrap();
        (key.to_owned(), kind)
    });
    assert_eq!(differences(&ours, &table.collect()), Vec::<String>::new());
}

/// Whether the verdict about a steady rate follows from the seconds printed with it.
fn steady_figures_agree(steady: &Value, name: &str) {
    let Some(seconds) = steady["data"]["iops"].as_array() else { return };
    assert_eq!(Some(seconds.len() as u64), steady["duration"].as_u64(), "{name}");
    if steady["attained"] != 1 {
        return;
    }
    let rates: Vec<f64> = seconds.iter().filter_map(Value::as_f64).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let of = |path: &str| steady.pointer(path).and_then(Value::as_f64).unwrap();
    assert!((of("/data/iops_mean") / mean - 1.0).abs() < 0.01, "{name}: {steady}");
    // Blocks of 4096 bytes.
    let block_bytes = of("/data/bw_mean") / of("/data/iops_mean");
    assert!((block_bytes / 4096.0 - 1.0).abs() < 0.01, "{name}: {steady}");
    let farthest = rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max);
    let deviation = of("/max_deviation");
    assert!((deviation - farthest).abs() <= 0.01 * mean.max(1.0), "{name}: {steady}");
    let criterion = steady["criterion"].as_str().unwrap();
    let pct: f64 = criterion.strip_suffix('%').unwrap().parse().unwrap();
    assert!((pct - 100.0 * deviation / mean).abs() < 1.0, "{name}: {steady}");
}

#[test]
fn json_has_every_key_that_fio_writes_for_the_same_jobs() {
    if !fio_is_comparable() {
        return;
    }
    let formats = ["--output-format=json", "--output-format=json+"];
    for (at, (name, jobs)) in JOBS.into_iter().enumerate() {
        // In the usual run each job has one of the two, in turn.
        for format in formats.into_iter().skip(at % 2).chain(formats).take(usual_or_soak(1, 2)) {
            let (ours, theirs) = both(&[bench(jobs), bench(jobs)], format);
            let (ours, theirs) = (document(&stdout(&ours)), document(&stdout(&theirs)));
            let differ = differences(&keys(&ours), &keys(&theirs));
            assert_eq!(differ, Vec::<String>::new(), "{name} {format}");
            for key in ["latency_target", "latency_window", "latency_percentile"] {
                assert_eq!(ours["jobs"][0][key], theirs["jobs"][0][key], "{name} {key}");
            }
            for key in ["ss", "duration", "attained"] {
                let of = |document: &Value| document["jobs"][0]["steadystate"][key].clone();
                assert_eq!(of(&ours), of(&theirs), "{name} {key}");
            }
            for (side, document) in [("ours", &ours), ("fio", &theirs)] {
                steady_figures_agree(
                    &document["jobs"][0]["steadystate"],
                    &format!("{name} {side}"),
                );
            }
            for options in ["/global options", "/jobs/0/job options"] {
                let names = |document: &Value| -> BTreeSet<String> {
                    let fields = document.pointer(options).and_then(Value::as_object);
                    fields.into_iter().flatten().map(|(name, _)| name.clone()).collect()
                };
                assert!(names(&ours).is_superset(&names(&theirs)), "{name} {options}");
            }
        }
    }
}

/// A loop device over a file, detached when it goes; `None` where none can be attached.
struct LoopDevice(String);

impl LoopDevice {
    fn attach(bench: &Bench) -> Option<Self> {
        let file = bench.path("image");
        std::fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
        let attached = Command::new("losetup").args(["-f", "--show"]).arg(file).output().ok()?;
        let name = stdout(&attached).trim().to_owned();
        (attached.status.success() && !name.is_empty()).then_some(Self(name))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup").args(["-d", &self.0]).status();
        assert!(detached.is_ok_and(|status| status.success()), "{} stays", self.0);
    }
}

#[test]
fn every_device_that_jobs_work_on_is_listed_as_fio_lists_it() {
    let bench = Bench::new();
    let Some(device) = LoopDevice::attach(&bench) else {
        eprintln!("skipped: no loop device can be attached");
        return;
    };
    let name = &device.0;
    let jobs = format!(
        "[global]\nsize=1m\nioengine=psync\nrw=read\ndirect=1\n[a]\nfilename={name}\n[b]\n\
         filename=f\n[c]\nstonewall\nfilename={name}\n"
    );
    std::fs::write(bench.path("j.fio"), jobs).unwrap();
    let names = |output: &Output| -> Vec<String> {
        let found = document(&stdout(output));
        let disks = found["disk_util"].as_array().unwrap().iter();
        disks.map(|disk| disk["name"].as_str().unwrap().to_owned()).collect()
    };
    let ours = ours(&bench, "--output-format=json");
    let found = names(&ours);
    assert_eq!((found.len(), format!("/dev/{}", found[0])), (2, name.clone()), "{found:?}");
    let reads = document(&stdout(&ours))["disk_util"][0]["read_ios"].as_u64();
    assert!(reads >= Some(512), "two jobs of 256 reads: {reads:?}");
    if fio_is_comparable() {
        assert_eq!(found, names(&theirs(&bench, "--output-format=json")));
    }
}

#[test]
fn the_keys_that_three_parsers_read_are_there() {
    let bench = bench(JOBS[2].1);
    let document = document(&stdout(&ours(&bench, "--output-format=json")));
    let job = &document["jobs"][0];
    let number = |path: String| {
        assert!(job.pointer(&path).is_some_and(Value::is_number), "{path} of {job}");
    };
    // fio-plot, jsonparsing.
    for direction in ["read", "write"] {
        for key in ["bw", "iops", "lat_ns/mean", "lat_ns/stddev", "clat_ns/mean", "bw_dev"] {
            number(format!("/{direction}/{key}"));
        }
        for percentile in ["50.000000", "99.000000", "99.900000"] {
            number(format!("/{direction}/clat_ns/percentile/{percentile}"));
        }
    }
    for key in ["latency_ns/1000", "latency_us/1000", "latency_ms/2000", "usr_cpu", "sys_cpu"] {
        number(format!("/{key}"));
    }
    // PerfKitBenchmarker, fio.py.
    for direction in ["read", "write", "trim"] {
        for key in ["io_bytes", "bw_min", "bw_max", "bw_mean", "bw_dev", "bw_agg", "iops"] {
            number(format!("/{direction}/{key}"));
        }
        for key in ["min", "max", "mean", "stddev"] {
            number(format!("/{direction}/clat_ns/{key}"));
        }
    }
    // FioSynth, fioParser.py.
    for key in ["trim/clat_ns/mean", "trim/iops", "read/clat_ns/max", "latency_depth"] {
        number(format!("/{key}"));
    }
    // The documentation of etcd.
    number("/sync/lat_ns/percentile/99.000000".to_owned());
}

#[test]
fn figures_agree_with_each_other() {
    let bench = bench(
        "[a]\nrw=randrw\nsize=4m\nioengine=libaio\niodepth=4\nnumjobs=2\ngroup_reporting\n\
         fsync=32\nruntime=1\ntime_based\nthread\n",
    );
    let document = document(&stdout(&ours(&bench, "--output-format=json+")));
    let job = &document["jobs"][0];
    let of = |path: &str| job.pointer(path).and_then(Value::as_f64).unwrap();
    let mut ios = 0.0;
    for direction in ["read", "write"] {
        let total = of(&format!("/{direction}/total_ios"));
        ios += total;
        for name in ["slat_ns", "clat_ns", "lat_ns"] {
            assert_eq!(of(&format!("/{direction}/{name}/N")), total, "{direction} {name}");
        }
        let mean = |name: &str| of(&format!("/{direction}/{name}/mean"));
        assert!(mean("slat_ns") > 0.0);
        let sum = mean("slat_ns") + mean("clat_ns");
        assert!((sum / mean("lat_ns") - 1.0).abs() < 1e-6, "{sum} {}", mean("lat_ns"));
        let bins = job[direction]["clat_ns"]["bins"].as_object().unwrap();
        let held: u64 = bins.values().filter_map(Value::as_u64).sum();
        assert_eq!(held as f64, total);
    }
    let shares = |name: &str| -> f64 {
        job[name].as_object().unwrap().values().filter_map(Value::as_f64).sum()
    };
    let latencies = ["latency_ns", "latency_us", "latency_ms"].map(shares).iter().sum::<f64>();
    assert!((99.9..100.5).contains(&latencies), "{latencies}");
    let with_syncs = 100.0 * (ios + of("/sync/total_ios")) / ios;
    let depths = shares("iodepth_level");
    assert!((depths - with_syncs).abs() < 1.0, "{depths} {with_syncs}");
    assert!(of("/ctx") > 0.0, "workers wait, so they are switched");
    assert!(of("/job_runtime") > 1.5 * of("/read/runtime"), "two clones");
    let workloads = job["iostrata"]["workloads"].as_array().unwrap();
    assert!(workloads[0]["read"]["iops_ci95"].is_array() || workloads[0]["read"].is_object());
}

#[test]
fn forms_come_in_the_order_of_fio_and_go_to_a_file() {
    let bench = bench("[a]\nrw=randread\nsize=1m\nioengine=sync\n");
    let output = ours(&bench, "--output=o.txt --output-format=normal,json,terse");
    assert_eq!(stdout(&output), "");
    let text = std::fs::read_to_string(bench.path("o.txt")).unwrap();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
    let [header, terse, json, normal] =
        ["a: (g=0): rw=randread", "\n3;", "\n{\n", "\na: (groupid=0, jobs=1): err= 0: pid="]
            .map(at);
    assert!(header < terse && terse < json && json < normal, "{text}");
    for said in
        ["  read: IOPS=", "BW=", "clat percentiles (", "  IO depths    : 1=100.0%", "READ: bw="]
    {
        assert!(at(said) > normal, "{text}");
    }
    let shown = bench.line("fio --output=none/o.txt j.fio");
    assert_eq!(shown.status.code(), Some(3), "{}", stderr(&shown));
    assert!(stderr(&shown).contains("none/o.txt"), "{}", stderr(&shown));
}

/// What a field of the terse output looks like.
fn look(field: &str) -> &'static str {
    let (number, percent) = match field.strip_suffix('%') {
        Some(number) => (number, true),
        None => (field, false),
    };
    if field.contains("%=") {
        "percentile"
    } else if number.parse::<f64>().is_err() {
        "word"
    } else if percent {
        "percent"
    } else if number.contains('.') {
        "decimal"
    } else {
        "whole"
    }
}

#[test]
fn terse_lines_have_the_fields_that_scripts_count() {
    let bench = bench("[a]\nrw=randrw\nsize=1m\nioengine=sync\ndescription=words\n");
    let text = stdout(&ours(&bench, "--minimal"));
    let fields: Vec<&str> = text.trim_end().split(';').collect();
    assert_eq!(fields.len(), 131, "with one disk and a description: {text}");
    assert_eq!((fields[0], fields[2], fields[130]), ("3", "a", "words"));
    // As yabs reads bandwidth and requests per second of both directions.
    for at in [6, 7, 47, 48] {
        assert!(fields[at].parse::<u64>().unwrap() > 0, "{at}: {text}");
    }
}

#[test]
fn a_terse_line_stands_beside_other_forms() {
    let bench = bench("[a]\nrw=read\nsize=1m\nioengine=sync\n");
    let text = stdout(&ours(&bench, "--append-terse"));
    let version = format!("3;{VERSION}-iostrata-");
    assert!(text.lines().any(|line| line.starts_with(&version)), "{text}");
    assert!(text.contains("IOPS="), "{text}");
}

#[test]
fn terse_lines_are_like_those_of_fio() {
    if !fio_is_comparable() {
        return;
    }
    for (name, jobs) in JOBS {
        let looks = |output: &Output| -> Vec<Vec<&'static str>> {
            let text = stdout(output);
            let lines = text.lines().filter(|line| line.starts_with("3;"));
            lines.map(|line| line.split(';').map(look).collect()).collect()
        };
        let (ours, theirs) = both(&[bench(jobs), bench(jobs)], "--minimal");
        assert_eq!(looks(&ours), looks(&theirs), "{name}: {}{}", stdout(&ours), stdout(&theirs));
    }
}

#[test]
fn the_version_of_terse_lines_may_be_chosen() {
    let jobs = "[a]\nrw=randrw\nsize=1m\nioengine=sync\n";
    for (version, fields) in [(2, 161), (3, 121), (4, 162), (5, 180)] {
        let options = format!("--minimal --terse-version={version}");
        let lines = |output: &Output| -> Vec<String> {
            stdout(output).trim_end().split(';').map(str::to_owned).collect()
        };
        let of_ours = lines(&ours(&bench(jobs), &options));
        let name = of_ours.iter().position(|field| field == "a").unwrap();
        let without_disk = of_ours.len() - if version == 2 { 0 } else { 9 };
        assert_eq!((of_ours[0].parse(), without_disk), (Ok(version), fields), "{of_ours:?}");
        assert_eq!(name, if version == 2 { 1 } else { 2 });
        if fio_is_comparable() {
            let theirs = lines(&theirs(&bench(jobs), &options));
            let looks = |fields: &[String]| -> Vec<&str> {
                fields.iter().map(|field| look(field)).collect()
            };
            assert_eq!(looks(&of_ours), looks(&theirs), "{version}");
        }
    }
    let refused = bench(jobs).line("fio --terse-version=9 j.fio");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_version_is_one_that_scripts_look_for() {
    let output = Bench::new().line("fio --version");
    let text = stdout(&output);
    assert!(output.status.success() && text.starts_with(&format!("{VERSION}-")), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn logs_have_the_names_columns_and_directions_of_fio() {
    if !fio_is_comparable() {
        return;
    }
    const LOGGED: &str = "write_bw_log=x\nwrite_lat_log=x\nwrite_iops_log=x\n";
    for jobs in [
        format!("rw=randrw\nioengine=libaio\n{LOGGED}log_avg_msec=250\n"),
        format!("rw=randread\nioengine=libaio\nnumjobs=3\n{LOGGED}log_avg_msec=250\n"),
        format!("rw=randread\nioengine=libaio\nnumjobs=2\ngroup_reporting\n{LOGGED}"),
        format!("rw=write\nioengine=sync\n{LOGGED}log_avg_msec=250\nper_job_logs=0\n"),
        format!(
            "rw=write\nioengine=sync\n{LOGGED}log_avg_msec=250\nlog_offset=1\nlog_prio=1\n\
             log_unix_epoch=1\n"
        ),
        format!("rw=write\nioengine=sync\nnumjobs=2\n{LOGGED}[b]\nrw=read\nwrite_iops_log=y\n"),
    ] {
        let jobs = format!("[global]\nsize=1m\nruntime=1\ntime_based\nrate_iops=1000\n[a]\n{jobs}");
        let benches = [bench(&jobs), bench(&jobs)];
        both(&benches, "--output-format=json");
        let [of_ours, of_theirs] = benches;
        // Columns, direction, form of the priority, and whether time counts from 1970.
        type Line = (usize, String, bool, bool);
        let logs = |bench: &Bench| -> BTreeMap<String, BTreeSet<Line>> {
            let names = bench.data_files().into_iter().filter(|name| name.ends_with(".log"));
            names
                .map(|name| {
                    let text = std::fs::read_to_string(bench.path(&name)).unwrap();
                    let lines = text.lines().map(|line| {
                        let fields: Vec<&str> = line.split(", ").collect();
                        let of_priority = fields.last().unwrap().starts_with("0x");
                        let ms: u64 = fields[0].parse().unwrap();
                        (fields.len(), fields[2].to_owned(), of_priority, ms > 1 << 40)
                    });
                    (name, lines.collect())
                })
                .collect()
        };
        assert_eq!(logs(&of_ours), logs(&of_theirs), "{jobs}");
    }
}

#[test]
fn results_so_far_are_printed_while_jobs_run() {
    let bench = bench(
        "[global]\nsize=4m\nruntime=3\ntime_based\nioengine=libaio\ndirect=1\niodepth=2\n[a]\n\
         rw=randread\nnumjobs=2\ngroup_reporting\n[b]\nrw=randwrite\nthread\n",
    );
    let text = stdout(&ours(&bench, "--minimal --status-interval=1"));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(';').collect()).collect();
    let last = lines.len() - 2;
    assert!(lines.len() >= 6, "two so far and the end, for two jobs: {text}");
    for (at, column) in [(0, 5), (1, 46)] {
        let moved: Vec<u64> =
            lines[at..].iter().step_by(2).map(|line| line[column].parse().unwrap()).collect();
        // A disk that others use may do nothing in the first second.
        let so_far = moved[moved.len() - 2];
        assert!(moved.is_sorted() && so_far > 0 && moved.last() > moved.first(), "{moved:?}");
        assert_eq!(lines[at].len(), lines[last].len(), "{text}");
        assert!(look(lines[at][29]) == "percentile", "{text}");
    }
    // A job that is not there yet at the first is there at the end.
    let waves = bench_of_waves();
    let output = ours(&waves, "--output-format=json --status-interval=400ms");
    let text = stdout(&output);
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect();
    let jobs = |at: usize| documents[at]["jobs"].as_array().unwrap().len();
    assert!(documents.len() >= 3, "{text}");
    assert_eq!((jobs(0), jobs(documents.len() - 1)), (1, 2));
}

fn bench_of_waves() -> Bench {
    bench(
        "[global]\nsize=1m\nioengine=null\nruntime=1\ntime_based\n[a]\nrw=read\n[b]\nstonewall\n\
         rw=write\n",
    )
}
