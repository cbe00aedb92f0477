//! Metrics as Prometheus sees them.

#![allow(clippy::unwrap_used)]

mod contrib;
mod promtool;
mod served;

use iostrata_metrics::Board;
use iostrata_screen::made_up;

/// What is told of three made-up targets after a hundred seconds, two of which stalled or vanished.
fn board() -> Board {
    let mut board = Board::new(&[made_up::stalling(), made_up::steady(), made_up::vanishing()]);
    for second in 0..100 {
        board.take(0, &made_up::stalling_at(second));
        board.take(1, &made_up::steady_at(second));
        board.take(2, &made_up::vanishing_at(second));
    }
    board
}

/// Whether a program is installed; says so where it is not.
fn is_installed(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: no {program} (apt-get install prometheus)");
    }
    found
}
