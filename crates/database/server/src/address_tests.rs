//! Addresses: what is read, what is refused, and what is printed.

use super::*;

fn read(text: &str) -> ServerAddress {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_part_is_read() {
    let address =
        read("mysql://b%40x:p:w%2F1@h1:3307,h2,[::1]:3308/tp%20cc?ssl=required&ssl-verify=off");
    assert_eq!(address.user.as_deref(), Some("b@x"));
    assert_eq!(address.password, Some(Password("p:w/1".to_owned())));
    assert_eq!(address.database.as_deref(), Some("tp cc"));
    assert_eq!(
        (address.encryption, address.verification),
        (Encryption::Required, Verification::Nothing)
    );
    let hosts: Vec<String> = address.hosts.iter().map(HostPort::to_string).collect();
    assert_eq!(hosts, ["h1:3307", "h2:3306", "[::1]:3308"]);
}

#[test]
fn passwords_may_hold_what_they_like_before_the_last_at() {
    let address = read("mysql://bench:hun@t/er:2@db/tpcc");
    assert_eq!(address.password, Some(Password("hun@t/er:2".to_owned())));
    assert_eq!(address.hosts, [HostPort { host: "db".to_owned(), port: None }]);
    assert_eq!(read("mysql://b:@db").password, Some(Password(String::new())));
    assert_eq!(read("mysql://b@db").password, None);
}

#[test]
fn a_socket_needs_no_host() {
    assert!(read("mysql://root@localhost:3306/test?socket=/run/s").hosts.is_empty());
    let address =
        read("mysql://root@/test?socket=/run/a%20b.sock&connect_timeout=3&read_timeout=1m");
    assert!(address.hosts.is_empty());
    assert_eq!(address.socket, Some("/run/a b.sock".into()));
    assert_eq!(address.connect_timeout, Duration::from_secs(3));
    assert_eq!(address.read_timeout, Some(Duration::from_secs(60)));
}

#[test]
fn no_password_is_ever_printed() {
    for text in ["mysql://b:hunter2@db/x", "mysql://b@db/x?password=hunter2", "mysql://b:hunter2@/"]
    {
        let address = read(text);
        assert!(address.password.is_some(), "{text}");
        for printed in [address.to_string(), format!("{address:?}")] {
            assert!(!printed.contains("hunter2"), "{printed}");
        }
    }
    for text in ["mysq://b:hunter2@db", "mysql://b:hunter2@db:0", "mysql://b:hunter2@db?x=hunter2"]
    {
        let error = text.parse::<ServerAddress>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn what_is_printed_names_the_same_servers() {
    for text in [
        "mysql://b@h1:3306,h2:3307/tpcc",
        "mysql://b%40x@[::1]:3306/a%2Fb",
        "mysql:///db?socket=/run/a%20%26b/s",
        "mysql://h:1/db?ssl=required&ssl_ca=/etc/ca.pem&ssl_verify=ca",
        "mysql://h:1?ssl=required&ssl_verify=off&dialect=least",
    ] {
        let address = read(text);
        assert_eq!(read(&address.to_string()), address, "{address}");
    }
    assert_eq!(read("mysql://b:pw@db/x").to_string(), "mysql://b@db:3306/x");
}

#[test]
fn bad_addresses_name_what_is_wrong() {
    for (text, part) in [
        ("postgres://db", "begins with mysql://"),
        ("db:3306", "`db`"),
        ("mysql://db:port", "port `port` of host db"),
        ("mysql://db:0", "port `0`"),
        ("mysql://db:70000", "70000"),
        ("mysql://::1:3306/x", "brackets"),
        ("mysql://[::1/x", "one bracket"),
        ("mysql://a,,b/x", "beside a comma"),
        ("mysql://a/x?sockt=/s", "unknown parameter `sockt`"),
        ("mysql://a/x?ssl=yes", "ssl=yes"),
        ("mysql://a/x?connect_timeout=soon", "a duration such as 10s"),
        ("mysql://a?dialect=oracle", "own or least"),
        ("mysql://a/%ff", "the database"),
        ("mysql://a,b/x?socket=/s", "2 hosts"),
    ] {
        let error = text.parse::<ServerAddress>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn loopback_and_sockets_are_this_host() {
    for local in [
        "mysql://b@127.0.0.1:3306/x",
        "mysql://b@[::1]/x",
        "mysql://b@Localhost/x",
        "mysql://b@/x?socket=/run/s",
    ] {
        assert!(read(local).is_local(), "{local}");
    }
    for other in ["mysql://b@10.0.0.7/x", "mysql://b@127.0.0.1,10.0.0.7/x", "mysql://db.local/x"] {
        assert!(!read(other).is_local(), "{other}");
    }
}
