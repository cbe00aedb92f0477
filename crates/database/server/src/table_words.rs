//! What a user says of the tables that are made, and no schema has.

/// How tables are made, beside what their schema says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableWords {
    /// What CREATE TABLE ends with.
    pub options: String,
    /// An index of the key in place of the primary key.
    pub key_is_secondary: bool,
}
