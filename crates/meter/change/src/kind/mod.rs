//! The kinds of changes: what each needs to know before, does, does to be undone, and its
//! description.
//!
//! A kind is whole in one file: its fields, what was there before, what came of it, and its
//! [`Kind`]. The table below lists all of them; a new one is a file and a line of it. A change
//! names things by what stays the same (paths, names), never by a number that the kernel gave out.
//!
//! Invariant: `prior` alters nothing and refuses what must not happen; `undo` works from the
//! journal's entry alone, may be repeated, and touches only what it can prove to be ours.
//!
//! Later changes stand on earlier ones that made or set what they use: undoing in reverse order
//! never pulls away what another change stands on, and a change with nothing to put back holds
//! nothing up.

mod database;
mod device;
mod entry;
pub(crate) mod file;
pub(crate) mod filesystem;
mod group;
mod queue;
pub(crate) mod serving;
pub(crate) mod settings;
pub(crate) mod tracing;
mod tunable;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ChangeError;
use crate::platform::Platform;
use crate::seen::DeviceRef;
use crate::undone::Undone;

pub(crate) use entry::{Entry, JournalEntry};
pub use group::GroupVersion;

/// One kind of change.
pub(crate) trait Kind: Member<Change> {
    /// What was there before: enough to undo the change without the process that made it.
    type Prior: Member<Prior>;
    /// What the kernel really did.
    type Effect: Member<Effect>;
    /// Whether anything is to be put back.
    const IS_LASTING: bool = true;
    /// Whether what it did is still there after a reboot.
    const OUTLIVES_BOOT: bool = false;
    /// Whether it is undone also where the journal can be written no more: undone once more it is
    /// found as before.
    const MAY_GO_UNNOTED: bool = false;

    /// The change in one line.
    fn describe(&self) -> String;

    /// The present value, if any. Looking for it alters nothing.
    fn present(&self, _: &dyn Platform) -> Option<String> {
        None
    }

    /// What it names that others make or set.
    fn uses(&mut self) -> Uses<'_> {
        Uses::default()
    }

    /// Whether a later change, which is lasting, stands on this one.
    fn carries(&self, _later: &Change) -> bool {
        false
    }

    /// What is there now, or why the change must not be made.
    fn prior(&self, site: &Site<'_>) -> Result<Self::Prior, ChangeError>;

    /// Makes the change and reads back what the kernel took.
    fn apply(&self, site: &Site<'_>, prior: &Self::Prior) -> Result<Self::Effect, ChangeError>;

    /// Puts back what was there, as far as what is there now is ours.
    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError>;

    /// Directories that were made for it, the outermost first, which a reboot leaves.
    fn made_dirs(_: &Self::Prior) -> &[PathBuf] {
        &[]
    }

    /// The requested value and the one that the kernel or server took, where it is one value.
    fn asked_and_took(_: &Self::Effect) -> Option<(&str, &str)> {
        None
    }
}

/// What a change names that others make or set.
#[derive(Default)]
pub(crate) struct Uses<'a> {
    /// Paths that it needs, besides that of its device.
    places: Vec<&'a mut PathBuf>,
    /// The device that it works on.
    device: Option<&'a mut DeviceRef>,
    /// The name of the group that it makes, enters or starts something in.
    group: Option<&'a str>,
}

/// Where a change is made.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) platform: &'a dyn Platform,
    /// The session's changes that are in place, the oldest first.
    pub(crate) active: &'a [JournalEntry],
    /// The locked journal, which a server may have to hold; absent before the intent is in it.
    pub(crate) journal: Option<BorrowedFd<'a>>,
}

/// What a closed set holds under one of its names.
pub(crate) trait Member<Set>: Into<Set> + 'static {
    /// It, where it is this one that the set holds.
    fn of(set: &Set) -> Option<&Self>;
}

