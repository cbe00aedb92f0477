//! The columns of iostat from lines of counters, against values worked out by hand.

use iostrata_run::host::Iostat;

use crate::host::diskstats::{delta, parse_stat};

fn columns(before: &str, after: &str, seconds: f64) -> Iostat {
    let (before, after) = (parse_stat(before).unwrap(), parse_stat(after).unwrap());
    Iostat::of(&delta(&before, &after, seconds).unwrap())
}

/// Worked out by hand: over 2 s, 400 reads (100 merged, 6400 sectors, 200 ms), 1000 writes
/// (3000 merged, 32000 sectors, 2500 ms), 10 discards (30 merged, 2048 sectors, 5 ms),
/// 50 flushes (100 ms), 1.5 s busy, 2.8 s of queue.
#[test]
fn against_values_worked_out_by_hand() {
    let io = columns(
        "1000 10 8000 500 2000 20 16000 900 0 5000 9000 7 1 100 3 11 40",
        "1400 110 14400 700 3000 3020 48000 3400 4 6500 11800 17 31 2148 8 61 140",
        2.0,
    );
    let expected = Iostat {
        reads_per_s: 200.0,
        read_kib_per_s: 1600.0,
        reads_merged_per_s: 50.0,
        reads_merged_pct: Some(20.0),
        read_await_ms: Some(0.5),
        read_size_kib: Some(8.0),
        writes_per_s: 500.0,
        write_kib_per_s: 8000.0,
        writes_merged_per_s: 1500.0,
        writes_merged_pct: Some(75.0),
        write_await_ms: Some(2.5),
        write_size_kib: Some(16.0),
        discards_per_s: Some(5.0),
        discard_kib_per_s: Some(512.0),
        discards_merged_per_s: Some(15.0),
        discards_merged_pct: Some(75.0),
        discard_await_ms: Some(0.5),
        discard_size_kib: Some(102.4),
        flushes_per_s: Some(25.0),
        flush_await_ms: Some(2.0),
        queue_size: 1.4,
        util_pct: 75.0,
    };
    assert_eq!(io, expected);
}

#[test]
fn nothing_done_has_no_mean() {
    let line = "1 1 1 1 1 1 1 1 0 1 1";
    let io = columns(line, line, 1.0);
    assert_eq!((io.read_await_ms, io.write_size_kib, io.reads_merged_pct), (None, None, None));
    assert_eq!((io.reads_per_s, io.queue_size, io.util_pct), (0.0, 0.0, 0.0));
    assert_eq!((io.discards_per_s, io.flushes_per_s, io.flush_await_ms), (None, None, None));
}

#[test]
fn merges_without_completions() {
    let io = columns("0 0 0 0 0 0 0 0 0 0 0", "0 5 0 0 0 0 0 0 0 0 0", 1.0);
    assert_eq!(io.reads_merged_pct, Some(100.0));
    assert_eq!(io.read_await_ms, None);
}
