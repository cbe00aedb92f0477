//! The kernel's block queue above a drive.

mod kernel;

pub use kernel::{
    REQUESTS_DEFAULT, REQUESTS_MIN, SCHEDULED_REQUESTS_MAX, Scheduler, requests_taken,
};
