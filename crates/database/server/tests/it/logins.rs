//! Logging in: by every form of the address, and the messages when it does not work.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use iostrata_database::target::{Access, ColumnType, Fold, Op, Order, Target, Trouble};
use iostrata_server::{
    Encryption, HostPort, Purpose, ServerAddress, ServerKey, ServerTarget, Verification, plain_text,
};

use super::fixture::{Place, alone_on_each_server, on_each_server, schema, statement};
use super::listener::{Answer, Listener};

fn open(address: ServerAddress) -> Result<ServerTarget, String> {
    ServerTarget::open(address, None).map_err(|error| error.to_string())
}

/// Whether the session of this address is encrypted, as the server sees it.
fn is_encrypted(address: ServerAddress) -> bool {
    let target = open(address).unwrap();
    let gives = vec![ColumnType::Varchar(64), ColumnType::Varchar(255)];
    let ops = vec![statement("SHOW SESSION STATUS LIKE 'Ssl_cipher'", gives)];
    let options =
        iostrata_database::target::SessionOptions { ops: ops.into(), ..Default::default() };
    let mut session = target.session(&Default::default(), &options).unwrap();
    let mut out = iostrata_database::target::Rows::new(2);
    session.run(iostrata_database::target::OpId(0), &[], &mut out).unwrap();
    !out.get(0, 1).text().is_empty()
}

/// The user with its password, as one of the server.
fn user_of(place: &Place, plugin: &str, name: &str) -> Option<ServerAddress> {
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
        let user = format!("'{name}'@'{host}'");
        let _ = place.order(&format!("DROP USER {user}"));
        let made = |way: &String| place.order(&format!("CREATE USER {user} {way}")).is_ok();
        ways.iter().find(|way| made(way))?;
        place.order(&format!("GRANT ALL ON *.* TO {user}")).unwrap();
    }
    let login = format!("mysql://{name}:se%3Acr%40t@localhost");
    let login = login.parse::<ServerAddress>().unwrap();
    Some(ServerAddress { user: login.user, password: login.password, ..place.address.clone() })
}

