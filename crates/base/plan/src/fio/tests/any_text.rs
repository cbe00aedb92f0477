//! Any bytes, and job files with parts of them changed: a plan or an error with a place.

use proptest::prelude::*;
use proptest::sample::select;

use super::{files, plan};
use crate::fio::catalogue::entries;
use crate::fio::stand_in::Desk;

/// Values that options take, and some that none does.
const VALUES: [&str; 34] = [
    "",
    "0",
    "1",
    "2",
    "7",
    "64",
    "4k",
    "16k,4k",
    "1m",
    "2g",
    "4k-16k",
    "4k/10:8k/90",
    "4k/:8k",
    "50%",
    "10ms",
    "1-2",
    "read",
    "randwrite:8",
    "rw:4k",
    "sync",
    "libaio",
    "null",
    "io_uring",
    "zipf:0.9",
    "random:3",
    "a:b",
    "${X}",
    "$ncpus*2",
    "(1+2)*k",
    "-1",
    "99999999999999999999",
    "1e9",
    "99.9:100",
    "\u{e4}",
];

fn lines() -> impl Strategy<Value = String> {
    let names: Vec<&str> = entries().flat_map(|entry| entry.names()).collect();
    let option = (select(names), select(VALUES.to_vec()))
        .prop_map(|(name, value)| format!("{name}={value}"));
    let other = select(vec!["[a]", "[global]", "[b]", "; x", "", "include j.fio", "size=1m"]);
    let line = prop_oneof![6 => option, 2 => other.prop_map(str::to_owned)];
    proptest::collection::vec(line, 0..20).prop_map(|lines| lines.join("\n"))
}

/// The text is planned twice alike, or refused with its file.
fn holds(text: Vec<u8>) -> Result<(), TestCaseError> {
    let desk = Desk::default().with_file("j.fio", text);
    match files(&["j.fio"], &[], &desk) {
        Ok(plan) => {
            for stream in plan.streams() {
                prop_assert_eq!(stream.spec.check(), Ok(()));
                prop_assert!(!stream.paths.is_empty());
            }
        }
        Err(error) => prop_assert!(error.to_string().starts_with("j.fio"), "{}", error),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if is_long() { 600 } else { 64 }))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        holds(bytes)?;
    }

    #[test]
    fn any_text(text in "(\\[[a-c]\\]\n)?([a-z_]{1,9}=?[-0-9a-z:,/%${}()*. ]{0,12}\n){0,8}") {
        holds(text.into_bytes())?;
    }

    #[test]
    fn known_options_with_all_sorts_of_values(lines in lines()) {
        holds(format!("[a]\nsize=1m\n{lines}\n").into_bytes())?;
    }

    #[test]
    fn a_job_file_with_bytes_changed(at in 0_usize..400, byte: u8, cut in 0_usize..400) {
        let mut bytes = JOB.as_bytes().to_vec();
        let length = bytes.len();
        bytes[at % length] = byte;
        bytes.truncate(length - cut % length);
        holds(bytes)?;
    }
}

const JOB: &str = "[global]\nioengine=libaio\niodepth=16\nbssplit=4k/50:64k/,8k\nsize=64m\n\
    direct=1\nrunE=1\n[a]\nrw=randrw:4\nrwmixread=70\nrate=1m,2m\nnumjobs=3\nstartdelay=1-2\n\
    [b]\nstonewall\nfilename=a\\:b:c\nrw=write:4k\nfsync=16\noffset=10%\n";

#[test]
fn the_job_file_that_is_changed_would_be_right_but_for_two_lines() {
    let right = JOB.replace("runE=1", "runtime=1").replace("offset=10%", "offset=1m");
    assert_eq!(plan(&right.replace(":c", "")).map(|plan| plan.waves.len()), Ok(2));
}

/// Every option with every value alone, as the first line of a job and of the global section.
#[test]
fn every_option_with_every_value_in_a_job() {
    hold_with_every_value("a");
}

#[test]
fn every_option_with_every_value_for_all_jobs() {
    hold_with_every_value("global");
}

fn is_long() -> bool {
    std::env::var_os("IOSTRATA_SOAK").is_some()
}

/// In the usual run every eighth pair of an option and a value: each option has several, each value
/// many.
fn hold_with_every_value(section: &str) {
    let step = if is_long() { 1 } else { 8 };
    for (first, name) in entries().flat_map(|entry| entry.names()).enumerate() {
        for value in VALUES.into_iter().skip(first % step).step_by(step) {
            let text = format!("[{section}]\nsize=1m\n{name}={value}\n[b]\nsize=1m\n");
            holds(text.into_bytes()).unwrap_or_else(|why| panic!("{name}={value}: {why}"));
        }
    }
}
