//! Settings of a server are changes like any other, and a group of them is adjusted while it is in
//! place.

use std::fs;

use tempfile::TempDir;

use super::fake::{BOUNDED, FakePlatform, Machine};
use super::{SERVER, assert_same, begin, settings, wanted};
use crate::{
    AppliedChange, ChangeError, Effect, GroupVersion, How, JournalState, Owner, RestoreReport,
    ServerSettings, Session, SettingsEffect, StateDir, UndoOutcome, leftovers, restore,
    restore_server,
};

const NEIGHBORS: &str = "innodb_flush_neighbors";
/// MySQL, then MariaDB.
const FLAVOURS: [GroupVersion; 2] = [GroupVersion::V1, GroupVersion::V2];

fn session_on(state: &StateDir, flavour: GroupVersion) -> Session<FakePlatform> {
    Session::begin(state, FakePlatform::new(state, flavour)).unwrap()
}

fn session(state: &StateDir) -> Session<FakePlatform> {
    session_on(state, GroupVersion::V1)
}

/// A group of settings in place at a MySQL, with one that may be adjusted.
struct Tuned {
    _dir: TempDir,
    state: StateDir,
    /// Before.
    first: Machine,
    session: Session<FakePlatform>,
    group: AppliedChange,
}

fn tuned() -> Tuned {
    let (_dir, state, first) = begin(GroupVersion::V1);
    let mut session = session(&state);
    let both = settings(&[(BOUNDED[0], 4_000), (BOUNDED[1], 5_000)], &[NEIGHBORS]);
    let group = session.apply(both).unwrap();
    Tuned { _dir, state, first, session, group }
}

fn set(platform: &FakePlatform, name: &str, value: u64) {
    platform.machine.borrow_mut().set_variable(name, value);
}

/// The journal of a killed process, as another one finds it.
fn killed(session: Session<FakePlatform>, state: &StateDir) -> FakePlatform {
    let journal = fs::read(&state.journals()[0]).unwrap();
    let machine = session.platform().machine.borrow().clone();
    drop(session);
    fs::write(state.path().join("changes-77-7-9.jsonl"), journal).unwrap();
    FakePlatform::on(machine, state, GroupVersion::V1).without_owner()
}

/// The same, restored on a machine in which `happened` happened since.
fn restored(
    happened: impl FnOnce(&mut FakePlatform),
) -> (FakePlatform, RestoreReport, StateDir, TempDir) {
    let Tuned { _dir: dir, state, session, .. } = tuned();
    let mut platform = killed(session, &state);
    happened(&mut platform);
    let report = restore(&state, &platform);
    (platform, report, state, dir)
}

fn values(platform: &FakePlatform) -> [u64; 2] {
    let machine = platform.machine.borrow();
    [BOUNDED[0], BOUNDED[1]].map(|name| machine.variables[name])
}

fn how(report: &RestoreReport) -> &UndoOutcome {
    &report.journals[0].things[0].outcome
}

