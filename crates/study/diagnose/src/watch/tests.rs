//! Each statement on a recording that was made for it, and none on a sound one.

use iostrata_run::{
    Advice, Finding, Risk, SettingOrigin, SettingSource, StallCause, TunedSetting, WatchDocument,
};

use super::WatchTrial;
use super::made::{calm, on, pressed, set, stalled, with};
use crate::rules::{Subject, catalogue, diagnose_watch};

fn ids(document: &WatchDocument) -> Vec<String> {
    diagnose_watch(document).0.into_iter().map(|one| one.id).collect()
}

/// The one finding of this name, with the advice that it gave.
fn found(document: &WatchDocument, id: &str) -> (Finding, Vec<Advice>) {
    let mut known = catalogue(Subject::Recording);
    assert!(known.any(|(name, _)| name == id), "{id} is not in the catalogue");
    let (findings, advice) = diagnose_watch(document);
    let named: Vec<&str> = findings.iter().map(|one| one.id.as_str()).collect();
    let finding = findings.iter().find(|one| one.id == id);
    let finding = finding.unwrap_or_else(|| panic!("{id} is not among {named:?}")).clone();
    let advice = advice.into_iter().filter(|one| one.why.iter().any(|why| why == id)).collect();
    (finding, advice)
}

fn number(finding: &Finding, name: &str) -> f64 {
    finding.evidence[name].as_f64().unwrap_or_else(|| panic!("{name}: {:?}", finding.evidence))
}

/// The estimate lies in its interval, which rests on batches.
fn assert_estimated(finding: &Finding, name: &str) {
    let (value, n) = (number(finding, name), number(finding, &format!("{name}_n")));
    let ci95 = &finding.evidence[&format!("{name}_ci95")];
    let [low, high] = [0, 1].map(|at| ci95[at].as_f64().unwrap());
    assert!(low <= value && value <= high && low < high && n >= 10.0, "{:?}", finding.evidence);
}

#[test]
fn a_sound_recording_says_nothing() {
    assert_eq!(diagnose_watch(&calm()), (Vec::new(), Vec::new()));
    // Defaults that did no harm are left alone, on every server.
    let mariadb = [
        ("innodb_io_capacity", "200"),
        ("innodb_max_dirty_pages_pct_lwm", "0.000000"),
        ("innodb_purge_threads", "1"),
        ("innodb_adaptive_flushing", "OFF"),
    ];
    assert_eq!(ids(&on("mariadb", "10.11.19-MariaDB", &mariadb)), Vec::<String>::new());
    let mysql = [
        ("innodb_redo_log_capacity", "104857600"),
        ("innodb_log_file_size", ""),
        ("log_bin", "ON"),
        ("sync_binlog", "1"),
    ];
    assert_eq!(ids(&on("mysql", "9.7.4", &mysql)), Vec::<String>::new());
    assert_eq!(ids(&WatchDocument::default()), Vec::<String>::new());
}

#[test]
fn a_short_recording_says_how_long_it_must_be_and_judges_settings_alone() {
    let mut document = pressed(calm());
    document.samples.truncate(20);
    assert_eq!(ids(&document), ["recording_short"]);
    assert_eq!(diagnose_watch(&document).1, Vec::new());
    let left = SettingOrigin {
        name: "sync_binlog".to_owned(),
        value: "100".to_owned(),
        source: SettingSource::Changed,
        path: None,
        set_by: None,
        set_at: None,
    };
    document.target.changed_settings.push(left);
    assert_eq!(ids(&document), ["recording_short", "settings_left_changed"]);
    let mut silent = pressed(calm());
    for sample in &mut silent.samples {
        sample.error = Some("the server has gone away".to_owned());
    }
    assert_eq!(diagnose_watch(&silent), (Vec::new(), Vec::new()));
}

#[test]
fn what_is_not_told_is_not_concluded() {
    let mut bare = pressed(calm());
    bare.target.settings.clear();
    assert_eq!(ids(&bare), Vec::<String>::new());
    let blind = with(pressed(calm()), |_, sample| {
        sample.redo_bytes_per_s = None;
        sample.dirty_pages = None;
        sample.device = None;
    });
    assert_eq!(ids(&blind), Vec::<String>::new());
}

