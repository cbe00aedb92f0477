//! What to set on a target, how, and how to take it back.
//!
//! Invariant: a value that is set already is not advised; what the target cannot change while it
//! runs needs a restart and is marked so; undoing names the value that is there now, never DEFAULT.

use iostrata_run::{Advice, Risk};

use super::recording::Recording;
use crate::server_setting::{Family, ServerSetting};

/// How advice begins that a server takes while it runs.
pub(super) const DYNAMIC: &str = "SET GLOBAL ";

/// A setting of InnoDB to change, by its name without the prefix, for a rule that adds its own
/// name; `None` where it has the value already, or the target does not have it.
pub(super) fn set(
    recording: &Recording<'_>,
    setting: &str,
    value: impl ToString,
    (text, risk): (String, Risk),
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
    let known = ServerSetting::of(setting);
    let is_dynamic = known.is_some_and(|one| one.is_dynamic(recording.family, recording.version));
    let (where_, undo) = match recording.family {
        Family::Engine => (
            format!("--engine {name}={value}, kept with the data"),
            format!("--engine {name}={now}"),
        ),
        _ if recording.service.is_some() => {
            let service = recording.service?;
            let needs_restart = !is_dynamic;
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
            if is_dynamic {
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
    let of_server = known.filter(|_| recording.family != Family::Engine);
    Some(Advice {
        setting: name,
        value,
        default: known.and_then(|one| one.default_of(recording.family)),
        versions: of_server.and_then(ServerSetting::versions),
        source: of_server.map(ServerSetting::source),
        where_,
        why: Vec::new(),
        text,
        risk,
        undo,
        expected: None,
    })
}
