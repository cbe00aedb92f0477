//! What the kernel is asked to record: one description per kind of event.
//!
//! Invariant: every event stores the same three things per sample, in this order: process and
//! thread, time (CLOCK_MONOTONIC, in ns), kernel call chain. `record` relies on it.

use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_CLOCK,
    PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_HARDWARE,
    PERF_TYPE_SOFTWARE, perf_event_attr,
};

/// Deepest call chain that is kept; stacks of a file system over a loop device reach 60.
const FRAMES_MAX: u16 = 127;

fn sampling(event_type: u32, config: u64, period: u64) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: event_type,
        size: size_of::<perf_event_attr>() as u32,
        config,
        sample_type: u64::from(PERF_SAMPLE_TID)
            | u64::from(PERF_SAMPLE_TIME)
            | u64::from(PERF_SAMPLE_CALLCHAIN),
        sample_max_stack: FRAMES_MAX,
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attr.sample_period = period;
    attr.set_disabled(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr.set_exclude_callchain_user(1);
    attr
}

/// A sample every 1/hz s of a processor's time, idle or not.
pub(crate) fn cpu_clock(hz: u32) -> perf_event_attr {
    let period_ns = 1_000_000_000 / u64::from(hz);
    sampling(PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_CPU_CLOCK), period_ns)
}

/// A sample every so many cycles; an idle processor makes none.
pub(crate) fn cycles(period: u64) -> perf_event_attr {
    sampling(PERF_TYPE_HARDWARE, u64::from(PERF_COUNT_HW_CPU_CYCLES), period)
}

/// A record of every switch: the stack of the task that leaves, and who comes and goes.
///
/// The software event does what the tracepoint sched:sched_switch does, at the same place in the
/// kernel, and needs no mounted tracefs to be named.
pub(crate) fn switches() -> perf_event_attr {
    let mut attr = sampling(PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_CONTEXT_SWITCHES), 1);
    attr.set_context_switch(1);
    attr
}

/// A plain counter of cycles, running at once.
pub(crate) fn cycle_counter() -> perf_event_attr {
    perf_event_attr {
        type_: PERF_TYPE_HARDWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: u64::from(PERF_COUNT_HW_CPU_CYCLES),
        ..perf_event_attr::default()
    }
}