#[test]
fn a_redo_log_that_ran_full_and_holds_seconds_is_too_small() {
    let document = pressed(calm());
    let (finding, advice) = found(&document, "redo_too_small");
    assert!((number(&finding, "holds_s") - 21.0).abs() < 1.0, "{}", finding.text);
    assert_estimated(&finding, "redo_bytes_per_s");
    assert!(finding.text.contains("stalled once for lack of redo space"), "{}", finding.text);
    let [advice] = &advice[..] else { panic!("{advice:?}") };
    assert_eq!(advice.setting, "innodb_log_file_size");
    let bytes: f64 = advice.value.parse().unwrap();
    assert!(bytes > 10.0 * 104_857_600.0 && bytes % (1_u64 << 28) as f64 == 0.0, "{advice:?}");
    assert!(number(&finding, "drain_advised_s") < 660.0, "{:?}", finding.evidence);
    assert!(advice.where_.starts_with("SET GLOBAL innodb_log_file_size = "), "{advice:?}");
    assert!(advice.undo.starts_with("SET GLOBAL innodb_log_file_size = 104857600"), "{advice:?}");
    // One that holds an hour is not, whatever else fills it.
    let mut large = with(document, |_, sample| {
        sample.checkpoint_age_limit_bytes = Some(16_000_000_000);
    });
    set(&mut large, &[("innodb_log_file_size", "20000000000")]);
    assert!(!ids(&large).contains(&"redo_too_small".to_owned()));
}

#[test]
fn advice_for_a_managed_server_is_of_its_service() {
    let mut document = pressed(calm());
    set(&mut document, &[("basedir", "/rdsdbbin/mariadb-10.11.8.R1/")]);
    let (_, advice) = found(&document, "redo_too_small");
    let Advice { where_, undo, value, .. } = &advice[0];
    let begins =
        format!("innodb_log_file_size = {value} in the DB parameter group of Amazon RDS: ");
    assert!(where_.starts_with(&begins), "{where_}");
    assert!(where_.contains(&format!("ParameterValue={value},ApplyMethod=immediate")), "{where_}");
    assert!(undo.contains("ParameterValue=104857600,"), "{undo}");
    assert!(!where_.contains("SET GLOBAL") && !where_.contains("my.cnf"), "{where_}");
    let trial = WatchTrial::of(&advice);
    assert!(trial.settings.is_empty(), "it cannot be set: {trial:?}");
}

#[test]
fn redo_of_an_old_mysql_is_several_files_and_needs_a_restart() {
    let settings = [
        ("innodb_log_file_size", "52428800"),
        ("innodb_log_files_in_group", "2"),
        ("innodb_data_file_buffering", ""),
    ];
    let (finding, advice) = found(&pressed(on("mysql", "5.6.24", &settings)), "redo_too_small");
    assert_eq!(number(&finding, "redo_capacity_bytes"), 104_857_600.0);
    let [advice] = &advice[..] else { panic!("{advice:?}") };
    let advised = number(&finding, "redo_capacity_advised_bytes");
    assert_eq!(advice.value.parse::<f64>().unwrap(), advised / 2.0);
    assert!(advice.where_.ends_with("in my.cnf [mysqld]; it needs a restart"), "{advice:?}");
    assert!(advice.undo.starts_with("innodb_log_file_size = 52428800 in my.cnf"), "{advice:?}");
}

#[test]
fn a_capacity_below_what_becomes_dirty_is_raised_with_its_bound_first() {
    let mut document = pressed(calm());
    set(&mut document, &[("innodb_io_capacity", "200"), ("innodb_io_capacity_max", "400")]);
    let (finding, advice) = found(&document, "io_capacity_below_need");
    assert_estimated(&finding, "pages_dirtied_per_s");
    assert!((number(&finding, "pages_dirtied_per_s") - 500.0).abs() < 10.0);
    let set: Vec<_> = advice.iter().map(|one| (&one.setting[..], &one.value[..])).collect();
    let [("innodb_io_capacity_max", max), ("innodb_io_capacity", capacity)] = set[..] else {
        panic!("{set:?}")
    };
    let (max, capacity): (u32, u32) = (max.parse().unwrap(), capacity.parse().unwrap());
    assert!((600..=640).contains(&capacity) && max == 2 * capacity, "{set:?}");
    assert!(advice.iter().all(|one| one.risk == Risk::Wear));
    // What a busy device gave is not passed.
    let busy = with(document, |_, sample| {
        if let Some(device) = &mut sample.device {
            device.in_flight = 20.0;
        }
    });
    let (finding, advice) = found(&busy, "io_capacity_below_need");
    let best = number(&finding, "flushed_pages_per_s_best");
    let given: f64 = advice[1].value.parse().unwrap();
    assert!(given <= best * 1.1 && given >= 500.0, "{given} {best}");
}

