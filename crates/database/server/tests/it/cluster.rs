//! A cluster of three nodes, one of which is killed.

use std::path::Path;
use std::time::Duration;

use iostrata_server::private::galera_provider;
use iostrata_server::private::{ClusterPlan, PrivateCluster, PrivateError, ServerProgram};

use crate::fleet::{Place, ask, try_ask};

/// Waits until a node returns `wanted`; the last answer otherwise. A node that joins another one
/// turns clients away for a while.
fn wait(socket: &Path, statement: &str, wanted: &str) -> Result<(), String> {
    let mut last = String::new();
    for _ in 0..200 {
        match try_ask(socket, statement).unwrap() {
            Ok(answer) if answer == wanted => return Ok(()),
            Ok(other) | Err(other) => last = other,
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(last)
}

const SIZE: &str = "SHOW STATUS LIKE 'wsrep_cluster_size'";
const READY: &str = "SHOW STATUS LIKE 'wsrep_ready'";
const ROWS: &str = "SET SESSION wsrep_sync_wait = 15; SELECT COUNT(*) FROM shop.t";

#[test]
fn two_nodes_go_on_when_one_of_three_is_killed() {
    let test = "two_nodes_go_on_when_one_of_three_is_killed";
    let Ok(program) = ServerProgram::find("mariadbd") else {
        eprintln!("skipped: {test}: mariadbd is not installed");
        return;
    };
    let place = Place::new();
    let mut session = place.session();
    let options = vec!["--innodb-buffer-pool-size=32M".to_owned()];
    let plan = ClusterPlan { program, dir: place.path("c"), nodes: 3, options };
    if galera_provider().is_none() {
        let refused = PrivateCluster::start(&mut session, &plan).unwrap_err();
        assert!(matches!(refused, PrivateError::NoGalera { .. }), "{refused}");
        eprintln!("skipped: {test}: /usr/lib/galera/libgalera_smm.so is not installed");
        return;
    }
    let mut cluster = PrivateCluster::start(&mut session, &plan).unwrap();
    let sockets: Vec<_> = cluster.nodes().iter().map(|node| node.socket()).collect();
    if ask(&sockets[0], "SELECT 1").is_none() {
        return;
    }
    for socket in &sockets {
        wait(socket, SIZE, "wsrep_cluster_size\t3").unwrap();
        wait(socket, READY, "wsrep_ready\tON").unwrap();
    }
    let table = "CREATE DATABASE shop; CREATE TABLE shop.t (a INT PRIMARY KEY) ENGINE=InnoDB";
    ask(&sockets[0], table).unwrap();
    for (number, socket) in sockets.iter().enumerate() {
        ask(socket, &format!("INSERT INTO shop.t VALUES ({number})")).unwrap();
    }
    for socket in &sockets {
        assert_eq!(ask(socket, ROWS).unwrap(), "3");
    }
    cluster.nodes()[1].kill(&session).unwrap();
    for socket in [&sockets[0], &sockets[2]] {
        wait(socket, SIZE, "wsrep_cluster_size\t2").unwrap();
        wait(socket, READY, "wsrep_ready\tON").unwrap();
    }
    ask(&sockets[2], "INSERT INTO shop.t VALUES (3)").unwrap();
    assert_eq!(ask(&sockets[0], ROWS).unwrap(), "4");
    // One that is shut down comes back with what it has missed.
    cluster.nodes_mut()[2].stop(&mut session).unwrap();
    wait(&sockets[0], SIZE, "wsrep_cluster_size\t1").unwrap();
    ask(&sockets[0], "INSERT INTO shop.t VALUES (4)").unwrap();
    cluster.nodes_mut()[2].run(&mut session, &[]).unwrap();
    wait(&sockets[2], READY, "wsrep_ready\tON").unwrap();
    wait(&sockets[2], SIZE, "wsrep_cluster_size\t2").unwrap();
    assert_eq!(ask(&sockets[2], ROWS).unwrap(), "5");
    let processes: Vec<_> =
        cluster.nodes().iter().map(|node| node.process().unwrap().clone()).collect();
    cluster.remove(&mut session).unwrap();
    assert!(processes.iter().all(|process| !process.is_alive()));
    place.assert_empty("the cluster was removed");
}
