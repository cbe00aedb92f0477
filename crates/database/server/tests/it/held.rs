//! Connections that are held: where a server has no other left, where it cuts idle ones, and where
//! it hangs.

use std::process::Command;
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::Duration;

use iostrata_change::{ServerError, Servers};
use iostrata_database::target::{ColumnType, Target, Trouble};
use iostrata_server::private::TestServer;
use iostrata_server::{HeldServer, MySqlServers, ServerAddress, ServerTarget};

use super::fixture::{alone_on_each_server, schema, statement};

const CAPACITY: &str = "innodb_io_capacity";
/// The least that every server takes.
const FEW: u32 = 10;

#[test]
fn who_was_let_in_sets_a_server_that_has_no_connection_left() {
    alone_on_each_server("used_up", |place| {
        let (servers, held) =
            (MySqlServers::knowing(place.address.clone()), HeldServer::of(place.address.clone()));
        let address = place.address.to_string();
        let mut claim = place.target.claim("iostrata_test").unwrap().unwrap();
        let names = [CAPACITY, "max_connections"];
        let before = held.look(&address, &names).unwrap().1;
        servers.set_variable(&address, "max_connections", &FEW.to_string()).unwrap();
        let sessions: Vec<_> =
            (0..=FEW).map_while(|_| place.session(&schema(), Vec::new(), true).ok()).collect();
        let silent = servers.look(&address, &[]);
        assert!(matches!(silent, Err(ServerError::NoAnswer(_))), "{silent:?}");
        held.set_variable(&address, CAPACITY, "350").unwrap();
        assert_eq!(held.look(&address, &[CAPACITY]).unwrap().1[CAPACITY], "350");
        assert_eq!(claim.engine_variables().unwrap()[CAPACITY], "350");
        let refused = held.set_variable(&address, "innodb_speed", "11");
        assert!(matches!(refused, Err(ServerError::Refused(_))), "{refused:?}");
        for (name, value) in before {
            held.set_variable(&address, &name, &value).unwrap();
        }
        drop(sessions);
    });
}

#[test]
fn a_held_connection_outlives_a_short_wait_and_a_cut_one_is_made_anew() {
    alone_on_each_server("waits", |place| {
        let (servers, held) =
            (MySqlServers::knowing(place.address.clone()), HeldServer::of(place.address.clone()));
        let address = place.address.to_string();
        let wait = servers.look(&address, &["wait_timeout"]).unwrap().1["wait_timeout"].clone();
        // Long enough for a busy machine to connect in.
        servers.set_variable(&address, "wait_timeout", "3").unwrap();
        let mut claim = place.target.claim("iostrata_test").unwrap().unwrap();
        let mut sampler = place.target.sampler().unwrap().unwrap();
        held.look(&address, &[]).unwrap();
        // After them one that nothing keeps.
        let number = || vec![ColumnType::Int { bytes: 8 }];
        let own = vec![statement("SELECT CONNECTION_ID()", number())];
        let mut idle = place.session(&schema(), own, true).unwrap();
        let id = idle.rows(0, &[])[0].clone();
        let sql = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
        let is_there = || {
            let count = vec![statement(&sql, number())];
            place.session(&schema(), count, true).unwrap().rows(0, &[]) == ["1"]
        };
        assert!(is_there());
        let is_cut = |_| {
            sleep(Duration::from_millis(200));
            !is_there()
        };
        assert!((0..150).any(is_cut), "the server cuts idle connections");
        servers.set_variable(&address, "wait_timeout", &wait).unwrap();
        assert!(claim.holds().unwrap());
        sampler.sample().unwrap();
        let sql = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND \
                   db IS NULL AND command = 'Sleep'";
        let ops = vec![statement(sql, vec![ColumnType::Int { bytes: 8 }])];
        let held_by_server = place.session(&schema(), ops, true).unwrap().rows(0, &[]);
        // Settings belong to no database, so the connection to them names none.
        assert_eq!(held_by_server.len(), 1, "{held_by_server:?}");
        place.order(&format!("KILL {}", held_by_server[0])).unwrap();
        held.look(&address, &[]).unwrap();
    });
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let Some(server) = TestServer::start().unwrap() else {
        eprintln!("skipped: mariadbd is not installed");
        return;
    };
    let address = ServerAddress { connect_timeout: Duration::from_secs(1), ..server.address() };
    let target = ServerTarget::open(address, None).unwrap();
    let pid = server.process().unwrap().pid.to_string();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    let (tell, told) = channel();
    spawn(move || {
        let told = [target.facts().err(), target.grants().err()];
        // The receiver is gone if the time is over.
        let _ = tell.send(told.map(|error| error.map(|error| error.trouble)));
    });
    let told = told.recv_timeout(Duration::from_secs(60));
    signal("-CONT");
    assert_eq!(told.unwrap(), [Some(Trouble::Gone); 2]);
}
