//! The program as users and other programs call it: exact calls, bad input, signals.

mod bad_input;
mod exact_calls;
mod harness;
mod options;
mod signals;
