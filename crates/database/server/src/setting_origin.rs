//! Where the values of a server's settings come from.
//!
//! MySQL 8 and later report it in `performance_schema.variables_info`, MariaDB 10.1 and later in
//! `information_schema.SYSTEM_VARIABLES`. Invariant: with a server that does not report it nothing
//! is known about any setting; none is assumed to be a default.

use iostrata_run::{SettingOrigin, SettingSource};
use mysql::Conn;

use crate::connect::texts;
use crate::flavour::{Flavour, ServerVersion};

/// A session that sets a variable for itself is noted like one that sets it for the server. MySQL 9
/// reports which variables have session scope; before it, only variables without session scope
/// count.
const MYSQL: [&str; 2] = [
    "JOIN performance_schema.variables_metadata m USING (VARIABLE_NAME) \
     WHERE i.VARIABLE_SOURCE <> 'COMPILED' \
       AND (i.VARIABLE_SOURCE <> 'DYNAMIC' OR m.VARIABLE_SCOPE = 'GLOBAL')",
    "WHERE i.VARIABLE_SOURCE <> 'COMPILED' \
       AND (i.VARIABLE_SOURCE <> 'DYNAMIC' OR VARIABLE_NAME IN \
            ('max_connections', 'read_only', 'super_read_only', 'sync_binlog', \
             'table_open_cache', 'thread_cache_size') \
            OR VARIABLE_NAME LIKE 'innodb\\_%' AND VARIABLE_NAME NOT IN \
            ('innodb_ddl_buffer_size', 'innodb_ddl_threads', 'innodb_ft_enable_stopword', \
             'innodb_ft_user_stopword_table', 'innodb_interpreter', 'innodb_lock_wait_timeout', \
             'innodb_parallel_read_threads', 'innodb_strict_mode', 'innodb_table_locks', \
             'innodb_tmpdir'))",
];
const MYSQL_HEAD: &str = "SELECT VARIABLE_NAME, g.VARIABLE_VALUE, i.VARIABLE_SOURCE, \
    NULLIF(i.VARIABLE_PATH, ''), CONCAT(NULLIF(i.SET_USER, ''), IFNULL(CONCAT('@', \
    NULLIF(i.SET_HOST, '')), '')), CAST(i.SET_TIME AS CHAR) \
    FROM performance_schema.variables_info i \
    JOIN performance_schema.global_variables g USING (VARIABLE_NAME)";
/// The path of an option file came with 10.5. What was set to its default again is no change.
const MARIADB: [&str; 2] = [
    "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, GLOBAL_VALUE_ORIGIN, GLOBAL_VALUE_PATH, NULL, NULL \
     FROM information_schema.SYSTEM_VARIABLES \
     WHERE GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', 'AUTO') AND NOT \
     (GLOBAL_VALUE_ORIGIN = 'SQL' AND GLOBAL_VALUE <=> DEFAULT_VALUE) ORDER BY 1",
    "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, GLOBAL_VALUE_ORIGIN, NULL, NULL, NULL \
     FROM information_schema.SYSTEM_VARIABLES \
     WHERE GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', 'AUTO') AND NOT \
     (GLOBAL_VALUE_ORIGIN = 'SQL' AND GLOBAL_VALUE <=> DEFAULT_VALUE) ORDER BY 1",
];

/// The settings that are not defaults, by name; nothing where the server does not report them.
pub(crate) fn setting_origins(
    conn: &mut Conn,
    version: &ServerVersion,
) -> Option<Vec<SettingOrigin>> {
    let rows = match version.flavour {
        Flavour::MariaDb => MARIADB.iter().find_map(|sql| texts(conn, sql).ok()),
        _ => MYSQL
            .iter()
            .find_map(|rest| texts(conn, &format!("{MYSQL_HEAD} {rest} ORDER BY 1")).ok()),
    };
    Some(rows?.into_iter().filter_map(origin).collect())
}

fn origin(row: Vec<Option<String>>) -> Option<SettingOrigin> {
    let [name, value, word, path, set_by, set_at] = <[Option<String>; 6]>::try_from(row).ok()?;
    let source = match word?.as_str() {
        "DYNAMIC" | "SQL" => SettingSource::Changed,
        "COMMAND_LINE" | "COMMAND-LINE" | "ENVIRONMENT" => SettingSource::CommandLine,
        "PERSISTED" => SettingSource::Persisted,
        _ => SettingSource::OptionFile,
    };
    Some(SettingOrigin {
        name: name?,
        value: value.unwrap_or_default(),
        source,
        path,
        set_by,
        set_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_has_words_of_its_own() {
        let of = |word: &str| {
            let text = |text: &str| Some(text.to_owned());
            origin(vec![text("a"), text("1"), text(word), None, None, None]).map(|one| one.source)
        };
        for word in ["DYNAMIC", "SQL"] {
            assert_eq!(of(word), Some(SettingSource::Changed));
        }
        for word in ["CONFIG", "GLOBAL", "SERVER", "EXPLICIT", "EXTRA", "USER", "LOGIN"] {
            assert_eq!(of(word), Some(SettingSource::OptionFile));
        }
        for word in ["COMMAND_LINE", "COMMAND-LINE", "ENVIRONMENT"] {
            assert_eq!(of(word), Some(SettingSource::CommandLine));
        }
        assert_eq!(of("PERSISTED"), Some(SettingSource::Persisted));
        assert_eq!(origin(vec![Some("a".to_owned()), None, None, None, None, None]), None);
    }
}
