//! The two changes of the system that make a served disk: the server, and the loop device over it.

use std::path::Path;

use iostrata_change::{Change, DeviceRef};

use crate::emudisk::arguments::{ArgumentsError, ServeArguments, text};
use crate::emudisk::options::disk_file;

/// Sectors of a served disk as the block layer sees them.
const BLOCK_BYTES: u32 = 512;

/// What to apply, in this order, so that `arguments` are served by `program` and there is a block
/// device over it. `holds_journal` as in [`Change::FuseServer`].
///
/// # Errors
/// A path that cannot be an argument of a program.
pub fn changes(
    program: &Path,
    arguments: &ServeArguments,
    holds_journal: bool,
) -> Result<[Change; 2], ArgumentsError> {
    let at = text(&arguments.at)?;
    let backing = disk_file(Path::new(&at));
    let server = Change::FuseServer {
        at: at.into(),
        program: text(program)?.into(),
        arguments: arguments.to_vector()?,
        holds_journal,
    };
    Ok([server, Change::Loop { backing, direct: true, block_bytes: Some(BLOCK_BYTES) }])
}

/// The block device of the disk that is served at `at`, once both changes are in place.
pub fn device(at: &Path) -> DeviceRef {
    DeviceRef::Loop { backing: disk_file(at) }
}
