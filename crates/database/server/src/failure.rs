//! What a failure of the client library means for the caller.
//!
//! Invariants: the only place where a server's error numbers have a meaning; and the one where a
//! server's text becomes one that can be printed.

use std::borrow::Cow;
use std::error::Error as _;
use std::io::{self, ErrorKind};

use iostrata_database::target::{TargetError, Trouble};
use mysql::{DriverError, Error};

/// By error number: what it means and what would help.
struct Meaning(Trouble, Option<String>);

/// The error for what was attempted on a target.
pub(crate) fn told(target: &str, attempt: &str, error: &Error) -> TargetError {
    let (code, said, Meaning(trouble, fix)) = match error {
        Error::MySqlError(error) => {
            let meaning = meaning_of(error.code, &error.state, &error.message);
            let said = format!("error {}: {}", error.code, error.message);
            (error.code.to_string(), said, meaning)
        }
        Error::IoError(error) => of_io(error),
        // What fails while packets are read and written is mostly a failure of the connection.
        Error::CodecError(error) => match error.source().and_then(|source| source.downcast_ref()) {
            Some(source) => of_io(source),
            None => ("protocol".to_owned(), error.to_string(), Meaning(Trouble::Gone, None)),
        },
        Error::TlsError(error) => (
            "tls".to_owned(),
            error.to_string(),
            Meaning(Trouble::NotReady, Some(TRUST.to_owned())),
        ),
        Error::DriverError(error) => of_driver(error),
        other => ("client".to_owned(), other.to_string(), Meaning(Trouble::Failed, None)),
    };
    let text = printable(&format!("{attempt}: {said}")).into_owned();
    let fix = fix.map(|fix| printable(&fix).into_owned());
    TargetError { trouble, code, target: target.to_owned(), text, fix }
}

/// A text of a server as it can be printed: what steers a terminal is written as `\u{1b}`, lines
/// and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match steers(letter) {
            true => out.extend(letter.escape_unicode()),
            false => out.push(letter),
        }
    }
    Cow::Owned(out)
}

fn of_io(error: &io::Error) -> (String, String, Meaning) {
    let said = error.to_string();
    let (code, trouble, fix) = match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            let fix = "the server did not answer in time; see read_timeout and connect_timeout";
            ("timeout", Trouble::Gone, fix)
        }
        // What the other side of an encrypted connection shows is refused while it is read.
        ErrorKind::InvalidData if said.contains("certificate") => ("tls", Trouble::NotReady, TRUST),
        _ => ("io", Trouble::Gone, GONE),
    };
    (code.to_owned(), said, Meaning(trouble, Some(fix.to_owned())))
}

const TRUST: &str =
    "name its authority by ssl_ca=FILE and ssl_verify=ca, or trust it unseen by ssl_verify=off";
const SECURE_ONLY: &str = "the server takes encrypted connections only: use ?ssl=required";
/// The same in the words of MySQL and of managed servers, whose numbers differ.
const SECURE_WORDS: [&str; 2] = ["insecure transport", "SSL connection is required"];
const GONE: &str = "see the server's error log; it may have ended or cut the connection";

fn of_driver(error: &DriverError) -> (String, String, Meaning) {
    let with = |code: &str, said: String, trouble, fix: &str| {
        (code.to_owned(), said, Meaning(trouble, Some(fix.to_owned())))
    };
    match error {
        DriverError::ConnectTimeout => {
            let said = "no answer in time".to_owned();
            let fix = "check host, port and firewall, or allow more by connect_timeout=30s";
            with("connect", said, Trouble::Gone, fix)
        }
        DriverError::CouldNotConnect(Some((at, why, kind))) => {
            let fix = match kind {
                ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
                    "nothing listens there: start the server, or check host, port and socket"
                }
                ErrorKind::PermissionDenied => "this user may not use the socket",
                _ => "check host, port and socket",
            };
            with("connect", format!("{at}: {why}"), Trouble::Gone, fix)
        }
        DriverError::TlsNotSupported => {
            let fix = "use ssl=preferred or ssl=disabled";
            with("tls", "the server offers no encryption".to_owned(), Trouble::NotReady, fix)
        }
        DriverError::UnknownAuthPlugin(plugin) => {
            let said = format!("the server requires a login by {plugin}");
            let fix = "give the user mysql_native_password or caching_sha2_password";
            with("auth", said, Trouble::NotReady, fix)
        }
        DriverError::PacketTooLarge => {
            let fix = "raise max_allowed_packet of the server";
            with("packet", error.to_string(), Trouble::Failed, fix)
        }
        DriverError::UnexpectedPacket | DriverError::PacketOutOfSync => with(
            "protocol",
            error.to_string(),
            Trouble::Gone,
            "is this a server of MySQL's family?",
        ),
        other => ("client".to_owned(), other.to_string(), Meaning(Trouble::Failed, None)),
    }
}