#[test]
fn a_device_that_gives_no_more_is_named_and_nothing_is_advised() {
    let busy = with(pressed(calm()), |_, sample| {
        if let Some(device) = &mut sample.device {
            device.in_flight = 20.0;
        }
    });
    let (finding, advice) = found(&busy, "device_below_need");
    assert!(advice.is_empty() && number(&finding, "device_in_flight") == 20.0);
    assert_estimated(&finding, "pages_dirtied_per_s");
    let (twice, advice) = found(&busy, "doublewrite_share");
    assert!(advice.is_empty() && twice.text.contains("should stay"), "{}", twice.text);
    assert!(number(&twice, "page_writes_per_s") > 990.0);
    let mut off = busy;
    set(&mut off, &[("innodb_doublewrite", "OFF")]);
    assert!(!ids(&off).contains(&"doublewrite_share".to_owned()));
}

#[test]
fn only_mariadb_sleeps_at_a_low_water_mark_of_nothing() {
    let zero = [("innodb_max_dirty_pages_pct_lwm", "0.000000")];
    let document = pressed(on("mariadb", "11.4.5-MariaDB", &zero));
    let (_, advice) = found(&document, "page_cleaner_sleeps");
    let [advice] = &advice[..] else { panic!("{advice:?}") };
    assert_eq!(advice.value, "0.001");
    assert!(advice.undo.contains("innodb_max_dirty_pages_pct_lwm = 0.000000"), "{advice:?}");
    assert!(!ids(&pressed(on("mysql", "9.7.4", &zero))).contains(&"page_cleaner_sleeps".into()));
    // Asleep before anything stalls.
    let asleep = |redo_bytes_per_s: f64| {
        with(on("mariadb", "11.4.5-MariaDB", &zero), |at, sample| {
            sample.redo_bytes_per_s = Some(redo_bytes_per_s);
            if (50..60).contains(&at) {
                sample.flushed_pages_per_s = Some(0.0);
            }
        })
    };
    // 6,000 pages in the last eighth of the redo: 57 and 171 per second.
    assert_eq!(ids(&asleep(1e5)), [""; 0], "it has time enough once it is awake");
    let asleep = asleep(3e5);
    let (finding, _) = found(&asleep, "page_cleaner_sleeps");
    assert_eq!(number(&finding, "samples_asleep_in_a_row"), 10.0);
    assert_eq!(ids(&asleep).len(), 1);
}

#[test]
fn adaptive_flushing_that_is_off_is_turned_on_where_redo_ran_out() {
    let document = pressed(on("mysql", "9.7.4", &[("innodb_adaptive_flushing", "OFF")]));
    let (_, advice) = found(&document, "adaptive_flushing_off");
    assert_eq!((advice[0].value.as_str(), advice.len()), ("ON", 1));
}

#[test]
fn neighbours_are_not_written_where_there_are_no_seeks() {
    let settings = [("innodb_flush_neighbors", "1")];
    let document = on("mariadb", "11.8.9-MariaDB", &settings);
    let (finding, advice) = found(&document, "neighbors_without_seeks");
    assert_estimated(&finding, "device_read_ms");
    assert_eq!((advice[0].value.as_str(), advice.len()), ("0", 1));
    let quiet = with(document.clone(), |_, sample| sample.flushed_pages_per_s = Some(40.0));
    assert_eq!(ids(&quiet), [""; 0], "few pages are written, with neighbours or without");
    let seeks = with(document, |_, sample| {
        if let Some(device) = &mut sample.device {
            device.read_ms = Some(7.5);
        }
    });
    assert_eq!(ids(&seeks), Vec::<String>::new());
}

#[test]
fn a_limit_of_dirty_pages_that_binds_is_lifted() {
    let at_limit =
        with(on("mysql", "5.6.24", &[("innodb_max_dirty_pages_pct", "15")]), |_, one| {
            one.dirty_pct = Some(14.9);
        });
    let (finding, advice) = found(&at_limit, "dirty_limit_binds");
    assert_eq!((advice[0].value.as_str(), advice.len()), ("90", 1));
    assert_eq!(number(&finding, "share_at_limit"), 1.0);
    // Where redo requires it, the limit is not what binds.
    assert!(!ids(&pressed(at_limit)).contains(&"dirty_limit_binds".to_owned()));
}

