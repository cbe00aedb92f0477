//! The kernel's ring buffer, read as the kernel describes it: the fields of events, the layout of
//! pages (`events/header_page`), and a page as a sequence of records.
//!
//! Invariant: a field is read only where the description puts it and only as far as the record
//! reaches; nothing is read beyond the page or its stated length, whatever the bytes hold; a page
//! that ends in the middle of a record ends before it. Source: the kernel's documentation of the
//! ring buffer's design, and the file `events/header_event`. A header is a 32-bit word: 5 bits of
//! type or length, 27 bits of time since the record before.

/// One event's description: the file `format`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFormat {
    /// The number that records of this event carry.
    pub(crate) id: u16,
    fields: Vec<Field>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    name: String,
    /// Bytes from the start of the record.
    pub(crate) offset: usize,
    /// Bytes.
    pub(crate) size: usize,
}

impl EventFormat {
    /// Reads the text of a `format` file; `None` where it has no number.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        Some(Self { id, fields: parse_fields(text) })
    }

    /// The field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.is_named(name))
    }
}

/// Every line of the form `field:TYPE NAME; offset:N; size:N; ...`.
fn parse_fields(text: &str) -> Vec<Field> {
    text.lines().filter_map(parse_field).collect()
}

fn parse_field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let name = declaration.split('[').next()?.split_whitespace().last()?.trim_start_matches('*');
    let number = |part: &str, key: &str| part.strip_prefix(key)?.parse::<usize>().ok();
    let offset = number(parts.next()?, "offset:")?;
    let size = number(parts.next()?, "size:")?;
    Some(Field { name: name.to_owned(), offset, size })
}

impl Field {
    /// Whether this is its name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// Its bytes in a record.
    pub(crate) fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Its value as an unsigned number; negative ones keep the bits of their own width.
    pub(crate) fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        match bytes.len() {
            1 => bytes.first().map(|&byte| u64::from(byte)),
            2 => bytes.try_into().ok().map(|bytes| u64::from(u16::from_ne_bytes(bytes))),
            4 => bytes.try_into().ok().map(|bytes| u64::from(u32::from_ne_bytes(bytes))),
            8 => bytes.try_into().ok().map(u64::from_ne_bytes),
            _ => None,
        }
    }

    /// Its text, up to the first zero.
    pub(crate) fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        self.bytes(record)?.split(|&byte| byte == 0).next()
    }
}

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

/// Type of a record that was taken back, or of the rest of a page.
const PADDING: u32 = 29;
/// Type of a record that only carries a long time since the one before.
const TIME_EXTEND: u32 = 30;
/// Type of a record that only carries an absolute time.
const TIME_STAMP: u32 = 31;
/// Bits of time in a header.
const DELTA_BITS: u32 = 27;
/// An absolute time has this many bits; the rest are those of the time before.
const STAMP_BITS: u32 = 59;
/// Bits of the length of a page.
const LENGTH_MASK: u64 = 0xf_ffff;
/// Flag: records were lost before this page.
const LOST: u64 = 1 << 31;
/// Flag: how many were lost follows the last record.
const LOST_STORED: u64 = 1 << 30;

/// A record with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRecord<'a> {
    /// In nanoseconds of the trace's clock.
    pub(crate) ns: u64,
    /// Fields as the event's format lays them out.
    pub(crate) payload: &'a [u8],
}

/// The records of one page.
pub(crate) struct Page<'a> {
    left: &'a [u8],
    ns: u64,
    /// Records lost before this page; 1 where the kernel does not report how many.
    pub(crate) lost: u64,
}

