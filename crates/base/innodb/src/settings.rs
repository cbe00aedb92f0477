//! Every setting of the engine's I/O path: typed fields and the catalogue that describes them.

mod catalogue;
mod check;
mod choices;
mod error;
mod flush_plan;
mod kind;
mod text;
mod value;

pub use catalogue::{CATALOGUE, Settings};
pub use check::FRAMES_MIN;
pub use choices::{
    ChecksumAlgorithm, Doublewrite, FlushLogAt, FlushMethod, FlushWriteLimit, IoMethod,
    MaxPurgeLagVersion, PolicyName,
};
pub use error::SettingError;
pub use flush_plan::{FilePlan, FlushPlan, SyncRule};
pub use kind::{InnoDb, Setting, ValueKind, When};
pub use text::TextError;

/// The setting that goes by this name: InnoDB's prefix, dashes and capitals make no difference.
#[must_use]
pub fn find(name: &str) -> Option<&'static Setting> {
    let name = plain(name);
    CATALOGUE
        .iter()
        .find(|setting| setting.name == name || setting.aliases.contains(&name.as_str()))
}

/// A name as the catalogue spells it.
fn plain(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("innodb_").map_or_else(|| name.clone(), str::to_owned)
}

#[cfg(test)]
mod documented;
#[cfg(test)]
mod tests;
