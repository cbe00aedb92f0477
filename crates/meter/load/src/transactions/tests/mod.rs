//! The loop of transactions against stand-ins, on virtual time.

mod pacing;
mod settling;
mod stand_in;
mod terminals;
