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
        (Some(Encryption::Required), Some(Verification::Nothing))
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
        "mysql://h:1?ssl=disabled&ssl_verify=on&get_server_public_key=off",
        "mysql://h:1?ssl_cert=/a%26/c.pem&ssl_key=/k.pem&group=a%20b",
        "mysql://h:1?server_public_key=/etc/key.pem",
        "mysql://h:1?get_server_public_key=on",
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
        ("mysql://db:port", "port of host 1"),
        ("mysql://a,db:0", "port of host 2"),
        ("mysql://db:70000", "1 to 65535"),
        ("mysql://::1:3306/x", "brackets"),
        ("mysql://[::1/x", "one bracket"),
        ("mysql://a,,b/x", "next to a comma"),
        ("mysql://a/x?sockt=/s", "parameter 1 behind the ? of the address is unknown"),
        ("mysql://a/x?ssl=yes", "ssl in the address takes required, preferred or disabled"),
        ("mysql://a/x?connect_timeout=soon", "a duration such as 10s"),
        ("mysql://a?dialect=oracle", "own or least"),
        ("mysql://a/%ff", "the database"),
        ("mysql://a,b/x?socket=/s", "2 hosts"),
        ("mysql://a?get_server_public_key=yes", "on or off"),
        ("mysql://a?login_path=prod", "group=NAME"),
        ("mysql://b:se?cret@h", "written as %3F"),
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

#[test]
fn no_error_quotes_what_may_be_of_a_password() {
    for text in [
        "mysql://b:se?hunter2=1@host",
        "mysql://b:se?ssl=hunter2@host",
        "mysql://b:1?hunter2#@host/x",
        "mysql://b:hunter2",
        "mysql://b:se?hunter2",
        "mysql://b@x:hunter2:x@",
        "mysql://b@host?password=x&hunter2",
        "mysql://b@host?password=x&ssl=hunter2",
        "mysql://b@host?password=x&dialect=hunter2",
        "mysql://b@host?password=x&connect_timeout=hunter2",
        "mysql://b:x@,hunter2",
        "mysql://b:x@[hunter2",
        "mysql://b:x@hunter2:2:2",
    ] {
        let Err(error) = text.parse::<ServerAddress>() else {
            continue;
        };
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}: {error}");
    }
    let error = "mysql://b:se?cret=hunter2@host".parse::<ServerAddress>().unwrap_err();
    assert_eq!(error, AddressError::Cut);
    // Nothing begins with `#`, so that a password may hold it.
    assert_eq!(read("mysql://b:se#cret@host").password, Some(Password("se#cret".to_owned())));
}

#[test]
fn what_is_said_decides_on_encryption_and_the_purpose_where_nothing_is() {
    use Encryption::*;
    for (text, administration, load) in [
        ("mysql://h", Preferred, Disabled),
        ("mysql://h?ssl=disabled", Disabled, Disabled),
        ("mysql://h?ssl=preferred&ssl_ca=/ca", Preferred, Preferred),
        ("mysql://h?ssl=required", Required, Required),
        ("mysql://h?ssl_verify=ca", Required, Required),
        ("mysql://h?ssl_verify=off", Preferred, Disabled),
        ("mysql://h?ssl_ca=/ca.pem", Required, Required),
        ("mysql://h?ssl_cert=/both.pem", Required, Required),
    ] {
        let address = read(text);
        assert_eq!(address.encryption_in_use(), administration, "{text}");
        let address = ServerAddress { purpose: Purpose::Load, ..address };
        assert_eq!(address.encryption_in_use(), load, "{text}");
    }
}

#[test]
fn a_servers_key_is_taken_on_request_and_by_loads_on_this_host() {
    for (text, administration, load) in [
        ("mysql://127.0.0.1", false, true),
        ("mysql://db1", false, false),
        ("mysql://db1?get_server_public_key=on", true, true),
        ("mysql://127.0.0.1?get_server_public_key=off", false, false),
        ("mysql://127.0.0.1?server_public_key=/key.pem", false, false),
    ] {
        let address = read(text);
        assert_eq!(address.takes_key_of(&address.hosts[0]), administration, "{text}");
        let address = ServerAddress { purpose: Purpose::Load, ..address };
        assert_eq!(address.takes_key_of(&address.hosts[0]), load, "{text}");
    }
}
