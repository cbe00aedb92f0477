//! Columns as they stand in keys: bytes in the order of the values; and why a value or an argument
//! cannot be taken.
//!
//! Invariant: of two values the lesser one has the lesser bytes, and the bytes of no value begin
//! with those of another. So a key of several columns is in the order of its columns, and the keys
//! that share their first columns share their first bytes. It does not depend on rows or tables.

use iostrata_database::target::{ColumnType, Value};

/// Behind characters; less than any of them.
const END: u8 = 0;
/// Before a character that is [`END`] or this one itself, which are written as 1 and 2.
const ESCAPE: u8 = 1;
/// Before a value of a column that may hold nothing; nothing is [`END`] and comes first.
const THERE: u8 = 1;

/// How a column stands in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyField {
    kind: KeyKind,
    is_nullable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyKind {
    Number { bytes: u8 },
    Text { is_padded: bool },
}

/// Why a value cannot stand in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMisfit {
    /// Nothing, in a column that holds something.
    Null,
    /// Less than anything that the column holds.
    Below,
    /// More than anything that the column holds.
    Above,
    /// Characters for a number, or a number for characters.
    Kind,
}

impl KeyField {
    /// Of a column.
    pub fn new(of: ColumnType, is_nullable: bool) -> Self {
        let is_padded = matches!(of, ColumnType::Char(_));
        let kind = match number_bytes(of) {
            Some(bytes) => KeyKind::Number { bytes },
            None => KeyKind::Text { is_padded },
        };
        Self { kind, is_nullable }
    }

    /// Its bytes, where they are always as many.
    pub fn width(self) -> Option<usize> {
        match self.kind {
            KeyKind::Number { bytes } if !self.is_nullable => Some(bytes.into()),
            KeyKind::Number { .. } | KeyKind::Text { .. } => None,
        }
    }

    /// Adds a value; what does not fit adds nothing.
    ///
    /// # Errors
    /// Why the value cannot stand in a key.
    #[inline]
    pub fn push(self, value: Value<'_>, key: &mut Vec<u8>) -> Result<(), KeyMisfit> {
        match (self.kind, value) {
            (_, Value::Null) if self.is_nullable => {
                key.push(END);
                return Ok(());
            }
            (_, Value::Null) => return Err(KeyMisfit::Null),
            (KeyKind::Number { bytes }, Value::Int(number)) => {
                check_number(number, bytes)?;
                if self.is_nullable {
                    key.push(THERE);
                }
                push_number(number, bytes, key);
            }
            (KeyKind::Text { is_padded }, Value::Text(text)) => {
                if self.is_nullable {
                    key.push(THERE);
                }
                push_text(if is_padded { without_padding(text) } else { text }, key);
            }
            (KeyKind::Number { .. }, Value::Text(_)) | (KeyKind::Text { .. }, Value::Int(_)) => {
                return Err(KeyMisfit::Kind);
            }
        }
        Ok(())
    }

    /// Adds what comes before every value, and behind nothing.
    pub fn push_least(self, key: &mut Vec<u8>) {
        if self.is_nullable {
            key.push(THERE);
        }
    }

    /// The value at the beginning of a key, and the bytes behind it; `None` when it is invalid.
    /// `text` is where characters go that stand otherwise in the key.
    #[inline]
    pub fn read<'k>(self, key: &'k [u8], text: &'k mut Vec<u8>) -> Option<(Value<'k>, &'k [u8])> {
        let key = match (self.is_nullable, key) {
            (false, key) => key,
            (true, [END, rest @ ..]) => return Some((Value::Null, rest)),
            (true, [THERE, rest @ ..]) => rest,
            (true, _) => return None,
        };
        match self.kind {
            KeyKind::Number { bytes } => {
                let (number, rest) = key.split_at_checked(bytes.into())?;
                Some((Value::Int(read_number(number)), rest))
            }
            KeyKind::Text { .. } => {
                let end = key.iter().position(|byte| *byte == END)?;
                let (written, rest) = (&key[..end], &key[end + 1..]);
                if !written.contains(&ESCAPE) {
                    return Some((Value::Text(written), rest));
                }
                unescape(written, text)?;
                Some((Value::Text(text), rest))
            }
        }
    }
}

