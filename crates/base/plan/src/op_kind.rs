//! Kinds of operations, and one value of each kind.
//!
//! Purpose: whatever is counted and timed apart has its line here, requests of files and
//! transactions alike; loop, figures, documents and views know them by this table alone.
//! Invariants: names are the contract's; the first three are in every document, null where there
//! were none.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Index;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! kinds {
    ($($kind:ident $name:literal $many:literal $doc:literal)*) => {
        /// A kind of operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum OpKind {
            $(#[doc = $doc] $kind,)*
        }

        impl OpKind {
            /// Every kind, in the order of reports.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// Its name in documents.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }

            /// What readers call many of it.
            pub const fn plural(self) -> &'static str {
                match self { $(Self::$kind => $many),* }
            }
        }
    };
}

kinds! {
    Read "read" "reads" "Reads."
    Write "write" "writes" "Writes."
    Sync "sync" "flushes" "Flushes: fsync or fdatasync."
    Trim "trim" "trims" "Discards."
    NewOrder "new_order" "new orders" "TPC-C: a customer orders."
    Payment "payment" "payments" "TPC-C: a customer pays."
    OrderStatus "order_status" "order statuses" "TPC-C: where is an order?"
    Delivery "delivery" "deliveries" "TPC-C: a batch of orders is delivered."
    StockLevel "stock_level" "stock levels" "TPC-C: what runs short?"
    ReadWrite "read_write" "read-writes" "Stress: an object is read and changed."
    Transaction "transaction" "transactions" "Transactions of a workload that has one type."
}

impl OpKind {
    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();
    /// The kinds of a file's requests that every document names.
    pub const OF_FILES: [Self; 3] = [Self::Read, Self::Write, Self::Sync];
    /// The directions of fio's data.
    pub const DIRECTIONS: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Its name in a series: one entry per slice of time.
    fn series_name(self) -> Cow<'static, str> {
        match self {
            Self::Sync => "syncs".into(),
            other => other.plural().replace([' ', '-'], "_").into(),
        }
    }
}

/// One value for each kind of operation that occurred.
///
/// In JSON an object with the names of the kinds; flattened into its owner as a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerKind<T>([Option<T>; OpKind::COUNT]);

impl<T> PerKind<T> {
    /// The value of a kind, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, kind: OpKind) -> Option<&mut T> {
        self.0[kind as usize].as_mut()
    }

    /// The value of a kind; the default if absent.
    pub fn entry(&mut self, kind: OpKind) -> &mut T
    where
        T: Default,
    {
        self.0[kind as usize].get_or_insert_default()
    }

    /// Sets the value of a kind.
    pub fn insert(&mut self, kind: OpKind, value: T) {
        self.0[kind as usize] = Some(value);
    }

    /// Takes away the value of a kind.
    pub fn remove(&mut self, kind: OpKind) -> Option<T> {
        self.0[kind as usize].take()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The present kinds, in the order of reports.
    pub fn kinds(&self) -> impl Iterator<Item = OpKind> {
        self.iter().map(|(kind, _)| kind)
    }

    /// Every kind with its value.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (OpKind, &T)> {
        let all = OpKind::ALL.into_iter().zip(&self.0);
        all.filter_map(|(kind, value)| Some((kind, value.as_ref()?)))
    }

    /// Every value with what readers call its kind.
    pub fn named(&self) -> impl DoubleEndedIterator<Item = (&'static str, &T)> {
        self.iter().map(|(kind, value)| (kind.plural(), value))
    }

    /// Every kind with its value, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (OpKind, &mut T)> {
        let all = OpKind::ALL.into_iter().zip(&mut self.0);
        all.filter_map(|(kind, value)| Some((kind, value.as_mut()?)))
    }

    /// What becomes of each value.
    pub fn map<U>(&self, mut of: impl FnMut(OpKind, &T) -> U) -> PerKind<U> {
        self.iter().map(|(kind, value)| (kind, of(kind, value))).collect()
    }
}

impl<T> Default for PerKind<T> {
    fn default() -> Self {
        Self([const { None }; OpKind::COUNT])
    }
}

impl<T> Index<OpKind> for PerKind<T> {
    type Output = Option<T>;

    fn index(&self, kind: OpKind) -> &Option<T> {
        &self.0[kind as usize]
    }
}

impl<T> FromIterator<(OpKind, T)> for PerKind<T> {
    fn from_iter<I: IntoIterator<Item = (OpKind, T)>>(values: I) -> Self {
        let mut all = Self::default();
        values.into_iter().for_each(|(kind, value)| all.insert(kind, value));
        all
    }
}