#[test]
fn a_pool_that_evicts_is_too_small() {
    let evicts = with(calm(), |_, sample| {
        sample.flush_lru_pages_per_s = sample.flushed_pages_per_s.map(|pages| 0.6 * pages);
    });
    let (finding, advice) = found(&evicts, "pool_too_small");
    assert!((number(&finding, "lru_share") - 0.6).abs() < 0.01);
    assert_eq!(advice[0].value, "1073741824");
    assert!(advice[0].where_.starts_with("SET GLOBAL"), "{advice:?}");
    let old = stalled(on("mysql", "5.6.24", &[]), StallCause::FreePages);
    let (_, advice) = found(&old, "pool_too_small");
    assert!(advice[0].where_.contains("needs a restart"), "{advice:?}");
}

#[test]
fn history_grows_behind_purge_or_behind_a_view() {
    let grows = |document| {
        with(document, |at, sample| sample.history_list_length = Some(2_000 + 300 * at as u64))
    };
    let (finding, advice) = found(&grows(calm()), "purge_behind");
    assert!((number(&finding, "history_growth_per_s") - 300.0).abs() < 1.0);
    assert_eq!(
        (advice[0].setting.as_str(), advice[0].value.as_str()),
        ("innodb_purge_threads", "8")
    );
    let mysql = on("mysql", "9.7.4", &[("innodb_purge_threads", "1")]);
    let (_, advice) = found(&grows(mysql), "purge_behind");
    assert!(advice[0].where_.contains("innodb_purge_threads = 2 in my.cnf [mysqld]; it needs"));
    let stands = with(grows(calm()), |_, sample| sample.purge_per_s = Some(0.0));
    let (finding, advice) = found(&stands, "purge_held_by_view");
    assert!(advice.is_empty() && finding.text.contains("INNODB_TRX"), "{}", finding.text);
    assert_eq!(ids(&stands), ["purge_held_by_view"]);
    // An open transaction is named, also where purge is not counted.
    let open = |document, id: fn(usize) -> u64| {
        with(document, |at, sample| {
            sample.purge_per_s = None;
            // What is there from the first sample on began a minute before.
            let seen = (0..=at).rev().take_while(|before| id(*before) == id(at)).count();
            let before_s = if seen > at { 60.0 } else { 0.0 };
            sample.oldest_transaction_s = Some(seen as f64 + before_s);
            sample.oldest_transaction_id = Some(id(at));
        })
    };
    let (finding, advice) = found(&open(grows(calm()), |_| 41), "purge_held_by_view");
    assert!(finding.text.contains("connection 41, open for 5 min"), "{}", finding.text);
    assert_eq!((advice[0].setting.as_str(), advice[0].risk), ("KILL 41", Risk::Uncommitted));
    assert_eq!(ids(&open(grows(calm()), |_| 41)), ["purge_held_by_view"]);
    // Transactions that come and go, or one that came late, hold nothing; nor where nothing grows.
    assert_eq!(ids(&open(grows(calm()), |at| at as u64 / 3)), ["purge_behind"]);
    assert_eq!(ids(&open(grows(calm()), |at| at as u64 / 200)), ["purge_behind"]);
    assert_eq!(ids(&open(calm(), |_| 41)), Vec::<String>::new());
    // Where purge is not counted, nothing is reported about threads.
    let uncounted = with(grows(calm()), |_, sample| sample.purge_per_s = None);
    let (_, advice) = found(&uncounted, "purge_behind");
    assert!(advice.is_empty());
}

#[test]
fn a_full_log_buffer_is_enlarged() {
    let full = stalled(calm(), StallCause::LogBuffer);
    let (finding, advice) = found(&full, "log_buffer_small");
    assert!((number(&finding, "holds_s") - 4.2).abs() < 0.2, "{}", finding.text);
    assert_eq!(advice[0].value, "67108864");
    assert!(advice[0].where_.contains("needs a restart"), "{advice:?}");
    let mysql = stalled(on("mysql", "9.7.4", &[]), StallCause::LogBuffer);
    assert!(found(&mysql, "log_buffer_small").1[0].where_.starts_with("SET GLOBAL"));
}

#[test]
fn a_binary_log_that_is_synced_is_named_where_syncs_are_waited_for() {
    let settings = [("log_bin", "ON"), ("sync_binlog", "1")];
    let syncing = with(on("mysql", "9.7.4", &settings), |at, sample| {
        sample.pending_syncs = Some(u64::from(at % 4 != 0));
    });
    let (finding, advice) = found(&syncing, "binlog_synced_per_commit");
    assert!(advice.is_empty() && (number(&finding, "share_syncing") - 0.75).abs() < 0.01);
    assert_eq!(number(&finding, "device_flushes_per_s"), 400.0);
}

