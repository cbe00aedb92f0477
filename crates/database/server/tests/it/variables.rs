//! What servers report about themselves, and how studies alter them.

use iostrata_change::{ServerError, Servers};
use iostrata_database::target::Target;
use iostrata_server::{Flavour, MySqlServers};

use super::fixture::{alone_on_each_server, on_each_server};

#[test]
fn servers_are_known_asked_and_altered() {
    alone_on_each_server("variables", |place| {
        let servers = MySqlServers::knowing(place.address.clone());
        // The text holds no password.
        let address = place.address.to_string();
        let token = servers.look(&address, &[]).unwrap().0;
        let again = servers.look(&address, &[]).unwrap().0;
        assert_eq!((&token.data_dir, &token.place), (&again.data_dir, &again.place));
        assert!(token.data_dir.is_absolute(), "{token:?}");
        assert!(token.started_s.abs_diff(again.started_s) <= 1 && token.started_s > 1_600_000_000);

        let name = "innodb_io_capacity";
        let value = |name: &str| servers.look(&address, &[name]).unwrap().1[name].clone();
        let before = value(name);
        servers.set_variable(&address, name, "350").unwrap();
        assert_eq!(value(name), "350");
        servers.set_variable(&address, name, &before).unwrap();
        servers.set_variable(&address, "innodb_adaptive_flushing", "OFF").unwrap();
        assert_eq!(value("innodb_adaptive_flushing"), "OFF");
        servers.set_variable(&address, "innodb_adaptive_flushing", "ON").unwrap();

        assert!(servers.look(&address, &["innodb_speed"]).unwrap().1.is_empty());
        for refused in [
            servers.look(&address, &["a', 'b"]).map(drop),
            servers.set_variable(&address, "innodb_speed", "11"),
            servers.set_variable(&address, "innodb_page_size", "4096"),
            servers.set_variable(&address, "a = 1, b", "2"),
        ] {
            assert!(matches!(refused, Err(ServerError::Refused(_))), "{refused:?}");
        }
        let silent = servers.look("mysql://b@127.0.0.1:9/x", &[]);
        assert!(matches!(silent, Err(ServerError::NoAnswer(_))), "{silent:?}");
    });
}

#[test]
fn facts_are_what_the_server_says() {
    on_each_server("facts", |place| {
        let facts = place.target.facts().unwrap();
        let flavour = place.target.version().flavour;
        assert!(matches!(flavour, Flavour::MySql | Flavour::MariaDb | Flavour::Percona));
        assert_eq!(facts.flavour, flavour.word());
        assert_eq!(facts.version, place.target.version().text);
        assert!(!facts.name.contains("se:cr@t") && facts.name.starts_with("mysql://"));
        assert!(facts.settings.len() > 300 && facts.settings.is_sorted());
        let durability = facts.durability;
        assert_eq!(durability.flush_log_at_commit, Some(1));
        assert!(durability.doublewrite.is_some());
        // 5.6 reports none where nothing is set.
        assert!(durability.flush_method.is_some() || facts.version.starts_with("5.6"));
        assert!(durability.binlog.is_some() && durability.sync_binlog.is_some());
        eprintln!("{} {}: {:?}", facts.flavour, facts.version, durability.flush_method);
    });
}
