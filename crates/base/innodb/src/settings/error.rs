//! Why a setting is refused: the setting, the value found, and what it takes.

use super::{ValueKind, When};

/// Why a setting is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// There is no setting of that name.
    #[error("there is no setting `{name}`{}", did_you_mean(*.near))]
    Unknown {
        /// The name as it was given.
        name: String,
        /// The setting whose name is nearest, if one is near.
        near: Option<&'static str>,
    },
    /// The value is not one that the setting takes.
    #[error("{name} is `{found}`; it takes {kind}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The value as it was given.
        found: String,
        /// What it takes.
        kind: ValueKind,
    },
    /// Two settings do not go together.
    #[error("{name} is {found}, and {other} is {other_found}; {fix}")]
    Conflict {
        /// The setting.
        name: &'static str,
        /// Its value.
        found: String,
        /// The setting that it does not go with.
        other: &'static str,
        /// The value of that one.
        other_found: String,
        /// What would be taken.
        fix: String,
    },
    /// The setting cannot change while the engine runs.
    #[error("{name} cannot become `{found}` while the engine runs; it can be set {when}")]
    NotLive {
        /// The setting.
        name: &'static str,
        /// The value as it was given.
        found: String,
        /// When it may change.
        when: When,
    },
    /// The data was created with another value.
    #[error("{name} is {found}, and the data was created with {kept}; open it with {kept}")]
    Fixed {
        /// The setting.
        name: &'static str,
        /// The value that was asked for.
        found: String,
        /// The value that the data has.
        kept: String,
    },
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(
        || "; the list is in docs/settings.md".to_owned(),
        |name| format!("; did you mean {name}?"),
    )
}
