//! docs/format.md says what the code does: its tables hold the code's numbers, and what an engine
//! wrote is read by them.

#[cfg(test)]
mod document;
#[cfg(test)]
mod written;

use iostrata_innodb::{NO_PAGE, PageNo, STATUS_BYTES, Settings, TableId};

use crate::open::FIRST_LSN;
use crate::page::{Cell, Cells, Hunks, PageKind, PageSize, Record, layout as page};
use crate::pages::SuperField;
use crate::redo::layout as redo;
use crate::store::layout as store;
use document::Document;

/// Fields with the offsets of the code; the last is the end.
type Expected = (&'static str, Vec<(&'static str, usize)>);

fn of_pages() -> Vec<Expected> {
    let header = ["crc", "kind", "level", "count", "page_no", "lsn", "table", "heap_top"];
    let header = header.into_iter().chain(["garbage", "flags", "left", "right", "prefix"]);
    let header = header.chain(["appends", "reserved"]).zip(page::HEADER_FIELDS);
    let header = header.map(|(name, (at, _))| (name, at));
    let slot = vec![
        ("cell", page::SLOT_AT_CELL),
        ("key_len", page::SLOT_AT_KEY_LEN),
        ("head", page::SLOT_AT_HEAD),
        ("", page::SLOT_BYTES),
    ];
    let cell = vec![
        ("flags", page::CELL_AT_FLAGS),
        ("value_len", page::CELL_AT_VALUE_LEN),
        ("", page::CELL_HEADER_BYTES),
    ];
    let version = vec![
        ("number", page::VERSION_AT_NUMBER),
        ("older", page::VERSION_AT_OLDER),
        ("", page::VERSION_BYTES),
    ];
    let front = vec![
        ("magic", SuperField::Magic.offset()),
        ("format", SuperField::Format.offset()),
        ("page_bytes", SuperField::PageBytes.offset()),
        ("data_files", SuperField::DataFiles.offset()),
        ("next_table", SuperField::NextTable.offset()),
        ("maps", SuperField::Maps.offset()),
        ("catalogue_root", SuperField::CatalogueRoot.offset()),
        ("walk_table", SuperField::WalkTable.offset()),
        ("walk_key_bytes", SuperField::WalkKeyBytes.offset()),
        ("data_pages", SuperField::DataPages.offset()),
        ("identity", SuperField::Identity.offset()),
        ("", SuperField::WalkKey.offset()),
    ];
    vec![
        ("Page header", header.chain([("", page::HEADER_BYTES)]).collect()),
        ("Slot", slot),
        ("Cell", cell),
        ("Super page", front),
        ("Version", version),
        ("Catalogue row", vec![("table", 0), ("root", 4), ("", 12)]),
    ]
}

fn of_the_doublewrite() -> Vec<Expected> {
    let identity = vec![
        ("magic", 0),
        ("version", store::identity::VERSION),
        ("page_bytes", store::identity::PAGE_BYTES),
        ("data_files", store::identity::DATA_FILES),
        ("crc", store::identity::CRC),
        ("", store::identity::CRC + 4),
    ];
    let batch = vec![
        ("magic", 0),
        ("sequence", store::batch::SEQUENCE),
        ("settled", store::batch::SETTLED),
        ("kind", store::batch::KIND),
        ("count", store::batch::COUNT),
        ("header_bytes", store::batch::HEADER_BYTES),
        ("zero", store::batch::HEADER_BYTES + 4),
        ("crc", store::batch::CRC),
        ("", store::batch::ENTRIES),
    ];
    let entry = vec![
        ("page", store::entry::PAGE),
        ("lsn", store::entry::LSN),
        ("crc", store::entry::CRC),
        ("zero", store::entry::CRC + 4),
        ("", store::entry::BYTES),
    ];
    vec![
        ("Doublewrite identity", identity),
        ("Doublewrite batch header", batch),
        ("Doublewrite entry", entry),
    ]
}

fn of_the_redo() -> Vec<Expected> {
    let header = vec![
        ("magic", redo::header::MAGIC),
        ("version", redo::header::VERSION),
        ("payload_at", redo::header::PAYLOAD_AT),
        ("first_lsn", redo::header::FIRST_LSN),
        ("payload_bytes", redo::header::PAYLOAD_BYTES),
        ("sequence", redo::header::SEQUENCE),
        ("crc", redo::header::CRC),
        ("", redo::header::BYTES),
    ];
    let frame = vec![
        ("len", redo::frame::LEN),
        ("crc", redo::frame::CRC),
        ("kind", redo::frame::KIND),
        ("", redo::frame::OVERHEAD_BYTES),
    ];
    let control = vec![
        ("magic", redo::control::MAGIC),
        ("version", redo::control::VERSION),
        ("flags", redo::control::FLAGS),
        ("sequence", redo::control::SEQUENCE),
        ("checkpoint_lsn", redo::control::CHECKPOINT_LSN),
        ("incarnation", redo::control::INCARNATION),
        ("durable_lsn", redo::control::DURABLE_LSN),
        ("payload_bytes", redo::control::PAYLOAD_BYTES),
        ("payload_at", redo::control::PAYLOAD_AT),
        ("block_bytes", redo::control::BLOCK_BYTES),
        ("crc", redo::control::CRC),
        ("zero", redo::control::BYTES),
        ("identity", redo::control::IDENTITY),
        ("identity_crc", redo::control::IDENTITY_CRC),
        ("", redo::control::IDENTITY_CRC + 4),
    ];
    vec![("Segment header", header), ("Frame", frame), ("Control slot", control)]
}

