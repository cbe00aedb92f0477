//! A server as a target of workloads.
//!
//! Purpose: tables are made, loaded and removed, and sessions opened. Invariant: a part of a table
//! is loaded once; what was there of it before is removed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use iostrata_change::ServerToken;
use iostrata_database::target::{
    ADDED_KEY, Part, Rows, Sampler, Schema, Session, SessionOptions, TableFacts, TableWords,
    Target, TargetError, TargetFacts, Trouble,
};
use iostrata_run::{ResourceUse, SettingOrigin};
use mysql::Conn;

use crate::address::ServerAddress;
use crate::claim::Claim;
use crate::connect::TextRows;
use crate::connect::{Connector, Patience, texts};
use crate::facts;
use crate::failure;
use crate::flavour::{Dialect, ServerVersion};
use crate::identity;
use crate::link::Link;
use crate::load::Loader;
use crate::role::{self, ServerRole};
use crate::sampler::{self, StatusSampler};
use crate::session::ServerSession;
use crate::setting_origin;
use crate::sql::{self, TableOptions};
use crate::used;

/// Errors of servers for a storage engine that they do not have, or have switched off.
const NO_ENGINE: [&str; 3] = ["1286", "1289", "3161"];

/// A database on a server of MySQL's family, or on several that serve the same one.
#[derive(Debug)]
pub struct ServerTarget {
    connector: Connector,
    name: Arc<str>,
    version: ServerVersion,
    dialect: Dialect,
    storage_engine: Option<String>,
    words: TableWords,
    loads: Mutex<HashMap<String, TableLoad>>,
    /// The one server to which every connection has to lead, where there must be one.
    one: Option<Arc<ServerToken>>,
}

/// Settings of servers that take no table without a primary key, and the values that turn it on.
const KEY_SETTINGS: [(&str, &[&str]); 3] = [
    ("innodb_force_primary_key", &["ON", "1"]),
    ("sql_require_primary_key", &["ON", "1"]),
    ("pxc_strict_mode", &["ENFORCING", "MASTER"]),
];
/// Set on members of a group, which replicates no rows without a key.
const GROUP_NAME: &str = "group_replication_group_name";
/// A table without a primary key was refused.
const NO_KEY: [&str; 2] = ["1173", "3750"];

/// What this target has loaded of a table.
#[derive(Debug, Default)]
struct TableLoad {
    was_empty: bool,
    parts: HashSet<Part>,
}

impl ServerTarget {
    /// Connects, and queries the server's version. The address is complete: see
    /// [`crate::Credentials::complete`]. Tables are made with the storage engine, or with the
    /// server's own choice.
    ///
    /// # Errors
    /// When no server answers, it refuses the user, it has no such database, or the name of the
    /// storage engine is none.
    pub fn open(
        address: ServerAddress,
        storage_engine: Option<String>,
    ) -> Result<Self, TargetError> {
        Self::opened(address, storage_engine, false)
    }

    fn opened(
        address: ServerAddress,
        storage_engine: Option<String>,
        is_one: bool,
    ) -> Result<Self, TargetError> {
        let asks_least = address.asks_least;
        let connector = Connector::new(address);
        let is_word = |engine: &String| {
            !engine.is_empty() && engine.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if let Some(engine) = storage_engine.as_ref().filter(|engine| !is_word(engine)) {
            let text = format!("`{engine}` is no name of a storage engine");
            let fix = "use a name of SHOW ENGINES, such as InnoDB";
            return Err(TargetError::not_ready(&connector.name, "engine", text, fix));
        }
        let mut conn = connector.connect(Patience::Short)?;
        let name: Arc<str> = connector.name.as_str().into();
        let version = version_of(&name, &mut conn)?;
        let dialect = version.dialect(asks_least);
        let one = if is_one { Some(Arc::new(identity::direct(&mut conn, &name)?)) } else { None };
        let loads = Mutex::default();
        let words = TableWords::default();
        Ok(Self { connector, name, version, dialect, storage_engine, words, loads, one })
    }

    /// Makes tables in these words.
    #[must_use]
    pub fn with_table_words(self, words: TableWords) -> Self {
        Self { words, ..self }
    }

    /// Connects to one server that is to be set: every connection has to lead to the same running
    /// server, and none to a proxy.
    ///
    /// # Errors
    /// As [`Self::open`]; when a proxy answers.
    pub fn open_one(address: ServerAddress) -> Result<Self, TargetError> {
        Self::opened(address, None, true)
    }

    /// The one server to which every connection leads; none where that is not required.
    pub fn one(&self) -> Option<&ServerToken> {
        self.one.as_deref()
    }

    /// Makes sure that this target and another one lead to the same running server.
    ///
    /// # Errors
    /// Which two answer.
    pub fn is_at(&self, other: &ServerToken) -> Result<(), TargetError> {
        self.one().map_or(Ok(()), |one| identity::same(&self.name, other, one))
    }

    fn connect(&self, connector: &Connector, patience: Patience) -> Result<Conn, TargetError> {
        let mut conn = connector.connect(patience)?;
        self.one().map_or(Ok(()), |one| identity::check(&mut conn, &self.name, one))?;
        Ok(conn)
    }

    /// Makes the database that the address names, if it is not there.
    ///
    /// # Errors
    /// When the address names none, no server answers, or the user may not make one.
    pub fn create_database(address: ServerAddress) -> Result<(), TargetError> {
        let connector = Connector::new(address);
        let Some(database) = connector.database() else {
            let text = "the address names no database".to_owned();
            let fix = "write mysql://host:3306/DATABASE";
            return Err(TargetError::not_ready(&connector.name, "database", text, fix));
        };
        let conn = connector.without_database().connect(Patience::Short)?;
        let mut link = Link::new(conn, connector.name.as_str().into());
        link.order(&format!("CREATE DATABASE IF NOT EXISTS {}", sql::name(database))).map(drop)
    }

    /// Claims a name at the server, a word; nothing when another session holds it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn claim(&self, name: &'static str) -> Result<Option<Claim>, TargetError> {
        let conn = self.connect(&self.connector.claiming(), Patience::Short)?;
        Claim::take(conn, Arc::clone(&self.name), name)
    }

