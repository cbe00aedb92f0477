//! Stacks for tests, written as text.

use iostrata_run::host::KERNEL_MODULE;

use crate::profile::kallsyms::Function;

/// Functions separated by blanks, innermost first; `name@module` for a module's function.
pub(crate) fn stack(text: &str) -> Vec<Function<'_>> {
    let function = |word| match str::split_once(word, '@') {
        Some((name, module)) => Function { name, module },
        None => Function { name: word, module: KERNEL_MODULE },
    };
    text.split_ascii_whitespace().map(function).collect()
}
