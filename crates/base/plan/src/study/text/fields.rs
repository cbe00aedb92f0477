//! The keys of one table, read one by one.
//!
//! Invariant: a key that is not known is an error that names the nearest known one; a value of the
//! wrong kind is an error that shows the right one.

use super::error::StudyTextError;
use super::source::SourceText;
use super::tree::{Node, TomlEntry, Value};
use crate::study::nearest::nearest;

/// A text with its place.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::study) struct Spot {
    /// The text.
    pub text: String,
    /// Its byte in the file.
    pub at: usize,
}

/// One table.
pub(in crate::study) struct Fields<'a> {
    source: &'a SourceText,
    /// As the user sees it: `[measure]`; empty for the top.
    name: &'a str,
    entries: &'a [TomlEntry],
}

impl<'a> Fields<'a> {
    /// A table that may have only these keys.
    ///
    /// # Errors
    /// A key that is not among them.
    pub fn open(
        source: &'a SourceText,
        name: &'a str,
        entries: &'a [TomlEntry],
        known: &[&'static str],
    ) -> Result<Self, StudyTextError> {
        let odd = entries.iter().find(|entry| !known.contains(&entry.key.as_str()));
        if let Some(odd) = odd {
            let fix = match nearest(&odd.key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use one of {}", known.join(", ")),
            };
            let thing = if name.is_empty() { "key".to_owned() } else { format!("{name} key") };
            return Err(source.error(odd.at, thing, &odd.key, "there is no such key", fix));
        }
        Ok(Self { source, name, entries })
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    fn thing(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{} {key}", self.name) }
    }

    /// A single value as text.
    ///
    /// # Errors
    /// When it is a list or a table.
    pub fn text(&self, key: &str) -> Result<Option<Spot>, StudyTextError> {
        self.get(key).map(|node| spot(self.source, &self.thing(key), node)).transpose()
    }

    /// A single value that must be there and not be empty.
    ///
    /// # Errors
    /// When it is missing, empty, a list or a table.
    pub fn needed(&self, key: &str, at: usize, fix: &str) -> Result<Spot, StudyTextError> {
        match self.text(key)? {
            Some(spot) if !spot.text.trim().is_empty() => Ok(spot),
            Some(spot) => Err(self.source.error(spot.at, self.thing(key), "", "is empty", fix)),
            None => Err(self.source.error(at, self.thing(key), "", "is missing", fix)),
        }
    }

    /// A single value or a list of them; none where it is left out.
    ///
    /// # Errors
    /// When it, or a value of the list, is a list or a table.
    pub fn texts(&self, key: &str) -> Result<Vec<Spot>, StudyTextError> {
        let nodes = match self.get(key) {
            None => &[],
            Some(Node { value: Value::Array(nodes), .. }) => nodes.as_slice(),
            Some(node) => std::slice::from_ref(node),
        };
        nodes.iter().map(|node| spot(self.source, &self.thing(key), node)).collect()
    }

    /// A value read by a parser.
    ///
    /// # Errors
    /// The parser's message, with the place.
    pub fn parsed<T, E: Into<(String, String)>>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, StudyTextError> {
        let Some(spot) = self.text(key)? else { return Ok(None) };
        parse(&spot.text).map(Some).map_err(|error| {
            let (why, fix) = error.into();
            self.source.error(spot.at, self.thing(key), &spot.text, why, fix)
        })
    }

    /// The keys of a table; none where it is left out.
    ///
    /// # Errors
    /// When it is no table.
    pub fn table(&self, key: &str) -> Result<&'a [TomlEntry], StudyTextError> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Node { value: Value::Table(entries), .. }) => Ok(entries),
            Some(node) => Err(self.wrong(key, node, "a table", &format!("write [{key}]"))),
        }
    }

    /// The tables of a list of tables, each with its place; none where it is left out.
    ///
    /// # Errors
    /// When it is something else.
    pub fn tables(&self, key: &str) -> Result<Vec<(usize, &'a [TomlEntry])>, StudyTextError> {
        let Some(node) = self.get(key) else { return Ok(Vec::new()) };
        let fix = format!("write [[{key}]] before each");
        let Value::Array(nodes) = &node.value else {
            return Err(self.wrong(key, node, "a list of tables", &fix));
        };
        let table = |node: &'a Node| match &node.value {
            Value::Table(entries) => Ok((node.at, entries.as_slice())),
            _ => Err(self.wrong(key, node, "a table", &fix)),
        };
        nodes.iter().map(table).collect()
    }

    fn wrong(&self, key: &str, node: &Node, wanted: &str, fix: &str) -> StudyTextError {
        let (why, found) = (format!("is {}, not {wanted}", node.value.words()), shown(node));
        self.source.error(node.at, self.thing(key), found, why, fix)
    }
}

/// A single value with its place.
///
/// # Errors
/// When it is a list, a table or a date.
pub(in crate::study) fn spot(
    source: &SourceText,
    thing: &str,
    node: &Node,
) -> Result<Spot, StudyTextError> {
    match &node.value {
        Value::Scalar(text) => Ok(Spot { text: text.clone(), at: node.at }),
        other => {
            let why = format!("is {}, not a single value", other.words());
            Err(source.error(node.at, thing, "", why, "write one string, number or true or false"))
        }
    }
}

fn shown(node: &Node) -> &str {
    match &node.value {
        Value::Scalar(text) => text,
        _ => "",
    }
}
