//! Option files and what they leave to addresses.

use super::*;

const FILE: &str = "
# of the user
[mysqld]
user = mysql
[client]
user=\"bench\"   # who
password = 'hun#ter\\\\2'
port=3307
socket = /run/a\\sb.sock
[mysqldump]
password=other
";

fn options(text: &str) -> Result<ClientOptions, CredentialsError> {
    grouped(text, "", None)
}

fn grouped(
    text: &str,
    suffix: &str,
    group: Option<&str>,
) -> Result<ClientOptions, CredentialsError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("my.cnf");
    fs::write(&path, text.replace("DIR", &dir.path().display().to_string())).unwrap();
    fs::create_dir(dir.path().join("more")).unwrap();
    for (name, text) in [
        ("more/b.cnf", "[client]\nuser=of_b\nport=2"),
        ("more/a.cnf", "[client]\nuser=of_a\nhost=h"),
        ("more/not.txt", "[client]\nuser=other"),
        ("self.cnf", "!include DIR/self.cnf"),
    ] {
        let text = text.replace("DIR", &dir.path().display().to_string());
        fs::write(dir.path().join(name), text).unwrap();
    }
    ClientOptions::read(Some(&path), Some(suffix.to_owned()), group)
}

fn filled(address: &str, text: &str, password: Option<&str>) -> ServerAddress {
    let around =
        Surroundings { password: password.map(str::to_owned), user: Some("somebody".to_owned()) };
    completed(address.parse().unwrap(), options(text).unwrap(), around)
}

fn password(address: &ServerAddress) -> Option<&str> {
    address.password.as_ref().map(|password| password.0.as_str())
}

#[test]
fn option_files_are_read_as_the_servers_own_programs_do() {
    let read = options(FILE).unwrap();
    assert_eq!(read.user.as_deref(), Some("bench"));
    assert_eq!(read.password, Some(Password("hun#ter\\2".to_owned())));
    assert_eq!(read.port, Some(3307));
    assert_eq!(read.socket, Some("/run/a b.sock".into()));
    let error = options("[client]\nport=http").unwrap_err().to_string();
    assert!(error.contains("my.cnf:2: port = http: use a number from 1 to 65535"), "{error}");
}

#[test]
fn what_is_said_first_counts() {
    let all = filled("mysql://me:mine@db/x", FILE, Some("env"));
    assert_eq!((all.user.as_deref(), password(&all)), (Some("me"), Some("mine")));
    assert_eq!(all.socket, None);
    let file = filled("mysql:///x", FILE, Some("env"));
    assert_eq!((file.user.as_deref(), password(&file)), (Some("bench"), Some("hun#ter\\2")));
    assert_eq!(file.socket, Some("/run/a b.sock".into()));
    let environment = filled("mysql://db", "", Some("env"));
    assert_eq!(environment.user.as_deref(), Some("somebody"));
    assert_eq!(password(&environment), Some("env"));
    let nothing = completed("mysql://".parse().unwrap(), Default::default(), Default::default());
    assert_eq!(nothing.to_string(), "mysql://root@127.0.0.1:3306");
}

#[test]
fn a_host_of_the_file_counts_before_its_socket() {
    let far = "[client]\nhost=db1\nport=3310\nsocket=/run/s\n";
    assert_eq!(filled("mysql:///x", far, None).to_string(), "mysql://somebody@db1:3310/x");
    let near = "[client]\nhost=localhost\nsocket=/run/s\n";
    assert_eq!(filled("mysql:///x", near, None).socket, Some("/run/s".into()));
}

