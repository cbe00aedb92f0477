//! Logging in: by every way of the address, and what is said when it does not work.

use iostrata_server::{
    Encryption, HostPort, Purpose, ServerAddress, ServerKey, ServerTarget, Verification,
};
use iostrata_target::{Access, ColumnType, Fold, Op, Order, Target, Trouble};

use super::fixture::{Place, on_each_server, schema, statement};

fn open(address: ServerAddress) -> Result<ServerTarget, String> {
    ServerTarget::open(address, None).map_err(|error| error.to_string())
}

/// Whether the session of this address is encrypted, as the server sees it.
fn is_encrypted(address: ServerAddress) -> bool {
    let target = open(address).unwrap();
    let gives = vec![ColumnType::Varchar(64), ColumnType::Varchar(255)];
    let ops = vec![statement("SHOW SESSION STATUS LIKE 'Ssl_cipher'", gives)];
    let options = iostrata_target::SessionOptions { ops: ops.into(), ..Default::default() };
    let mut session = target.session(&Default::default(), &options).unwrap();
    let mut out = iostrata_target::Rows::new(2);
    session.run(iostrata_target::OpId(0), &[], &mut out).unwrap();
    !out.get(0, 1).text().is_empty()
}

/// The user with its password, as one of the server.
fn user_of(place: &Place, plugin: &str) -> Option<ServerAddress> {
    if plugin == "ed25519" {
        let _ = place.order("INSTALL SONAME 'auth_ed25519'");
    }
    // MySQL's words, MariaDB's, and those of servers that know one way only.
    let mut ways = vec![
        format!("IDENTIFIED WITH {plugin} BY 'se:cr@t'"),
        format!("IDENTIFIED VIA {plugin} USING PASSWORD('se:cr@t')"),
    ];
    if plugin == "mysql_native_password" && place.target.version().numbers < (5, 7, 0) {
        ways.push("IDENTIFIED BY 'se:cr@t'".to_owned());
    }
    for host in ["127.0.0.1", "localhost"] {
        let user = format!("'iostrata_login'@'{host}'");
        let _ = place.order(&format!("DROP USER {user}"));
        let made = |way: &String| place.order(&format!("CREATE USER {user} {way}")).is_ok();
        ways.iter().find(|way| made(way))?;
        place.order(&format!("GRANT ALL ON *.* TO {user}")).unwrap();
    }
    let login = "mysql://iostrata_login:se%3Acr%40t@localhost".parse::<ServerAddress>().unwrap();
    Some(ServerAddress { user: login.user, password: login.password, ..place.address.clone() })
}

#[test]
fn every_way_of_logging_in_that_the_server_has_works() {
    on_each_server("logins", |place| {
        let mut worked = Vec::new();
        for plugin in ["caching_sha2_password", "mysql_native_password", "ed25519"] {
            let Some(address) = user_of(place, plugin) else {
                continue;
            };
            // Without encryption sha2 exchanges keys.
            for encryption in [Encryption::Disabled, Encryption::Preferred] {
                // What the server keeps of earlier logins is forgotten.
                place.order("FLUSH PRIVILEGES").unwrap();
                let encryption = Some(encryption);
                let server_key = ServerKey::Shown;
                match open(ServerAddress { encryption, server_key, ..address.clone() }) {
                    Ok(_) => worked.push(plugin),
                    Err(error) if plugin == "ed25519" => eprintln!("{plugin}: {error}"),
                    Err(error) => panic!("{plugin}, {encryption:?}: {error}"),
                }
            }
            let wrong = "mysql://iostrata_login:other@localhost".parse::<ServerAddress>().unwrap();
            let address = ServerAddress { password: wrong.password, ..address };
            let error = ServerTarget::open(address, None).unwrap_err();
            if plugin != "ed25519" {
                assert_eq!((error.code.as_str(), error.trouble), ("1045", Trouble::NotReady));
                assert!(!error.to_string().contains("other"), "{error}");
            }
        }
        for host in ["127.0.0.1", "localhost"] {
            let _ = place.order(&format!("DROP USER 'iostrata_login'@'{host}'"));
        }
        worked.dedup();
        eprintln!("{}: {worked:?}", place.address);
        assert!(!worked.is_empty(), "no way worked");
    });
}

