//! What a profiler is asked to do.

/// Samples per second and processor unless asked otherwise: off the beat of everything that happens
/// 100 times a second.
pub const HZ: u32 = 99;

/// What to profile, and how finely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileOptions {
    /// Samples per second and processor.
    pub hz: u32,
    /// Every task of the machine and its idling, so that work done for this process by kernel
    /// threads and interrupts is seen. Where the system does not allow it, this process alone.
    pub system_wide: bool,
    /// Also trace where this process's threads wait. It costs a few us for every switch of a task
    /// on the machine: for a window of its own, apart from the measured one.
    pub off_cpu: bool,
}

impl Default for ProfileOptions {
    /// 99 Hz, the whole machine, no waits.
    fn default() -> Self {
        Self { hz: HZ, system_wide: true, off_cpu: false }
    }
}
