//! Options of a command line together with options of files, and combinations that are refused.

use std::ffi::OsString;

use crate::fio::stand_in::Desk;
use crate::fio::{FioErrors, FioPlan, FioRequest, command_line, parse, split};

fn request(line: &str) -> FioRequest {
    let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let own = ["section", "skip-unsupported"].map(str::to_owned);
    let (arguments, rest) = split(&arguments, &own);
    let (options, files): (Vec<OsString>, Vec<OsString>) =
        rest.into_iter().partition(|one| one.to_string_lossy().starts_with('-'));
    let options: Vec<String> =
        options.into_iter().map(|one| one.to_string_lossy().into_owned()).collect();
    let only = options.iter().filter_map(|one| one.strip_prefix("--section="));
    FioRequest {
        files: files.into_iter().filter(|file| !file.is_empty()).map(Into::into).collect(),
        arguments,
        only: only.map(str::to_owned).collect(),
        skip_unsupported: options.iter().any(|one| one == "--skip-unsupported"),
        plans_only: false,
        own_options: own.to_vec(),
    }
}

fn of(line: &str, desk: &Desk) -> Result<FioPlan, FioErrors> {
    parse(&request(line), desk)
}

fn shown(plan: &FioPlan) -> Vec<(&str, u64, u32)> {
    plan.streams()
        .map(|one| (one.name.as_str(), one.spec.size_bytes, one.spec.block_bytes))
        .collect()
}

const MIB: u64 = 1 << 20;

#[test]
fn options_before_a_job_are_defaults_of_all_jobs_and_files() {
    let desk = Desk::default()
        .with_file("a.fio", "[x]\n[y]\nbs=8k\n[global]\nbs=2k\n[z]\n")
        .with_file("b.fio", "[w]\n");
    for line in ["--size=1m a.fio b.fio", "a.fio b.fio --size 1m", "a.fio -size=1m b.fio"] {
        let found = of(line, &desk).unwrap();
        let expected = [("x", MIB, 4096), ("y", MIB, 8192), ("z", MIB, 2048), ("w", MIB, 4096)];
        assert_eq!(shown(&found), expected, "{line}");
    }
    let both = of("--size=2m --name=k --size=1m --name=l --bs=8k a.fio", &desk).unwrap();
    let expected = [("k", MIB, 4096), ("l", 2 * MIB, 8192), ("x", 2 * MIB, 4096)];
    assert_eq!(shown(&both)[..3], expected);
    assert_eq!(both.waves.len(), 1, "jobs of the line and of the first file run together");
    let later = of("--name=a --size=1m --bs=4k --bs=8k --name=global --size=3m --name=b", &desk);
    assert_eq!(shown(&later.unwrap()), [("a", MIB, 8192), ("b", 3 * MIB, 4096)]);
    let chosen = of("--size=1m --name=q --section=y a.fio", &desk).unwrap();
    assert_eq!(shown(&chosen), [("y", MIB, 8192)]);
}

#[test]
fn everything_that_cannot_be_run_is_named_at_once() {
    let desk = Desk::default().with_file(
        "a.fio",
        "[global]\nlockfile=exclusive\n[x]\nsize=1q\niodpeth=4\nioengine=rbd\n[y]\nsize=1m\nbs=3z\n",
    );
    let errors = of("--rw=foo --client=h --frob=1 a.fio", &desk).unwrap_err().to_string();
    let lines: Vec<&str> = errors.lines().collect();
    for (line, start) in lines.iter().zip([
        "argument 2, --client=h: jobs run on this machine only",
        "argument 3, --frob=1: there is no such option",
        "argument 1, --rw=foo: there is no such direction",
        "a.fio:2: lockfile=exclusive: workers take no file locks",
        "a.fio:4: size=1q: `q` is no unit of size",
        "a.fio:5: iodpeth=4: there is no such option; did you mean iodepth?",
        "a.fio:6: ioengine=rbd: there is no such engine",
        "a.fio:9: bs=3z: `z` is no unit",
    ]) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
    assert_eq!(lines.len(), 8, "{errors}");
}

#[test]
fn jobs_that_cannot_be_run_are_left_out_where_that_is_asked_for() {
    let desk = Desk::default().with_file(
        "a.fio",
        "[global]\nsize=1m\nioengine=rbd\n[x]\n[y]\nioengine=sync\nstonewall\n[z]\nioengine=null\n",
    );
    let found = of("--skip-unsupported a.fio", &desk).unwrap();
    assert_eq!(shown(&found), [("y", MIB, 4096), ("z", MIB, 4096)]);
    let warnings: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
    let expected = "a.fio:3: ioengine=rbd: [x] is left out: there is no such engine here";
    assert!(warnings.len() == 1 && warnings[0].starts_with(expected), "{warnings:?}");
    let none = of("--skip-unsupported --section=x a.fio", &desk).unwrap_err().to_string();
    assert!(none.starts_with("a.fio:3: ioengine=rbd: there is no such engine"), "{none}");
    let overridden = Desk::default()
        .with_file("a.fio", "[global]\nlockfile=exclusive\n[x]\nlockfile=none\nsize=1m\n");
    assert!(of("a.fio", &overridden).is_ok(), "what no job uses harms none");
}

#[test]
fn a_line_without_a_job_says_how_to_begin_one() {
    let desk = Desk::default();
    let nothing = parse(&FioRequest::default(), &desk).unwrap_err().to_string();
    assert!(nothing.starts_with("there is no job: name a job file, or begin"), "{nothing}");
    let defaults = of("--size=1m --rw=read", &desk).unwrap_err().to_string();
    assert!(defaults.starts_with("there is no job: options before --name"), "{defaults}");
    let writes = of("--readonly --name=a --size=1m --rw=write", &desk).unwrap_err().to_string();
    assert_eq!(writes, "argument 1, --readonly: [a] writes; leave the job out");
    assert!(of("--readonly --name=a --size=1m", &desk).is_ok());
}

#[test]
fn a_job_file_as_a_command_line() {
    let desk = Desk::default().with_file(
        "a.fio",
        "[global]\nbs=8k\ntime_based\n[x]\nrw=randread\ndescription=a b\n[y]\nstonewall\nsize=2m\n",
    );
    let line = command_line(&request("a.fio"), &desk).unwrap();
    let expected = "fio --bs=8k --time_based --name=x --rw=randread --description=\"a b\" --name=y \
                    --stonewall --size=2m\n";
    assert_eq!(line, expected);
}
