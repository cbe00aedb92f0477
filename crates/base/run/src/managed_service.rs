//! Services that run a database server for their customers, who may not set it themselves.
//!
//! Invariant: a service is known by what only its servers show; a server that shows nothing of the
//! kind is taken for one that its administrator runs.

/// A service of which a server is an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedService {
    /// Amazon RDS.
    Rds,
    /// Amazon Aurora.
    Aurora,
    /// Google Cloud SQL.
    CloudSql,
    /// Azure Database for MySQL or MariaDB.
    Azure,
}

/// What servers of a service show: the service, the setting's name or what it begins with, and a
/// part of its value. The first that fits counts.
const SIGNS: [(ManagedService, &str, &str); 8] = [
    (ManagedService::Aurora, "aurora_", ""),
    (ManagedService::Aurora, "basedir", "/rdsdbbin/oscar"),
    (ManagedService::Rds, "basedir", "/rdsdbbin"),
    (ManagedService::CloudSql, "cloudsql_", ""),
    (ManagedService::CloudSql, "version", "-google"),
    (ManagedService::CloudSql, "version_comment", "(Google)"),
    (ManagedService::Azure, "aad_auth_only", ""),
    (ManagedService::Azure, "azure_", ""),
];

impl ManagedService {
    /// Of the settings that a server shows, by name and value.
    pub fn of<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)> + Clone) -> Option<Self> {
        let shows = |(_, begins, part): &&(Self, &str, &str)| {
            let mut all = settings.clone().into_iter();
            all.any(|(name, value)| name.starts_with(begins) && value.contains(part))
        };
        SIGNS.iter().find(shows).map(|(service, ..)| *service)
    }

    /// Whether a setting of this name may be a sign of a service.
    pub fn is_sign(name: &str) -> bool {
        SIGNS.iter().any(|(_, begins, _)| name.starts_with(begins))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rds => "Amazon RDS",
            Self::Aurora => "Amazon Aurora",
            Self::CloudSql => "Cloud SQL",
            Self::Azure => "Azure Database",
        }
    }

    /// Where its customers set what a server starts with.
    pub fn place(self) -> &'static str {
        match self {
            Self::Rds => "the DB parameter group",
            Self::Aurora => "the DB cluster parameter group",
            Self::CloudSql => "the database flags",
            Self::Azure => "the server parameters",
        }
    }

    /// The command that does it.
    pub fn command(self, name: &str, value: &str, needs_restart: bool) -> String {
        let method = if needs_restart { "pending-reboot" } else { "immediate" };
        let group = |word: &str| {
            format!(
                "aws rds modify-{word} --{word}-name GROUP --parameters \
                 ParameterName={name},ParameterValue={value},ApplyMethod={method}"
            )
        };
        match self {
            Self::Rds => group("db-parameter-group"),
            Self::Aurora => group("db-cluster-parameter-group"),
            // It replaces all flags.
            Self::CloudSql => format!(
                "gcloud sql instances patch INSTANCE --database-flags={name}={value},ALL-OTHERS"
            ),
            Self::Azure => format!(
                "az mysql flexible-server parameter set -g GROUP -s SERVER -n {name} -v {value}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_known_by_what_only_it_shows() {
        let rds = [("version", "8.0.35"), ("basedir", "/rdsdbbin/mysql-8.0.35.R3/")];
        let own = [
            ("version", "8.0.35"),
            ("version_comment", "MySQL Community Server - GPL"),
            ("basedir", "/usr/"),
            ("innodb_io_capacity", "200"),
        ];
        for (settings, expected) in [
            (&own[..], None),
            (&rds, Some(ManagedService::Rds)),
            (&[("basedir", "/rdsdbbin/mariadb-10.11.8.R1/")], Some(ManagedService::Rds)),
            (&[("aurora_version", "3.05.2"), rds[1]], Some(ManagedService::Aurora)),
            (
                &[("basedir", "/rdsdbbin/oscar-8.0.mysql_aurora.3.05.2/")],
                Some(ManagedService::Aurora),
            ),
            (&[("cloudsql_iam_authentication", "off")], Some(ManagedService::CloudSql)),
            (&[("version", "8.0.31-google")], Some(ManagedService::CloudSql)),
            (&[("version_comment", "(Google)")], Some(ManagedService::CloudSql)),
            (&[("aad_auth_only", "OFF")], Some(ManagedService::Azure)),
            (&[("azure_replication_mode", "none")], Some(ManagedService::Azure)),
        ] {
            assert_eq!(ManagedService::of(settings.iter().copied()), expected, "{settings:?}");
            let signs = settings.iter().any(|(name, _)| ManagedService::is_sign(name));
            assert!(signs || expected.is_none(), "what it is known by is kept: {settings:?}");
        }
    }

    #[test]
    fn a_restart_is_said_where_the_command_can_tell_it() {
        let of = |needs_restart| ManagedService::Rds.command("innodb_x", "7", needs_restart);
        assert!(
            of(false).ends_with("ParameterName=innodb_x,ParameterValue=7,ApplyMethod=immediate")
        );
        assert!(of(true).ends_with("ApplyMethod=pending-reboot"));
    }
}
