//! What the machine is and does.
//!
//! Purpose: [`host`] describes what lies under a directory and what the machine does meanwhile,
//! [`profile`] shows where the kernel spends its time and where threads wait, [`blocktrace`] where
//! a request's time goes between the application and the device. Invariant: it only observes; it
//! changes no setting, writes no file and prints nothing. The three are independent of each other.

pub mod blocktrace;
pub mod host;
pub mod profile;
