//! A server's variables are changes like any other.

use std::fs;

use tempfile::TempDir;

use super::fake::FakePlatform;
use super::samples::{SERVER, variable};
use super::session::begin;
use crate::{
    ChangeError, GroupVersion, How, JournalState, Owner, RestoreReport, Session, StateDir,
    UndoOutcome, restore,
};

fn session(state: &StateDir) -> Session<FakePlatform> {
    Session::begin(state, FakePlatform::new(state, GroupVersion::V1)).unwrap()
}

/// The journal of a killed process, restored on a machine in which `happened` happened since.
fn restored(
    happened: impl FnOnce(&mut FakePlatform),
) -> (FakePlatform, RestoreReport, StateDir, TempDir) {
    let (dir, state, _) = begin(GroupVersion::V1);
    let mut session = session(&state);
    session.apply(variable("io_capacity_max", 5_000)).unwrap();
    session.apply(variable("io_capacity", 4_000)).unwrap();
    let journal = fs::read(&state.journals()[0]).unwrap();
    let machine = session.platform().machine.borrow().clone();
    drop(session);
    fs::write(state.path().join("changes-77-7-9.jsonl"), journal).unwrap();
    let mut platform = FakePlatform::on(machine, &state, GroupVersion::V1).without_owner();
    happened(&mut platform);
    let report = restore(&state, &platform);
    (platform, report, state, dir)
}

fn values(platform: &FakePlatform) -> [u64; 2] {
    let machine = platform.machine.borrow();
    ["io_capacity", "io_capacity_max"].map(|name| machine.variables[name])
}

fn hows(report: &RestoreReport) -> Vec<UndoOutcome> {
    report.journals[0].things.iter().map(|thing| thing.outcome.clone()).collect()
}

#[test]
fn what_the_server_took_is_shown_and_put_back_in_reverse() {
    let (_dir, state, _) = begin(GroupVersion::V1);
    let mut session = session(&state);
    let line = session.describe(&variable("io_capacity", 9_999));
    assert_eq!(line, format!("set io_capacity of {SERVER} to 9999 (now 200)"));
    let bound = session.apply(variable("io_capacity_max", 5_000)).unwrap();
    let clamped = session.apply(variable("io_capacity", 9_999)).unwrap();
    assert_eq!(clamped.effect.asked_and_took(), Some(("9999", "5000")));
    assert!(matches!(session.undo(bound.id), Err(ChangeError::DependedOn { .. })));
    assert!(session.undo_all().is_settled());
    assert_eq!(values(session.platform()), [200, 2_000]);
    assert!(state.journals().is_empty());
}

#[test]
fn after_a_kill_the_same_server_gets_its_values_back() {
    let (platform, report, state, _dir) = restored(|_| {});
    assert_eq!(
        hows(&report),
        [UndoOutcome::Undone(How::PutBack), UndoOutcome::Undone(How::PutBack)]
    );
    assert_eq!(values(&platform), [200, 2_000]);
    assert!(state.journals().is_empty());
    // Also when this machine was rebooted: the server may be on another one.
    let (platform, report, _, _dir) = restored(|platform| {
        platform.owner = Owner { boot_id: "second".to_owned(), ..platform.owner.clone() };
    });
    assert!(report.is_settled(), "{report:#?}");
    assert_eq!(values(&platform), [200, 2_000]);
}

#[test]
fn a_server_that_was_restarted_is_left_alone() {
    let (platform, report, _, _dir) =
        restored(|platform| platform.machine.borrow_mut().started_s += 60);
    assert_eq!(
        hows(&report),
        [UndoOutcome::Undone(How::AsBefore), UndoOutcome::Undone(How::AsBefore)]
    );
    assert_eq!(values(&platform), [4_000, 5_000], "as its own configuration has it");
}

#[test]
fn what_somebody_else_set_is_left_and_reported() {
    let (platform, report, _, _dir) = restored(|platform| {
        platform.machine.borrow_mut().variables.insert("io_capacity".to_owned(), 777);
    });
    assert_eq!(
        hows(&report),
        [UndoOutcome::Undone(How::LeftAlone), UndoOutcome::Undone(How::PutBack)]
    );
    assert_eq!(values(&platform), [777, 2_000]);
    assert_eq!(report.journals[0].left[0].found, "777");
}

#[test]
fn what_a_failed_setting_back_left_is_still_ours() {
    let set = |platform: &FakePlatform, value| {
        platform.machine.borrow_mut().variables.insert("io_capacity".to_owned(), value)
    };
    let (platform, report, state, _dir) = restored(|platform| {
        set(platform, 4_500);
    });
    assert_eq!(report.journals[0].state, JournalState::Unsettled, "{report:#?}");
    assert_eq!(values(&platform), [4_500, 4_500], "the bound follows what somebody else set");
    set(&platform, 300);
    let report = restore(&state, &platform);
    assert!(report.is_settled() && report.journals[0].left.is_empty(), "{report:#?}");
    assert_eq!(values(&platform), [300, 2_000]);
}

#[test]
fn a_server_that_does_not_answer_is_tried_again_later() {
    let (platform, report, state, _dir) = restored(|platform| platform.server_answers.set(false));
    assert_eq!(report.journals[0].state, JournalState::Unsettled, "{report:#?}");
    assert_eq!(values(&platform), [4_000, 5_000]);
    platform.server_answers.set(true);
    assert!(restore(&state, &platform).is_settled());
    assert_eq!(values(&platform), [200, 2_000]);
    assert!(state.journals().is_empty());
}

#[test]
fn refusals_change_nothing() {
    let (_dir, state, _) = begin(GroupVersion::V1);
    let mut session = session(&state);
    let unknown = session.apply(variable("no_such", 1)).unwrap_err().to_string();
    assert!(unknown.contains(&format!("no_such of {SERVER}")), "{unknown}");
    session.platform().server_answers.set(false);
    let silent = session.apply(variable("io_capacity", 1)).unwrap_err().to_string();
    assert!(silent.contains("connection refused; see that it runs"), "{silent}");
    assert!(state.journals().is_empty());
}
