//! Options of a mount that is in place.
//!
//! Invariant: only mounts that the same session made, and only options with an opposite: setting
//! the opposite, or the value before, undoes them. Afterwards all options are compared.

use std::path::Path;

use super::mounting::topmost;
use crate::change::Change;
use crate::effect::{Effect, Left, Prior, Undone};
use crate::error::ChangeError;
use crate::journal::JournalEntry;
use crate::platform::Platform;

/// Options and what undoes them.
const OPPOSITES: &[(&str, &str)] = &[
    ("ro", "rw"),
    ("nodiratime", "diratime"),
    ("lazytime", "nolazytime"),
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("sync", "async"),
    ("nobarrier", "barrier"),
    ("barrier=0", "barrier=1"),
    ("discard", "nodiscard"),
    ("nodelalloc", "delalloc"),
    ("dioread_nolock", "dioread_lock"),
    ("noauto_da_alloc", "auto_da_alloc"),
    ("ssd", "nossd"),
];
/// When access times are kept: one of these holds.
const TIMES: &[&str] = &["noatime", "relatime", "strictatime"];
/// Options with a value, and the value that the kernel shows by showing nothing.
const VALUED: &[(&str, &str)] = &[("commit", "5"), ("stripe", "0"), ("max_batch_time", "15000")];

pub(super) fn prior(
    platform: &dyn Platform,
    at: &Path,
    options: &[String],
    active: &[JournalEntry],
) -> Result<Prior, ChangeError> {
    let is_ours = |entry: &JournalEntry| match &entry.change {
        Change::Mount { at: other, .. } => other == at,
        _ => false,
    };
    let mount = topmost(platform, at)?.filter(|_| active.iter().any(is_ours));
    let Some(mount) = mount else {
        return Err(ChangeError::Refused {
            device: at.display().to_string(),
            found: "it is not a mount of this session".to_owned(),
            fix: "mount it with the same session first".to_owned(),
        });
    };
    let all = mount.all_options();
    let undo = options.iter().map(|option| opposite(option, &all)).collect::<Result<_, _>>()?;
    Ok(Prior::Options { undo, all })
}

/// What sets an option back to what it is now.
fn opposite(option: &str, now: &[String]) -> Result<String, ChangeError> {
    if now.iter().any(|one| one == option) {
        return Ok(option.to_owned());
    }
    if TIMES.contains(&option) {
        // Strict is what the kernel shows by showing nothing.
        let holds = TIMES.iter().find(|time| now.iter().any(|one| one == *time));
        return Ok(holds.unwrap_or(&"strictatime").to_string());
    }
    let pair = OPPOSITES.iter().find_map(|&(on, off)| match option {
        _ if option == on => Some(off),
        _ if option == off => Some(on),
        _ => None,
    });
    let valued = option.split_once('=').and_then(|(name, _)| {
        let before = now.iter().find(|one| one.starts_with(&format!("{name}="))).cloned();
        let unset = || VALUED.iter().find(|(valued, _)| *valued == name);
        before.or_else(|| unset().map(|(name, value)| format!("{name}={value}")))
    });
    match (pair, valued) {
        (Some(pair), _) => Ok(pair.to_owned()),
        (None, Some(valued)) => Ok(valued),
        (None, None) => Err(ChangeError::unavailable(
            format!("to set {option} on a mount that is in place"),
            "no other option is known that undoes it",
            "give it when mounting",
        )),
    }
}

pub(super) fn apply(
    platform: &dyn Platform,
    at: &Path,
    options: &[String],
) -> Result<Effect, ChangeError> {
    platform.remount(at, options).map_err(|refusal| {
        ChangeError::unavailable(
            format!("{} set to {}", at.display(), options.join(",")),
            refusal.said,
            "leave the option out, or give it when mounting",
        )
    })?;
    let options = topmost(platform, at)?.map(|mount| mount.all_options()).unwrap_or_default();
    Ok(Effect::Mounted { at: at.to_owned(), options })
}

pub(super) fn undo(
    platform: &dyn Platform,
    at: &Path,
    undo: &[String],
    before: &[String],
    was_done: bool,
) -> Result<Undone, ChangeError> {
    let sorted = |mut options: Vec<String>| {
        options.sort();
        options
    };
    let before = sorted(before.to_vec());
    // What mounted it is undone after this and knows whose mount it is; gone is gone.
    let Some(mount) = topmost(platform, at)? else { return Ok(Undone::as_before()) };
    if sorted(mount.all_options()) == before {
        return Ok(Undone::as_before());
    }
    platform.remount(at, undo).map_err(|refusal| {
        ChangeError::unavailable(
            format!("{} set back to {}", at.display(), undo.join(",")),
            refusal.said,
            "unmount it",
        )
    })?;
    let now = topmost(platform, at)?.map(|mount| sorted(mount.all_options())).unwrap_or_default();
    let mut undone = Undone::put_back();
    if now != before && was_done {
        let thing = format!("options of the mount {}", at.display());
        undone.left.push(Left { thing, found: now.join(","), prior: before.join(",") });
    }
    Ok(undone)
}

#[cfg(test)]
mod tests {
    use super::opposite;

    #[test]
    fn every_option_that_is_taken_has_a_way_back() {
        let now = ["rw", "relatime", "commit=30"].map(str::to_owned);
        let back = |option| opposite(option, &now).ok();
        assert_eq!(back("noatime").as_deref(), Some("relatime"));
        assert_eq!(back("strictatime").as_deref(), Some("relatime"));
        assert_eq!(opposite("noatime", &[]).ok().as_deref(), Some("strictatime"));
        assert_eq!(back("nobarrier").as_deref(), Some("barrier"));
        assert_eq!(back("barrier").as_deref(), Some("nobarrier"));
        assert_eq!(back("commit=60").as_deref(), Some("commit=30"));
        assert_eq!(back("stripe=16").as_deref(), Some("stripe=0"));
        assert_eq!(back("rw").as_deref(), Some("rw"));
        assert_eq!(back("data=journal"), None);
    }
}
