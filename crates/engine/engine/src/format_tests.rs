//! docs/format.md agrees with the code: its tables, by heading, hold the code's numbers, and what
//! an engine wrote is read by them, and by the offsets there.

use std::collections::BTreeMap;
use std::path::Path;

use iostrata_innodb::{
    Counter, Counters, NO_PAGE, PageNo, STATUS_BYTES, Settings, StatusPage, TABLE_HASH, TableId,
};
use iostrata_io::disk::{Disk, FileName, MemDisk};

use crate::open::FIRST_LSN;
use crate::page::{Cell, Cells, Hunks, PageKind, PageSize, Record, layout as page};
use crate::pages::SuperField;
use crate::redo::layout as redo;
use crate::store::layout as store;
use crate::{Background, Disks, Engine};

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

/// The whole document.
pub(crate) struct Document(String);

/// One row of a table that draws a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub name: String,
    /// None where it lies behind something of any length.
    pub offset: Option<usize>,
    /// None where another field gives it.
    pub bytes: Option<usize>,
}

/// A structure as the document draws it.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub title: String,
    pub fields: Vec<Field>,
}

impl Document {
    pub fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/format.md");
        Self(std::fs::read_to_string(path).unwrap())
    }

    /// Every table with this head: the heading above it and its rows.
    pub fn tables(&self, head: &str) -> Vec<(String, Vec<Vec<String>>)> {
        let (mut title, mut found, mut is_in) = (String::new(), Vec::new(), false);
        for line in self.0.lines() {
            if let Some(heading) = line.strip_prefix('#') {
                title = heading.trim_start_matches('#').trim().to_owned();
            }
            if line == head {
                found.push((title.clone(), Vec::new()));
                is_in = true;
            } else if is_in && !line.starts_with('|') {
                is_in = false;
            } else if is_in && !line.starts_with("|---") {
                let cells = line.trim_matches('|').split('|');
                let cells = cells.map(|cell| cell.trim().to_owned()).collect();
                found.last_mut().unwrap().1.push(cells);
            }
        }
        found
    }

    /// The rows of the only table with this head.
    pub fn table(&self, head: &str) -> Vec<Vec<String>> {
        let mut tables = self.tables(head);
        assert_eq!(tables.len(), 1, "tables with the head {head}");
        tables.remove(0).1
    }

    /// Every structure.
    pub fn layouts(&self) -> Vec<Layout> {
        let number = |cell: &String| cell.parse().ok();
        let field = |row: &Vec<String>| Field {
            name: row[2].clone(),
            offset: number(&row[0]),
            bytes: number(&row[1]),
        };
        let tables = self.tables("| offset | bytes | field | meaning |").into_iter();
        tables
            .map(|(title, rows)| Layout { title, fields: rows.iter().map(field).collect() })
            .collect()
    }

    /// The structure under this heading.
    pub fn layout(&self, title: &str) -> Layout {
        let found = self.layouts().into_iter().find(|layout| layout.title == title);
        found.unwrap_or_else(|| panic!("no table under {title:?}"))
    }

    /// The lines of the block behind this heading.
    pub fn block(&self, heading: &str) -> Vec<String> {
        let (_, rest) = self.0.split_once(&format!("\n## {heading}\n")).unwrap();
        let (_, rest) = rest.split_once("```\n").unwrap();
        let (block, _) = rest.split_once("```").unwrap();
        block.lines().map(str::to_owned).collect()
    }
}

impl Layout {
    fn field(&self, name: &str) -> &Field {
        let found = self.fields.iter().find(|field| field.name == name);
        found.unwrap_or_else(|| panic!("{} has no field {name}", self.title))
    }

    pub fn offset(&self, name: &str) -> usize {
        self.field(name).offset.unwrap()
    }

