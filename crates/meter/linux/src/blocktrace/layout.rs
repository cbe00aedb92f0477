//! How the kernel lays out a page of its ring buffer: the file `events/header_page`.

use crate::blocktrace::format::{Field, parse_fields};

/// Where a page keeps its time, its length and its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    /// Time of the first record, in nanoseconds.
    pub(crate) timestamp: Field,
    /// Bytes of records, with two flags at the top.
    pub(crate) commit: Field,
    /// Start of the records.
    pub(crate) data_offset: usize,
    /// Bytes of a whole page.
    pub(crate) page_bytes: usize,
}

impl PageLayout {
    /// Reads the description; the error is what it lacks.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let fields = parse_fields(text);
        let named = |name: &'static str| {
            fields.iter().find(|field| field.is_named(name)).cloned().ok_or(name)
        };
        let data = named("data")?;
        Ok(Self {
            timestamp: named("timestamp")?,
            commit: named("commit")?,
            data_offset: data.offset,
            page_bytes: data.offset.checked_add(data.size).ok_or("data")?,
        })
    }
}

#[cfg(test)]
pub(crate) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_laid_out_as_described() {
        let layout = PageLayout::parse(HEADER_PAGE).unwrap();
        assert_eq!((layout.data_offset, layout.page_bytes), (16, 4096));
        assert_eq!(PageLayout::parse("field: u64 timestamp; offset:0; size:8;"), Err("data"));
    }
}
