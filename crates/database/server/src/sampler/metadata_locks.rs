//! Which connection blocks which by a metadata lock, from performance_schema.metadata_locks.
//!
//! The table lists granted and pending locks, not the wait-for graph. Invariant: pure. A shared
//! lock and an exclusive one of an object block each other; a pending exclusive lock blocks the
//! shared ones that are requested after it.

use iostrata_database::target::{LockKind, LockWait};

/// Whether the table is filled, behind SELECT.
pub(crate) const IS_ON: &str = "COUNT(*) FROM performance_schema.setup_instruments \
     WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES' AND EXISTS (SELECT 1 FROM \
     performance_schema.setup_consumers WHERE NAME = 'global_instrumentation' AND ENABLED = 'YES')";
/// All locks of objects that have a pending one, behind SELECT.
pub(crate) const LOCKS: &str = "t.PROCESSLIST_ID, m.OBJECT_TYPE, COALESCE(m.OBJECT_SCHEMA, ''), \
     COALESCE(m.OBJECT_NAME, ''), m.LOCK_TYPE, m.LOCK_STATUS FROM \
     performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.THREAD_ID = \
     m.OWNER_THREAD_ID WHERE (m.OBJECT_TYPE, COALESCE(m.OBJECT_SCHEMA, ''), \
     COALESCE(m.OBJECT_NAME, '')) IN (SELECT OBJECT_TYPE, COALESCE(OBJECT_SCHEMA, ''), \
     COALESCE(OBJECT_NAME, '') FROM performance_schema.metadata_locks WHERE LOCK_STATUS = \
     'PENDING') AND t.PROCESSLIST_ID IS NOT NULL LIMIT 1000";

/// Of tables.
const EXCLUSIVE: [&str; 3] = ["EXCLUSIVE", "SHARED_NO_READ_WRITE", "SHARED_NO_WRITE"];
/// Of all tables together, which writers hold as INTENTION_EXCLUSIVE; those of MariaDB's backups.
const STOPS_WRITERS: [&str; 7] = [
    "SHARED",
    "BACKUP_FTWRL1",
    "BACKUP_FTWRL2",
    "BACKUP_WAIT_FLUSH",
    "BACKUP_WAIT_DDL",
    "BACKUP_WAIT_COMMIT",
    "BACKUP_START",
];

/// A lock that is held or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetadataLock {
    connection: u64,
    kind: String,
    schema: String,
    name: String,
    mode: String,
    is_held: bool,
}

impl MetadataLock {
    /// A row of the answer to [`LOCKS`].
    pub(crate) fn of(row: Vec<Option<String>>) -> Option<Self> {
        let [connection, kind, schema, name, mode, status] = <[_; 6]>::try_from(row).ok()?;
        Some(Self {
            connection: connection?.parse().ok()?,
            kind: kind?,
            schema: schema.unwrap_or_default(),
            name: name.unwrap_or_default(),
            mode: mode?,
            is_held: status? == "GRANTED",
        })
    }

    fn object(&self) -> String {
        match (&self.schema[..], &self.name[..]) {
            ("", "") => self.kind.clone(),
            (schema, "") => schema.to_owned(),
            ("", name) => name.to_owned(),
            (schema, name) => format!("{schema}.{name}"),
        }
    }

    fn is_of_same(&self, other: &Self) -> bool {
        (&self.kind, &self.schema, &self.name) == (&other.kind, &other.schema, &other.name)
    }

    /// Whether it keeps others out.
    fn is_strong(&self) -> bool {
        let words: &[&str] = match self.name.is_empty() && self.schema.is_empty() {
            true => &STOPS_WRITERS,
            false => &EXCLUSIVE,
        };
        words.contains(&self.mode.as_str()) || self.mode == "EXCLUSIVE"
    }

    /// Whether it blocks a pending lock.
    fn blocks(&self, waiting: &Self) -> bool {
        let differs = self.is_strong() || waiting.is_strong();
        // A pending exclusive lock blocks shared ones that came after it.
        self.connection != waiting.connection
            && self.is_of_same(waiting)
            && differs
            && (self.is_held || (self.is_strong() && !waiting.is_strong()))
    }
}

/// The wait-for graph.
pub(crate) fn waits(all: &[MetadataLock]) -> Vec<LockWait> {
    let mut out = Vec::new();
    for waiting in all.iter().filter(|one| !one.is_held) {
        let held = all.iter().any(|one| one.is_held && one.blocks(waiting));
        // Where a granted lock blocks it, pending ones do not matter.
        for one in all.iter().filter(|one| one.blocks(waiting) && (one.is_held || !held)) {
            let wait = LockWait {
                kind: LockKind::Metadata,
                waiting: waiting.connection,
                blocking: one.connection,
                object: waiting.object(),
                index: None,
                mode: waiting.mode.clone(),
            };
            if !out.contains(&wait) {
                out.push(wait);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(connection: u64, object: [&str; 3], mode: &str, status: &str) -> MetadataLock {
        let [kind, schema, name] = object;
        let connection = connection.to_string();
        let row = [&connection, kind, schema, name, mode, status];
        MetadataLock::of(row.map(|cell| Some(cell.to_owned())).into()).unwrap()
    }

    fn pairs(all: &[MetadataLock]) -> Vec<(u64, u64, String)> {
        waits(all).into_iter().map(|one| (one.waiting, one.blocking, one.object)).collect()
    }

    #[test]
    fn writers_wait_for_the_alter_and_the_alter_for_the_reader() {
        const T: [&str; 3] = ["TABLE", "shop", "t"];
        let all = [
            lock(1, T, "SHARED_READ", "GRANTED"),
            lock(2, T, "SHARED_UPGRADABLE", "GRANTED"),
            lock(2, T, "EXCLUSIVE", "PENDING"),
            lock(3, T, "SHARED_WRITE", "PENDING"),
            lock(4, ["TABLE", "shop", "u"], "SHARED_WRITE", "GRANTED"),
        ];
        let t = || "shop.t".to_owned();
        assert_eq!(pairs(&all), [(2, 1, t()), (3, 2, t())]);
    }

    #[test]
    fn writers_wait_for_the_global_read_lock_and_it_for_them() {
        const ALL: [&str; 3] = ["GLOBAL", "", ""];
        let of = |held: &str, waiting: &str| {
            pairs(&[lock(1, ALL, held, "GRANTED"), lock(2, ALL, waiting, "PENDING")])
        };
        let all = || "GLOBAL".to_owned();
        assert_eq!(of("SHARED", "INTENTION_EXCLUSIVE"), [(2, 1, all())]);
        assert_eq!(of("INTENTION_EXCLUSIVE", "SHARED"), [(2, 1, all())]);
        assert_eq!(of("INTENTION_EXCLUSIVE", "INTENTION_EXCLUSIVE"), []);
    }
}
