//! Who logs in to a server, where its address does not say it.

use std::path::PathBuf;

use clap::Args;
use iostrata_server::{Credentials, Purpose};

/// The option file of a command that logs in to servers.
#[derive(Args, Clone, Debug)]
pub struct LoginArgs {
    /// An option file of MySQL's clients, read in place of ~/.my.cnf
    ///
    /// Its sections [client], [client-server] and [client-mariadb] count, and [client.NAME] before
    /// them for an address with ?group=NAME.
    #[arg(long, value_name = "FILE")]
    pub defaults_file: Option<PathBuf>,
    /// Read the option file's sections with this behind their name, too, as [clientSUFFIX]
    /// [default: MYSQL_GROUP_SUFFIX]
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