#[test]
fn every_way_of_logging_in_that_the_server_has_works() {
    on_each_server("logins", |place| {
        let mut worked = Vec::new();
        for plugin in ["caching_sha2_password", "mysql_native_password", "ed25519"] {
            let Some(address) = user_of(place, plugin, "iostrata_login") else {
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
                if let Some(ca) = data_file(place, "ca.pem") {
                    let by_authority = with(Encryption::Required, Verification::Authority);
                    assert!(open(by_authority.clone()).is_err(), "an unknown authority");
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
fn the_purpose_decides_on_encryption_where_nothing_is_said() {
    on_each_server("purposes", |place| {
        if place.address.hosts.is_empty() {
            return;
        }
        let with = |encryption: Option<Encryption>, purpose| {
            let verification = encryption.map(|_| Verification::Nothing);
            ServerAddress { encryption, verification, purpose, ..place.address.clone() }
        };
        let has_tls = open(with(Some(Encryption::Required), Purpose::Administration)).is_ok();
        assert_eq!(is_encrypted(with(None, Purpose::Administration)), has_tls);
        assert!(!is_encrypted(with(None, Purpose::Load)));
    });
}

/// A file of the server's data directory, where this test may read it.
fn data_file(place: &Place, name: &str) -> Option<PathBuf> {
    let facts = place.target.facts().unwrap();
    let datadir = facts.settings.iter().find(|(name, _)| name.as_str() == "datadir").unwrap();
    Some(Path::new(&datadir.1).join(name)).filter(|path| std::fs::File::open(path).is_ok())
}

#[test]
fn who_needs_a_certificate_logs_in_by_one() {
    on_each_server("certificates", |place| {
        let files = ["ca.pem", "client-cert.pem", "client-key.pem"];
        let [Some(ca), Some(certificate), Some(key)] = files.map(|name| data_file(place, name))
        else {
            eprintln!("skipped: {} has made no certificates", place.address);
            return;
        };
        let user = "'iostrata_x509'@'127.0.0.1'";
        let _ = place.order(&format!("DROP USER {user}"));
        place.order(&format!("CREATE USER {user} IDENTIFIED BY 'x' REQUIRE X509")).unwrap();
        place.order(&format!("GRANT ALL ON *.* TO {user}")).unwrap();
        let login = "mysql://iostrata_x509:x@localhost?ssl=required&ssl_verify=ca";
        let login = login.parse::<ServerAddress>().unwrap();
        let hosts = place.address.hosts.clone();
        let bare = ServerAddress { hosts, ca: Some(ca), ..login };
        let error = ServerTarget::open(bare.clone(), None).unwrap_err();
        assert!(error.code == "1045" && error.to_string().contains("ssl_cert"), "{error}");
        let shown = |certificate: &Path, key: &Path| ServerAddress {
            certificate: Some(certificate.to_owned()),
            certificate_key: Some(key.to_owned()),
            ..bare.clone()
        };
        assert!(is_encrypted(shown(&certificate, &key)));
        let gone = Path::new("/nowhere/key.pem");
        for encryption in [Encryption::Required, Encryption::Preferred] {
            let encryption = Some(encryption);
            let address = ServerAddress { encryption, ..shown(&certificate, gone) };
            let error = ServerTarget::open(address, None).unwrap_err();
            assert!(error.to_string().contains("cannot read ssl_key=/nowhere/key.pem"), "{error}");
        }
        place.order(&format!("DROP USER {user}")).unwrap();
    });
}

#[test]
fn a_key_of_the_server_is_pinned_shown_on_request_or_not_taken() {
    on_each_server("keys", |place| {
        let Some(address) = user_of(place, "caching_sha2_password", "iostrata_key") else {
            eprintln!("skipped: {} has no caching_sha2_password", place.address);
            return;
        };
        if place.address.hosts.is_empty() {
            return;
        }
        let login = |server_key, purpose| {
            // What the server keeps of earlier logins is forgotten.
            place.order("FLUSH PRIVILEGES").unwrap();
            let encryption = Some(Encryption::Disabled);
            let address = ServerAddress { encryption, server_key, purpose, ..address.clone() };
            ServerTarget::open(address, None).map(drop)
        };
        use Purpose::*;
        for purpose in [Administration, Load] {
            let error = login(ServerKey::Nothing, purpose).unwrap_err();
            assert_eq!((error.code.as_str(), error.trouble), ("auth", Trouble::NotReady));
            login(ServerKey::Shown, purpose).unwrap();
        }
        assert_eq!(login(ServerKey::AsPurpose, Administration).unwrap_err().code, "auth");
        login(ServerKey::AsPurpose, Load).unwrap();
        if let Some(own) = data_file(place, "public_key.pem") {
            login(ServerKey::Pinned(own), Administration).unwrap();
            eprintln!("{}: logged in by its pinned key", place.address);
        }
        if let Some(other) = data_file(place, "ca.pem") {
            let error = login(ServerKey::Pinned(other), Administration).unwrap_err();
            assert!(error.to_string().contains("no public key in PEM"), "{error}");
        }
        for host in ["127.0.0.1", "localhost"] {
            place.order(&format!("DROP USER 'iostrata_key'@'{host}'")).unwrap();
        }
    });
}

#[test]
fn a_server_that_takes_encrypted_connections_only_says_so_with_the_fix() {
    alone_on_each_server("secure", |place| {
        let order = |value| place.order(&format!("SET GLOBAL require_secure_transport = {value}"));
        let with = |encryption| ServerAddress { encryption, ..place.address.clone() };
        // MariaDB insists on it also where it has none, and reports no more than 1045.
        let verification = Some(Verification::Nothing);
        let encrypted = ServerAddress { verification, ..with(Some(Encryption::Required)) };
        if place.address.hosts.is_empty() || open(encrypted).is_err() || order("ON").is_err() {
            eprintln!("skipped: {} cannot insist on encryption", place.address);
            return;
        }
        let (plain, preferred) = (open(with(Some(Encryption::Disabled))), open(with(None)));
        order("OFF").unwrap();
        assert!(plain.unwrap_err().ends_with("use ?ssl=required"));
        preferred.unwrap();
    });
}

/// An address of the listener.
fn at(listener: &Listener, parameters: &str) -> ServerAddress {
    let address = format!("mysql://b:S3cret-prod@127.0.0.1:{}/x{parameters}", listener.port);
    address.parse().unwrap()
}

#[test]
fn a_listener_gets_no_more_than_the_scramble() {
    for parameters in ["", "?ssl=disabled", "?get_server_public_key=off"] {
        let listener = Listener::start(Answer::WholePassword(b"no key".to_vec()));
        let address = at(&listener, parameters);
        let error = ServerTarget::open(address, None).unwrap_err();
        assert_eq!((error.code.as_str(), error.trouble), ("auth", Trouble::NotReady), "{error}");
        let fixes = ["ssl=required", "get_server_public_key=on", "server_public_key=FILE"];
        let words = error.to_string();
        assert!(fixes.iter().all(|fix| words.contains(fix)), "{words}");
        assert!(!words.contains("S3cret"), "{words}");
        let packets = listener.packets();
        assert_eq!(packets.len(), 1, "it is not asked for its key: {packets:?}");
        assert!(!String::from_utf8_lossy(&packets[0]).contains("S3cret"), "{packets:?}");
    }
    let missing = "?server_public_key=/nowhere/key.pem";
    let listener = Listener::start(Answer::WholePassword(Vec::new()));
    let error = open(at(&listener, missing)).unwrap_err();
    assert!(error.contains("cannot read server_public_key=/nowhere/key.pem"), "{error}");
}

#[test]
fn a_listener_is_asked_for_its_key_on_request_and_by_loads() {
    for (parameters, purpose) in
        [("?get_server_public_key=on", Purpose::Administration), ("", Purpose::Load)]
    {
        let listener = Listener::start(Answer::WholePassword(b"no key".to_vec()));
        let address = ServerAddress { purpose, ..at(&listener, parameters) };
        let error = open(address).unwrap_err();
        assert!(error.contains("cannot use"), "{error}");
        assert_eq!(listener.packets()[1..], [[2]], "{parameters}");
    }
}

#[test]
fn texts_of_a_listener_steer_no_terminal() {
    let evil = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J\r";
    for answer in [Answer::Error(evil.to_owned()), Answer::Plugin(evil.to_owned())] {
        let listener = Listener::start(answer.clone());
        let error = open(at(&listener, "")).unwrap_err();
        assert!(error.contains("\\u{1b}[31mred"), "{error:?}");
        assert!(!error.contains(char::is_control), "{answer:?}: {error:?}");
    }
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
        let error = session.session.run(iostrata_database::target::OpId(0), &[], &mut session.out);
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
        // A port that nothing listens on: taken and given back.
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
        assert!(error.to_string().contains("nothing listens there"), "{error}");
    });
    let address = "mysql://b@/x?socket=/nowhere/socket".parse().unwrap();
    let error = open(address).unwrap_err();
    assert!(error.contains("/nowhere/socket") && error.contains("nothing listens"), "{error}");
}

#[test]
fn a_listener_that_says_nothing_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let address = format!("mysql://b@127.0.0.1:{port}/x?connect_timeout=200ms").parse().unwrap();
    let error = ServerTarget::open(address, None).unwrap_err();
    assert_eq!(error.trouble, Trouble::Gone, "{error}");
}

#[test]
fn plain_text_to_another_host_is_noted_once() {
    static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    plain_text::tell(|note| NOTES.lock().unwrap().push(note.to_owned()));
    on_each_server("notes", |place| {
        let with = |encryption| ServerAddress {
            encryption,
            verification: Some(Verification::Nothing),
            ..place.address.clone()
        };
        if place.address.hosts.is_empty() || open(with(Some(Encryption::Required))).is_ok() {
            eprintln!("skipped: {} is encrypted, or a socket", place.address);
            return;
        }
        // The same host, by a name that is not known to be this one.
        let hosts = vec![HostPort { host: "127.1".to_owned(), ..place.address.hosts[0].clone() }];
        let far = |encryption| ServerAddress { hosts: hosts.clone(), ..with(encryption) };
        open(far(Some(Encryption::Disabled))).unwrap();
        let notes = || {
            let notes = NOTES.lock().unwrap();
            let here = hosts[0].to_string();
            notes.iter().filter(|note| note.contains(&here)).cloned().collect::<Vec<_>>()
        };
        assert_eq!(notes(), [""; 0], "it was asked for");
        for _ in 0..2 {
            open(far(None)).unwrap();
        }
        assert!(matches!(&notes()[..], [note] if note.contains("in plain text")), "{:?}", notes());
    });
}
