//! A log buffer that is too small for the rows that are written, on a real server.

use iostrata_run::StallCause;
use iostrata_spec::study::IoLimits;

use crate::stage::{Stage, Then};
use crate::stalls::assert_named;

const SMALL: &str = "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB";
const BIG: &str = "CREATE TABLE b (id INT PRIMARY KEY, v INT, pad LONGBLOB) ENGINE=InnoDB";
const FILL: &str = "INSERT INTO t SELECT seq, 0 FROM seq_1_to_2000";
const UPDATE: &str = "UPDATE t SET v = v + 1 WHERE id = ?";
/// More redo in one transaction than the log buffer holds.
const WRITE: &str = "REPLACE INTO b VALUES (?, 1, REPEAT(UUID_SHORT(), 400000))";

#[test]
fn a_log_buffer_that_is_too_small_is_named() {
    let options = [
        "--innodb-flush-method=O_DIRECT",
        "--innodb-buffer-pool-size=256M",
        "--innodb-log-buffer-size=2M",
        "--innodb-log-file-size=512M",
        "--innodb-flush-log-at-trx-commit=2",
        "--max-allowed-packet=64M",
    ];
    let limits = IoLimits { write_bytes_per_s: Some(6 << 20), ..IoLimits::default() };
    let Some(stage) = Stage::begin("a_log_buffer_that_is_too_small_is_named", &options, limits)
    else {
        return;
    };
    stage.order(&[SMALL, BIG, FILL]);
    let mut stage = stage.limited();
    stage.load(4, UPDATE, 2_000);
    let write_big: Then = Box::new(|stage: &mut Stage| stage.load(2, WRITE, 20));
    let all = stage.watch(20, Some((9, write_big)));
    assert_named(&all, StallCause::LogBuffer);
}