/// A closed set: its names, and what it holds under each. Lines of journals have the names.
macro_rules! set {
    ($(#[$meta:meta])* $vis:vis $set:ident { $($name:ident($held:ident),)* }) => {
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        $(#[$meta])*
        $vis enum $set {
            $(#[doc = concat!("[`", stringify!($held), "`].")] $name($held),)*
        }

        $(
            impl From<$held> for $set {
                fn from(held: $held) -> Self {
                    Self::$name(held)
                }
            }

            impl Member<$set> for $held {
                fn of(set: &$set) -> Option<&Self> {
                    match set {
                        $set::$name(held) => Some(held),
                        _ => None,
                    }
                }
            }
        )*
    };
}

/// Makes the sets and what is done by kind. `$d` is a dollar sign.
macro_rules! kinds {
    (
        ($d:tt)
        $(
            $file:ident::$kind:ident:
            $($prior:ident($before:ident))? => $($effect:ident($after:ident))?;
        )*
    ) => {
        $(
            pub use $file::$kind;
            $(pub(crate) use $file::$before;)?
            $(pub use $file::$after;)?
        )*

        set! {
            /// One change of the system.
            #[serde(tag = "change")]
            pub Change { $($kind($kind),)* }
        }

        set! {
            /// What was there before.
            #[serde(tag = "prior")]
            pub(crate) Prior { $($($prior($before),)?)* }
        }

        set! {
            /// What the kernel really did.
            #[serde(tag = "effect")]
            pub Effect { $($($effect($after),)?)* }
        }

        /// The number of kinds.
        #[cfg(test)]
        pub(crate) const KINDS: usize = [$(stringify!($kind)),*].len();

        /// The same of a change, whatever kind it is of.
        macro_rules! each {
            ($d change:expr, $d one:ident => $d done:expr) => {
                match $d change {
                    $(Change::$kind($d one) => $d done,)*
                }
            };
        }
    };
}

// Each kind with the file that it is whole in; what was there before it, and what came of it, where
// no kind above has the same.
kinds! {
    ($)
    file::BackingFile: NoFile(NoFile) => File(FileEffect);
    file::Loop: NoLoop(NoLoop) => Loop(LoopEffect);
    filesystem::MakeFilesystem: Nothing(Nothing) => Formatted(FormatEffect);
    filesystem::Mount: NoMount(NoMount) => Mounted(MountEffect);
    serving::FuseServer: NoServer(NoServer) => Served(ServerEffect);
    filesystem::Remount: Options(MountOptions) =>;
    queue::Queue: Queue(QueuePrior) => Queue(QueueEffect);
    tunable::DropCaches: => Dropped(DropEffect);
    tunable::Sysctl: Vm(VmPrior) => Vm(VmEffect);
    group::MemoryGroup: Group(GroupPrior) => Group(GroupEffect);
    group::CpuGroup: =>;
    group::IoGroup: =>;
    group::EnterGroup: Outside(Outside) => Entered(EnterEffect);
    tunable::Governor: Governor(GovernorPrior) => Governor(GovernorEffect);
    file::ServerDirectory: => Directory(DirectoryEffect);
    database::DatabaseServer: NoDatabaseServer(NoDatabaseServer) =>
        DatabaseServer(DatabaseServerEffect);
    settings::ServerSettings: ServerSettings(SettingsPrior) => ServerSettings(SettingsEffect);
    tracing::MountTracefs: Tracefs(TracefsPrior) => Tracefs(TracefsEffect);
    tracing::TraceInstance: NoInstance(NoInstance) => Instance(InstanceEffect);
}

impl Change {
    /// The change in one line.
    pub fn describe(&self) -> String {
        each!(self, one => one.describe())
    }

    /// Whether anything is to be put back. File systems that were made and caches that were dropped
    /// stay so.
    pub fn is_lasting(&self) -> bool {
        fn of<K: Kind>(_: &K) -> bool {
            K::IS_LASTING
        }
        each!(self, one => of(one))
    }

    /// Whether what it did is still there after a reboot.
    pub(crate) fn outlives_boot(&self) -> bool {
        fn of<K: Kind>(_: &K) -> bool {
            K::OUTLIVES_BOOT
        }
        each!(self, one => of(one))
    }

    /// Whether it is undone also where the journal can be written no more.
    pub(crate) fn may_go_unnoted(&self) -> bool {
        fn of<K: Kind>(_: &K) -> bool {
            K::MAY_GO_UNNOTED
        }
        each!(self, one => of(one))
    }

    /// The present value, if any.
    pub(crate) fn present(&self, platform: &dyn Platform) -> Option<String> {
        each!(self, one => one.present(platform))
    }

    /// The same with every path made absolute and free of links, so that it leads to the same
    /// place from a later process and reads as in the kernel's tables.
    #[must_use]
    pub(crate) fn located(mut self, real: impl Fn(&Path) -> PathBuf) -> Self {
        let Uses { places, device, .. } = self.uses();
        let device = device.map(|device| match device {
            DeviceRef::Loop { backing: path } | DeviceRef::Named { path, .. } => path,
        });
        places.into_iter().chain(device).for_each(|path| *path = real(path));
        self
    }

    fn uses(&mut self) -> Uses<'_> {
        each!(self, one => Kind::uses(one))
    }

    /// Whether it needs something below a directory.
    fn is_below(&self, dir: &Path) -> bool {
        self.clone().uses().places.iter().any(|place| place.starts_with(dir))
    }

    /// Whether it works on the loop device over a file.
    fn is_on(&self, file: &Path) -> bool {
        matches!(self.clone().uses().device, Some(DeviceRef::Loop { backing }) if backing == file)
    }

    /// Whether it makes, enters or starts something in the group of this name.
    fn is_in(&self, group: &str) -> bool {
        self.clone().uses().group == Some(group)
    }
}

/// Whether `later` stands on `earlier`.
pub(crate) fn stands_on(later: &Change, earlier: &Change) -> bool {
    later.is_lasting() && each!(earlier, one => one.carries(later))
}

/// What is there now, or why the change must not be made.
pub(crate) fn prior(change: &Change, site: &Site<'_>) -> Result<Prior, ChangeError> {
    each!(change, one => one.prior(site).map(Prior::from))
}

/// Makes the change and reads back what the kernel took.
pub(crate) fn apply(
    change: &Change,
    site: &Site<'_>,
    prior: &Prior,
) -> Result<Effect, ChangeError> {
    each!(change, one => one.apply(site, entry::prior_of(one, prior)?).map(Effect::from))
}

/// Puts back what was there, as far as what is there now is ours. `next` is undone right after it.
pub(crate) fn undo(
    platform: &dyn Platform,
    entry: &JournalEntry,
    next: &[JournalEntry],
) -> Result<Undone, ChangeError> {
    each!(&entry.change, one => Kind::undo(&Entry::of(one, entry, next)?, platform))
}

/// The requested value and the one that the kernel or server took, where it is one value.
pub(crate) fn asked_and_took<'a>(
    change: &Change,
    effect: &'a Effect,
) -> Option<(&'a str, &'a str)> {
    fn of<'a, K: Kind>(_: &K, effect: &'a Effect) -> Option<(&'a str, &'a str)> {
        K::asked_and_took(K::Effect::of(effect)?)
    }
    each!(change, one => of(one, effect))
}

/// Directories that were made for it, the outermost first, which a reboot leaves.
pub(crate) fn made_dirs(entry: &JournalEntry) -> &[PathBuf] {
    fn of<'a, K: Kind>(kind: &K, prior: &'a Prior) -> &'a [PathBuf] {
        entry::prior_of(kind, prior).map_or(&[], K::made_dirs)
    }
    each!(&entry.change, one => of(one, &entry.prior))
}