    /// What this user may do, as the server words it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn grants(&self) -> Result<Vec<String>, TargetError> {
        let rows = self.ask(&mut self.short_link()?, "SHOW GRANTS")?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// What it is among other servers.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn role(&self) -> Result<ServerRole, TargetError> {
        role::role(self.short_link()?.conn(), &self.name)
    }

    /// Its settings that are not defaults, with their origin; nothing where it does not report
    /// them.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn setting_origins(&self) -> Result<Option<Vec<SettingOrigin>>, TargetError> {
        Ok(setting_origin::setting_origins(self.short_link()?.conn(), &self.version))
    }

    /// The connection that holds a claim, where one does.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn claimed_by(&self, name: &str) -> Result<Option<u64>, TargetError> {
        let rows = self.ask(&mut self.short_link()?, &format!("SELECT IS_USED_LOCK('{name}')"))?;
        let cell = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        Ok(cell.and_then(|cell| cell.parse().ok()))
    }

    /// Every counter and gauge that it shows, by name, from its start on.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn status(&self) -> Result<BTreeMap<String, String>, TargetError> {
        let rows = self.ask(&mut self.short_link()?, "SHOW GLOBAL STATUS")?;
        Ok(facts::named(rows))
    }

    /// What answers.
    pub fn version(&self) -> &ServerVersion {
        &self.version
    }

    /// Counters of InnoDB that are off and would give a sampler more. Counters of commits are not
    /// among them where performance_schema counts transactions.
    ///
    /// # Errors
    /// When the server does not answer, or the user may not see them.
    pub fn counters_off(&self) -> Result<Vec<String>, TargetError> {
        let mut link = self.short_link()?;
        let status = facts::named(self.ask(&mut link, "SHOW GLOBAL STATUS")?);
        let [mysql, mariadb] = sampler::counters_off_sql(|name| status.contains_key(name));
        let rows = self.ask(&mut link, &mysql).or_else(|_| self.ask(&mut link, &mariadb))?;
        let counted = self.ask(&mut link, sampler::TRANSACTIONS_COUNTED_SQL).unwrap_or_default();
        let is_counted = counted.into_iter().flatten().flatten().any(|count| count != "0");
        let is_needed = |name: &String| !(is_counted && sampler::COMMITS.contains(&name.as_str()));
        let names = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
        Ok(names.filter(is_needed).collect())
    }

    fn link(&self) -> Result<Link, TargetError> {
        Ok(Link::new(self.connect(&self.connector, Patience::AsAsked)?, Arc::clone(&self.name)))
    }

    /// For what a server answers at once: one that hangs is given up.
    fn short_link(&self) -> Result<Link, TargetError> {
        Ok(Link::new(self.connect(&self.connector, Patience::Short)?, Arc::clone(&self.name)))
    }

    fn ask(&self, link: &mut Link, sql: &str) -> Result<TextRows, TargetError> {
        let answer = texts(link.conn(), sql);
        answer.map_err(|error| link.told(sql, &error))
    }

    /// The indexes that a table has.
    fn indexes(&self, link: &mut Link, table: &str) -> Result<Vec<String>, TargetError> {
        let sql = format!("SHOW INDEX FROM {}", sql::name(table));
        let rows = self.ask(link, &sql)?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().nth(2).flatten()).collect())
    }

    /// Whether there is nothing of a part, known without looking for its rows: the table was
    /// empty when this target began to load it, and the part was not loaded since.
    fn is_known_empty(
        &self,
        link: &mut Link,
        table: &str,
        part: Part,
    ) -> Result<bool, TargetError> {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        if !loads.contains_key(table) {
            let sql = format!("SELECT 1 FROM {} LIMIT 1", sql::name(table));
            let was_empty = self.ask(link, &sql)?.is_empty();
            loads.insert(table.to_owned(), TableLoad { was_empty, parts: HashSet::new() });
        }
        let Some(loaded) = loads.get_mut(table) else {
            return Ok(false);
        };
        // The whole table overlaps with every part.
        let overlaps = loaded.parts.contains(&None) || (part.is_none() && !loaded.parts.is_empty());
        Ok(loaded.parts.insert(part) && loaded.was_empty && !overlaps)
    }

    /// The error for a storage engine that the server does not have or has switched off, if that is
    /// its error.
    fn lacking(&self, link: &mut Link, engine: &str, error: TargetError) -> TargetError {
        if !lacks_storage_engine(&error) {
            return error;
        }
        let sql = "SELECT ENGINE FROM information_schema.ENGINES \
                   WHERE SUPPORT IN ('YES', 'DEFAULT') ORDER BY ENGINE";
        let there: Vec<String> =
            self.ask(link, sql).unwrap_or_default().into_iter().flatten().flatten().collect();
        let fix = match there.is_empty() {
            true => "SHOW ENGINES lists what this server has".to_owned(),
            false => format!("this server has {}", there.join(", ")),
        };
        let text = format!("storage engine {engine} is not available here: {}", error.text);
        TargetError { text, fix: Some(fix), ..error }
    }

    /// Whether the server takes no table without a primary key, by its settings.
    fn requires_keys(&self, link: &mut Link) -> Result<bool, TargetError> {
        let names = KEY_SETTINGS.map(|(name, _)| format!("'{name}'")).join(", ");
        let sql = format!("SHOW VARIABLES WHERE Variable_name IN ({names}, '{GROUP_NAME}')");
        let found = facts::named(self.ask(link, &sql)?);
        let is_set = |(name, values): &(&str, &[&str])| {
            let value = found.get(*name).map(String::as_str).unwrap_or_default();
            values.iter().any(|one| one.eq_ignore_ascii_case(value))
        };
        let is_member = found.get(GROUP_NAME).is_some_and(|name| !name.is_empty());
        Ok(is_member || KEY_SETTINGS.iter().any(is_set))
    }

    fn forget(&self, table: &str, now: Option<TableLoad>) {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        match now {
            Some(loaded) => drop(loads.insert(table.to_owned(), loaded)),
            None => drop(loads.remove(table)),
        }
    }
}

