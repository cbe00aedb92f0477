//! Where the kernel spends its time in a window, and where threads wait.
//!
//! Purpose: sample every processor's kernel stack around something that is measured, and trace
//! where this process's threads sleep; fold both by layer of the I/O path. Invariant: it only
//! observes: it changes no setting, writes no file and prints nothing; between start and stop only
//! one thread runs, which sleeps nearly all the time. It does not look into programs.
//!
//! How to read it: a timer cannot sample while interrupts are off. Such time shows where they are
//! turned on again (`_raw_spin_unlock_irqrestore`, `finish_task_switch`), on the right stack; the
//! layer is that of the caller. Hardware cycles, where the processors count them, have no such
//! blind spot.

mod catalogue;
mod collector;
mod event;
mod fold;
mod kallsyms;
mod profiler;
mod record;
mod source;
mod switches;

pub use profiler::{HZ, ProfileOptions, Profiler};
pub use source::ProfileError;
