//! Two pages: one changed by records, the other by what the records are after the log.

use iostrata_engine::page::{
    ApplyFault, PageEdit, PageKind, PageSize, PageView, Record, row_bytes,
};
use iostrata_innodb::{NO_PAGE, PageNo, TableId};
use proptest::test_runner::Config as ProptestConfig;

/// The number of every page in these tests.
pub const NO: PageNo = PageNo(42);

/// So many cases of a property; a hundred times as many in a soak.
pub fn cases(cases: u32) -> ProptestConfig {
    let times = if std::env::var_os("IOSTRATA_SOAK").is_some() { 100 } else { 1 };
    ProptestConfig { cases: cases * times, failure_persistence: None, ..Default::default() }
}

pub struct Twin {
    one: Vec<u8>,
    other: Vec<u8>,
}

impl Twin {
    /// Two pages whose bytes differ until the first record formats them.
    pub fn new(size: PageSize, kind: PageKind) -> Self {
        let mut twin = Self { one: vec![0xa5; size.bytes()], other: vec![0x5a; size.bytes()] };
        let level = u8::from(kind == PageKind::Inner);
        let (left, right) = (PageNo(41), NO_PAGE);
        twin.apply(&Record::Init { kind, level, table: TableId(7), left, right }).unwrap();
        twin
    }

    pub fn view(&self) -> PageView<'_> {
        PageView::new(&self.one)
    }

    /// Applies the record to one page, and what its encoding decodes to to the other. Both come
    /// out the same and sound, and unchanged when the record is refused.
    pub fn apply(&mut self, record: &Record<'_>) -> Result<(), ApplyFault> {
        let mut log = vec![0xee];
        record.encode(NO, &mut log);
        let taken = log.len() - 1;
        log.push(0xee);
        let (no, decoded, consumed) = Record::decode(&log[1..]).unwrap();
        assert_eq!((no, decoded, consumed), (NO, *record, taken));
        let before = self.one.clone();
        let result = record.apply(&mut PageEdit::new(&mut self.one), NO);
        assert_eq!(decoded.apply(&mut PageEdit::new(&mut self.other), NO), result);
        assert!(self.one == self.other, "{record:?} gave two different pages");
        if result.is_err() {
            assert!(self.one == before, "{record:?} was refused and changed the page");
        }
        assert_eq!(self.view().verify_structure(), Ok(()), "after {record:?}");
        result
    }

    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), ApplyFault> {
        let slot = self.view().find(key).unwrap_err();
        self.apply(&Record::Insert { slot, flags: 0, key, value })
    }

    pub fn rows(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        rows_of(&self.view())
    }
}

pub fn rows_of(page: &PageView<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..page.count()).map(|slot| (page.key(slot).to_vec(), page.value(slot).to_vec())).collect()
}

/// Whether a row of so many bytes can be inserted.
pub fn fits(page: &PageView<'_>, key_len: usize, value_len: usize) -> bool {
    row_bytes(key_len, value_len) <= page.free_bytes()
        && page.size().check_row(key_len, value_len).is_ok()
}

/// Whether the value of this slot can become one of so many bytes.
pub fn fits_replace(page: &PageView<'_>, slot: usize, value_len: usize) -> bool {
    let key_len = page.key(slot).len();
    row_bytes(key_len, value_len) <= page.free_bytes() + page.row_bytes(slot)
        && page.size().check_row(key_len, value_len).is_ok()
}
