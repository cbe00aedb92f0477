//! A log buffer that is too small for the rows that are written, on a real server.

use iostrata_plan::study::IoLimits;
use iostrata_run::StallCause;

use crate::stage::{Stage, Then};
use crate::stalls::assert_named;

const SMALL: &str = "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB";
const BIG: &str =
    "CREATE TABLE b (id INT PRIMARY KEY, pad VARCHAR(4000)) ENGINE=InnoDB CHARSET=latin1";
const FILL: &str = "INSERT INTO t SELECT seq, 0 FROM seq_1_to_2000";
const FILL_BIG: &str = "INSERT INTO b SELECT seq, REPEAT('x', 4000) FROM seq_1_to_10000";
const UPDATE: &str = "UPDATE t SET v = v + 1 WHERE id = ?";
/// Writers of more redo than the log buffer holds, each in rows of its own.
const WRITERS: usize = 24;

fn write(writer: usize) -> String {
    let first = writer * 400 + 1;
    format!(
        "UPDATE b SET pad = REPEAT(CHAR(97 + 25 * RAND()), 4000) WHERE id BETWEEN {first} AND {} \
         AND 0 <= ?",
        first + 399
    )
}

#[test]
fn a_log_buffer_that_is_too_small_is_named() {
    let options = [
        "--innodb-flush-method=O_DIRECT",
        "--innodb-buffer-pool-size=512M",
        "--innodb-log-buffer-size=2M",
        "--innodb-log-file-size=1G",
        // What goes to the system's cache first is not held back by the group's limit.
        "--innodb-log-file-buffering=OFF",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    let limits = IoLimits { write_bytes_per_s: Some(8 << 20), ..IoLimits::default() };
    let Some(stage) = Stage::begin("a_log_buffer_that_is_too_small_is_named", &options, limits)
    else {
        return;
    };
    stage.order(&[SMALL, BIG, FILL, FILL_BIG]);
    let mut stage = stage.limited();
    stage.load(4, UPDATE, 2_000);
    let write_big = Then::after(9, |stage| {
        (0..WRITERS).for_each(|writer| stage.load(1, &write(writer), 1));
    });
    let all = stage.watch_for(Some(StallCause::LogBuffer), 18, Some(write_big));
    assert_named(&all, StallCause::LogBuffer);
}