/// How wide numbers of a column are; none for characters.
pub(crate) fn number_bytes(of: ColumnType) -> Option<u8> {
    match of {
        ColumnType::Int { bytes } => Some(bytes.clamp(1, 8)),
        ColumnType::Decimal { digits: 0..=2, .. } => Some(1),
        ColumnType::Decimal { digits: 3..=4, .. } => Some(2),
        ColumnType::Decimal { digits: 5..=9, .. } => Some(4),
        ColumnType::Decimal { .. } | ColumnType::DateTime => Some(8),
        ColumnType::Char(_) | ColumnType::Varchar(_) | ColumnType::LongText => None,
    }
}

/// The least and the greatest number of so many bytes.
pub(crate) fn number_range(bytes: u8) -> (i64, i64) {
    let unused = 64 - 8 * u32::from(bytes);
    (i64::MIN >> unused, i64::MAX >> unused)
}

/// Characters without the blanks at their end, which a padded column fills up.
pub(crate) fn without_padding(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

/// Turns the beginning of keys into what comes behind all of them; false when nothing does.
pub(crate) fn pass_prefix(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if let Some(next) = last.checked_add(1) {
            key.push(next);
            return true;
        }
    }
    false
}

fn check_number(number: i64, bytes: u8) -> Result<(), KeyMisfit> {
    let (least, most) = number_range(bytes);
    match number {
        number if number < least => Err(KeyMisfit::Below),
        number if number > most => Err(KeyMisfit::Above),
        _ => Ok(()),
    }
}

/// From the highest byte on, with the sign turned round, so that negative numbers come first.
fn push_number(number: i64, bytes: u8, key: &mut Vec<u8>) {
    let unused = 64 - 8 * u32::from(bytes);
    let bits = (number.cast_unsigned() << unused) ^ (1 << 63);
    key.extend_from_slice(&bits.to_be_bytes()[..bytes.into()]);
}

fn read_number(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_be_bytes(wide) ^ (1 << 63);
    bits.cast_signed() >> (64 - 8 * bytes.len())
}

fn push_text(text: &[u8], key: &mut Vec<u8>) {
    for byte in text {
        match *byte {
            byte @ (END | ESCAPE) => key.extend_from_slice(&[ESCAPE, byte + 1]),
            byte => key.push(byte),
        }
    }
    key.push(END);
}

fn unescape(written: &[u8], text: &mut Vec<u8>) -> Option<()> {
    text.clear();
    let mut bytes = written.iter();
    while let Some(byte) = bytes.next() {
        match *byte {
            ESCAPE => text.push(bytes.next()?.checked_sub(1)?),
            byte => text.push(byte),
        }
    }
    Some(())
}

// Why a value or an argument cannot be taken, and the small things about characters.

/// Why a value does not go into its column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each text says what its fields are")]
pub enum ValueError {
    #[error("column {column} always holds something, and nothing was given")]
    Null { column: String },
    #[error("column {column} holds {takes}, and {found} was given")]
    Kind { column: String, takes: &'static str, found: String },
    #[error("{found} is beyond column {column}, which holds {least} to {most}")]
    Range { column: String, found: String, least: i64, most: i64 },
    #[error("column {column} holds {most} {unit}, and {found} were given")]
    Long { column: String, most: usize, unit: &'static str, found: usize },
}

impl ValueError {
    /// Characters where a number belongs, or the other way round.
    pub(crate) fn kind(column: &str, is_text: bool, found: Value<'_>) -> Self {
        let takes = if is_text { "characters" } else { "a number" };
        Self::Kind { column: column.to_owned(), takes, found: format!("{found:?}") }
    }

    /// A value that cannot stand in a key.
    pub(crate) fn misfit(
        column: &str,
        found: Value<'_>,
        misfit: KeyMisfit,
        (least, most): (i64, i64),
    ) -> Self {
        let column = column.to_owned();
        match misfit {
            KeyMisfit::Null => Self::Null { column },
            KeyMisfit::Kind => Self::kind(&column, matches!(found, Value::Int(_)), found),
            KeyMisfit::Below | KeyMisfit::Above => {
                Self::Range { column, found: format!("{found:?}"), least, most }
            }
        }
    }
}

/// The number of characters; of what is no UTF-8, how many bytes that begin one.
pub(crate) fn characters(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.iter().filter(|byte| begins_character(**byte)).count()
}

/// How many bytes the first characters take, at most so many of them.
pub(crate) fn bytes_of_characters(text: &[u8], most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let beginnings = text.iter().enumerate().filter(|(_, byte)| begins_character(**byte));
    beginnings.map(|(at, _)| at).nth(most).unwrap_or(text.len())
}

fn begins_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A value that may be kept.
    type Owned = Option<Result<i64, Vec<u8>>>;

    fn value(owned: &Owned) -> Value<'_> {
        match owned {
            None => Value::Null,
            Some(Ok(number)) => Value::Int(*number),
            Some(Err(text)) => Value::Text(text),
        }
    }

