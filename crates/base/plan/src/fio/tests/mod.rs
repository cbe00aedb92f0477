//! Job files and the plans that come of them.

mod any_text;
mod arguments;
mod documented;
mod every_option;
mod field;
mod plans;

use super::stand_in::Desk;
use super::{FioError, FioPlan, FioRequest, parse};

/// The plan of one job file, or the first thing that is refused.
fn plan(text: &str) -> Result<FioPlan, FioError> {
    plan_in(Desk::default(), text)
}

/// The same with other files, data and variables around.
fn plan_in(desk: Desk, text: &str) -> Result<FioPlan, FioError> {
    files(&["j.fio"], &[], &desk.with_file("j.fio", text))
}

/// The plan of some files, or the first thing that is refused.
fn files(names: &[&str], only: &[&str], desk: &Desk) -> Result<FioPlan, FioError> {
    let request = FioRequest {
        files: names.iter().map(|name| (*name).into()).collect(),
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        ..FioRequest::default()
    };
    parse(&request, desk).map_err(|errors| errors.0.into_iter().next().unwrap())
}
