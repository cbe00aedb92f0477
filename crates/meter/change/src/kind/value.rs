//! What undoing has in common for everything that has a value.

use crate::effect::Undone;
use crate::error::ChangeError;

/// Sets a value back by `put`, unless it is as before already, or somebody else's by now.
pub(super) fn undo(
    thing: String,
    now: &str,
    was: &str,
    is_ours: bool,
    put: impl FnOnce() -> Result<(), ChangeError>,
) -> Result<Undone, ChangeError> {
    if now == was {
        return Ok(Undone::as_before());
    }
    if !is_ours {
        return Ok(Undone::left_alone(thing, now, was));
    }
    put().map(|()| Undone::put_back())
}
