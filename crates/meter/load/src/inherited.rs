//! A descriptor that a parent process left open for this one.
#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Takes ownership of an inherited descriptor.
pub(crate) fn take(descriptor: RawFd) -> OwnedFd {
    assert!(descriptor > 2, "descriptor {descriptor} is a standard stream");
    // SAFETY: called once, at the start of a worker process, with the number under which the parent
    // left the shared statistics open; nothing else in this process knows the number.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}
