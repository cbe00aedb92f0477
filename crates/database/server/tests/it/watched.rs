//! What real servers of every flavour report while they run.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iostrata_database::target::{
    ColumnType, FileTable, OldestTransaction, Sampler, SessionOptions, Target, TargetSample,
    Trouble,
};
use iostrata_run::{FileClass, FileIoSource};
use iostrata_server::private::TestServer;
use iostrata_server::{ServerAddress, ServerTarget};

use crate::fixture::{Place, alone_on_each_server, on_each_server, schema, statement};

/// The sampler of a server.
fn sampler(target: &ServerTarget) -> Box<dyn Sampler> {
    target.sampler().unwrap().unwrap()
}

fn told(sample: &TargetSample) {
    let age = sample.checkpoint_age_bytes.unwrap();
    let limit = sample.checkpoint_age_limit_bytes.unwrap();
    let capacity = sample.redo_capacity_bytes.unwrap();
    assert!(age < capacity && limit < capacity, "{sample:?}");
    // Every flavour stops its writers at about eight tenths of the redo.
    let share = limit as f64 / capacity as f64;
    assert!((0.7..0.95).contains(&share), "{share} {sample:?}");
    let async_age = sample.checkpoint_age_async_bytes.unwrap();
    assert!(async_age < limit && async_age > limit / 2, "{sample:?}");
    assert!(sample.redo_end_bytes.unwrap() >= sample.redo_durable_bytes.unwrap());
    assert!(sample.dirty_pages.unwrap() <= sample.pool_pages.unwrap(), "{sample:?}");
    assert!(sample.history_list_length.is_some() && sample.pages_flushed.is_some());
    assert!(sample.pending_ios().is_some() && sample.row_locks_waiting.is_some());
    assert!(sample.log_buffer_waits.is_some() && sample.free_page_waits.is_some());
    assert!(sample.started_s.unwrap() > 1_600_000_000, "{sample:?}");
}

#[test]
fn every_flavour_tells_age_limit_and_transactions() {
    alone_on_each_server("watched", |place| {
        let schema = schema();
        place.make(&schema);
        let mut sampler = sampler(&place.target);
        sampler.sample().unwrap();
        let before = sampler.sample().unwrap();
        told(&before);
        // The sampler itself is no load.
        let idle = sampler.sample().unwrap();
        assert_eq!(idle.transactions, before.transactions, "{before:?} {idle:?}");
        assert!(!idle.was_restarted_since(&before), "{before:?} {idle:?}");
        for statement in 0..20 {
            let sql = format!("INSERT INTO heap VALUES ({statement}, 1)");
            place.order(&sql).unwrap();
        }
        let after = sampler.sample().unwrap();
        let more = after.transactions.unwrap() - idle.transactions.unwrap();
        eprintln!("20 statements that commit themselves are {more} transactions");
        assert!((20..=30).contains(&more), "{more}");
        assert!(after.redo_end_bytes > idle.redo_end_bytes);
        let mut session = place
            .session(&schema, vec![statement("DELETE FROM heap LIMIT 1", vec![])], true)
            .unwrap();
        for _ in 0..10 {
            session.session.begin().unwrap();
            session.run(0, &[]);
            let ticket = session.session.commit().unwrap();
            session.session.settle(ticket, true).unwrap();
        }
        let last = sampler.sample().unwrap();
        assert_eq!(
            last.transactions.unwrap() - after.transactions.unwrap(),
            10,
            "those of clients"
        );
        let grown = |of: fn(&TargetSample) -> Option<u64>| of(&last).unwrap() - of(&idle).unwrap();
        assert_eq!((grown(|one| one.inserts), grown(|one| one.deletes)), (20, 10));
        assert_eq!(grown(|one| one.updates), 0);
        assert!(grown(|one| one.pool_requests) > 0 && last.selects.is_some());
        assert!(last.pool_reads.is_some() && last.temporary_tables_on_disk.is_some());
        assert!(last.deadlocks.is_some(), "{last:?}");
        let missing = sampler.missing().join("\n");
        assert!(!missing.contains("checkpoint_age"), "{missing}");
        // Off by default; a counter that is off reads 0.
        assert_eq!(last.pages_flushed_adaptive, None);
        assert!(missing.contains("flush_adaptive_pages_per_s"), "{missing}");
        eprintln!("{missing}\n{last:?}");
    });
}