/// SQLSTATEs of a transaction that was rolled back and may be begun again, whatever its number.
const ROLLED_BACK: [&str; 2] = ["40000", "40001"];

fn meaning_of(code: u16, state: &str, message: &str) -> Meaning {
    let (trouble, fix) = match code {
        // Deadlock, lock wait timeout, record changed since it was read.
        1213 | 1205 | 1020 => (Trouble::Retry, None),
        // Group replication: another member's transaction was certified before.
        3101 => (Trouble::Retry, None),
        // TiDB: conflicts of writes, and schemas that changed meanwhile.
        8002 | 8022 | 8028 | 9007 => (Trouble::Retry, None),
        // Galera: the node has left the group, or has not joined it yet; another one may serve.
        // Without Galera, an unknown command.
        1047 if message.contains("WSREP") => {
            (Trouble::Gone, Some("see wsrep_cluster_status on this node, or name further hosts"))
        }
        1062 | 1022 | 1586 => (Trouble::Exists, None),
        1050 => (Trouble::NotReady, Some("remove the table first, or use another database")),
        3159 => (Trouble::NotReady, Some(SECURE_ONLY)),
        _ if SECURE_WORDS.iter().any(|words| message.contains(words)) => {
            (Trouble::NotReady, Some(SECURE_ONLY))
        }
        1045 | 1698 => {
            // MariaDB reports no more where it requires encryption or a certificate.
            let fix = "check user and password: in the address, the option file or MYSQL_PWD; \
                       the server may also want encryption (ssl=required) or a certificate \
                       (ssl_cert, ssl_key) of this user";
            (Trouble::NotReady, Some(fix))
        }
        1044 | 1142 | 1143 | 1227 | 1370 => (Trouble::NotReady, Some("grant this user the right")),
        1049 => {
            return Meaning(
                Trouble::NotReady,
                Some(format!("CREATE DATABASE {}", quoted(message))),
            );
        }
        1046 => {
            (Trouble::NotReady, Some("name the database in the address: mysql://host/DATABASE"))
        }
        1146 | 1051 | 1109 | 1054 => (Trouble::NotReady, Some("run `prepare` first")),
        1040 => (Trouble::NotReady, Some("raise max_connections, or use fewer threads")),
        1203 | 1226 => {
            (Trouble::NotReady, Some("raise max_user_connections, or use fewer threads"))
        }
        1130 | 1129 => (Trouble::NotReady, Some("the server refuses this host: see its grants")),
        1290 | 1836 | 1792 => {
            let fix = "the server runs with an option that forbids this, such as read_only; \
                       use a primary";
            (Trouble::NotReady, Some(fix))
        }
        1286 => (Trouble::NotReady, Some("SHOW ENGINES lists what this server has")),
        1461 => (Trouble::NotReady, Some("raise max_prepared_stmt_count")),
        1153 => (Trouble::Failed, Some("raise max_allowed_packet of the server")),
        1021 | 1114 => (Trouble::NoSpace, Some("make room where the server keeps its data")),
        _ if ROLLED_BACK.contains(&state) => (Trouble::Retry, None),
        _ if is_no_space(message) => {
            (Trouble::NoSpace, Some("make room where the server keeps its data"))
        }
        2006 | 2013 | 1053 | 1077 | 1152 | 1158..=1161 | 1184 | 1927 | 4031 => {
            (Trouble::Gone, Some(GONE))
        }
        _ => (Trouble::Failed, None),
    };
    Meaning(trouble, fix.map(str::to_owned))
}

/// ENOSPC inside another error: "Error writing file './x' (Errcode: 28 ...)", "Got error 28".
fn is_no_space(message: &str) -> bool {
    ["Errcode: 28", "errno: 28", "Got error 28", "No space left"]
        .iter()
        .any(|word| message.contains(word))
}

