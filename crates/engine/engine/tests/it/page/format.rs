//! The bytes themselves: what is written today is read by every later version.

use iostrata_engine::page::{
    Cell, Cells, Hunks, PageEdit, PageKind, PageSize, PageView, Record, layout,
};
use iostrata_innodb::{Lsn, NO_PAGE, PageNo, TableId};

#[test]
fn a_page_has_these_bytes() {
    let mut page = vec![0xff; PageSize::MIN.bytes()];
    let mut edit = PageEdit::new(&mut page);
    let no = PageNo(0x0102);
    let (table, left, right) = (TableId(0x0a0b), PageNo(3), PageNo(4));
    for record in [
        Record::Init { kind: PageKind::Leaf, level: 0, table, left, right },
        Record::Insert { slot: 0, flags: 4, key: b"k/bbb", value: b"BB" },
        Record::Insert { slot: 0, flags: 0, key: b"k/aaaaaa", value: b"A" },
        Record::Insert { slot: 2, flags: 0, key: b"k/c", value: b"gone" },
        Record::Insert { slot: 3, flags: 0, key: b"k/d", value: b"" },
        Record::Delete { slot: 2 },
    ] {
        record.apply(&mut edit, no).unwrap();
    }
    edit.set_lsn(Lsn(0x55));
    edit.seal();
    let cells = *b"\x00\x00\x00k/d\x00\x04\x00k/cgone\x00\x01\x00k/aaaaaaA\x04\x02\x00k/bbbBB";
    let top = 4096 - cells.len();
    assert_eq!(page[top..], cells);
    assert!(page[layout::HEADER_BYTES + 4 * 8..top].iter().all(|byte| *byte == 0));
    let header: [&[u8]; 16] = [
        &[2, 0, 3, 0],                // kind, level, count
        &[2, 1, 0, 0, 0, 0, 0, 0],    // page number
        &[0x55, 0, 0, 0, 0, 0, 0, 0], // lsn
        &[0x0b, 0x0a, 0, 0],          // table
        &(top as u32).to_le_bytes(),  // heap top
        &[10, 0, 0, 0],               // garbage
        &[0; 4],                      // flags
        &[3, 0, 0, 0, 0, 0, 0, 0],    // left
        &[4, 0, 0, 0, 0, 0, 0, 0],    // right
        &[2, 0],                      // prefix "k/"
        &[2, 0],                      // appends
        &[0; 4],                      // reserved
        &[],
        &[0xea, 0x0f, 8, 0, b'a', b'a', b'a', b'a'], // slot 0
        &[0xf6, 0x0f, 5, 0, 0, b'b', b'b', b'b'],    // slot 1
        &[0xda, 0x0f, 3, 0, 0, 0, 0, b'd'],          // slot 2
    ];
    assert_eq!(page[4..64 + 3 * 8], header.concat());
    assert_eq!(page[..4], crc32c::crc32c(&page[4..]).to_le_bytes());
}

#[test]
fn records_have_these_bytes() {
    let mut cells = Vec::new();
    Cell { flags: 4, key: b"ab", value: b"c" }.push_to(&mut cells);
    assert_eq!(cells, b"\x04\x02\x01abc");
    let (table, left, right) = (TableId(9), PageNo(0x80), NO_PAGE);
    let init = Record::Init { kind: PageKind::Inner, level: 2, table, left, right };
    let image = Record::Image { kind: PageKind::Leaf, level: 0, table, left, right, body: &cells };
    let set = |set| Record::SetBits { from: 300, count: 2, set };
    let expected: [(Record<'_>, &[u8]); 13] = [
        (init, b"\x01\xac\x02\x01\x02\x09\x80\x01\x00"),
        (image, b"\x02\xac\x02\x02\x00\x09\x80\x01\x00\x06\x04\x02\x01abc"),
        (
            Record::Insert { slot: 1, flags: 4, key: b"k", value: b"vw" },
            b"\x03\xac\x02\x01\x04\x01\x02kvw",
        ),
        (Record::Delete { slot: 129 }, b"\x04\xac\x02\x81\x01"),
        (Record::Replace { slot: 1, value: b"vw" }, b"\x05\xac\x02\x01\x02vw"),
        (
            Record::Revise { slot: 1, flags: 4, len: 6, hunks: Hunks::new(b"\x02\x01p\x01\x02qr") },
            b"\x06\xac\x02\x01\x04\x06\x07\x02\x01p\x01\x02qr",
        ),
        (Record::Truncate { from: 3 }, b"\x07\xac\x02\x03"),
        (
            Record::Splice { at: 0, cells: Cells::new(&cells) },
            b"\x08\xac\x02\x00\x06\x04\x02\x01abc",
        ),
        (Record::SetLeft(PageNo(2)), b"\x09\xac\x02\x02"),
        (Record::SetRight(NO_PAGE), b"\x0a\xac\x02\x00"),
        (set(true), b"\x0b\xac\x02\xac\x02\x02"),
        (set(false), b"\x0c\xac\x02\xac\x02\x02"),
        (Record::SetSuper { at: 8, bytes: b"xyz" }, b"\x0d\xac\x02\x08\x03xyz"),
    ];
    let mut body = Vec::new();
    for (record, bytes) in expected {
        let mut out = Vec::new();
        record.encode(PageNo(300), &mut out);
        assert_eq!(out, bytes, "{record:?}");
        assert_eq!(Record::decode(&out), Ok((PageNo(300), record, out.len())));
        for cut in 0..out.len() {
            assert!(Record::decode(&out[..cut]).is_err(), "{record:?} cut at {cut}");
        }
        body.extend(out);
    }
    let (mut rest, mut all) = (&body[..], Vec::new());
    while !rest.is_empty() {
        let (_page, record, taken) = Record::decode(rest).unwrap();
        (rest, _) = (&rest[taken..], all.push(record));
    }
    assert_eq!(all, expected.map(|(record, _)| record));
}

#[test]
fn the_super_page_is_bytes_at_fixed_places() {
    for size in PageSize::ALL {
        let mut page = vec![1; size.bytes()];
        let mut edit = PageEdit::new(&mut page);
        let no = PageNo(0);
        let (table, left, right) = (TableId(0), NO_PAGE, NO_PAGE);
        Record::Init { kind: PageKind::Super, level: 0, table, left, right }
            .apply(&mut edit, no)
            .unwrap();
        let last = size.body_bytes() - 4;
        Record::SetSuper { at: 16, bytes: b"magic" }.apply(&mut edit, no).unwrap();
        Record::SetSuper { at: last, bytes: b"last" }.apply(&mut edit, no).unwrap();
        assert!(Record::SetSuper { at: last + 1, bytes: b"last" }.apply(&mut edit, no).is_err());
        assert!(Record::SetSuper { at: usize::MAX, bytes: b"x" }.apply(&mut edit, no).is_err());
        assert_eq!(&edit.view().body()[16..21], b"magic");
        assert_eq!(&edit.view().body()[last..], b"last");
        edit.seal();
        let view = PageView::new(&page);
        assert_eq!((view.verify(no), view.verify_structure()), (Ok(()), Ok(())));
        let (mut buffer, mut copy) = (Vec::new(), vec![2; size.bytes()]);
        Record::image_of(&view, &mut buffer).apply(&mut PageEdit::new(&mut copy), no).unwrap();
        PageEdit::new(&mut copy).seal();
        assert_eq!(copy, page);
    }
}
