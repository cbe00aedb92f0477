//! What to set on a target, how, and how to take it back.
//!
//! Invariant: a value that is set already is not advised; what the target cannot change while it
//! runs needs a restart and says so; undoing names the value that is there now, never DEFAULT.

use iostrata_run::{Advice, Risk};

use super::recording::{Family, Recording};

/// How advice begins that a server takes while it runs.
pub(super) const DYNAMIC: &str = "SET GLOBAL ";

/// A setting of InnoDB to change, by its name without the prefix; `None` where it has the value
/// already, or the target does not have it.
pub(super) fn set(
    recording: &Recording<'_>,
    setting: &str,
    value: impl ToString,
    (id, text, risk): (&str, String, Risk),
) -> Option<Advice> {
    let now = recording.setting(setting)?;
    let value = value.to_string();
    let is_same = match (now.parse::<f64>(), value.parse::<f64>()) {
        (Ok(now), Ok(value)) => now == value,
        _ => now.eq_ignore_ascii_case(&value),
    };
    if is_same {
        return None;
    }
    let name = recording.named(setting);
    let (where_, undo) = match recording.family {
        Family::Engine => (
            format!("--engine {name}={value}, kept with the data"),
            format!("--engine {name}={now}"),
        ),
        _ if recording.service.is_some() => {
            let service = recording.service?;
            let needs_restart = !is_dynamic(recording, setting);
            let restart = if needs_restart { "; it needs a restart" } else { "" };
            let set = |value: &str| service.command(&name, value, needs_restart);
            (
                format!(
                    "{name} = {value} in {} of {}{restart}: {}",
                    service.place(),
                    service.name(),
                    set(&value)
                ),
                format!("{}{restart}", set(now)),
            )
        }
        family => {
            let file = if family == Family::MariaDb { "[mariadb]" } else { "[mysqld]" };
            let lasting = format!("{name} = {value} in my.cnf {file}");
            if is_dynamic(recording, setting) {
                (
                    format!("{DYNAMIC}{name} = {value}; to keep it, {lasting}"),
                    format!("{DYNAMIC}{name} = {now}; and the line in my.cnf as before"),
                )
            } else {
                (
                    format!("{lasting}; it needs a restart"),
                    format!("{name} = {now} in my.cnf {file}, and a restart"),
                )
            }
        }
    };
    let why = vec![id.to_owned()];
    let (default, expected) = (None, None);
    Some(Advice { setting: name, value, default, where_, why, text, risk, undo, expected })
}

/// Whether a server takes a new value while it runs. Tried on MySQL 5.6.24 and 9.7.4 and on MariaDB
/// 10.11.19, 11.4.5 and 11.8.9; for releases between, as their manuals say.
fn is_dynamic(recording: &Recording<'_>, setting: &str) -> bool {
    let version = recording.version;
    match (recording.family, setting) {
        (Family::Engine, _) => true,
        (Family::MySql, "log_file_size" | "log_files_in_group" | "purge_threads") => false,
        (Family::MySql, "log_buffer_size") => version >= (8, 0),
        (Family::MySql, "buffer_pool_size") => version >= (5, 7),
        (Family::MariaDb, "log_file_size") => version >= (10, 9),
        (Family::MariaDb, "log_buffer_size") => false,
        (Family::MariaDb, "purge_threads") => version >= (10, 5),
        _ => true,
    }
}
