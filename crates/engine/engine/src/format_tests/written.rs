//! What an engine wrote, read by the offsets of docs/format.md.

use std::collections::BTreeMap;

use iostrata_innodb::{Counter, Counters, STATUS_BYTES, StatusPage, TABLE_HASH};
use iostrata_io::disk::{Disk, FileName, MemDisk};

use super::document::Document;
use crate::{Background, Disks, Engine, Settings};

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