#[test]
fn encryption_is_what_the_clients_make_of_the_file() {
    use Encryption::*;
    use Verification::*;
    for (text, encryption, verification) in [
        ("", None, None),
        ("ssl-mode=disabled", Some(Disabled), None),
        ("ssl_mode = PREFERRED", Some(Preferred), None),
        ("ssl-mode=REQUIRED", Some(Required), Some(Nothing)),
        ("ssl-mode=VERIFY_CA\nssl-ca=/ca", Some(Required), Some(Authority)),
        ("ssl-mode=REQUIRED\nssl-ca=/ca", Some(Required), Some(Nothing)),
        ("ssl-ca=/ca", Some(Required), Some(Authority)),
        ("loose-ssl-mode='VERIFY_IDENTITY' # all", Some(Required), Some(Host)),
        ("ssl", Some(Required), Some(Nothing)),
        ("ssl=1", Some(Required), Some(Nothing)),
        ("ssl=0\nssl-ca=/ca", Some(Disabled), None),
        ("skip-ssl", Some(Disabled), None),
        ("disable_ssl", Some(Disabled), None),
        ("enable-ssl", Some(Required), Some(Nothing)),
        ("ssl-verify-server-cert", Some(Required), Some(Host)),
        ("ssl\nssl-verify-server-cert=ON", Some(Required), Some(Host)),
        ("skip-ssl-verify-server-cert", None, Some(Nothing)),
    ] {
        let read = options(&format!("[client]\n{text}\n")).unwrap();
        assert_eq!((read.encryption, read.verification), (encryption, verification), "{text}");
    }
}

#[test]
fn the_address_counts_before_what_the_file_says_of_encryption() {
    use Encryption::*;
    use Verification::*;
    let strict = "[client]\nssl-mode=VERIFY_IDENTITY\nssl-ca=/ca\nssl-cert=/c\nssl-key=/k\n";
    for (address, file, encryption, verification) in [
        ("mysql://h", strict, Required, Some(Host)),
        ("mysql://h?ssl=preferred", strict, Preferred, None),
        ("mysql://h?ssl_verify=off", strict, Required, Some(Nothing)),
        ("mysql://h?ssl=required", "[client]\nssl-mode=REQUIRED", Required, None),
        ("mysql://h?ssl_verify=on", "[client]\nskip-ssl", Required, Some(Host)),
        ("mysql://h?ssl_ca=/x", "[client]\nssl-mode=REQUIRED", Required, None),
        ("mysql://h?ssl_ca=/x", "[client]\nssl-mode=VERIFY_CA", Required, Some(Authority)),
        ("mysql://h", "[client]\nskip-ssl", Disabled, None),
    ] {
        let filled = filled(address, file, None);
        let found = (filled.encryption_in_use(), filled.verification);
        assert_eq!(found, (encryption, verification), "{address} {file}");
    }
    let all = filled("mysql://h", strict, None);
    let files = [&all.ca, &all.certificate, &all.certificate_key];
    assert_eq!(files.map(|file| file.as_deref()), ["/ca", "/c", "/k"].map(|p| Some(Path::new(p))));
}

#[test]
fn keys_of_servers_are_taken_as_the_file_says() {
    for (text, key) in [
        ("get-server-public-key", ServerKey::Shown),
        ("get_server_public_key=0", ServerKey::Nothing),
        ("server-public-key-path=/k\nget-server-public-key=1", ServerKey::Pinned("/k".into())),
    ] {
        assert_eq!(options(&format!("[client]\n{text}")).unwrap().server_key, key, "{text}");
    }
    let file = "[client]\nget-server-public-key\n";
    let address = filled("mysql://h?get_server_public_key=off", file, None);
    assert_eq!(address.server_key, ServerKey::Nothing);
}

#[test]
fn what_concerns_security_and_is_not_understood_is_refused_by_its_line() {
    for name in ["ssl-crl", "ssl_capath", "ssl-cipher", "tls-version", "ssl-fp", "login-path"] {
        let error = options(&format!("[client]\nuser=b\n{name}=x\n")).unwrap_err().to_string();
        let named = name.replace('_', "-");
        assert!(error.contains(&format!("my.cnf:3: {named} is not understood")), "{error}");
    }
    for ignored in
        ["loose-ssl-crl=x", "max_allowed_packet=16M", "default-character-set=utf8mb4", "no-beep"]
    {
        assert_eq!(options(&format!("[client]\n{ignored}")).unwrap(), ClientOptions::default());
    }
    // Sections of others are theirs.
    assert!(options("[mysqld]\nssl-crl=x\ntls-version=y\n[mysql]\nssl-cipher=z\n").is_ok());
    for (text, fix) in [("ssl-mode=ON", "VERIFY_CA"), ("ssl=maybe", "use 1 or 0")] {
        let error = options(&format!("[client]\n{text}")).unwrap_err().to_string();
        assert!(error.contains("my.cnf:2: ") && error.contains(fix), "{error}");
    }
}

