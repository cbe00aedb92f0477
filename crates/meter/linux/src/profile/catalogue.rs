//! Which function of the kernel belongs to which layer.
//!
//! Purpose: plain tables, one per part of the kernel, and the look-up in them. A name that ends in
//! `*` stands for every function that begins so. Invariants: an exact name wins over a beginning,
//! the longest beginning wins, and a name stands in the tables once. Helpers that every layer calls
//! (memory, copying, timers, trees) are left out on purpose: their time belongs to their caller.
//! Names are those of Linux 5.10 to 6.18, and the ones that profiles of 2012 show.

mod block;
mod files;
mod kernel;
mod waits;

use std::collections::HashMap;
use std::sync::LazyLock;

use iostrata_run::host::KernelLayer;

/// Layers and the names that belong to each.
type LayerTable = &'static [(KernelLayer, &'static [&'static str])];

/// Exact names and beginnings.
struct Names<T: 'static> {
    exact: HashMap<&'static str, T>,
    beginnings: HashMap<&'static str, T>,
    longest: usize,
}

impl<T: Copy> Names<T> {
    fn new(entries: impl Iterator<Item = (&'static str, T)>) -> Self {
        let (mut exact, mut beginnings) = (HashMap::new(), HashMap::new());
        for (name, value) in entries {
            match name.strip_suffix('*') {
                Some(beginning) => beginnings.insert(beginning, value),
                None => exact.insert(name, value),
            };
        }
        let longest = beginnings.keys().map(|name| name.len()).max().unwrap_or(0);
        Self { exact, beginnings, longest }
    }

    fn of(&self, symbol: &str) -> Option<T> {
        if let Some(value) = self.exact.get(symbol) {
            return Some(*value);
        }
        (1..=symbol.len().min(self.longest))
            .rev()
            .filter_map(|length| self.beginnings.get(symbol.get(..length)?))
            .next()
            .copied()
    }
}

fn flat(table: LayerTable) -> impl Iterator<Item = (&'static str, KernelLayer)> {
    table.iter().flat_map(|(layer, names)| names.iter().map(|name| (*name, *layer)))
}

static LAYERS: LazyLock<Names<Option<KernelLayer>>> = LazyLock::new(|| {
    let known = [files::TABLE, block::TABLE, kernel::TABLE].into_iter().flat_map(flat);
    let callers = kernel::OF_THE_CALLER.iter().map(|name| (*name, None));
    Names::new(known.map(|(name, layer)| (name, Some(layer))).chain(callers))
});

static MODULES: LazyLock<Names<KernelLayer>> = LazyLock::new(|| Names::new(flat(block::MODULES)));

static WAITS: LazyLock<Names<KernelLayer>> = LazyLock::new(|| Names::new(flat(waits::TABLE)));

static HELPERS: LazyLock<Names<()>> =
    LazyLock::new(|| Names::new(waits::HELPERS.iter().map(|name| (*name, ()))));

static GO_BETWEENS: LazyLock<Names<()>> =
    LazyLock::new(|| Names::new(waits::GO_BETWEENS.iter().map(|name| (*name, ()))));

static LAST_STEPS: LazyLock<Names<()>> =
    LazyLock::new(|| Names::new(waits::LAST_STEPS.iter().map(|name| (*name, ()))));

static ROOTS: LazyLock<Names<()>> =
    LazyLock::new(|| Names::new(kernel::ROOTS.iter().map(|name| (*name, ()))));

/// A name without what the compiler appends: `dd_insert.isra.0` is `dd_insert`.
fn plain(symbol: &str) -> &str {
    symbol.split_once('.').map_or(symbol, |(name, _)| name)
}

/// The layer of a function; absent for a helper of its caller. `module` decides for the functions
/// of a module that have no name here.
pub(crate) fn layer(symbol: &str, module: &str) -> Option<KernelLayer> {
    match LAYERS.of(plain(symbol)) {
        Some(answer) => answer,
        None => MODULES.of(module),
    }
}

/// What a function waits for, where that differs from the layer it belongs to.
pub(crate) fn wait_layer(symbol: &str) -> Option<KernelLayer> {
    WAITS.of(plain(symbol))
}

/// Whether a function only helps others to wait.
pub(crate) fn is_wait_helper(symbol: &str) -> bool {
    HELPERS.of(plain(symbol)).is_some()
}

/// Whether a function waits or takes a lock for its caller.
pub(crate) fn is_go_between(symbol: &str) -> bool {
    GO_BETWEENS.of(plain(symbol)).is_some()
}

/// Whether a thread that is in this function never runs again.
pub(crate) fn is_last_step(symbol: &str) -> bool {
    LAST_STEPS.of(plain(symbol)).is_some()
}

/// Whether a stack that begins here belongs to no program.
pub(crate) fn is_kernel_root(symbol: &str) -> bool {
    ROOTS.of(plain(symbol)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_in_the_tables_once() {
        let mut seen = HashMap::new();
        let tables = [files::TABLE, block::TABLE, kernel::TABLE].into_iter().flat_map(flat);
        let names = tables.map(|(name, _)| name).chain(kernel::OF_THE_CALLER.iter().copied());
        for name in names {
            assert!(!name.is_empty() && name != "*", "an empty name matches everything");
            assert!(seen.insert(name, ()).is_none(), "{name} stands there twice");
        }
        for helper in waits::HELPERS {
            assert!(wait_layer(helper.trim_end_matches('*')).is_none(), "{helper} is no reason");
        }
    }

    #[test]
    fn the_exact_name_then_the_longest_beginning_decides() {
        use KernelLayer::{Block, Driver, Filesystem, Journal, Scheduler};
        assert_eq!(layer("ext4_file_write_iter", "[kernel]"), Some(Filesystem));
        assert_eq!(layer("ext4_journal_start_sb", "ext4"), Some(Journal));
        assert_eq!(layer("dd_insert_requests.isra.0", "[kernel]"), Some(Scheduler));
        assert_eq!(layer("blk_mq_get_tag", "[kernel]"), Some(Block));
        assert_eq!(layer("kfio_destroy_disk", "iomemory_vsl"), Some(Driver));
        assert_eq!(layer("some_helper", "xfs"), Some(Filesystem));
        assert_eq!(layer("some_helper", "[kernel]"), None);
        assert_eq!(layer("_raw_spin_unlock_irqrestore", "[kernel]"), None);
        assert_eq!(layer("\u{e9}\u{e9}", "[kernel]"), None);
    }
}