/// Its offsets are private; what is written is checked in `written`.
fn of_the_status() -> Vec<Expected> {
    let crc = STATUS_BYTES - 16;
    let page = vec![
        ("magic", 0),
        ("version", 8),
        ("process", 12),
        ("table", 16),
        ("sequence", 24),
        ("unix_us", 32),
        ("values", 40),
        ("crc", crc),
        ("zero", crc + 4),
        ("sequence_end", crc + 8),
        ("", STATUS_BYTES),
    ];
    vec![("Status page", page)]
}

#[test]
fn every_structure_is_drawn_as_the_code_has_it() {
    let all = [of_pages(), of_the_doublewrite(), of_the_redo(), of_the_status()].concat();
    let document = Document::read();
    let titles: Vec<String> = document.layouts().into_iter().map(|layout| layout.title).collect();
    assert_eq!(titles.len(), all.len(), "structures in the document: {titles:?}");
    for (title, fields) in all {
        let next = fields[1..].iter().map(|(_, at)| *at);
        let spans = fields.iter().zip(next);
        let spans: Vec<_> =
            spans.map(|((name, at), end)| (name.to_string(), *at, end - at)).collect();
        assert_eq!(document.layout(title).spans(), spans, "{title}");
    }
}

#[test]
fn numbers_and_limits_are_those_of_the_code() {
    let document = Document::read();
    let numbers: Vec<(String, u64)> = [
        ("page", "HEADER_BYTES", page::HEADER_BYTES as u64),
        ("page", "SLOT_BYTES", page::SLOT_BYTES as u64),
        ("page", "CELL_HEADER_BYTES", page::CELL_HEADER_BYTES as u64),
        ("redo", "CONTROL_SLOT_BYTES", redo::CONTROL_SLOT_BYTES as u64),
        ("redo", "HEADER_BLOCK_BYTES", redo::HEADER_BLOCK_BYTES as u64),
        ("redo", "GRANULE_BYTES", redo::GRANULE_BYTES),
        ("redo", "WIDE_SEGMENT_BYTES", redo::WIDE_SEGMENT_BYTES),
        ("redo", "SEGMENTS_WANTED", redo::SEGMENTS_WANTED),
        ("redo", "SEGMENTS_MIN", redo::SEGMENTS_MIN),
        ("redo", "SEGMENTS_MAX", redo::SEGMENTS_MAX),
        ("redo", "CAPACITY_BYTES_MIN", redo::CAPACITY_BYTES_MIN),
        ("redo", "FRAME_BYTES_MAX", redo::frame::BYTES_MAX as u64),
        ("redo", "INCARNATION_BYTES", redo::frame::INCARNATION_BYTES as u64),
        ("engine", "FIRST_LSN", FIRST_LSN.0),
        ("store", "BLOCK_BYTES", store::BLOCK_BYTES as u64),
        ("store", "BATCH_AT", store::BATCH_AT),
        ("store", "DOUBLEWRITE_PAGES_MAX", u64::from(store::DOUBLEWRITE_PAGES_MAX)),
        ("store", "DATA_FILES_MAX", u64::from(store::DATA_FILES_MAX)),
        ("settings", "STATUS_BYTES", STATUS_BYTES as u64),
    ]
    .map(|(room, name, value)| (format!("{room} `{name}`"), value))
    .into();
    let rows = document.table("| name | value | what |").into_iter();
    let rows: Vec<_> = rows.map(|row| (row[0].clone(), row[1].parse().unwrap())).collect();
    assert_eq!(rows, numbers);

    let head = "| page size | longest key | longest key and value together \
                | pages of one space page |";
    let limits = PageSize::ALL.map(|size| {
        let (key, row) = (size.key_bytes_max(), size.row_bytes_max() - page::VERSION_BYTES);
        [size.bytes(), key, row, size.space_bits() as usize].map(|number| number.to_string())
    });
    assert_eq!(document.table(head), limits);
}

#[test]
fn every_record_has_the_bytes_of_its_example() {
    let mut cells = Vec::new();
    Cell { flags: 4, key: b"ab", value: b"c" }.push_to(&mut cells);
    let (table, left, right) = (TableId(9), PageNo(0x80), NO_PAGE);
    let hunks = Hunks::new(b"\x02\x01p\x01\x02qr");
    let bits = |set| Record::SetBits { from: 300, count: 2, set };
    let records = [
        Record::Init { kind: PageKind::Inner, level: 2, table, left, right },
        Record::Image { kind: PageKind::Leaf, level: 0, table, left, right, body: &cells },
        Record::Insert { slot: 1, flags: 4, key: b"k", value: b"vw" },
        Record::Delete { slot: 129 },
        Record::Replace { slot: 1, value: b"vw" },
        Record::Revise { slot: 1, flags: 4, len: 6, hunks },
        Record::Truncate { from: 3 },
        Record::Splice { at: 0, cells: Cells::new(&cells) },
        Record::SetLeft(PageNo(2)),
        Record::SetRight(NO_PAGE),
        bits(true),
        bits(false),
        Record::SetSuper { at: 8, bytes: b"xyz" },
    ];
    let rows = Document::read().table("| number | record | fields | example, for page 300 |");
    assert_eq!(rows.len(), records.len());
    for (row, record) in rows.iter().zip(records) {
        let mut bytes = Vec::new();
        record.encode(PageNo(300), &mut bytes);
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(row[3], format!("`{}`", hex.join(" ")), "{record:?}");
        assert_eq!(row[0], bytes[0].to_string());
        let said = format!("{record:?}");
        let is_named = said.starts_with(&row[1]) || (row[1] == "ClearBits" && bytes[0] == 12);
        assert!(is_named, "{} is {said}", row[1]);
    }
}

#[test]
fn settings_are_kept_as_shown() {
    let shown = Document::read().block("engine.settings");
    let text = Settings::default().to_text(&Settings::left_out());
    let text: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(text, shown);
}
