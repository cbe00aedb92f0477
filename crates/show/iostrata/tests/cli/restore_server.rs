//! `restore` puts back the settings of a real server that needs a password, which no journal holds.

use std::fs;

use iostrata_change::{Owner, ServerSetting, ServerSettings, Servers, Session, StateDir, System};
use iostrata_server::MySqlServers;
use iostrata_server::private::{PrivatePlan, PrivateServer, ServerProgram};

use crate::harness::{Bench, stderr, stdout};

const NAME: &str = "innodb_io_capacity";

#[test]
fn settings_of_a_server_are_restored_with_the_password_of_the_target() {
    let program = match ServerProgram::find("mariadbd") {
        Ok(program) => program,
        Err(missing) => return eprintln!("skipped: {missing}"),
    };
    let dir = tempfile::tempdir().unwrap();
    let mut running = Session::begin(&StateDir::at(dir.path().join("r")), System::new()).unwrap();
    let mut plan = PrivatePlan::new(program, dir.path().join("s"));
    plan.first_statements = vec![
        "CREATE USER IF NOT EXISTS tuner@localhost IDENTIFIED BY 'secret'".to_owned(),
        "GRANT ALL PRIVILEGES ON *.* TO tuner@localhost".to_owned(),
    ];
    let server = PrivateServer::start(&mut running, &plan).unwrap();
    let plain = server.address().replacen("root@", "tuner@", 1);
    let with_password = plain.replacen("tuner@", "tuner:secret@", 1);
    let servers = MySqlServers::knowing(with_password.parse().unwrap());
    let value = || servers.look(&plain, &[NAME]).unwrap().1[NAME].clone();
    let before = value();

    let bench = Bench::new();
    let state = StateDir::at(dir.path().join("t"));
    let system = System::new().with_servers(servers.clone());
    let mut session = Session::begin(&state, system).unwrap();
    let settings = vec![ServerSetting::new(NAME, 4_321)];
    let (server_at, adjustable) = (plain.clone(), Vec::new());
    session.apply(ServerSettings { server: server_at, settings, adjustable }).unwrap();
    assert_ne!(value(), before);
    leave(&bench, state.path());

    let told = bench.command(&["restore"]).env("HOME", bench.path("")).output().unwrap();
    let said = stdout(&told) + &stderr(&told);
    assert_eq!(told.status.code(), Some(3), "{said}");
    for words in [&format!("SET GLOBAL {NAME} = {before};"), "1045", "restore --target"] {
        assert!(said.contains(words), "{words} is missing in {said}");
    }
    let other = bench.run(&["restore", "--target", "mysql://tuner:secret@127.0.0.1:9/"]);
    assert_eq!(other.status.code(), Some(3), "it does not answer: {}", stdout(&other));
    let done = bench.run(&["restore", "--target", &with_password]);
    let said = format!("{said}{}{}", stdout(&done), stderr(&done));
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("undone: set {NAME} to 4321")), "{said}");
    assert!(!said.contains("secret"), "{said}");
    assert_eq!(value(), before);
    assert!(stdout(&bench.line("restore")).starts_with("Nothing is left"));
    assert!(session.undo_all().is_settled());
    server.remove(&mut running).unwrap();
}

/// The journal of this process as a killed one leaves it.
fn leave(bench: &Bench, state: &std::path::Path) {
    let journal = fs::read_dir(state).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(journal).unwrap();
    let this = serde_json::to_string(&Owner::this()).unwrap();
    assert!(text.contains(&this) && !text.contains("secret"), "{text}");
    let gone = text.replace(&this, r#"{"pid":1,"start_ticks":1,"boot_id":"before"}"#);
    fs::create_dir_all(bench.path("state")).unwrap();
    fs::write(bench.path("state/changes-1-1-0.jsonl"), gone).unwrap();
}
