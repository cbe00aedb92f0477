//! Any combination of options ends with a result or with an error of the contract, never a panic.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::harness::{Bench, stderr};

#[test]
fn no_combination_of_options_panics() {
    let bench = Bench::new();
    let options = (
        select(vec!["read", "write", "randread", "randwrite", "randrw", "readwrite"]),
        select(vec!["512", "1000", "4k", "16k", "1M", "2M", "0"]),
        select(vec!["1", "3", "32", "0"]),
        select(vec!["1", "2", "0"]),
        select(vec!["sync", "libaio", "io_uring", "null"]),
        select(vec!["", "--direct", "--direct=1 --sync dsync", "--sync rwf-dsync", "--process"]),
        select(vec!["", "--fsync 1", "--fdatasync 3 --fsync-scope all", "--fsync 0"]),
        select(vec!["1", "2", "7"]),
        select(vec!["4M", "1M", "512", "5000", "0"]),
        select(vec!["", "--rate-iops 300", "--rate-iops 2000 --rate-process poisson"]),
        select(vec![
            "",
            "--prepare fallocated",
            "--prepare empty",
            "--random-distribution coverage",
        ]),
    );
    let mut runner = TestRunner::new(Config { cases: 60, ..Config::default() });
    runner
        .run(&options, |(rw, bs, depth, jobs, engine, flags, flush, files, size, rate, more)| {
            let line = format!(
                "io --path F --rw {rw} --bs {bs} --iodepth {depth} --numjobs {jobs} --ioengine \
                 {engine} {flags} {flush} --nrfiles {files} --size {size} {rate} {more} \
                 --runtime 20ms --json --quiet --out RUN"
            );
            let _from_last_case = std::fs::remove_dir_all(bench.path("RUN"));
            let output = bench.line(&line);
            let message = stderr(&output);
            prop_assert!(!message.contains("panicked"), "{line}: {message}");
            match output.status.code() {
                Some(0) => prop_assert!(message.is_empty(), "{line}: {message}"),
                Some(2 | 3) => {
                    let is_told =
                        message.starts_with("iostrata: ") || message.starts_with("error: ");
                    prop_assert!(is_told, "{line}: {message}");
                }
                code => prop_assert!(false, "{line}: {code:?} {message}"),
            }
            prop_assert!(bench.data_files().is_empty(), "{line} left {:?}", bench.data_files());
            Ok(())
        })
        .unwrap();
}
