//! What the user of a server may do there, as `SHOW GRANTS` has it.
//!
//! Invariant: what roles grant is not seen there: a user with a role is allowed everything here,
//! and it is left to the server to refuse.

use iostrata_server::{Flavour, ServerTarget, ServerVersion};

use crate::exit_error::ExitError;
use crate::test_database::ending;

/// What each of these allows in the servers that have it.
const SETS: [&str; 3] = ["ALL PRIVILEGES", "SUPER", "SYSTEM_VARIABLES_ADMIN"];
/// The same, of what a session writes to the binary log.
const SETS_LOGGING: [&str; 5] = [
    "ALL PRIVILEGES",
    "SUPER",
    "SYSTEM_VARIABLES_ADMIN",
    "SESSION_VARIABLES_ADMIN",
    "BINLOG ADMIN",
];

/// The rights of a user at one server.
pub struct Grants {
    version: ServerVersion,
    /// As the server words them.
    words: Vec<String>,
}

impl Grants {
    /// Of the user of this target.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn of(target: &ServerTarget) -> Result<Self, ExitError> {
        let words = target.grants().map_err(ending)?;
        Ok(Self { version: target.version().clone(), words })
    }

    /// In these words, at a server of this version.
    #[cfg(test)]
    pub fn testing(words: &[&str], version: &str) -> Self {
        let words = words.iter().map(|one| (*one).to_owned()).collect();
        Self { version: ServerVersion::recognise(version, "MySQL"), words }
    }

    /// Whether it may set global variables.
    ///
    /// # Errors
    /// Why not, with the statement that allows it.
    pub fn set_global(&self) -> Result<(), String> {
        match self.has_one(&SETS, None) {
            true => Ok(()),
            false => Err(self.lacks("may not SET GLOBAL", &[self.setting_right()], "*")),
        }
    }

    /// The privilege that SET GLOBAL needs.
    fn setting_right(&self) -> &'static str {
        let is_old = self.version.flavour == Flavour::MariaDb || self.version.numbers.0 < 8;
        if is_old { "SUPER" } else { "SYSTEM_VARIABLES_ADMIN" }
    }

    /// Whether it may make an event in a schema, which is made and dropped with it where `makes` is
    /// set, and keep that out of a binary log that is on.
    ///
    /// # Errors
    /// Why not, with the statement that allows it.
    pub fn make_event(&self, schema: &str, makes: bool, is_logged: bool) -> Result<(), String> {
        let wanted = if makes { &["EVENT", "CREATE", "DROP"][..] } else { &["EVENT"] };
        let may = |right: &&str| self.has_one(&["ALL PRIVILEGES", right], Some(schema));
        let lacking: Vec<&str> = wanted.iter().copied().filter(|right| !may(right)).collect();
        if !lacking.is_empty() {
            return Err(self.lacks(&format!("may make no event in {schema}"), &lacking, schema));
        }
        // MariaDB has taken this right out of SUPER.
        let is_apart =
            self.version.flavour == Flavour::MariaDb && self.version.numbers >= (11, 0, 0);
        let enough = SETS_LOGGING.iter().copied().filter(|right| !is_apart || *right != "SUPER");
        if is_logged && !self.has_one(&enough.collect::<Vec<_>>(), None) {
            let right = if is_apart { "BINLOG ADMIN" } else { self.setting_right() };
            return Err(self.lacks("may not SET SESSION sql_log_bin", &[right], "*"));
        }
        Ok(())
    }

    /// The text about a server that does not show this user whether it replicates.
    pub fn hidden_replication(&self) -> String {
        self.lacks("may not see whether the server is a replica", &["PROCESS"], "*")
    }

    /// Whether one of these rights is granted everywhere, or on this schema.
    fn has_one(&self, rights: &[&str], schema: Option<&str>) -> bool {
        let allows = |grant: &String| {
            let Some((granted, rest)) = grant.split_once(" ON ") else {
                return grant.contains(" TO ");
            };
            let place = rest.split(" TO ").next().unwrap_or(rest);
            let granted = granted.trim_start_matches("GRANT ").to_ascii_uppercase();
            is_at(place, schema) && granted.split(',').any(|one| rights.contains(&one.trim()))
        };
        self.words.is_empty() || self.words.iter().any(allows)
    }

    fn lacks(&self, what: &str, rights: &[&str], schema: &str) -> String {
        let first = self.words.first().map_or("", String::as_str);
        let user = first.rsplit_once(" TO ").map_or("", |(_, user)| user);
        let user = user.split(" IDENTIFIED").next().unwrap_or(user).split(" WITH ").next();
        let user = user.filter(|user| !user.is_empty()).unwrap_or("this user");
        format!(
            "this user {what}; as an administrator: GRANT {} ON {schema}.* TO {user}",
            rights.join(", ")
        )
    }
}