impl<'a> Page<'a> {
    /// The page that `bytes` begin with; `None` when they are too few for its header.
    pub(crate) fn new(layout: &PageLayout, bytes: &'a [u8]) -> Option<Self> {
        let ns = layout.timestamp.number(bytes)?;
        let commit = layout.commit.number(bytes)?;
        let data = bytes.get(layout.data_offset..)?;
        let length = usize::try_from(commit & LENGTH_MASK).ok()?.min(data.len());
        let (left, after) = data.split_at(length);
        let lost = match (commit & LOST != 0, commit & LOST_STORED != 0) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => {
                after.first_chunk().map_or(1, |bytes| u64::from_ne_bytes(*bytes)).max(1)
            }
        };
        Some(Self { left, ns, lost })
    }

    fn word(&mut self) -> Option<u32> {
        let (word, left) = self.left.split_first_chunk()?;
        self.left = left;
        Some(u32::from_ne_bytes(*word))
    }

    fn payload(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (payload, left) = self.left.split_at_checked(bytes)?;
        self.left = left;
        Some(payload)
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = PageRecord<'a>;

    fn next(&mut self) -> Option<PageRecord<'a>> {
        loop {
            let header = self.word()?;
            let (kind, delta) = (header & 0x1f, u64::from(header >> 5));
            let bytes = match kind {
                TIME_EXTEND => {
                    let high = u64::from(self.word()?) << DELTA_BITS;
                    self.ns = self.ns.wrapping_add(high + delta);
                    continue;
                }
                TIME_STAMP => {
                    let low = (u64::from(self.word()?) << DELTA_BITS) + delta;
                    self.ns = (self.ns >> STAMP_BITS << STAMP_BITS) | low;
                    continue;
                }
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.ns = self.ns.wrapping_add(delta);
                    // The length counts its own word.
                    let length = usize::try_from(self.word()?).ok()?;
                    self.payload(length.checked_sub(4)?)?;
                    continue;
                }
                // A long record: the word after the header is its length, counting itself.
                0 => usize::try_from(self.word()?)
                    .ok()?
                    .checked_sub(4)?
                    .checked_next_multiple_of(4)?,
                words => words as usize * 4,
            };
            self.ns = self.ns.wrapping_add(delta);
            return Some(PageRecord { ns: self.ns, payload: self.payload(bytes)? });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMAT: &str = "name: block_getrq\nID: 2096\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:sector_t sector;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:16;\tsize:10;\tsigned:0;\n\
        \tfield:const char * buf;\toffset:26;\tsize:8;\tsigned:0;\n\
        \nprint fmt: \"%d,%d\", field:x\n";

    #[test]
    fn fields_are_read_where_the_kernel_puts_them() {
        let format = EventFormat::parse(FORMAT).unwrap();
        assert_eq!(format.id, 2096);
        let mut record = vec![0; 26];
        record[8..16].copy_from_slice(&77_u64.to_ne_bytes());
        record[16..18].copy_from_slice(b"WS");
        assert_eq!(format.field("sector").unwrap().number(&record), Some(77));
        assert_eq!(format.field("rwbs").unwrap().text(&record), Some(&b"WS"[..]));
        assert_eq!(format.field("buf").unwrap().number(&record), None);
        assert_eq!(format.field("dev"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "(field:|offset:|size:|ID:|[a-z0-9;: \n\\[])*", bytes: Vec<u8>) {
            for field in parse_fields(&text) {
                field.number(&bytes);
                field.text(&bytes);
            }
            EventFormat::parse(&text);
        }
    }

    #[test]
    fn pages_are_laid_out_as_described() {
        let layout = PageLayout::parse(HEADER_PAGE).unwrap();
        assert_eq!((layout.data_offset, layout.page_bytes), (16, 4096));
        assert_eq!(PageLayout::parse("field: u64 timestamp; offset:0; size:8;"), Err("data"));
    }

    fn layout() -> PageLayout {
        PageLayout::parse(HEADER_PAGE).unwrap()
    }

    fn header(kind: u32, delta: u32) -> [u8; 4] {
        (kind | delta << 5).to_ne_bytes()
    }

    /// A page as the kernel would write it.
    pub(crate) fn page(ns: u64, flags: u64, data: &[u8]) -> Vec<u8> {
        let mut bytes = ns.to_ne_bytes().to_vec();
        bytes.extend((data.len() as u64 | flags).to_ne_bytes());
        bytes.extend(data);
        bytes.resize(4096, 0xff);
        bytes
    }

    /// A record of this payload, so many nanoseconds after the one before.
    pub(crate) fn record(delta: u32, payload: &[u8]) -> Vec<u8> {
        assert!(payload.len().is_multiple_of(4) && payload.len() <= 112);
        let mut bytes = header(payload.len() as u32 / 4, delta).to_vec();
        bytes.extend(payload);
        bytes
    }

    fn walk(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let page = Page::new(&layout(), bytes).unwrap();
        page.map(|record| (record.ns, record.payload.to_vec())).collect()
    }

    #[test]
    fn short_and_long_records_follow_each_other() {
        let mut data = record(5, b"abcd");
        data.extend(header(0, 7));
        data.extend(10_u32.to_ne_bytes());
        data.extend(b"efghijkl");
        data.extend(record(1, b"mnop"));
        let found = walk(&page(1000, 0, &data));
        let wanted = [(1005, &b"abcd"[..]), (1012, b"efghijkl"), (1013, b"mnop")];
        assert_eq!(found, wanted.map(|(ns, bytes)| (ns, bytes.to_vec())));
    }

    #[test]
    fn times_are_extended_replaced_and_padded() {
        let mut data = header(TIME_EXTEND, 3).to_vec();
        data.extend(2_u32.to_ne_bytes());
        data.extend(record(1, b"abcd"));
        data.extend(header(PADDING, 10));
        data.extend(8_u32.to_ne_bytes());
        data.extend(b"gone");
        data.extend(record(1, b"efgh"));
        data.extend(header(TIME_STAMP, 9));
        data.extend(1_u32.to_ne_bytes());
        data.extend(record(0, b"ijkl"));
        data.extend(header(PADDING, 0));
        data.extend(record(0, b"mnop"));
        let base = 1 << 60;
        let first = base + (2 << DELTA_BITS) + 3 + 1;
        let found: Vec<u64> = walk(&page(base, 0, &data)).into_iter().map(|(ns, _)| ns).collect();
        assert_eq!(found, [first, first + 11, base + (1 << DELTA_BITS) + 9]);
    }

    #[test]
    fn lost_records_are_counted() {
        let lost = |bytes: &[u8]| Page::new(&layout(), bytes).unwrap().lost;
        let data = record(0, b"abcd");
        assert_eq!(lost(&page(0, 0, &data)), 0);
        assert_eq!(lost(&page(0, LOST, &data)), 1);
        let mut counted = page(0, LOST | LOST_STORED, &data);
        counted[24..32].copy_from_slice(&42_u64.to_ne_bytes());
        assert_eq!(lost(&counted), 42);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(page) = Page::new(&layout(), &bytes) {
                prop_assert!(page.count() <= bytes.len());
            }
        }

        #[test]
        fn what_was_written_is_read(
            payloads in prop::collection::vec((0_u32..1 << 27, 1_usize..28), 0..30)
        ) {
            let mut data = Vec::new();
            let mut ns = 7;
            let mut wanted = Vec::new();
            for (delta, words) in payloads {
                let payload = vec![words as u8; words * 4];
                data.extend(record(delta, &payload));
                ns += u64::from(delta);
                wanted.push((ns, payload));
            }
            prop_assert_eq!(walk(&page(7, 0, &data)), wanted);
        }
    }
}