#[test]
fn versions_that_say_one_thing_and_do_another_are_named() {
    let stale = on("mariadb", "11.8.9-MariaDB", &[("innodb_data_file_buffering", "ON")]);
    let (finding, advice) = found(&stale, "flush_method_stale");
    assert!(advice.is_empty() && finding.text.contains("innodb_data_file_buffering (ON)"));
    let before = on("mariadb", "10.11.19-MariaDB", &[("innodb_data_file_buffering", "ON")]);
    assert_eq!(ids(&before), Vec::<String>::new());
    let both = [
        ("innodb_redo_log_capacity", "104857600"),
        ("innodb_log_file_size", "1073741824"),
        ("innodb_log_files_in_group", "2"),
    ];
    let (finding, _) = found(&on("mysql", "8.0.46", &both), "redo_size_ignored");
    assert!(finding.text.contains("goes by innodb_redo_log_capacity (100 MiB)"), "{finding:?}");
    let by_files = with(on("mysql", "8.0.46", &both), |_, sample| {
        sample.checkpoint_age_limit_bytes = Some(1_780_000_000);
    });
    let (finding, _) = found(&by_files, "redo_size_ignored");
    assert!(finding.text.contains("goes by innodb_log_file_size"), "{}", finding.text);
}

#[test]
fn what_tuning_has_set_is_what_held() {
    let mut document = pressed(calm());
    set(&mut document, &[("innodb_io_capacity", "200")]);
    let to = "1500".to_owned();
    let name = "innodb_io_capacity".to_owned();
    document.settings.push(TunedSetting { name, to, ..TunedSetting::default() });
    assert!(!ids(&document).contains(&"io_capacity_below_need".to_owned()));
}

#[test]
fn an_engine_is_advised_in_its_own_words() {
    let settings: Vec<(String, String)> = {
        let strip = |name: &str| name.trim_start_matches("innodb_").to_owned();
        let settings = pressed(calm()).target.settings;
        settings.into_iter().map(|(name, value)| (strip(&name), value)).collect()
    };
    let mut document = pressed(calm());
    document.target.flavour = "engine".to_owned();
    document.target.version = "1".to_owned();
    document.target.settings = settings.into_iter().collect();
    set(&mut document, &[("log_file_size", ""), ("redo_log_capacity", "104857600")]);
    let (_, advice) = found(&document, "redo_too_small");
    assert!(advice[0].where_.starts_with("--engine redo_log_capacity="), "{advice:?}");
    assert_eq!(advice[0].undo, "--engine redo_log_capacity=104857600");
}

#[test]
fn advice_never_takes_durability_or_sets_what_is_set() {
    let mut worst = pressed(stalled(calm(), StallCause::FreePages));
    set(
        &mut worst,
        &[
            ("innodb_io_capacity", "100"),
            ("innodb_flush_neighbors", "2"),
            ("innodb_max_dirty_pages_pct_lwm", "0"),
            ("innodb_adaptive_flushing", "OFF"),
        ],
    );
    let (findings, advice) = diagnose_watch(&worst);
    assert!(findings.len() >= 5, "{:?}", ids(&worst));
    for one in &advice {
        assert_ne!(one.risk, Risk::Durability, "{one:?}");
        assert_ne!(worst.target.settings[&one.setting], one.value, "{one:?}");
        assert!(!one.why.is_empty() && one.undo.contains(&worst.target.settings[&one.setting]));
    }
    let mut settings: Vec<&str> = advice.iter().map(|one| one.setting.as_str()).collect();
    settings.sort_unstable();
    settings.dedup();
    assert_eq!(settings.len(), advice.len(), "each setting once");
}

#[test]
fn pages_that_wait_for_free_frames_are_told_while_throughput_holds() {
    let waiting = |every: usize| {
        with(calm(), move |at, sample| {
            sample.free_page_waits_per_s = Some(if at % every == 0 { 30.0 } else { 0.0 });
        })
    };
    assert_eq!(ids(&waiting(4)), ["pool_too_small"]);
    let (findings, _) = diagnose_watch(&waiting(4));
    let says = "pages waited for a free frame 7.5 times per second, in 25 % of the samples";
    assert!(findings[0].text.contains(says), "{}", findings[0].text);
    assert_eq!(ids(&waiting(60)), Vec::<String>::new(), "now and then is nothing");
}