#[test]
fn encryption_is_used_as_asked() {
    on_each_server("encryption", |place| {
        if place.address.hosts.is_empty() {
            eprintln!("skipped: {} is a socket, which is never encrypted", place.address);
            return;
        }
        let with = |encryption, verification| ServerAddress {
            encryption: Some(encryption),
            verification: Some(verification),
            ..place.address.clone()
        };
        assert!(!is_encrypted(with(Encryption::Disabled, Verification::Host)));
        match open(with(Encryption::Required, Verification::Nothing)) {
            Ok(_) => {
                assert!(is_encrypted(with(Encryption::Required, Verification::Nothing)));
                assert!(is_encrypted(with(Encryption::Preferred, Verification::Host)));
                let error = open(with(Encryption::Required, Verification::Host)).unwrap_err();
                assert!(error.contains("ssl_verify=off"), "{error}");
                // The authority that MySQL makes for itself, where this test may read it.
                let facts = place.target.facts().unwrap();
                let datadir = facts.settings.iter().find(|(name, _)| name == "datadir").unwrap();
                let ca = std::path::Path::new(&datadir.1).join("ca.pem");
                if ca.is_file() {
                    let by_authority = with(Encryption::Required, Verification::Authority);
                    assert!(open(by_authority.clone()).is_err(), "an authority nobody knows");
                    assert!(is_encrypted(ServerAddress { ca: Some(ca), ..by_authority }));
                    eprintln!("{}: verified by its authority", place.address);
                }
            }
            // It offers none, or only what is too old to be safe: plain text where that will do.
            Err(error) => {
                eprintln!("{}: {error}", place.address);
                assert!(!is_encrypted(with(Encryption::Preferred, Verification::Host)));
            }
        }
    });
}

#[test]
fn what_is_wrong_is_said_with_what_would_help() {
    on_each_server("wrong", |place| {
        let address = |database: &str| ServerAddress {
            database: Some(database.to_owned()),
            ..place.address.clone()
        };
        let error = open(address("iostrata_nowhere")).unwrap_err();
        assert!(error.contains("CREATE DATABASE `iostrata_nowhere`"), "{error}");
        let error = ServerTarget::open(place.address.clone(), Some("x; y".to_owned())).unwrap_err();
        assert!(error.to_string().contains("`x; y` is no name of a storage engine"), "{error}");
        let target = ServerTarget::open(place.address.clone(), Some("Rocks".to_owned())).unwrap();
        let error = target.create(&schema(), 0).unwrap_err();
        assert_eq!((error.trouble, error.code.as_str()), (Trouble::NotReady, "1286"), "{error}");
        let access = Access::Scan {
            index: None,
            prefix: 0,
            is_range: false,
            order: Order::Ascending,
            limit: None,
            locks: false,
            columns: vec![0],
            fold: Fold::Rows,
        };
        let ops = vec![Op { name: "all", table: 0, access }];
        let mut session = place.session(&schema(), ops, false).unwrap();
        let error = session.session.run(iostrata_target::OpId(0), &[], &mut session.out);
        let error = error.unwrap_err();
        assert_eq!((error.trouble, error.code.as_str()), (Trouble::NotReady, "1146"), "{error}");
    });
}

#[test]
fn a_host_that_does_not_answer_is_passed_over() {
    on_each_server("hosts", |place| {
        if place.address.hosts.is_empty() {
            eprintln!("skipped: {} has no host", place.address);
            return;
        }
        // A port that nobody listens on: taken and given back.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let dead = HostPort { host: "127.0.0.1".to_owned(), port: Some(free.port()) };
        let hosts = vec![dead.clone(), place.address.hosts[0].clone()];
        let target = ServerTarget::open(ServerAddress { hosts, ..place.address.clone() }, None);
        let target = target.unwrap();
        for _ in 0..4 {
            target.facts().unwrap();
        }
        let alone = ServerAddress { hosts: vec![dead], ..place.address.clone() };
        let error = ServerTarget::open(alone, None).unwrap_err();
        assert_eq!(error.trouble, Trouble::Gone);
        assert!(error.to_string().contains("nobody listens there"), "{error}");
    });
    let address = "mysql://b@/x?socket=/nowhere/socket".parse().unwrap();
    let error = open(address).unwrap_err();
    assert!(error.contains("/nowhere/socket") && error.contains("nobody listens"), "{error}");
}

#[test]
fn a_listener_that_says_nothing_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let address = format!("mysql://b@127.0.0.1:{port}/x?connect_timeout=200ms").parse().unwrap();
    let error = ServerTarget::open(address, None).unwrap_err();
    assert_eq!(error.trouble, Trouble::Gone, "{error}");
}
