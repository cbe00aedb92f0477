//! A server in the words of sysbench, go-tpc and the clients of MySQL, in place of an address.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use iostrata_server::{Credentials, Purpose};

use super::value;

/// sysbench's default user.
const SYSBENCH_USER: &str = "sbtest";
const SYSBENCH_DATABASE: &str = "sbtest";

/// Which kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    /// MySQL, MariaDB, Percona Server, TiDB
    Mysql,
}

/// A server, option by option.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Server options of sysbench and go-tpc")]
pub struct ServerWords {
    /// Host; several are separated by commas
    #[arg(
        short = 'H',
        long,
        alias = "host",
        value_name = "HOST[,HOST]",
        conflicts_with = "target"
    )]
    pub mysql_host: Option<String>,
    /// Port
    #[arg(short = 'P', long, alias = "port", value_name = "PORT", conflicts_with = "target")]
    pub mysql_port: Option<u16>,
    /// User
    #[arg(short = 'U', long, alias = "user", value_name = "USER", conflicts_with = "target")]
    pub mysql_user: Option<String>,
    /// Password
    #[arg(
        short = 'p',
        long,
        alias = "password",
        value_name = "PASSWORD",
        conflicts_with = "target"
    )]
    pub mysql_password: Option<String>,
    /// Local socket
    #[arg(long, value_name = "PATH", conflicts_with = "target")]
    pub mysql_socket: Option<PathBuf>,
    /// Database
    #[arg(short = 'D', long, alias = "db", value_name = "DATABASE", conflicts_with = "target")]
    pub mysql_db: Option<String>,
    /// Encrypt connections: off, on, or disabled, preferred, required, verify_ca, verify_identity
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "MODE",
          default_missing_value = "on", value_parser = ssl_parameters, conflicts_with = "target")]
    pub mysql_ssl: Option<String>,
    /// Certificate authority of the server's certificate
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub mysql_ssl_ca: Option<PathBuf>,
    /// The client's certificate
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub mysql_ssl_cert: Option<PathBuf>,
    /// The key of the client's certificate
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub mysql_ssl_key: Option<PathBuf>,
    /// Type of server
    #[arg(
        short = 'd',
        long,
        alias = "driver",
        value_enum,
        value_name = "mysql",
        conflicts_with = "target"
    )]
    pub db_driver: Option<Driver>,
}

/// A mode of encryption as parameters of an address.
fn ssl_parameters(mode: &str) -> Result<String, String> {
    let mode = mode.to_ascii_lowercase();
    let parameters = match mode.as_str() {
        "disabled" => "ssl=disabled",
        "preferred" => "ssl=preferred",
        "required" => "ssl=required&ssl_verify=off",
        "verify_ca" => "ssl=required&ssl_verify=ca",
        "verify_identity" => "ssl=required",
        _ => match value::switch(&mode) {
            Ok(true) => "ssl=required&ssl_verify=off",
            Ok(false) => "ssl=disabled",
            Err(_) => {
                return Err(format!(
                    "`{mode}` is no mode; use off, on, disabled, preferred, required, verify_ca or \
                     verify_identity"
                ));
            }
        },
    };
    Ok(parameters.to_owned())
}