    fn of_column(column: u8) -> BoxedStrategy<Owned> {
        let number = |bytes| {
            let (least, most) = number_range(bytes);
            prop_oneof![least..=most, (-3_i64..3), Just(least), Just(most)].prop_map(Ok)
        };
        let text = || {
            let byte = prop_oneof![Just(0_u8), Just(1), Just(2), Just(255), any::<u8>()];
            proptest::collection::vec(byte, 0..6).prop_map(Err)
        };
        let value = match column {
            0 => number(1).boxed(),
            1 => number(2).boxed(),
            2 => number(4).boxed(),
            3 => number(8).boxed(),
            _ => text().boxed(),
        };
        prop_oneof![1 => Just(None), 6 => value.prop_map(Some)].boxed()
    }

    fn field(column: u8) -> KeyField {
        let of = match column {
            0..=3 => ColumnType::Int { bytes: 1 << column },
            _ => ColumnType::Varchar(20),
        };
        KeyField::new(of, true)
    }

    fn pair() -> impl Strategy<Value = (Vec<u8>, Vec<Owned>, Vec<Owned>)> {
        proptest::collection::vec(0..5_u8, 1..4).prop_flat_map(|columns| {
            let row = || columns.iter().map(|column| of_column(*column)).collect::<Vec<_>>();
            (Just(columns.clone()), row(), row())
        })
    }

    fn encoded(columns: &[u8], row: &[Owned]) -> Vec<u8> {
        let mut key = Vec::new();
        for (column, owned) in columns.iter().zip(row) {
            field(*column).push(value(owned), &mut key).unwrap();
        }
        key
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_values_and_read_back((columns, a, b) in pair()) {
            let [first, second] = [&a, &b].map(|row| encoded(&columns, row));
            let order = a.iter().map(value).cmp(b.iter().map(value));
            prop_assert_eq!(first.cmp(&second), order);
            let mut rest = &first[..];
            for (column, owned) in columns.iter().zip(&a) {
                let mut text = Vec::new();
                let (read, behind) = field(*column).read(rest, &mut text).unwrap();
                prop_assert_eq!(read, value(owned));
                rest = &first[first.len() - behind.len()..];
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn a_prefix_holds_the_keys_that_begin_with_it(
            (columns, a, b) in pair(),
            len in 0..4_usize,
        ) {
            let len = len.min(columns.len());
            let low = encoded(&columns[..len], &a[..len]);
            let mut high = low.clone();
            let is_bounded = pass_prefix(&mut high);
            let key = encoded(&columns, &b);
            let is_within = key >= low && (!is_bounded || key < high);
            prop_assert_eq!(is_within, a[..len] == b[..len]);
        }
    }

    #[test]
    fn what_does_not_fit_is_named_and_adds_nothing() {
        let mut key = Vec::new();
        let byte = KeyField::new(ColumnType::Int { bytes: 1 }, false);
        let text = KeyField::new(ColumnType::Char(3), false);
        for (field, value, misfit) in [
            (byte, Value::Int(128), KeyMisfit::Above),
            (byte, Value::Int(-129), KeyMisfit::Below),
            (byte, Value::Null, KeyMisfit::Null),
            (byte, Value::Text(b"1"), KeyMisfit::Kind),
            (text, Value::Int(1), KeyMisfit::Kind),
        ] {
            assert_eq!(field.push(value, &mut key), Err(misfit));
        }
        assert!(key.is_empty());
        text.push(Value::Text(b"a  "), &mut key).unwrap();
        assert_eq!((&key[..], byte.width(), text.width()), (&b"a\0"[..], Some(1), None));
    }
}

#[cfg(test)]
mod values_tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_cut_as_a_whole() {
        for (text, count) in [("", 0), ("abc", 3), ("a\u{e4}\u{20ac}b", 4)] {
            assert_eq!(characters(text.as_bytes()), count, "{text}");
            for most in 0..6 {
                let cut: String = text.chars().take(most).collect();
                assert_eq!(bytes_of_characters(text.as_bytes(), most), cut.len(), "{text} {most}");
            }
        }
    }
}
