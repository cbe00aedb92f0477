//! Where an event keeps its fields, as the kernel describes it.
//!
//! Invariant: a field is read only where the description puts it and only as far as the record
//! reaches; what is not there is absent.

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
pub(crate) fn parse_fields(text: &str) -> Vec<Field> {
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

#[cfg(test)]
mod tests {
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
}
