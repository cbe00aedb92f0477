//! docs/format.md as the tests use it: tables by heading, fields by name.

use std::path::Path;

/// The whole document.
pub struct Document(String);

/// One row of a table that draws a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// None where it lies behind something of any length.
    pub offset: Option<usize>,
    /// None where another field says it.
    pub bytes: Option<usize>,
}

/// A structure as the document draws it.
#[derive(Clone, Debug)]
pub struct Layout {
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
pub fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0x82f6_3b78))
    })
}
