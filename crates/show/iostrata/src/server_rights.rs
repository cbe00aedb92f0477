//! Whether a server may be set: by this user, and by nobody else at the same time.

use iostrata_change::ServerToken;
use iostrata_server::{Claim, Flavour, ServerRole, ServerTarget, ServerVersion};
use iostrata_target::TargetFacts;

use crate::database_command::ending;
use crate::exit_error::ExitError;

/// The lock that whoever tunes a server holds there.
const CLAIM: &str = "iostrata_tune";

/// What each of these allows in the servers that have it.
const ENOUGH: [&str; 3] = ["ALL PRIVILEGES", "SUPER", "SYSTEM_VARIABLES_ADMIN"];

/// Whether the user of these grants, as `SHOW GRANTS` has them, may set global variables. What is
/// granted by roles is not seen there, so with roles it is left to the server to refuse.
///
/// # Errors
/// Why not, with the statement that allows it.
fn may_set(grants: &[String], version: &ServerVersion) -> Result<(), String> {
    let upper: Vec<String> = grants.iter().map(|grant| grant.to_ascii_uppercase()).collect();
    let is_enough = |grant: &String| {
        let (rights, place) = grant.split_once(" ON ").unwrap_or((grant, ""));
        let words = rights.trim_start_matches("GRANT ").split(',').map(str::trim);
        place.starts_with("*.* TO ") && words.into_iter().any(|word| ENOUGH.contains(&word))
    };
    let is_role = |grant: &String| !grant.contains(" ON ") && grant.contains(" TO ");
    if grants.is_empty() || upper.iter().any(|grant| is_enough(grant) || is_role(grant)) {
        return Ok(());
    }
    let is_old = version.flavour == Flavour::MariaDb || version.numbers.0 < 8;
    let right = if is_old { "SUPER" } else { "SYSTEM_VARIABLES_ADMIN" };
    let user = grants[0].rsplit_once(" TO ").map_or("", |(_, user)| user);
    let user = user.split(" IDENTIFIED").next().unwrap_or(user).split(" WITH ").next();
    let user = user.filter(|user| !user.is_empty()).unwrap_or("this user");
    Err(format!(
        "this user may not SET GLOBAL; as an administrator: GRANT {right} ON *.* TO {user}"
    ))
}

/// Refuses a server, with the reason.
pub fn refused(facts: &TargetFacts, why: &str) -> ExitError {
    ExitError::Usage(format!("{}: {why}", facts.name))
}

/// A replica's redo is another server's doing, and who made it read-only wants nothing set on it.
/// Gives the group of which it is a member that is written to.
///
/// # Errors
/// What says so.
pub fn refuse_replica(
    target: &ServerTarget,
    facts: &TargetFacts,
) -> Result<Option<String>, ExitError> {
    let ServerRole { replica, member } = target.role().map_err(ending)?;
    replica.map_or(Ok(member), |why| Err(refused(facts, &no_primary(&why))))
}

/// Why nothing is set on a replica.
pub fn no_primary(why: &str) -> String {
    format!("{why}: nothing is set on a server that others write; name its primary")
}

/// Makes sure that the user may set the server's settings.
///
/// # Errors
/// Why not, with the statement that allows it.
pub fn refuse_without_rights(target: &ServerTarget, facts: &TargetFacts) -> Result<(), ExitError> {
    let grants = target.grants().map_err(ending)?;
    may_set(&grants, target.version()).map_err(|why| refused(facts, &why))
}

/// The one server to which all connections of a target lead.
///
/// # Errors
/// A target that was not opened as one.
pub fn one(target: &ServerTarget) -> Result<&ServerToken, ExitError> {
    let bug = || ExitError::Bug("a server that is set was not opened as one".to_owned());
    target.one().ok_or_else(bug)
}

/// Claims the server for as long as the claim lives.
///
/// # Errors
/// When somebody else tunes it.
pub fn claim(target: &ServerTarget, facts: &TargetFacts) -> Result<Claim, ExitError> {
    let other = "another iostrata tune is at work on this server; end that one first";
    let busy = || ExitError::Busy(format!("{}: {other}", facts.name));
    target.claim(CLAIM).map_err(ending)?.ok_or_else(busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(grant: &str, version: &str) -> Option<String> {
        may_set(&[grant.to_owned()], &ServerVersion::recognise(version, "MySQL")).err()
    }

    #[test]
    fn who_may_set_is_let_and_who_may_not_is_told_the_grant() {
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
}
