//! The kernel's symbols: from an address to the function that holds it.
//!
//! Invariant: sorted by address, one name per address. A kernel that hides its addresses (all are
//! written as 0) gives an empty table that is marked as hidden. Parsing takes bytes, so that no
//! real kernel is needed.

use iostrata_run::host::KERNEL_MODULE;

/// An address so far past the last function belongs to none.
const LAST_BYTES_MAX: u64 = 1 << 20;

/// A function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    /// `[kernel]`, or the module's name without brackets.
    pub(crate) module: &'a str,
}

/// Functions by address.
#[derive(Debug, Default)]
pub(crate) struct Kallsyms {
    entries: Vec<SymbolEntry>,
    /// Names and modules, one after the other.
    text: String,
    are_hidden: bool,
}

#[derive(Clone, Copy, Debug)]
struct SymbolEntry {
    address: u64,
    name_at: u32,
    name_bytes: u16,
    module_bytes: u16,
    rank: (bool, u8, u16),
}

impl Kallsyms {
    /// Reads the text of `/proc/kallsyms`: `address type name [module]` per line. Data is skipped.
    pub(crate) fn parse(text: &str) -> Self {
        let mut table = Self::default();
        let mut functions = 0_usize;
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if !matches!(kind, "t" | "T" | "w" | "W" | "i") {
                continue;
            }
            functions += 1;
            let module = words.next().map_or("", |word| word.trim_matches(['[', ']']));
            if let Ok(address @ 1..) = u64::from_str_radix(address, 16) {
                table.add(address, kind, name, module);
            }
        }
        table.are_hidden = functions > 0 && table.entries.is_empty();
        table.entries.sort_by_key(|entry| (entry.address, entry.rank));
        table.entries.dedup_by_key(|entry| entry.address);
        table
    }

    fn add(&mut self, address: u64, kind: &str, name: &str, module: &str) {
        let (Ok(name_at), Ok(name_bytes), Ok(module_bytes)) = (
            u32::try_from(self.text.len()),
            u16::try_from(name.len()),
            u16::try_from(module.len()),
        ) else {
            return;
        };
        self.text.push_str(name);
        self.text.push_str(module);
        // Of several names for one address: a global one, then the one with fewest underscores in
        // front, then the shortest.
        let underscores = name.bytes().take_while(|&byte| byte == b'_').count().min(255) as u8;
        let rank = (kind != "T", underscores, name_bytes);
        self.entries.push(SymbolEntry { address, name_at, name_bytes, module_bytes, rank });
    }

    /// Whether the kernel lists functions and hides their addresses.
    pub(crate) fn are_hidden(&self) -> bool {
        self.are_hidden
    }

    /// Whether nothing can be named.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The function that holds an address; absent before the first and far past the last one.
    pub(crate) fn function(&self, address: u64) -> Option<Function<'_>> {
        let after = self.entries.partition_point(|entry| entry.address <= address);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        if after == self.entries.len() && address - entry.address > LAST_BYTES_MAX {
            return None;
        }
        let name_at = entry.name_at as usize;
        let module_at = name_at + usize::from(entry.name_bytes);
        let module = &self.text[module_at..module_at + usize::from(entry.module_bytes)];
        let module = if module.is_empty() { KERNEL_MODULE } else { module };
        Some(Function { name: &self.text[name_at..module_at], module })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000100 t __ext4_write
ffffffff81000100 W ext4_write
ffffffff81000200 D some_data
ffffffff81000300 t blk_mq_get_tag
ffffffffc0000000 t virtio_queue_rq\t[virtio_blk]
odd line
zzz t no_address
";

    fn name(table: &Kallsyms, address: u64) -> Option<(&str, &str)> {
        table.function(address).map(|function| (function.name, function.module))
    }

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let table = Kallsyms::parse(TEXT);
        assert!(!table.are_hidden());
        assert_eq!(name(&table, 0xffff_ffff_80ff_ffff), None);
        assert_eq!(name(&table, 0xffff_ffff_8100_0000), Some(("startup_64", "[kernel]")));
        assert_eq!(name(&table, 0xffff_ffff_8100_00ff), Some(("startup_64", "[kernel]")));
        assert_eq!(name(&table, 0xffff_ffff_8100_0250), Some(("ext4_write", "[kernel]")));
        assert_eq!(name(&table, 0xffff_ffff_8100_0300), Some(("blk_mq_get_tag", "[kernel]")));
        assert_eq!(name(&table, 0xffff_ffff_c000_0010), Some(("virtio_queue_rq", "virtio_blk")));
        assert_eq!(name(&table, 0xffff_ffff_d000_0000), None);
    }

    #[test]
    fn hidden_addresses_are_told_from_no_symbols() {
        let hidden = Kallsyms::parse("0000000000000000 T _text\n0000000000000000 t other\n");
        assert!(hidden.are_hidden() && hidden.is_empty());
        let none = Kallsyms::parse("");
        assert!(!none.are_hidden() && none.is_empty());
        assert_eq!(name(&hidden, 5), None);
    }

    #[test]
    fn the_running_kernel_can_be_read_or_hides() {
        let Ok(text) = std::fs::read_to_string("/proc/kallsyms") else {
            eprintln!("skipped: there is no /proc/kallsyms");
            return;
        };
        let table = Kallsyms::parse(&text);
        if table.are_hidden() {
            eprintln!("skipped: the kernel hides its addresses (kernel.kptr_restrict)");
            return;
        }
        assert!(table.entries.len() > 1_000, "{} functions", table.entries.len());
        assert!(
            table
                .entries
                .iter()
                .any(|entry| { name(&table, entry.address) == Some(("vfs_write", KERNEL_MODULE)) })
        );
    }
}