#[test]
fn files_that_are_included_are_read_in_their_place() {
    let read = options("[client]\nuser=first\n!include DIR/more/a.cnf\nport=7\n").unwrap();
    assert_eq!((read.user.as_deref(), read.host.as_deref()), (Some("of_a"), Some("h")));
    assert_eq!(read.port, Some(7), "the section goes on behind the include");
    let read = options("!includedir DIR/more\n[client]\nhost=own\n").unwrap();
    assert_eq!((read.user.as_deref(), read.host.as_deref()), (Some("of_b"), Some("own")));
    assert_eq!(read.port, Some(2));
    let error = options("!include DIR/self.cnf").unwrap_err();
    assert!(matches!(error, CredentialsError::Deep { .. }), "{error}");
    for missing in ["!include DIR/gone.cnf", "!includedir DIR/gone"] {
        let error = options(missing).unwrap_err();
        assert!(matches!(error, CredentialsError::Read { .. }), "{error}");
    }
}

#[test]
fn sections_with_a_suffix_and_the_section_of_the_address_are_read() {
    let text = "[client.db1]\nuser=one\nhost=db1\n[client]\nuser=all\npassword=p\nsocket=/s\n\
                [client_x]\nuser=x\n[client.db2]\nuser=two\nssl-mode=REQUIRED\n";
    let user = |suffix, group| grouped(text, suffix, group).unwrap().user.unwrap();
    assert_eq!(user("", None), "all");
    assert_eq!(user("_x", None), "x");
    assert_eq!(user("_y", None), "all");
    assert_eq!(user("", Some("db1")), "one", "also where it comes first");
    assert_eq!(user("_x", Some("db2")), "two");
    let two = grouped(text, "", Some("db2")).unwrap();
    assert_eq!(two.password, Some(Password("p".to_owned())));
    assert_eq!(two.encryption, Some(Encryption::Required));
    let error = grouped(text, "", Some("db3")).unwrap_err().to_string();
    assert!(error.contains("no section [client.db3] in") && error.contains("my.cnf"), "{error}");
    let error = ClientOptions::read(None, None, Some("a")).unwrap_err().to_string();
    assert!(error.contains("~/.my.cnf, which is missing"), "{error}");
}

#[test]
fn a_file_that_was_named_must_be_there_and_be_one_that_can_be_trusted() {
    use std::os::unix::fs::PermissionsExt as _;
    let credentials =
        |path: &Path| Credentials { defaults_file: Some(path.to_owned()), ..Default::default() };
    let error = credentials(Path::new("/nowhere/my.cnf")).complete(ServerAddress::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("/nowhere/my.cnf"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let login = dir.path().join(".mylogin.cnf");
    fs::write(&login, [0, 0, 0, 0, 7, 200]).unwrap();
    let error = credentials(&login).complete(ServerAddress::default()).unwrap_err().to_string();
    assert!(error.contains(".mylogin.cnf: encrypted login paths are not read"), "{error}");
    let open = dir.path().join("open.cnf");
    fs::write(&open, "[client]\n").unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
    let error = credentials(&open).complete(ServerAddress::default()).unwrap_err().to_string();
    assert!(error.contains("chmod o-w"), "{error}");
}

#[test]
fn the_purpose_is_what_the_server_is_logged_in_to_for() {
    let loads = Credentials { purpose: Purpose::Load, ..Default::default() };
    let address = "mysql://b:x@127.0.0.1".parse().unwrap();
    assert_eq!(loads.complete(address).unwrap().purpose, Purpose::Load);
}
