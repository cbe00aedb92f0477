//! Job files and the plans that come of them.

mod any_text;
mod documented;
mod every_option;
mod plans;

use super::stand_in::Desk;
use super::{FioError, FioPlan, parse};

/// The plan of one job file.
fn plan(text: &str) -> Result<FioPlan, FioError> {
    plan_in(Desk::default(), text)
}

/// The same with other files, data and variables around.
fn plan_in(desk: Desk, text: &str) -> Result<FioPlan, FioError> {
    parse(&["j.fio".into()], &[], &desk.with_file("j.fio", text))
}