/// Whether an error means that a server has no such storage engine. Other errors name storage
/// engines, too: a full disk is "Got error 28 ... from storage engine".
pub fn lacks_storage_engine(error: &TargetError) -> bool {
    NO_ENGINE.contains(&error.code.as_str())
}

/// Queries a server's version.
pub(crate) fn version_of(target: &str, conn: &mut Conn) -> Result<ServerVersion, TargetError> {
    let sql = "SELECT VERSION(), @@version_comment";
    let answer = match texts(conn, sql) {
        // A server that speaks the protocol but has no such variable reports its version all the
        // same.
        Err(mysql::Error::MySqlError(_)) => texts(conn, "SELECT VERSION()"),
        answer => answer,
    };
    let answer = answer.map_err(|error| failure::told(target, sql, &error))?;
    let mut row = answer.into_iter().next().unwrap_or_default().into_iter().flatten();
    let (version, comment) = (row.next().unwrap_or_default(), row.next().unwrap_or_default());
    Ok(ServerVersion::recognise(&version, &comment))
}

impl Target for ServerTarget {
    fn name(&self) -> String {
        self.name.to_string()
    }

    fn facts(&self) -> Result<TargetFacts, TargetError> {
        let mut link = self.short_link()?;
        let version = version_of(&self.name, link.conn())?;
        let rows = self.ask(&mut link, "SHOW GLOBAL VARIABLES")?;
        let variables = facts::named(rows);
        Ok(TargetFacts {
            name: self.name.to_string(),
            flavour: version.name(),
            durability: facts::durability(&version, &variables),
            version: version.text,
            settings: variables.into_iter().collect(),
        })
    }

    fn used(&self) -> Result<ResourceUse, TargetError> {
        let mut link = self.link()?;
        let status = self.ask(&mut link, "SHOW GLOBAL STATUS")?;
        let variables = self.ask(&mut link, "SHOW GLOBAL VARIABLES")?;
        Ok(used::used(&facts::named(status), &facts::named(variables)))
    }

