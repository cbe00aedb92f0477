//! TOML as a tree with the place of everything in the text.
//!
//! Invariant: tables keep the order of the text, because the order of factors is the order of
//! columns; numbers are kept as text, because settings read them in their own way.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::StudyTextError;
use super::source::SourceText;

/// A study's text may be this long, in bytes.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// A value and where it starts.
#[derive(Clone, Debug)]
pub(in crate::study) struct Node {
    /// The byte of the text.
    pub at: usize,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(in crate::study) enum Value {
    /// A string, number or boolean, as text.
    Scalar(String),
    /// A date or time: never of use.
    Date,
    /// Values.
    Array(Vec<Node>),
    /// Keys with values.
    Table(Vec<TomlEntry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(in crate::study) struct TomlEntry {
    /// The key.
    pub key: String,
    /// The byte of the text where it stands first.
    pub at: usize,
    /// Its value.
    pub node: Node,
}

impl Value {
    /// What it is, in words.
    pub fn words(&self) -> &'static str {
        match self {
            Value::Scalar(_) => "a single value",
            Value::Date => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// The whole text.
///
/// # Errors
/// When it is no TOML, with the place.
pub(in crate::study) fn parse(source: &SourceText) -> Result<Vec<TomlEntry>, StudyTextError> {
    if source.text.len() > TEXT_BYTES_MAX {
        let found = source.text.len().to_string();
        return Err(source.error(0, "study", &found, "the text is too long", "use 256K at most"));
    }
    let root = DeTable::parse(&source.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = source.text[line_start(&source.text, at)..].lines().next().unwrap_or("").trim();
        let fix = "write it as TOML: key = value, strings in quotes";
        source.error(at, "TOML", line, error.message().replace('\n', ", "), fix)
    })?;
    Ok(entries(root.into_inner()))
}

fn line_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

fn entries(table: DeTable<'_>) -> Vec<TomlEntry> {
    let mut entries: Vec<TomlEntry> = table
        .into_iter()
        .map(|(key, value)| TomlEntry {
            at: key.span().start,
            key: key.into_inner().into_owned(),
            node: node(value),
        })
        .collect();
    entries.sort_by_key(|entry| entry.at);
    entries
}

fn node(value: Spanned<DeValue<'_>>) -> Node {
    let at = value.span().start;
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Scalar(text.into_owned()),
        DeValue::Integer(number) => {
            // 0x10 is 16; what 64 bits do not hold stays as it is and is refused by its setting.
            let plain = i64::from_str_radix(number.as_str(), number.radix());
            Value::Scalar(plain.map_or_else(|_| number.to_string(), |plain| plain.to_string()))
        }
        DeValue::Float(number) => Value::Scalar(number.as_str().to_owned()),
        DeValue::Boolean(on) => Value::Scalar(on.to_string()),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(nodes) => Value::Array(nodes.into_iter().map(node).collect()),
        DeValue::Table(table) => Value::Table(entries(table)),
    };
    Node { at, value }
}