#[test]
fn what_is_purged_is_told_while_its_counter_is_on() {
    alone_on_each_server("purged", |place| {
        const COUNTER: &str = "trx_commits_insert_update";
        let schema = schema();
        place.make(&schema);
        place.order("INSERT INTO heap VALUES (1, 1)").unwrap();
        let mut without = sampler(&place.target);
        assert_eq!(without.sample().unwrap().purged, None);
        assert!(without.missing().join("\n").contains("purge_per_s"));
        place.order(&format!("SET GLOBAL innodb_monitor_enable = '{COUNTER}'")).unwrap();
        let mut sampler = sampler(&place.target);
        let first = sampler.sample().unwrap();
        // What others have left is purged as well.
        let (before, left) = (first.purged.unwrap(), first.history_list_length.unwrap());
        let update = statement("UPDATE heap SET x = x + 1", vec![]);
        let options =
            SessionOptions { ops: vec![update].into(), autocommit: true, ..Default::default() };
        let mut session = place.session_with(&schema, options).unwrap();
        let (mut commits, mut purged) = (0, 0);
        // Servers cut the history off every 128 batches of purge, and purge only while there is
        // something to do.
        for more in [2_000].into_iter().chain([20; 1_200]) {
            (0..more).for_each(|_| drop(session.run(0, &[])));
            commits += more;
            purged = sampler.sample().unwrap().purged.unwrap() - before;
            if purged * 10 >= commits * 9 {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        let missing = sampler.missing().join("\n");
        place.order(&format!("SET GLOBAL innodb_monitor_disable = '{COUNTER}'")).unwrap();
        eprintln!("{purged} of {commits} commits are purged");
        // A server has commits of its own, as of its statistics.
        let expected = commits * 9 / 10..=commits + left + 50;
        assert!(expected.contains(&purged), "{purged} of {commits}, {left} before");
        assert!(!missing.contains("purge_per_s"), "{missing}");
    });
}

#[test]
fn the_oldest_open_transaction_is_told_with_its_connection() {
    alone_on_each_server("oldest", |place| {
        let schema = schema();
        place.make(&schema);
        place.order("INSERT INTO heap VALUES (1, 1)").unwrap();
        let mut sampler = sampler(&place.target);
        let none = sampler.sample().unwrap().oldest_transaction.unwrap();
        assert_eq!((none.age_s, none.id), (0, None), "no other session has one");
        let number = || vec![ColumnType::Int { bytes: 8 }];
        let statements = ["SELECT COUNT(*) FROM heap", "SELECT CONNECTION_ID()"];
        let statements = statements.map(|sql| statement(sql, number())).to_vec();
        let mut session = place.session(&schema, statements, true).unwrap();
        session.session.begin().unwrap();
        session.run(0, &[]);
        let id = session.rows(1, &[]).join("");
        // Open transactions are read every five seconds.
        let mut after = |before: OldestTransaction| {
            let mut looks = (0..100).map(|_| {
                sleep(Duration::from_millis(200));
                sampler.sample().unwrap().oldest_transaction.unwrap()
            });
            looks.find(|found| found.id != before.id).unwrap_or(before)
        };
        let found = after(none);
        assert_eq!(found.id.map(|id| id.to_string()), Some(id));
        assert!((3..20).contains(&found.age_s), "{found:?}");
        let ticket = session.session.commit().unwrap();
        session.session.settle(ticket, true).unwrap();
        assert_eq!(after(found), none);
    });
}

#[test]
fn what_is_done_with_files_is_told_by_class() {
    on_each_server("files", |place| {
        let schema = schema();
        place.make(&schema);
        let mut sampler = sampler(&place.target);
        let told = |sampler: &mut Box<dyn Sampler>| {
            // A server that answers slowly is queried rarely.
            let mut all = (0..200).map(|_| {
                sleep(Duration::from_millis(50));
                sampler.sample().unwrap().files
            });
            all.find_map(|files| files).unwrap()
        };
        let before = told(&mut sampler);
        for statement in 0..50 {
            place.order(&format!("INSERT INTO heap VALUES ({statement}, 1)")).unwrap();
        }
        let after = told(&mut sampler);
        let redo = |files: &FileTable| files.get(FileClass::Redo).unwrap().written_bytes.unwrap();
        assert!(redo(&after) > redo(&before), "{before:?} {after:?}");
        let data = after.get(FileClass::Data).unwrap();
        assert!(data.reads.is_some() && data.written_bytes.is_some(), "{data:?}");
        assert!(after.get(FileClass::Doublewrite).unwrap().written_bytes.is_some());
        let by_class = after.source == FileIoSource::PerformanceSchema;
        let missing = sampler.missing().join("\n");
        assert_eq!(missing.contains("performance_schema is off"), !by_class, "{missing}");
        assert_eq!(after.get(FileClass::Other).is_some(), by_class, "{after:?}");
        assert_eq!(data.read_ns.is_some(), by_class, "{data:?}");
        let classes: Vec<&str> = after.iter().map(|(class, _)| class.word()).collect();
        eprintln!("{:?}: {}", after.source, classes.join(", "));
    });
}

/// The same server for a user who may do nothing.
fn as_nobody(place: &Place) -> ServerTarget {
    let host = &place.address.hosts[0];
    let user = "iostrata_nobody";
    let _not_there = place.order(&format!("DROP USER {user}@'127.0.0.1'"));
    place.order(&format!("CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'no'")).unwrap();
    let address: ServerAddress = format!("mysql://{user}:no@{host}/").parse().unwrap();
    ServerTarget::open(address, None).unwrap()
}

#[test]
fn who_has_no_rights_is_told_which_to_ask_for() {
    on_each_server("no_rights", |place| {
        if place.address.hosts.is_empty() {
            eprintln!("skipped: {} is no port", place.address);
            return;
        }
        let target = as_nobody(place);
        let mut sampler = sampler(&target);
        let sample = sampler.sample().unwrap();
        assert!(sample.dirty_pages.is_some() && sample.transactions.is_some(), "{sample:?}");
        let missing = sampler.missing().join("\n");
        assert!(missing.contains("GRANT PROCESS ON *.*"), "{missing}");
        assert!(missing.contains("oldest_transaction_s: this user may not"), "{missing}");
        assert_eq!(sample.oldest_transaction, None);
        assert_eq!(sample.files.unwrap().source, FileIoSource::InnodbStatus, "{sample:?}");
        let is_refused = missing.contains("GRANT SELECT ON performance_schema.*");
        assert!(is_refused || missing.contains("performance_schema is off"), "{missing}");
        let is_old = target.version().numbers < (8, 0, 0);
        assert_eq!(sample.checkpoint_age_bytes.is_none(), is_old, "{missing}");
        assert_eq!(missing.contains("SHOW ENGINE INNODB STATUS"), is_old, "{missing}");
        place.order("DROP USER iostrata_nobody@'127.0.0.1'").unwrap();
    });
}

#[test]
fn a_server_that_was_started_again_is_found_again() {
    let Some(mut server) = TestServer::start().unwrap() else {
        eprintln!("skipped: mariadbd is not installed");
        return;
    };
    let target = server.target("again").unwrap();
    let mut sampler = sampler(&target);
    let before = sampler.sample().unwrap();
    server.kill().unwrap();
    let gone = sampler.sample().unwrap_err();
    assert_eq!(gone.trouble, Trouble::Gone, "{gone}");
    // A start is reported in whole seconds, so that two starts two seconds apart may be the same.
    let began = UNIX_EPOCH + Duration::from_secs(before.started_s.unwrap() + 4);
    sleep(began.duration_since(SystemTime::now()).unwrap_or_default());
    server.start_again().unwrap();
    let after = sampler.sample().unwrap();
    assert!(after.was_restarted_since(&before), "{before:?} {after:?}");
    assert!(after.transactions >= before.transactions, "a count does not go back");
}