    /// A field of a structure that begins at the first byte.
    pub fn bytes<'b>(&self, of: &'b [u8], name: &str) -> &'b [u8] {
        let at = self.offset(name);
        &of[at..at + self.field(name).bytes.unwrap()]
    }

    /// The same as a number.
    pub fn number(&self, of: &[u8], name: &str) -> u64 {
        let bytes = self.bytes(of, name).iter().rev();
        bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Whether the field `crc` holds the crc of these parts.
    pub fn is_sealed(&self, of: &[u8], parts: &[&[u8]]) -> bool {
        self.number(of, "crc") == u64::from(crc(&parts.concat()))
    }

    /// Offset and bytes of every field that has both, checked to follow each other.
    pub fn spans(&self) -> Vec<(String, usize, usize)> {
        let mut end = 0;
        let mut spans = Vec::new();
        for Field { name, offset, bytes } in &self.fields {
            let Some(offset) = *offset else { continue };
            assert_eq!(offset, end, "{name} of {} leaves a gap or overlaps", self.title);
            let Some(bytes) = *bytes else { break };
            end = offset + bytes;
            spans.push((name.clone(), offset, bytes));
        }
        spans
    }
}

/// CRC-32C, bit by bit, so that the library which the engine uses is checked too.
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0x82f6_3b78))
    })
}

const PAGE_BYTES: usize = 4096;
const FILES: usize = 2;
const BLOCK: usize = 4096;

fn settings() -> Settings {
    let mut settings = crate::tests::small();
    settings.set("data_files", "2").unwrap();
    settings
}

fn open(disk: &MemDisk) -> Engine {
    Engine::open_on(Disks::one(disk.clone()), settings(), Background::Manual).unwrap()
}

fn content(disk: &MemDisk, name: &str) -> Vec<u8> {
    disk.content(&FileName::new(name).unwrap()).unwrap()
}

fn page(disk: &MemDisk, page: usize) -> Vec<u8> {
    let file = content(disk, &format!("data-{:02}", page % FILES));
    let at = page / FILES * PAGE_BYTES;
    file[at..at + PAGE_BYTES].to_vec()
}

fn key(row: u32) -> Vec<u8> {
    format!("city-{row:04}").into_bytes()
}

/// An engine with a table of many rows, all written to its data files.
fn with_rows() -> (MemDisk, Engine) {
    let disk = MemDisk::new();
    let engine = open(&disk);
    let table = engine.create_table("cities").unwrap();
    for row in 0..100 {
        let mut batch = engine.batch();
        batch.put(&table, &key(row), &[row as u8; 100]).unwrap();
        batch.commit().unwrap();
    }
    engine.checkpoint().unwrap();
    (disk, engine)
}

/// The rows of a leaf or inner page, by slot.
fn rows(document: &Document, page: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let [header, slot, cell] = ["Page header", "Slot", "Cell"].map(|title| document.layout(title));
    let prefix = header.number(page, "prefix") as usize;
    let count = header.number(page, "count") as usize;
    let slots = page[64..].chunks(8).take(count);
    slots
        .map(|bytes| {
            let cell_bytes = &page[slot.number(bytes, "cell") as usize..];
            let key = cell.offset("key");
            let value = key + slot.number(bytes, "key_len") as usize;
            let end = value + cell.number(cell_bytes, "value_len") as usize;
            let key = cell_bytes[key..value].to_vec();
            let behind = key.get(prefix..).unwrap_or_default().iter().copied();
            let head =
                behind.chain([0; 4]).take(4).fold(0, |head, byte| head << 8 | u64::from(byte));
            assert_eq!(slot.number(bytes, "head"), head);
            assert_eq!(cell.number(cell_bytes, "flags"), 0);
            (key, cell_bytes[value..end].to_vec())
        })
        .collect()
}