/// What a message names in quotes, as an identifier.
fn quoted(message: &str) -> String {
    let name = message.split('\'').nth(1).unwrap_or("NAME");
    crate::sql::name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16, message: &str) -> TargetError {
        in_state(code, "HY000", message)
    }

    fn in_state(code: u16, state: &str, message: &str) -> TargetError {
        let (message, state) = (message.to_owned(), state.to_owned());
        let error = Error::MySqlError(mysql::MySqlError { state, message, code });
        told("mysql://b@h:3306/x", "INSERT", &error)
    }

    #[test]
    fn numbers_of_servers_have_one_meaning() {
        use Trouble::*;
        for (code, message, trouble) in [
            (1213, "Deadlock found when trying to get lock", Retry),
            (1205, "Lock wait timeout exceeded", Retry),
            (1020, "Record has changed since last read in table 'stock'", Retry),
            (9007, "Write conflict, txnStartTS=4", Retry),
            (1047, "WSREP has not yet prepared node for application use", Gone),
            (1047, "Unknown command", Failed),
            (1062, "Duplicate entry '1' for key 'PRIMARY'", Exists),
            (1045, "Access denied for user 'b'@'localhost' (using password: YES)", NotReady),
            (1049, "Unknown database 'tpcc'", NotReady),
            (1146, "Table 'x.stock' doesn't exist", NotReady),
            (1040, "Too many connections", NotReady),
            (1290, "The MySQL server is running with the --read-only option", NotReady),
            (1836, "Running in read-only mode", NotReady),
            (1286, "Unknown storage engine 'rocks'", NotReady),
            (1461, "Can't create more than max_prepared_stmt_count statements", NotReady),
            (1021, "Disk full (/tmp/#sql); waiting for someone to free some space", NoSpace),
            (1114, "The table 'stock' is full", NoSpace),
            (1030, "Got error 28 \"No space left on device\" from storage engine", NoSpace),
            (3, "Error writing file './binlog' (Errcode: 28 - No space left)", NoSpace),
            (1053, "Server shutdown in progress", Gone),
            (2013, "Lost connection", Gone),
            (1064, "You have an error in your SQL syntax", Failed),
        ] {
            let error = server(code, message);
            assert_eq!((error.trouble, error.code), (trouble, code.to_string()), "{message}");
        }
    }

    #[test]
    fn what_a_server_rolled_back_is_begun_again_whatever_its_number() {
        let conflict = "Plugin instructed the server to rollback the current transaction.";
        for (code, state) in [(3101, "HY000"), (3572, "40001"), (1614, "40000"), (9999, "40001")] {
            assert_eq!(in_state(code, state, conflict).trouble, Trouble::Retry, "{code} {state}");
        }
        assert_eq!(in_state(9999, "42000", conflict).trouble, Trouble::Failed);
    }

    #[test]
    fn a_server_that_takes_encrypted_connections_only_names_what_does() {
        let words = "Connections using insecure transport are prohibited while \
                     --require_secure_transport=ON.";
        for (code, message) in [(3159, words), (1045, words), (9002, "SSL connection is required.")]
        {
            let error = server(code, message);
            assert_eq!(error.trouble, Trouble::NotReady, "{error}");
            assert!(error.to_string().ends_with("use ?ssl=required"), "{error}");
        }
    }

    #[test]
    fn texts_of_servers_steer_no_terminal() {
        let error =
            server(1049, "Unknown database '\u{1b}[31m\u{9b}2J\u{7f}\u{7}\r'\n\tx").to_string();
        assert!(!error.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{error:?}");
        assert!(error.contains("'\\u{1b}[31m\\u{9b}2J\\u{7f}\\u{7}\\u{d}'\n\tx"), "{error}");
        assert!(matches!(printable("plain 1 \u{2192} 2"), Cow::Borrowed(_)));
    }

    #[test]
    fn errors_name_target_attempt_answer_and_fix() {
        let error = server(1049, "Unknown database 'tp`cc'").to_string();
        let expected = "mysql://b@h:3306/x: INSERT: error 1049: Unknown database 'tp`cc'; \
                        CREATE DATABASE `tp``cc`";
        assert_eq!(error, expected);
        assert!(
            server(1040, "").to_string().ends_with("raise max_connections, or use fewer threads")
        );
    }

    #[test]
    fn broken_connections_are_gone() {
        for kind in [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset, ErrorKind::WouldBlock] {
            let error = told("t", "x", &Error::IoError(io::Error::from(kind)));
            assert_eq!(error.trouble, Trouble::Gone, "{kind}");
        }
        let refused = Some(("h:1".to_owned(), "refused".to_owned(), ErrorKind::ConnectionRefused));
        let error = told("t", "connecting", &DriverError::CouldNotConnect(refused).into());
        assert_eq!(error.trouble, Trouble::Gone);
        assert!(error.to_string().contains("nothing listens there"), "{error}");
    }
}