/// Whether a grant on this place counts for a schema, or for the whole server where none is named.
/// A place is a pattern.
fn is_at(place: &str, schema: Option<&str>) -> bool {
    let Some(schema) = schema.filter(|_| place != "*.*") else { return place == "*.*" };
    let pattern = place.replace(['`', '\\'], "");
    match pattern.strip_suffix(".*").map(|pattern| (pattern, pattern.split_once('%'))) {
        Some((_, Some((begin, end)))) => schema.starts_with(begin) && schema.ends_with(end),
        Some((name, None)) => name == schema,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_set_is_let_and_who_may_not_is_told_the_grant() {
        let said =
            |grant: &str, version: &str| Grants::testing(&[grant], version).set_global().err();
        for grant in [
            "GRANT ALL PRIVILEGES ON *.* TO `b`@`%` IDENTIFIED BY PASSWORD '*0D' WITH GRANT OPTION",
            "GRANT SELECT, SUPER ON *.* TO 'b'@'%'",
            "GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO `b`@`%`",
            "GRANT `operator`@`%` TO `b`@`%`",
        ] {
            assert_eq!(said(grant, "9.7.4"), None, "{grant}");
        }
        let usage = "GRANT USAGE ON *.* TO `b`@`%` IDENTIFIED BY PASSWORD '*0D'";
        let text = said(usage, "10.11.19-MariaDB").unwrap();
        assert!(text.ends_with("GRANT SUPER ON *.* TO `b`@`%`"), "{text}");
        let text = said("GRANT ALL PRIVILEGES ON `tpcc`.* TO `b`@`%`", "9.7.4").unwrap();
        assert!(text.ends_with("GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO `b`@`%`"), "{text}");
    }

    #[test]
    fn an_event_needs_rights_on_its_schema_and_on_the_binary_log() {
        let said = |grants: &[&str], makes, is_logged, version: &str| {
            Grants::testing(grants, version).make_event("iostrata_lease", makes, is_logged).err()
        };
        let sets = "GRANT SUPER ON *.* TO `b`@`%`";
        for (place, rights, lacking) in [
            ("*.*", "EVENT, CREATE, DROP", ""),
            ("`iostrata_lease`.*", "EVENT, CREATE, DROP", ""),
            ("`iostrata\\_lease`.*", "ALL PRIVILEGES", ""),
            ("`iostrata%`.*", "EVENT, CREATE, DROP", ""),
            ("`iostrata_lease`.*", "EVENT", "CREATE, DROP"),
            ("`other`.*", "ALL PRIVILEGES", "EVENT, CREATE, DROP"),
            ("`iostrata_lease`.`t`", "ALL PRIVILEGES", "EVENT, CREATE, DROP"),
        ] {
            let grants = [sets, &format!("GRANT {rights} ON {place} TO `b`@`%`")];
            let said = said(&grants, true, true, "10.11.19-MariaDB");
            let fix = format!("GRANT {lacking} ON iostrata_lease.* TO `b`@`%`");
            match lacking {
                "" => assert_eq!(said, None, "{rights} {place}"),
                _ => assert!(said.as_ref().is_some_and(|one| one.ends_with(&fix)), "{said:?}"),
            }
        }
        let event = "GRANT EVENT ON `iostrata_lease`.* TO `b`@`%`";
        assert_eq!(said(&[sets, event], false, true, "9.7.4"), None);
        assert_eq!(said(&[sets, event], false, false, "11.8.9-MariaDB"), None);
        let said = said(&[sets, event], false, true, "11.8.9-MariaDB").unwrap();
        assert!(said.ends_with("GRANT BINLOG ADMIN ON *.* TO `b`@`%`"), "{said}");
    }
}