impl ServerWords {
    /// The address of the server; none where none of the options was given. With `has_defaults`
    /// sysbench's own user and database stand for options that are not given.
    pub fn address(&self, has_defaults: bool) -> Option<String> {
        let Self { mysql_host, mysql_port, mysql_user, mysql_password, mysql_db, .. } = self;
        let is_given = mysql_host.is_some()
            || mysql_port.is_some()
            || mysql_user.is_some()
            || mysql_password.is_some()
            || mysql_db.is_some()
            || self.mysql_socket.is_some()
            || self.db_driver.is_some()
            || self.mysql_ssl.is_some();
        if !is_given {
            return None;
        }
        let default = |text: &str| has_defaults.then(|| text.to_owned());
        let user = mysql_user.clone().or_else(|| default(SYSBENCH_USER));
        let database = mysql_db.clone().or_else(|| default(SYSBENCH_DATABASE));
        let mut address = "mysql://".to_owned();
        if let Some(user) = user {
            address += &escaped(&user);
            let password = mysql_password.iter().filter(|password| !password.is_empty());
            password.for_each(|password| address += &format!(":{}", escaped(password)));
            address.push('@');
        }
        // A socket is one server: a host in addition to it has no effect.
        if self.mysql_socket.is_none() {
            let hosts = mysql_host.as_deref().unwrap_or("localhost").split(',');
            let hosts = hosts.map(|host| hosted(host.trim(), *mysql_port));
            address += &hosts.collect::<Vec<_>>().join(",");
        }
        address.push('/');
        database.iter().for_each(|database| address += &escaped(database));
        let mut parameters: Vec<String> = self.mysql_ssl.clone().into_iter().collect();
        for (name, file) in [
            ("socket", &self.mysql_socket),
            ("ssl_ca", &self.mysql_ssl_ca),
            ("ssl_cert", &self.mysql_ssl_cert),
            ("ssl_key", &self.mysql_ssl_key),
        ] {
            let file = file.iter().map(|file| escaped(&file.display().to_string()));
            parameters.extend(file.map(|file| format!("{name}={file}")));
        }
        if !parameters.is_empty() {
            address += &format!("?{}", parameters.join("&"));
        }
        Some(address)
    }
}

fn hosted(host: &str, port: Option<u16>) -> String {
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]{port}"),
        false => format!("{host}{port}"),
    }
}

/// A text of which every character that means something in an address is written as %XX.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// The option file of a command that logs in to servers.
#[derive(Args, Clone, Debug)]
pub struct LoginArgs {
    /// An option file of MySQL's clients, read instead of ~/.my.cnf
    ///
    /// Its sections [client], [client-server] and [client-mariadb] are used, and before them
    /// [client.NAME] for an address with ?group=NAME.
    #[arg(long, value_name = "FILE")]
    pub defaults_file: Option<PathBuf>,
    /// Also read the option file's sections with this suffix, as [clientSUFFIX] [default:
    /// MYSQL_GROUP_SUFFIX]
    #[arg(long, value_name = "SUFFIX")]
    pub defaults_group_suffix: Option<String>,
}

impl LoginArgs {
    /// To watch servers and to set them.
    pub fn credentials(&self) -> Credentials {
        let (defaults_file, group_suffix) =
            (self.defaults_file.clone(), self.defaults_group_suffix.clone());
        Credentials { defaults_file, group_suffix, purpose: Purpose::Administration }
    }

    /// To load them.
    pub fn for_loads(&self) -> Credentials {
        Credentials { purpose: Purpose::Load, ..self.credentials() }
    }

    /// The option that was given, if any was.
    pub fn given(&self) -> Option<&'static str> {
        let file = self.defaults_file.as_ref().map(|_| "--defaults-file");
        file.or(self.defaults_group_suffix.as_ref().map(|_| "--defaults-group-suffix"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_sysbench_become_an_address() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(ServerWords::default().address(true), None);
        let words = ServerWords { mysql_host: text("db1,::1"), ..ServerWords::default() };
        assert_eq!(words.address(true).as_deref(), Some("mysql://sbtest@db1,[::1]/sbtest"));
        let words = ServerWords {
            mysql_host: text("127.0.0.1"),
            mysql_port: Some(3307),
            mysql_user: text("b"),
            mysql_password: text("p@ss:/?"),
            mysql_db: text("tpcc"),
            mysql_ssl: ssl_parameters("on").ok(),
            ..ServerWords::default()
        };
        assert_eq!(
            words.address(false).as_deref(),
            Some("mysql://b:p%40ss%3A%2F%3F@127.0.0.1:3307/tpcc?ssl=required&ssl_verify=off")
        );
        let words =
            ServerWords { mysql_socket: Some("/run/my.sock".into()), ..ServerWords::default() };
        let socket = "mysql:///?socket=%2Frun%2Fmy.sock";
        assert_eq!(words.address(false).as_deref(), Some(socket));
        assert!(ssl_parameters("sometimes").unwrap_err().contains("verify_ca"));
    }
}
