//! The run directory from outside: written, killed, read again, read from older versions.
#![allow(clippy::unwrap_used)]

mod checked;
mod damage;
mod fixture;
mod round_trip;
mod sample;
mod schema;