    fn present(&self, schema: &Schema) -> Result<Vec<usize>, TargetError> {
        let mut link = self.link()?;
        let rows = self.ask(&mut link, "SHOW TABLES")?;
        let there: Vec<String> = rows.into_iter().flatten().flatten().collect();
        let is_there = |name: &str| there.iter().any(|table| table.eq_ignore_ascii_case(name));
        let tables = schema.tables.iter().enumerate();
        Ok(tables.filter(|(_, table)| is_there(&table.name)).map(|(at, _)| at).collect())
    }

    fn columns(&self, table: &str) -> Result<Option<Vec<String>>, TargetError> {
        let sql = format!("SHOW COLUMNS FROM {}", sql::name(table));
        let rows = self.ask(&mut self.link()?, &sql)?;
        let names = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
        Ok(Some(names.filter(|name| name != ADDED_KEY).collect()))
    }

    fn create(&self, schema: &Schema, table: usize) -> Result<(), TargetError> {
        let table = &schema.tables[table];
        let (mut link, engine) = (self.link()?, self.storage_engine.as_deref());
        if engine.is_some() {
            // A server may else take another engine in place of one that it lacks.
            link.order("SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_ENGINE_SUBSTITUTION')")?;
        }
        let mut making = TableOptions { engine, words: &self.words, adds_key: false };
        making.adds_key = table.key.is_empty() && self.requires_keys(&mut link)?;
        let mut created = link.order(&sql::create(table, making));
        let lacks_key = |error: &TargetError| NO_KEY.contains(&error.code.as_str());
        if table.key.is_empty() && !making.adds_key && created.as_ref().is_err_and(lacks_key) {
            making.adds_key = true;
            created = link.order(&sql::create(table, making));
        }
        created.map_err(|error| match engine {
            Some(engine) => self.lacking(&mut link, engine, error),
            None => error,
        })?;
        self.forget(&table.name, Some(TableLoad { was_empty: true, parts: HashSet::new() }));
        Ok(())
    }

    fn finish(&self, schema: &Schema) -> Result<(), TargetError> {
        let mut link = self.link()?;
        for table in schema.tables.iter().filter(|table| table.indexes.iter().any(|i| i.is_late)) {
            let there = self.indexes(&mut link, &table.name)?;
            if let Some(sql) = sql::late_indexes(table, &there) {
                link.order(&sql)?;
            }
        }
        // Statistics of before the load would mislead the optimizer. A server that has none does
        // without.
        let names: Vec<String> = schema.tables.iter().map(|table| sql::name(&table.name)).collect();
        match link.order(&format!("ANALYZE TABLE {}", names.join(", "))) {
            Err(error) if error.trouble == Trouble::Gone => Err(error),
            _ => Ok(()),
        }
    }

    fn remove(&self, schema: &Schema, table: usize) -> Result<(), TargetError> {
        self.link()?.order(&sql::drop_table(schema, table))?;
        self.forget(&schema.tables[table].name, None);
        Ok(())
    }

    fn loads_parts(&self) -> bool {
        true
    }

    fn load(
        &self,
        schema: &Schema,
        table: usize,
        part: Part,
        next: &mut dyn FnMut(&mut Rows),
    ) -> Result<u64, TargetError> {
        let table = &schema.tables[table];
        let mut loader = Loader::open(self.link()?, table, self.dialect)?;
        if !self.is_known_empty(loader.link(), &table.name, part)? {
            loader.clear(part)?;
        }
        loader.load(next)
    }

    fn session(
        &self,
        schema: &Arc<Schema>,
        options: &SessionOptions,
    ) -> Result<Box<dyn Session>, TargetError> {
        let link = match self.connector.is_plain() {
            true => self.link()?.plain(),
            false => self.link()?,
        };
        Ok(Box::new(ServerSession::open(link, self.dialect, schema, options)?))
    }

    fn sampler(&self) -> Result<Option<Box<dyn Sampler>>, TargetError> {
        if !self.version.flavour.has_innodb() {
            return Ok(None);
        }
        let (connector, name) = (self.connector.lasting(), Arc::clone(&self.name));
        let (version, one) = (self.version.clone(), self.one.clone());
        Ok(Some(Box::new(StatusSampler::open(connector, name, version, one)?)))
    }

    fn data_bytes(&self) -> Result<Option<u64>, TargetError> {
        Ok(sampler::data_bytes(self.link()?.conn()))
    }

    fn table_facts(&self, schema: &Schema, table: usize) -> Result<TableFacts, TargetError> {
        let (mut link, name) = (self.link()?, &schema.tables[table].name);
        let facts = sampler::table_facts(link.conn(), name);
        facts.map_err(|error| link.told(&format!("reading the size of {name}"), &error))
    }
}