#[test]
fn pages_are_written_as_drawn() {
    let document = Document::read();
    let header = document.layout("Page header");
    let (disk, engine) = with_rows();
    let report = engine.check().unwrap();
    let used = (0..report.pages_used as usize).map(|no| page(&disk, no));
    let newest = used.enumerate().map(|(no, page)| {
        assert_eq!(header.number(&page, "page_no"), no as u64);
        assert!(header.is_sealed(&page, &[&page[4..]]), "page {no}");
        header.number(&page, "lsn")
    });
    assert_eq!(newest.max(), Some(engine.parts().storage.redo.lsn().0));

    let (front, is) = (page(&disk, 0), document.layout("Super page"));
    assert_eq!(header.number(&front, "kind"), 4);
    let body = &front[64..];
    assert_eq!(is.bytes(body, "magic"), b"iostrata");
    let numbers = ["format", "page_bytes", "data_files", "next_table", "maps", "catalogue_root"];
    assert_eq!(numbers.map(|name| is.number(body, name)), [1, 4096, 2, 3, 1, 2]);
    let numbers = ["walk_table", "walk_key_bytes", "data_pages"];
    assert_eq!(numbers.map(|name| is.number(body, name)), [0, 0, 0], "it was never closed");

    let map = page(&disk, 1);
    assert_eq!(header.number(&map, "kind"), 3);
    let is_used = |no: usize| map[64 + no / 8] >> (no % 8) & 1 == 1;
    let bits: Vec<bool> = (0..8 * (PAGE_BYTES - 64)).map(is_used).collect();
    let used = report.pages_used as usize;
    assert!(bits[..used].iter().all(|bit| *bit) && bits[used..].iter().all(|bit| !*bit));

    let (catalogue, is) = (page(&disk, 2), document.layout("Catalogue row"));
    assert_eq!(["kind", "table"].map(|name| header.number(&catalogue, name)), [2, 1]);
    let rows_there = rows(&document, &catalogue);
    let [(name, row)] = rows_there.as_slice() else { panic!("{rows_there:?}") };
    assert_eq!((name.as_slice(), is.number(row, "table")), (&b"cities"[..], 2));
    assert_eq!((is.number(row, "root"), row.len()), (3, 12));
}

#[test]
fn trees_are_written_as_drawn() {
    let document = Document::read();
    let header = document.layout("Page header");
    let (disk, _engine) = with_rows();
    let root = page(&disk, 3);
    let of_root =
        ["kind", "level", "table", "left", "right"].map(|name| header.number(&root, name));
    assert_eq!(of_root, [1, 1, 2, 0, 0]);
    let children = rows(&document, &root);
    assert!(children.len() > 2 && children[0].0.is_empty());
    let (mut row, mut left) = (0, 0);
    for (slot, (separator, child)) in children.iter().enumerate() {
        let child = u64::from_le_bytes(child.as_slice().try_into().unwrap());
        let leaf = page(&disk, child as usize);
        assert_eq!(["kind", "level", "left"].map(|name| header.number(&leaf, name)), [2, 0, left]);
        let right = children.get(slot + 1).map_or(vec![0; 8], |(_, page)| page.clone());
        assert_eq!(header.bytes(&leaf, "right"), right);
        let top = header.number(&leaf, "heap_top") as usize;
        let cells = rows(&document, &leaf);
        let bytes: usize = cells.iter().map(|(key, value)| 3 + key.len() + value.len()).sum();
        assert_eq!(PAGE_BYTES - top, bytes + header.number(&leaf, "garbage") as usize);
        for (found, value) in cells {
            assert!(*separator <= found);
            assert_eq!((found, value), (key(row), vec![row as u8; 100]));
            row += 1;
        }
        left = child;
    }
    assert_eq!(row, 100);
}

