//! The catalogue keeps its word: each option is given to a job and has the effect it states.

use super::plan_in;
use crate::fio::catalogue::{FioOption, OptionEffect, entries};
use crate::fio::stand_in::Desk;
use crate::fio::{FioError, FioPlan};

const JOB: &str = "[a]\nioengine=sync\nsize=64k\n";

/// The plan of a job file where there is one device.
fn plan(text: &str) -> Result<FioPlan, FioError> {
    let log = "fio version 2 iolog\na add\nb add\na read 0 4096\nb read 4096 4096\n";
    let desk = Desk::default().with_data("/dev/x", 1_000_000).with_file("log", log);
    plan_in(desk.with_data("there", 8192).with_data("/d/e/f", 65_536), text)
}

/// A job with an option's example and the other options that it needs.
fn with(entry: &FioOption, name: &str, value: Option<&str>) -> String {
    let beside: Vec<&str> = entry.example_beside().collect();
    // The first of two jobs, so that there is something to wait for and to group.
    let job = format!("{JOB}{}\n", beside.join("\n"));
    let option = value.map_or(String::new(), |value| format!("{name}={value}\n"));
    format!("{job}{}{option}", job.replace("[a]", "[b]"))
}

#[test]
fn options_that_change_something_do() {
    let changing = entries().filter(|entry| matches!(entry.effect, OptionEffect::Changes(_)));
    for entry in changing {
        for name in entry.names() {
            let without = plan(&with(entry, name, None)).unwrap();
            let text = with(entry, name, Some(entry.example_value()));
            let mut changed = plan(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(changed.warnings, [], "{name} changes something and needs no warning");
            let job = changed.waves.iter_mut().flat_map(|wave| &mut wave.jobs).last().unwrap();
            assert!(job.options.remove(entry.name).is_some(), "{name} is not among the options");
            assert_ne!(changed, without, "{name}={} changes nothing", entry.example_value());
        }
    }
}

#[test]
fn options_that_are_ignored_are_warned_of() {
    for entry in entries() {
        let OptionEffect::Warned(why) = entry.effect else { continue };
        for name in entry.names() {
            let text = with(entry, name, Some(entry.example_value()));
            let found = plan(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let [warning] = found.warnings.as_slice() else {
                panic!("{name}: {:?}", found.warnings)
            };
            let line = text.lines().count() as u32;
            assert_eq!((warning.line, warning.text.as_str()), (line, why), "{name}");
            assert_eq!(warning.option, format!("{name}={}", entry.example_value()));
            for value in entry.neutral {
                let found = plan(&with(entry, name, Some(value))).unwrap();
                assert_eq!(found.warnings, [], "{name}={value} asks for what is done anyway");
            }
        }
    }
}

#[test]
fn options_that_are_refused_are_refused_with_file_line_and_reason() {
    for entry in entries() {
        let OptionEffect::Refused(why) = entry.effect else { continue };
        for name in entry.names() {
            let text = with(entry, name, Some(entry.example_value()));
            let error = plan(&text).unwrap_err().to_string();
            let line = text.lines().count();
            let expected = format!("j.fio:{line}: {name}={}: {why}", entry.example_value());
            assert_eq!(error, expected);
            for value in entry.neutral {
                let accepted = plan(&with(entry, name, Some(value)));
                assert!(accepted.is_ok(), "{name}={value}: {accepted:?}");
            }
        }
    }
}

#[test]
fn an_option_that_no_job_uses_is_warned_of() {
    for (job, option) in [
        ("", "iodepth=32"),
        ("rw=read\n", "fsync=8"),
        ("rw=randread\n", "rwmixread=70"),
        ("", "time_based"),
        ("", "norandommap=1"),
        ("filename=x\n", "nrfiles=4"),
        ("bssplit=4k:8k\n", "bs=16k"),
        ("runtime=2\ntime_based\n", "loops=3"),
        ("", "thinktime_blocks=4"),
        ("", "log_avg_msec=500"),
    ] {
        let plan = plan(&format!("{JOB}{job}{option}\n")).unwrap();
        let [warning] = plan.warnings.as_slice() else { panic!("{option}: {:?}", plan.warnings) };
        assert!(warning.text.starts_with("ignored: "), "{warning}");
        assert_eq!(warning.option, option);
    }
    let used_by_one = "[global]\niodepth=8\nsize=1m\n[a]\nioengine=libaio\n[b]\nioengine=sync\n";
    assert_eq!(plan(used_by_one).unwrap().warnings, []);
    let has_one = "[a]\nioengine=psync\niodepth=1\nsize=1m\n";
    assert_eq!(plan(has_one).unwrap().warnings, []);
    assert!(plan(&has_one.replace("=1\n", "=x\n")).is_err(), "as in fio");
}