impl<T: Serialize> Serialize for PerKind<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (kind, value) in OpKind::ALL.into_iter().zip(&self.0) {
            if value.is_some() || OpKind::OF_FILES.contains(&kind) {
                map.serialize_entry(kind.name(), value)?;
            }
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerKind<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let of_name = |name: &str| OpKind::ALL.into_iter().find(|kind| kind.name() == name);
        deserializer.deserialize_map(ByName(of_name, PhantomData))
    }
}

/// Reads a map of which some names are kinds; the other names belong to another map.
struct ByName<F, T>(F, PhantomData<T>);

impl<'de, F: Fn(&str) -> Option<OpKind>, T: Deserialize<'de>> Visitor<'de> for ByName<F, T> {
    type Value = PerKind<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with kinds of operations")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = PerKind::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match self.0(&name) {
                Some(kind) => all.0[kind as usize] = map.next_value()?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(all)
    }
}

/// Counts per slice of time, under the names of a series; empty where there were none.
pub mod series {
    use super::*;

    /// Writes them.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(
        counts: &PerKind<Vec<u32>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for kind in OpKind::ALL {
            let values = counts[kind].as_deref().unwrap_or_default();
            if !values.is_empty() || OpKind::OF_FILES.contains(&kind) {
                map.serialize_entry(&kind.series_name(), values)?;
            }
        }
        map.end()
    }

    /// Reads them.
    ///
    /// # Errors
    /// The deserializer's.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PerKind<Vec<u32>>, D::Error> {
        let of_name = |name: &str| OpKind::ALL.into_iter().find(|kind| kind.series_name() == name);
        let mut all: PerKind<Vec<u32>> =
            deserializer.deserialize_map(ByName(of_name, PhantomData))?;
        all.0.iter_mut().for_each(|counts| *counts = counts.take().filter(|all| !all.is_empty()));
        Ok(all)
    }
}

/// Schemas of what has a member per kind.
#[cfg(feature = "schema")]
pub mod schema {
    use schemars::{JsonSchema, Schema, SchemaGenerator};

    use super::*;

    impl<T: JsonSchema> JsonSchema for PerKind<T> {
        fn schema_name() -> Cow<'static, str> {
            format!("PerKind_{}", T::schema_name()).into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let value = generator.subschema_for::<Option<T>>();
            object(|kind| kind.name().into(), "null when there were none.", &value, &[])
        }
    }

    /// That of counts written by [`super::series`].
    pub fn series(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Vec<u32>>();
        let about = "one number per slice, empty when there were none.";
        object(OpKind::series_name, about, &value, &OpKind::OF_FILES)
    }

    fn object(
        name: impl Fn(OpKind) -> Cow<'static, str>,
        about: &str,
        value: &Schema,
        required: &[OpKind],
    ) -> Schema {
        let mut properties = serde_json::Map::new();
        for kind in OpKind::ALL {
            let mut value = value.clone();
            value.insert("description".into(), format!("Of {}; {about}", kind.plural()).into());
            properties.insert(name(kind).into_owned(), value.to_value());
        }
        let required: Vec<Cow<'static, str>> = required.iter().map(|kind| name(*kind)).collect();
        let schema = serde_json::json!({
            "type": "object", "properties": properties, "required": required,
        });
        Schema::try_from(schema).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    struct Owner {
        name: String,
        #[serde(flatten)]
        rates: PerKind<f64>,
        after: u32,
    }

    #[test]
    fn transactions_are_as_natural_as_requests() {
        let rates = [(OpKind::Delivery, 4.0), (OpKind::NewOrder, 45.0)].into_iter().collect();
        let owner = Owner { name: "terminals".into(), rates, after: 7 };
        let text = serde_json::to_string(&owner).unwrap();
        let expected = r#"{"name":"terminals","read":null,"write":null,"sync":null,"#.to_owned()
            + r#""new_order":45.0,"delivery":4.0,"after":7}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Owner>(&text).unwrap(), owner);
        assert_eq!(owner.rates.kinds().collect::<Vec<_>>(), [OpKind::NewOrder, OpKind::Delivery]);
    }

    #[test]
    fn older_documents_and_newer_kinds_are_read() {
        let old = r#"{"name":"x","read":1.5,"write":null,"after":1,"vacuum":3.0}"#;
        let owner: Owner = serde_json::from_str(old).unwrap();
        assert_eq!((owner.rates[OpKind::Read], owner.rates[OpKind::Write]), (Some(1.5), None));
        assert_eq!(owner.rates.iter().count(), 1);
    }

    #[test]
    fn names_are_those_of_serde() {
        for kind in OpKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!(OpKind::ALL[kind as usize], kind);
        }
    }
}