#[test]
fn doublewrite_files_are_written_as_drawn() {
    let document = Document::read();
    let (disk, _engine) = with_rows();
    let mut copies = 0;
    for name in ["doublewrite-0", "doublewrite-1", "doublewrite-2", "doublewrite-3"] {
        let file = content(&disk, name);
        let is = document.layout("Doublewrite identity");
        assert_eq!(is.bytes(&file, "magic"), b"iostrdbl");
        assert!(is.is_sealed(&file, &[&file[..20]]));
        let numbers = ["version", "page_bytes", "data_files"].map(|name| is.number(&file, name));
        assert_eq!(numbers, [2, 4096, 2]);
        let is = document.layout("Doublewrite batch header");
        let batch = &file[BLOCK..];
        assert_eq!(is.bytes(batch, "magic"), b"iostrbat", "opening leaves an empty batch");
        let count = is.number(batch, "count") as usize;
        let kind = u64::from(count > 0);
        assert_eq!(["kind", "header_bytes"].map(|name| is.number(batch, name)), [kind, 4096]);
        assert!(is.number(batch, "settled") <= is.number(batch, "sequence"));
        assert!(is.bytes(batch, "zero").iter().all(|byte| *byte == 0));
        let entries = &batch[64..64 + 24 * count];
        assert!(is.is_sealed(batch, &[&batch[..60], entries]));
        let (header, is) = (document.layout("Page header"), document.layout("Doublewrite entry"));
        for (entry, copy) in entries.chunks(24).zip(batch[BLOCK..].chunks(PAGE_BYTES)) {
            let of_copy = ["page_no", "lsn", "crc"].map(|name| header.number(copy, name));
            assert_eq!(["page", "lsn", "crc"].map(|name| is.number(entry, name)), of_copy);
            copies += 1;
        }
    }
    assert!(copies > 1, "{copies} copies");
}

/// The log by LSN, put together from the segments that are in use.
fn log(document: &Document, disk: &MemDisk) -> BTreeMap<u64, Vec<u8>> {
    let is = document.layout("Segment header");
    let names = disk.list().unwrap().into_iter();
    let names = names.filter(|name| name.as_str().starts_with("redo-0"));
    let mut log = BTreeMap::new();
    let mut files = 0;
    for name in names {
        let file = content(disk, name.as_str());
        assert_eq!(is.bytes(&file, "magic"), b"IOSTREDO");
        assert!(is.is_sealed(&file, &[&file[..40]]), "{name}");
        let numbers = ["version", "payload_at", "payload_bytes"].map(|name| is.number(&file, name));
        assert_eq!((numbers, file.len()), ([1, 4096, 16384], 4096 + 16384));
        if is.number(&file, "sequence") > 0 {
            log.insert(is.number(&file, "first_lsn"), file[4096..].to_vec());
        }
        files += 1;
    }
    assert_eq!(files, 3, "64 KiB of redo");
    log
}

#[test]
fn redo_is_written_as_drawn() {
    let document = Document::read();
    let disk = MemDisk::new();
    let engine = open(&disk);
    let table = engine.create_table("cities").unwrap();
    let mut batch = engine.batch();
    batch.put(&table, b"lima", b"Peru").unwrap();
    let ticket = batch.commit_async().unwrap();
    ticket.wait().unwrap();
    let log = log(&document, &disk);
    assert_eq!(log.keys().collect::<Vec<_>>(), [&0], "one segment is in use");
    let (log, is) = (&log[&0], document.layout("Frame"));
    let (mut at, mut incarnation, mut frames) = (8192_u64, 1_u64, Vec::new());
    loop {
        let frame = &log[at as usize..];
        let len = is.number(frame, "len") as usize;
        if len == 0 {
            break;
        }
        let sealed = [&frame[8..8 + len], &at.to_le_bytes(), &incarnation.to_le_bytes()];
        assert!(is.is_sealed(frame, &sealed), "the frame at {at}");
        let body = &frame[is.offset("body")..8 + len];
        if is.number(frame, "kind") == 1 {
            incarnation = u64::from_le_bytes(body.try_into().unwrap());
        }
        frames.push((is.number(frame, "kind"), body.to_vec()));
        at += 8 + len as u64;
    }
    assert_eq!(at, ticket.lsn());
    assert_eq!(frames[0], (1, 2_u64.to_le_bytes().to_vec()), "the first incarnation frame");
    assert_eq!(frames.len(), 4, "that, the first pages, the table, the row");
    assert_eq!(frames[3], (0, b"\x03\x03\x00\x00\x04\x04limaPeru".to_vec()));
}