fn took(effect: &Effect) -> Vec<(&str, &str)> {
    let Effect::ServerSettings(SettingsEffect { took, .. }) = effect else { panic!("{effect:?}") };
    took.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn what_the_server_took_is_shown_and_put_back() {
    let (_dir, state, _) = begin(GroupVersion::V1);
    let mut session = session(&state);
    let line = session.describe(&settings(&[(BOUNDED[0], 9_999)], &[]));
    assert_eq!(line, format!("set innodb_io_capacity to 9999 of {SERVER} (now 200)"));
    let line = session.describe(&settings(&[(BOUNDED[0], 9_999)], &[NEIGHBORS]));
    let now = "(now innodb_io_capacity 200, innodb_flush_neighbors 1)";
    assert!(line.contains("adjust innodb_flush_neighbors of") && line.ends_with(now), "{line}");
    let line = session.describe(&settings(&[], &[BOUNDED[0], NEIGHBORS, "server_event.a.b"]));
    let words = "adjust innodb_io_capacity, innodb_flush_neighbors, the event a.b of";
    assert!(line.starts_with(words), "{line}");
    let clamped = session.apply(settings(&[(BOUNDED[0], 9_999)], &[])).unwrap();
    assert_eq!(clamped.asked_and_took(), Some(("9999", "2000")));
    let above = session.apply(settings(&[(BOUNDED[1], 5_000)], &[])).unwrap();
    assert!(matches!(session.undo(clamped.id), Err(ChangeError::DependedOn { .. })));
    assert_eq!(session.undo(above.id).unwrap().how, How::PutBack);
    assert!(session.undo_all().is_settled());
    assert_eq!(values(session.platform()), [200, 2_000]);
    assert!(state.journals().is_empty());
}

#[test]
fn a_variable_that_moved_with_another_goes_back_too() {
    for flavour in FLAVOURS {
        let (_dir, state, first) = begin(flavour);
        let mut session = session_on(&state, flavour);
        let alone = session.apply(settings(&[(BOUNDED[0], 5_000)], &[])).unwrap();
        let pct = session.apply(settings(&[(BOUNDED[3], 5)], &[])).unwrap();
        let max = if first.is_mariadb { "10000" } else { "2000" };
        assert!(took(&alone.effect).contains(&(BOUNDED[1], max)), "{alone:?}");
        assert!(took(&pct.effect).contains(&(BOUNDED[2], "5")), "{pct:?}");
        let report = session.undo_all();
        assert!(report.is_settled() && report.left.is_empty(), "{report:#?}");
        assert_same(&session.platform().machine.borrow(), &first, "undone");
    }
}

#[test]
fn an_event_goes_last_and_outlives_a_restart() {
    let event = "server_event.a.b";
    let put_back = |restarts: bool| {
        let (_dir, state, _) = begin(GroupVersion::V1);
        let mut session = session(&state);
        set(session.platform(), event, 0);
        let group = session.apply(settings(&[(BOUNDED[0], 500)], &[event])).unwrap();
        session.adjust(group.id, &wanted(&[(event, 120)])).unwrap();
        let by_hand = session.by_hand(group.id);
        assert_eq!(by_hand.last().unwrap(), "DROP EVENT IF EXISTS a.b;", "{by_hand:?}");
        if restarts {
            let mut machine = session.platform().machine.borrow_mut();
            machine.started_s += 100;
            machine.variables.insert(BOUNDED[0].to_owned(), 777);
        }
        let how = session.undo(group.id).unwrap().how;
        let machine = session.platform().machine.borrow();
        (how, machine.variables[event], machine.variables[BOUNDED[0]])
    };
    assert_eq!(put_back(false), (How::PutBack, 0, 200));
    assert_eq!(put_back(true), (How::PutBack, 0, 777), "its own value after the start");
}

#[test]
fn a_group_is_adjusted_in_an_order_in_which_nothing_is_cut() {
    for flavour in FLAVOURS {
        let (_dir, state, first) = begin(flavour);
        let mut session = session_on(&state, flavour);
        let group = session.apply(settings(&[], &BOUNDED)).unwrap();
        assert_eq!(session.by_hand(group.id).len(), 6, "also before anything is set");
        for asked in [[6_000, 9_000, 2, 5], [100, 150, 0, 3], [5_000, 5_000, 60, 60]] {
            let asked: Vec<_> = BOUNDED.into_iter().zip(asked).collect();
            let effect = session.adjust(group.id, &wanted(&asked)).unwrap();
            for (name, value) in &asked {
                assert!(took(&effect).contains(&(name, &value.to_string())), "{effect:?}");
            }
        }
        let lines = fs::read_to_string(&state.journals()[0]).unwrap().lines().count();
        let same = session.adjust(group.id, &wanted(&[(BOUNDED[0], 5_000)])).unwrap();
        assert!(took(&same).contains(&(BOUNDED[0], "5000")));
        let after = fs::read_to_string(&state.journals()[0]).unwrap().lines().count();
        assert_eq!(lines, after, "nothing was to be set");
        assert!(session.undo_all().is_settled());
        assert_same(&session.platform().machine.borrow(), &first, "undone");
    }
}

#[test]
fn what_is_adjusted_was_named_before() {
    let Tuned { _dir, mut session, group, .. } = tuned();
    let unnamed = session.adjust(group.id, &wanted(&[(BOUNDED[3], 5)])).unwrap_err().to_string();
    assert!(unnamed.contains("name it as adjustable there"), "{unnamed}");
    session.undo(group.id).unwrap();
    let gone = session.adjust(group.id, &wanted(&[(NEIGHBORS, 0)]));
    assert!(matches!(gone, Err(ChangeError::NotInPlace { .. })));
}

#[test]
fn a_refused_value_leaves_the_group_in_place() {
    let Tuned { _dir, first, mut session, group, .. } = tuned();
    *session.platform().refused_variable.borrow_mut() = Some(NEIGHBORS.to_owned());
    let both = wanted(&[(NEIGHBORS, 0), (BOUNDED[0], 300)]);
    let refused = session.adjust(group.id, &both).unwrap_err().to_string();
    assert!(refused.contains("innodb_flush_neighbors can't be 0"), "{refused}");
    assert_eq!(values(session.platform()), [300, 5_000], "set before the refusal");
    // What was set is known as ours, so what another client sets now is not.
    set(session.platform(), BOUNDED[0], 777);
    let report = session.undo_all();
    assert_eq!(report.left[0].found, "777", "{report:#?}");
    set(session.platform(), BOUNDED[0], 200);
    assert_same(&session.platform().machine.borrow(), &first, "all but what was left");
}

#[test]
fn a_server_that_refuses_its_own_value_is_restored_by_another_user() {
    let (_, report, state, _dir) = restored(|platform| {
        *platform.refused_variable.borrow_mut() = Some(BOUNDED[0].to_owned());
    });
    let UndoOutcome::Failed(why) = how(&report) else { panic!("{report:#?}") };
    assert!(why.starts_with("cannot restore innodb_io_capacity of "), "{why}");
    assert!(why.ends_with("; restore it as a user who may set it"), "{why}");
    assert!(!report.is_settled() && state.journals().len() == 1);
}

#[test]
fn what_another_client_changes_meanwhile_is_not_adjusted() {
    let Tuned { _dir, mut session, group, .. } = tuned();
    set(session.platform(), BOUNDED[0], 777);
    let theirs = session.adjust(group.id, &wanted(&[(BOUNDED[0], 400)])).unwrap_err();
    assert!(matches!(&theirs, ChangeError::SetByOther { found, .. } if found == "777"), "{theirs}");
    // Adjusting something else does not make it ours.
    session.adjust(group.id, &wanted(&[(BOUNDED[1], 1_000), (NEIGHBORS, 0)])).unwrap();
    let report = session.undo_all();
    assert_eq!((report.left.len(), report.left[0].found.as_str()), (1, "777"), "{report:#?}");
    assert_eq!(values(session.platform()), [777, 2_000]);
    assert_eq!(session.platform().machine.borrow().variables[NEIGHBORS], 1);
}

#[test]
fn a_server_that_was_restarted_is_neither_adjusted_nor_put_back() {
    let Tuned { _dir, mut session, group, .. } = tuned();
    session.platform().machine.borrow_mut().started_s += 60;
    set(session.platform(), BOUNDED[0], 250);
    let other = session.adjust(group.id, &wanted(&[(BOUNDED[0], 400)])).unwrap_err();
    assert!(matches!(other, ChangeError::Restarted { .. }), "{other}");
    assert_eq!(session.undo(group.id).unwrap().how, How::AsBefore);
    assert_eq!(values(session.platform()), [250, 5_000]);
    let (platform, report, _, _dir) =
        restored(|platform| platform.machine.borrow_mut().started_s += 60);
    assert_eq!(how(&report), &UndoOutcome::Undone(How::AsBefore));
    assert_eq!(values(&platform), [4_000, 5_000], "as its own configuration has it");
}

/// A failover: another server answers at the address of the first.
fn fail_over(platform: &FakePlatform) {
    *platform.server_uid.borrow_mut() = Some("second".to_owned());
}

#[test]
fn another_server_is_no_restart_and_settles_nothing() {
    let Tuned { _dir, state, mut session, group, .. } = tuned();
    fail_over(session.platform());
    let other = session.adjust(group.id, &wanted(&[(BOUNDED[0], 400)])).unwrap_err();
    assert!(matches!(other, ChangeError::OtherServer { .. }), "{other}");
    assert!(matches!(session.undo(group.id), Err(ChangeError::OtherServer { .. })));
    let platform = killed(session, &state);
    fail_over(&platform);
    let report = restore_server(&state, &platform, SERVER);
    let thing = &report.journals[0].things[0];
    let UndoOutcome::Failed(why) = &thing.outcome else { panic!("{thing:?}") };
    assert!(why.contains("another server answers") && thing.by_hand.len() == 3, "{thing:?}");
    assert!(!report.is_settled() && values(&platform) == [4_000, 5_000]);
    let elsewhere = restore_server(&state, &platform, "mysql://root@localhost/");
    assert!(elsewhere.is_settled() && elsewhere.journals.is_empty(), "{elsewhere:#?}");
    assert!(elsewhere.other_servers[0].contains("host:3306 (data in /data/mysql, first)"));
    // The first one answers again, by another address.
    *platform.server_uid.borrow_mut() = Some("first".to_owned());
    let report = restore_server(&state, &platform, "mysql://root@localhost/");
    assert!(report.is_settled() && state.journals().is_empty(), "{report:#?}");
    assert_eq!(values(&platform), [200, 2_000]);
}

#[test]
fn nothing_keeps_the_journal_of_a_group_that_is_as_before() {
    let (_dir, state, _) = begin(GroupVersion::V1);
    let mut session = session(&state);
    let group = session.apply(settings(&[], &BOUNDED)).unwrap();
    fail_over(session.platform());
    assert_eq!(session.undo(group.id).unwrap().how, How::AsBefore);
    assert!(state.journals().is_empty());
}

#[test]
fn a_journal_without_the_identifier_of_its_server_is_undone() {
    let Tuned { _dir, state, session, .. } = tuned();
    let platform = killed(session, &state);
    let journal = fs::read_to_string(&state.journals()[0]).unwrap();
    let old = journal.replace(r#","uid":"first""#, "");
    assert_ne!(old, journal);
    fs::write(&state.journals()[0], old).unwrap();
    assert!(restore(&state, &platform).is_settled());
    assert_eq!(values(&platform), [200, 2_000]);
}

#[test]
fn settings_go_back_where_the_journal_cannot_be_written_any_more() {
    let Tuned { _dir, state, first, mut session, group, .. } = tuned();
    session.stop_noting();
    let refused = session.adjust(group.id, &wanted(&[(BOUNDED[0], 400)])).unwrap_err();
    assert!(matches!(refused, ChangeError::Journal(_)), "{refused}");
    let journal = fs::read(&state.journals()[0]).unwrap();
    assert_eq!(session.undo(group.id).unwrap().how, How::PutBack);
    assert_same(&session.platform().machine.borrow(), &first, "undone");
    // Where not even the file could be removed, a later restore finds everything as before.
    fs::write(state.path().join("changes-77-7-9.jsonl"), journal).unwrap();
    let machine = session.platform().machine.borrow().clone();
    let platform = FakePlatform::on(machine, &state, GroupVersion::V1).without_owner();
    let report = restore(&state, &platform);
    assert_eq!(how(&report), &UndoOutcome::Undone(How::AsBefore), "{report:#?}");
    assert!(state.journals().is_empty());
}

#[test]
fn after_a_kill_the_same_server_gets_its_values_back() {
    let (platform, report, state, _dir) = restored(|_| {});
    assert_eq!(how(&report), &UndoOutcome::Undone(How::PutBack));
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
fn what_another_client_set_is_left_and_reported() {
    let (platform, report, _, _dir) = restored(|platform| set(platform, BOUNDED[0], 777));
    assert_eq!(how(&report), &UndoOutcome::Undone(How::PutBack));
    assert_eq!(values(&platform), [777, 2_000]);
    assert_eq!(report.journals[0].left[0].found, "777");
    // Where the bound cannot go back without moving it, both stay.
    let (platform, report, _, _dir) = restored(|platform| set(platform, BOUNDED[0], 4_500));
    assert_eq!(how(&report), &UndoOutcome::Undone(How::LeftAlone));
    assert_eq!(values(&platform), [4_500, 5_000]);
    let left: Vec<&str> = report.journals[0].left.iter().map(|left| left.found.as_str()).collect();
    assert_eq!(left, ["4500", "5000"]);
    assert!(report.is_settled());
}

#[test]
fn a_server_that_does_not_answer_is_tried_again_later() {
    let (platform, report, state, _dir) = restored(|platform| platform.server_answers.set(false));
    assert_eq!(report.journals[0].state, JournalState::Unsettled, "{report:#?}");
    assert_eq!(values(&platform), [4_000, 5_000]);
    assert_eq!(
        report.journals[0].things[0].by_hand,
        [
            "SET GLOBAL innodb_io_capacity_max = 2000;",
            "SET GLOBAL innodb_io_capacity = 200;",
            "SET GLOBAL innodb_io_capacity_max = 2000;"
        ]
    );
    platform.server_answers.set(true);
    // What others set meanwhile is theirs, though undoing had begun.
    set(&platform, BOUNDED[0], 777);
    let report = restore(&state, &platform);
    assert!(report.is_settled() && report.journals[0].left.len() == 1, "{report:#?}");
    assert_eq!(values(&platform), [777, 2_000]);
    assert!(state.journals().is_empty());
}

#[test]
fn by_hand_the_values_come_back_from_anywhere() {
    for flavour in FLAVOURS {
        let (_dir, state, first) = begin(flavour);
        let mut session = session_on(&state, flavour);
        let group = session.apply(settings(&[], &BOUNDED)).unwrap();
        for asked in [[6_000, 9_000, 2, 5], [100, 150, 0, 3], [5_000, 5_000, 60, 60]] {
            let asked: Vec<_> = BOUNDED.into_iter().zip(asked).collect();
            session.adjust(group.id, &wanted(&asked)).unwrap();
            session.platform().server_answers.set(false);
            let report = session.undo_all();
            session.platform().server_answers.set(true);
            let before = session.platform().machine.borrow().clone();
            for by_hand in [&report.things[0].by_hand, &session.by_hand(group.id)] {
                for statement in by_hand {
                    let words: Vec<&str> = statement.trim_end_matches(';').split(' ').collect();
                    let [_, _, name, _, value] = words[..] else { panic!("{statement}") };
                    set(session.platform(), name, value.parse().unwrap());
                }
                assert_same(&session.platform().machine.borrow(), &first, &format!("{asked:?}"));
                *session.platform().machine.borrow_mut() = before.clone();
            }
        }
    }
}

#[test]
fn one_process_at_a_time_changes_the_settings_of_a_server() {
    let Tuned { _dir, state, first, session: mut one, group } = tuned();
    let mut second = session(&state);
    let taken = second.apply(settings(&[(NEIGHBORS, 0)], &[])).unwrap_err().to_string();
    assert!(
        taken.contains("process 77 adjusts innodb_io_capacity, innodb_io_capacity_max")
            && taken.ends_with("end it first"),
        "{taken}"
    );
    assert_eq!(state.journals().len(), 1);
    // Its own groups are not in its way, nor is another server.
    one.apply(settings(&[("buffer_pool_mib", 256)], &[])).unwrap();
    second.platform().machine.borrow_mut().started_s = 5_000;
    second.apply(settings(&[(NEIGHBORS, 0)], &[])).unwrap();
    drop(second);
    one.adjust(group.id, &wanted(&[(NEIGHBORS, 0)])).unwrap();
    let platform = killed(one, &state);
    let mut third = Session::begin(&state, platform).unwrap();
    let left = third.apply(settings(&[(NEIGHBORS, 2)], &[])).unwrap_err().to_string();
    assert!(left.contains("was killed") && left.ends_with("run iostrata restore first"), "{left}");
    assert!(restore(&state, third.platform()).is_settled());
    third.apply(settings(&[(NEIGHBORS, 2)], &[])).unwrap();
    drop(third);
    assert_eq!(begin(GroupVersion::V1).2, first);
}

#[test]
fn two_processes_may_each_have_other_settings_of_a_server() {
    let Tuned { _dir, state, first, session: mut one, group } = tuned();
    let mut second = session(&state);
    second.apply(settings(&[("buffer_pool_mib", 256)], &[])).unwrap();
    assert_eq!(state.journals().len(), 2);
    one.adjust(group.id, &wanted(&[(NEIGHBORS, 0)])).unwrap();
    // One that moves with those of the other is taken, too.
    let taken = second.apply(settings(&[(BOUNDED[0], 300)], &[]));
    assert!(matches!(taken, Err(ChangeError::SettingsTaken { .. })));
    assert!(second.undo_all().is_settled() && one.undo_all().is_settled());
    assert_same(&one.platform().machine.borrow(), &first, "undone");
}

#[test]
fn one_server_is_restored_by_the_address_that_is_named() {
    let Tuned { _dir, state, session, .. } = tuned();
    let platform = killed(session, &state);
    let other = String::from_utf8(fs::read(&state.journals()[0]).unwrap()).unwrap();
    let other = other.replace("/data/mysql", "/data/other").replace("3306\"", "3307\"");
    fs::write(state.path().join("changes-77-7-10.jsonl"), other).unwrap();
    platform.server_answers.set(false);
    for (address, found) in [
        ("mysql://root@127.0.0.1:3306/db?ssl=required", 1),
        ("mysql://root@/db?socket=/run/s", 0),
        ("mysql://x@127.0.0.1:3307", 1),
    ] {
        let report = restore_server(&state, &platform, address);
        assert_eq!(report.journals.len(), found, "{address}");
        assert!(!report.is_settled() && report.server_error.is_some(), "{address}");
    }
    platform.server_answers.set(true);
    let report = restore_server(&state, &platform, "mysql://root@localhost/");
    assert_eq!(report.journals.len(), 1, "{report:#?}");
    let change = &report.journals[0].things[0].change;
    assert!(report.is_settled() && change.ends_with("of mysql://root@localhost/"), "{change}");
    assert_eq!(values(&platform), [200, 2_000]);
    assert_eq!(state.journals().len(), 1, "the journal of the other server stays");
}

#[test]
fn refusals_change_nothing() {
    let (_dir, state, _) = begin(GroupVersion::V1);
    let mut session = session(&state);
    let unknown = session.apply(settings(&[("no_such", 1)], &[])).unwrap_err().to_string();
    assert!(unknown.contains(&format!("no_such of {SERVER}")), "{unknown}");
    let (settings_of, adjustable) = (wanted(&[(NEIGHBORS, 1)]), Vec::new());
    let server = "mysql://b:secret@127.0.0.1".to_owned();
    let secret = ServerSettings { server, settings: settings_of, adjustable };
    let secret = session.apply(secret).unwrap_err().to_string();
    assert!(secret.contains("holds a password") && !secret.contains("secret@"), "{secret}");
    session.platform().server_answers.set(false);
    let silent = session.apply(settings(&[(BOUNDED[0], 1)], &[])).unwrap_err().to_string();
    assert!(silent.contains("connection refused; see that it runs"), "{silent}");
    assert!(state.journals().is_empty());
}

/// Hours of tuning: the journal stays short, and at no moment is a kill too much.
#[test]
fn the_journal_of_a_long_run_stays_short_and_good() {
    for flavour in FLAVOURS {
        let (_dir, state, first) = begin(flavour);
        let mut session = session_on(&state, flavour);
        let group = session.apply(settings(&[], &BOUNDED)).unwrap();
        let (mut longest, mut shortened) = (0, 0);
        for round in 0..400_u64 {
            let capacity = 200 + round * 37 % 5_000;
            let dirty = 1 + round * 7 % 80;
            let asked = [capacity, capacity * 2, dirty / 2, dirty];
            let asked: Vec<_> = BOUNDED.into_iter().zip(asked).collect();
            session.adjust(group.id, &wanted(&asked)).unwrap();
            let bytes = fs::metadata(&state.journals()[0]).unwrap().len();
            shortened += u32::from(bytes < 2_000 && longest > 10_000);
            longest = longest.max(bytes);
        }
        assert!(longest < 70_000 && shortened >= 2, "{longest} bytes, {shortened} times shortened");
        let moments = session.platform().moments.take();
        // A round has eight, so that each kind of moment comes in turn.
        let every = if std::env::var_os("IOSTRATA_SOAK").is_some() { 1 } else { 7 };
        for (journal, machine) in moments.iter().step_by(every) {
            assert_restored(journal, machine, &first, flavour);
        }
        assert!(leftovers(&state).is_empty() && moments.len() > 2_000, "{} moments", moments.len());
        assert!(session.undo_all().is_settled());
        assert_same(&session.platform().machine.borrow(), &first, "undone");
    }
}

fn assert_restored(journal: &[u8], machine: &Machine, first: &Machine, flavour: GroupVersion) {
    let (_dir, state, _) = begin(flavour);
    fs::create_dir(state.path()).unwrap();
    fs::write(state.path().join("changes-77-7-0.jsonl"), journal).unwrap();
    let platform = FakePlatform::on(machine.clone(), &state, flavour).without_owner();
    let report = restore(&state, &platform);
    let left: Vec<_> = report.journals.iter().flat_map(|one| &one.left).collect();
    assert!(report.is_settled() && left.is_empty(), "{report:#?}");
    assert_same(&platform.machine.borrow(), first, "restored");
}
