//! From counted addresses to a profile by layer, symbol and stack.
//!
//! Invariant: every sample lands in exactly one layer and in one stack, so both add up to all
//! samples. Pure: the symbols are given.

use iostrata_run::host::{
    FoldedStack, FoldedStackTime, KERNEL_MODULE, KernelLayer, LayerSamples, LayerShare, LayerTime,
    OffCpu, OffCpuWait, Profile, SymbolShare,
};

use crate::catalogue;
use crate::kallsyms::{Function, Kallsyms};
use crate::layers::place;
use crate::samples::Samples;
use crate::switches::{Switches, Tally, Wait};
use crate::wait::reason;

/// The one frame that stands for a program.
const PROGRAM: &str = "user";
/// An address that no function holds.
const UNKNOWN: &str = "(unknown)";
/// Idle time that was computed, not sampled.
const COMPUTED_IDLE: &str = "(idle)";

/// Fills in layers, symbols, stacks and the number of samples.
pub(crate) fn fold(samples: &Samples, idle_computed: u64, symbols: &Kallsyms) -> Profile {
    let mut profile = Profile {
        samples: samples.total + idle_computed,
        lost: samples.lost,
        ..Profile::default()
    };
    for (chain, &count) in &samples.kernel {
        let stack = named(chain, symbols);
        let place = place(&stack);
        let taken_in = place.taken_in.map(|layer| LayerSamples { layer, samples: count });
        let mut row = Row { layer: place.layer, taken_in, samples: count };
        if stack.is_empty() {
            row.add(&mut profile, UNKNOWN, KERNEL_MODULE, vec![UNKNOWN.to_owned()]);
        } else {
            row.add(&mut profile, stack[0].name, stack[0].module, frames(&stack));
        }
    }
    for (program, &samples) in &samples.programs {
        let mut row = Row { layer: KernelLayer::User, taken_in: None, samples };
        row.add(&mut profile, PROGRAM, program, vec![PROGRAM.to_owned()]);
    }
    if idle_computed > 0 {
        let mut row = Row { layer: KernelLayer::Idle, taken_in: None, samples: idle_computed };
        row.add(&mut profile, COMPUTED_IDLE, KERNEL_MODULE, vec![COMPUTED_IDLE.to_owned()]);
    }
    profile.ranked()
}

struct Row {
    layer: KernelLayer,
    taken_in: Option<LayerSamples>,
    samples: u64,
}

impl Row {
    fn add(&mut self, profile: &mut Profile, symbol: &str, module: &str, frames: Vec<String>) {
        let Self { layer, samples, .. } = *self;
        let taken_in = self.taken_in.take().into_iter().collect();
        profile.layers.push(LayerShare { layer, samples, pct: 0.0, taken_in });
        let (symbol, module) = (symbol.to_owned(), module.to_owned());
        profile.symbols.push(SymbolShare { symbol, module, layer, samples, pct: 0.0 });
        profile.stacks.push(FoldedStack { frames, layer, samples });
    }
}

/// The functions of a chain, innermost first. All but the first address are where a call returns
/// to, which may be past the end of the caller: the byte before belongs to the call.
fn named<'a>(chain: &[u64], symbols: &'a Kallsyms) -> Vec<Function<'a>> {
    let unknown = Function { name: UNKNOWN, module: KERNEL_MODULE };
    chain
        .iter()
        .enumerate()
        .map(|(depth, &address)| if depth == 0 { address } else { address.saturating_sub(1) })
        .map(|address| symbols.function(address).unwrap_or(unknown))
        .collect()
}

/// A stack as views show it: from the outermost, programs as one frame.
fn frames(stack: &[Function<'_>]) -> Vec<String> {
    let is_program = stack.last().is_some_and(|root| !catalogue::is_kernel_root(root.name));
    let kernel = stack.iter().rev().map(|function| match function.module {
        KERNEL_MODULE => function.name.to_owned(),
        module => format!("{} [{module}]", function.name),
    });
    is_program.then(|| PROGRAM.to_owned()).into_iter().chain(kernel).collect()
}

/// What the switches of a window came to.
pub(crate) fn fold_waits(switches: &Switches, seconds: f64, symbols: &Kallsyms) -> OffCpu {
    let mut off_cpu = OffCpu {
        seconds,
        threads: switches.threads.len() as u32,
        lost: switches.lost,
        ..OffCpu::default()
    };
    let stacks = switches.stacks();
    for (wait, tally) in &switches.waits {
        add_wait(&mut off_cpu, *wait, tally, &named(stacks[wait.stack as usize], symbols));
    }
    off_cpu.ranked()
}

fn add_wait(off_cpu: &mut OffCpu, wait: Wait, tally: &Tally, stack: &[Function<'_>]) {
    let Some(reason) = reason(stack, wait.preempted) else { return };
    let us = |ns: u64| ns as f64 / 1e3;
    let (layer, count, total_us) = (reason.layer, tally.count, us(tally.total_ns));
    off_cpu.count += count;
    off_cpu.total_us += total_us;
    off_cpu.unfinished += tally.unfinished;
    off_cpu.layers.push(LayerTime { layer, count, total_us, pct: 0.0 });
    off_cpu.waits.push(OffCpuWait {
        symbol: reason.symbol,
        caller: reason.caller,
        layer,
        taken_in: reason.taken_in,
        count,
        total_us,
        mean_us: 0.0,
        max_us: us(tally.max_ns),
    });
    off_cpu.stacks.push(FoldedStackTime { frames: frames(stack), layer, count, total_us });
}