#[test]
fn the_control_file_is_written_as_drawn() {
    let document = Document::read();
    let is = document.layout("Control slot");
    let disk = MemDisk::new();
    let engine = open(&disk);
    let file = content(&disk, "redo-control");
    assert_eq!(file.len(), 2 * BLOCK);
    let (second, first) = file.split_at(BLOCK);
    for (slot, sequence, flags) in [(first, 1, 1), (second, 2, 3)] {
        let names =
            ["version", "flags", "sequence", "checkpoint_lsn", "incarnation", "durable_lsn"];
        assert_eq!(names.map(|name| is.number(slot, name)), [1, flags, sequence, 8192, 1, 8192]);
        let names = ["payload_bytes", "payload_at", "block_bytes"];
        assert_eq!(names.map(|name| is.number(slot, name)), [16384, 4096, 512]);
    }
    engine.clone().close().unwrap();
    let end = engine.parts().storage.redo.lsn().0;
    let file = content(&disk, "redo-control");
    let newest = file.chunks(BLOCK).max_by_key(|slot| is.number(slot, "sequence")).unwrap();
    assert_eq!(is.bytes(newest, "magic"), b"IOSTRCTL");
    assert!(is.is_sealed(newest, &[&newest[..64]]));
    let names = ["flags", "checkpoint_lsn", "incarnation", "durable_lsn"];
    assert_eq!(names.map(|name| is.number(newest, name)), [1, end, 2, end]);
}

#[test]
fn the_files_are_those_of_the_table() {
    let disk = MemDisk::new();
    let engine = open(&disk);
    let names: Vec<String> = disk.list().unwrap().iter().map(ToString::to_string).collect();
    let rows = Document::read().table("| file | directory | holds | written |");
    let said: Vec<&str> =
        rows.iter().flat_map(|row| row[0].split('`').skip(1).step_by(2)).collect();
    for name in &names {
        let counted = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let is_said = said.iter().any(|said| name == said || said.trim_end_matches('0') == counted);
        assert!(is_said, "{name} is none of {said:?}");
    }
    assert!(!names.contains(&"engine.creating".to_owned()));
    let text = content(&disk, "engine.settings");
    assert_eq!(text.len(), BLOCK);
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("\npage_size = 4K\ndata_files = 2\n") && text.ends_with("\n\n"));
    drop(engine);
}

#[test]
fn the_status_page_is_written_as_drawn() {
    let is = Document::read().layout("Status page");
    let mut counters = Counters::default();
    counters[Counter::BufferPoolPagesFree] = 0x0102;
    let page = StatusPage { sequence: 7, process_id: 99, unix_us: 1_234, counters };
    let mut bytes = [0xff; STATUS_BYTES];
    page.encode(&mut bytes);
    assert_eq!(is.bytes(&bytes, "magic"), b"IOSTATUS");
    let names = ["version", "process", "table", "sequence", "unix_us", "zero", "sequence_end"];
    let numbers = names.map(|name| is.number(&bytes, name));
    assert_eq!(numbers, [1, 99, TABLE_HASH, 7, 1_234, 0, 7]);
    assert!(is.is_sealed(&bytes, &[&bytes[..is.offset("crc")]]));
    let values: Vec<u8> = is.bytes(&bytes, "values").to_vec();
    assert_eq!(values[8..16], [2, 1, 0, 0, 0, 0, 0, 0], "the second counter of the catalogue");
    assert!(values[..8].iter().chain(&values[16..]).all(|byte| *byte == 0));
}
