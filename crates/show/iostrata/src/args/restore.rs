//! `iostrata restore`.

use clap::Args;

use super::{LoginArgs, Printing};

/// Arguments of `iostrata restore`.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Put back only the settings of this server: mysql://user[:password]@host:port/db
    ///
    /// Without it everything is put back, and servers are reached by the address that was used
    /// then, with the password from ~/.my.cnf or MYSQL_PWD: journals hold none.
    #[arg(long, value_name = "T")]
    pub target: Option<String>,
    #[command(flatten)]
    pub login: LoginArgs,
    #[command(flatten)]
    pub printing: Printing,
}
