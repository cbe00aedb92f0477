//! Studies of transactions: what their settings become, and what is refused.

use super::*;
use crate::TransactionPacing;

fn parsed(text: &str) -> Result<StudySpec, StudyTextError> {
    StudySpec::parse(&format!("name='a'\ntitle='a'\n{text}"), "a.toml")
}

fn cells(text: &str) -> Vec<Cell> {
    let spec = parsed(text).unwrap_or_else(|error| panic!("{error}"));
    spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap().cells
}

const ENGINE: &str = "[base]\nworkload='updates'\nrows=5000\n[factors]\n\
                      'engine.policy'=['adaptive','steady']\n\
                      'engine.redo_log_capacity'=['128m','1024M']\nworkers=[4,16]\n";

#[test]
fn settings_of_the_database_are_factors_like_any_others() {
    let cells = cells(ENGINE);
    assert_eq!(cells.len(), 8);
    assert_eq!(cells[0].id, "adaptive_redo128m_w4");
    assert_eq!(cells[7].title, "policy steady, redo log capacity 1G, 16 workers");
    let load = cells[7].transactions.as_ref().unwrap();
    assert_eq!(
        (load.workload.as_str(), load.target.as_str(), load.threads),
        ("updates", "engine", 16)
    );
    assert_eq!(load.pacing, TransactionPacing::Closed);
    let settings: Vec<(&str, &str)> =
        load.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        settings,
        [
            ("engine.policy", "steady"),
            ("engine.redo_log_capacity", "1G"),
            ("random_distribution", "uniform"),
            ("row_updates", "10"),
            ("rows", "5000"),
        ]
    );
    assert!(cells[7].requests().is_none(), "no requests of its own");
}

#[test]
fn sizes_of_the_database_are_an_axis_and_its_words_are_not() {
    let spec = parsed(ENGINE).unwrap();
    let plan = spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap();
    let axes: Vec<(&str, bool)> =
        plan.factors.iter().map(|one| (one.factor.as_str(), one.is_axis)).collect();
    assert_eq!(
        axes,
        [("engine.policy", false), ("engine.redo_log_capacity", true), ("workers", true)]
    );
}

#[test]
fn a_volume_has_room_for_the_largest_database_on_it() {
    let cells = cells(ENGINE);
    let bytes = database_bytes(&cells);
    assert!(bytes > 1 << 30 && bytes < 3 << 29, "one database with 1 GiB of redo: {bytes}");
    let twice = ENGINE.replace("rows=5000\n", "").replace("workers=[4,16]", "rows=[5000,6000]");
    assert!(database_bytes(&self::cells(&twice)) > 2 << 30, "other rows are other tables");
}

#[test]
fn a_rate_is_of_all_workers_and_zero_is_none() {
    let text = "[base]\nworkload='updates'\nrate_process='poisson'\n[factors]\nrate_tps=[0,500]";
    let cells = cells(text);
    let pacing = |cell: &Cell| cell.transactions.as_ref().unwrap().pacing;
    assert_eq!(pacing(&cells[0]), TransactionPacing::Closed);
    let TransactionPacing::Open { rate_per_s, .. } = pacing(&cells[1]) else { panic!() };
    assert_eq!((rate_per_s, cells[1].title.as_str()), (500.0, "500 transactions/s"));
}

#[test]
fn requests_and_transactions_may_stand_in_one_study() {
    let cells = cells("[factors]\nworkload=['requests','updates']\nworkers=[1]");
    let which: Vec<bool> = cells.iter().map(|cell| cell.transactions.is_some()).collect();
    assert_eq!(which, [false, true]);
}

const SECOND: &str = "[base]\nworkload='updates'\nrow_updates=7\n'engine.policy'='steady'\n\
                      'second.policy'='adaptive'\nsecond_row_updates=9\nsecond_rate_tps=50\n\
                      [factors]\nsecond_workers=[0,3]\n'second.io_capacity'=[200,1000]\n";

#[test]
fn a_second_engine_is_there_where_somebody_works_on_it() {
    let cells = cells(SECOND);
    let ids: Vec<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["second0", "second3_second_io200", "second3_second_io1000"]);
    assert_eq!(
        cells[2].title, "3 workers on a second engine, second engine's io capacity 1000",
        "{}",
        cells[0].title
    );
    assert_eq!((cells[0].second.as_ref(), cells[0].title.as_str()), (None, "no second engine"));
    let (first, second) = (&cells[2].transactions, &cells[2].second);
    let (first, second) = (first.as_ref().unwrap(), second.as_ref().unwrap());
    assert_eq!((second.workload.as_str(), second.threads), ("updates", 3));
    assert!(matches!(second.pacing, TransactionPacing::Open { rate_per_s: 50.0, .. }));
    assert_ne!(first.seed, second.seed, "other rows at the same time");
    let settings = |load: &crate::TransactionSpec| {
        let all = load.settings.iter().map(|(name, value)| format!("{name}={value}"));
        all.collect::<Vec<_>>().join(" ")
    };
    let shared = "random_distribution=uniform";
    assert_eq!(settings(first), format!("engine.policy=steady {shared} row_updates=7 rows=100000"));
    assert_eq!(
        settings(second),
        format!(
            "engine.io_capacity=1000 engine.policy=adaptive {shared} row_updates=9 rows=100000"
        ),
        "nothing of the first engine's"
    );
    assert!(database_bytes(&cells[2..]) > 2 * database_bytes(&cells[..1]) - (1 << 20), "room");
}

#[test]
fn readers_beside_a_database_have_a_file_of_their_own() {
    let cells = cells("[base]\nworkload='updates'\n[factors]\nreaders=[0,2]");
    let titles: Vec<&str> = cells.iter().map(|cell| cell.title.as_str()).collect();
    assert_eq!(titles, ["no reader", "2 concurrent readers"]);
    assert_eq!((cells[0].readers.as_ref(), cells[0].on_files().count()), (None, 0));
    let readers: Vec<&crate::IoSpec> = cells[1].on_files().collect();
    assert_eq!((readers.len(), readers[0].jobs, readers[0].block_bytes), (1, 2, 16 << 10));
    assert!(readers[0].direct && !readers[0].mix.writes());
    let error = parsed("[factors]\nreaders=[0,2]").map(drop).unwrap_err().to_string();
    assert!(error.starts_with("a.toml:") && error.contains("no meaning"), "{error}");
}

#[test]
fn a_second_engine_that_makes_no_sense_is_refused_with_its_place() {
    let updates = "[base]\nworkload='updates'\n";
    let wrong: [(&str, &str, &[&str]); 6] = [
        ("'second.policy'='steady'\n[factors]\nworkers=[1]", "5:17", &["second_workers = 4"]),
        ("second_rate_tps=5\n[factors]\nworkers=[1]", "5:17", &["no session works on a second"]),
        ("second_workers=4\n[factors]\nworkers=[1]", "5:16", &["the second engine has no setting"]),
        ("second_workers=-1\n[factors]\nworkers=[1]", "5:16", &["use 0 to 4096"]),
        ("second.policy='steady'\n[factors]\nworkers=[1]", "5:1", &["\"second.policy\" = ..."]),
        (
            "second_workers=0\n[factors]\n'second.policy'=['steady']",
            "7:18",
            &["has no meaning in any point"],
        ),
    ];
    for (text, place, words) in wrong {
        let error = parsed(&format!("{updates}{text}")).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(&format!("a.toml:{place}: ")), "{text}\n{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{text}\n{error}");
    }
    let text = "[base]\nsecond_workers=4\n'second.policy'='steady'\n[factors]\nworkers=[1]";
    let error = parsed(text).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("a.toml:4:16: second_workers `4`: "), "{error}");
    assert!(error.contains("requests are what runs here"), "{error}");
    assert!(error.contains("workload = \"updates\""), "{error}");
}

#[test]
fn what_has_no_meaning_is_refused_with_its_place() {
    let wrong: [(&str, &str, &[&str]); 7] = [
        ("[base]\nworkload='update'\n[factors]\nworkers=[1]", "4:10", &["did you mean `updates`"]),
        (
            "[base]\nworkload='updates'\ntarget='oracle'\n[factors]\nworkers=[1]",
            "5:8",
            &["use one of engine, mariadb, mysql"],
        ),
        (
            "[base]\nworkload='updates'\nfilesystem='raw'\n[factors]\nworkers=[1]",
            "5:12",
            &["keeps files", "use ext4"],
        ),
        (
            "[base]\nworkload='updates'\nrandom_distribution='coverage'\n[factors]\nworkers=[1]",
            "5:21",
            &["choose rows"],
        ),
        ("[base]\nworkload='updates'\n[factors]\nbs=['4k']", "6:5", &["has no meaning"]),
        ("[factors]\n'engine.policy'=['steady']", "4:18", &["has no meaning"]),
        (
            "[base]\nworkload='updates'\nengine.policy='steady'\n[factors]\nworkers=[1]",
            "5:1",
            &["\"engine.policy\" = ..."],
        ),
    ];
    for (text, place, words) in wrong {
        let error = parsed(text).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(&format!("a.toml:{place}: ")), "{text}\n{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{text}\n{error}");
    }
}

const SERVERS: &str = "[base]\nworkload='tpcc'\nfilesystem='ext4'\nwarehouses=3\nrows=7\n\
                       storage_engine='InnoDB'\n'engine.policy'='steady'\n\
                       'database.io_capacity'=300\n'server.innodb_io_capacity_max'=900\n\
                       [factors]\ntarget=['engine','MariaDB-10.11','mysql']\n";

fn said(cell: &Cell) -> String {
    let load = cell.transactions.as_ref().unwrap();
    let all = load.settings.iter().map(|(name, value)| format!("{name}={value}"));
    all.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_target_takes_its_own_settings_and_those_that_both_have() {
    let cells = cells(SERVERS);
    let names: Vec<(&str, &str)> =
        cells.iter().map(|cell| (cell.id.as_str(), cell.title.as_str())).collect();
    assert_eq!(
        names,
        [("engine", "engine"), ("mariadb_10_11", "MariaDB 10.11"), ("mysql", "MySQL")]
    );
    assert_eq!(said(&cells[0]), "engine.io_capacity=300 engine.policy=steady warehouses=3");
    let of_server = "database.io_capacity=300 server.innodb_io_capacity_max=900 \
                     storage_engine=InnoDB warehouses=3";
    assert_eq!((said(&cells[1]), said(&cells[2])), (of_server.into(), of_server.into()));
    assert_eq!(cells[1].transactions.as_ref().unwrap().target, "mariadb-10.11");
    assert!(is_on_server(&cells[1]) && !is_on_server(&cells[0]));
    let each: Vec<u64> = cells.iter().map(|cell| database_bytes([cell])).collect();
    assert!(each[1] > each[0] + (300 << 20), "a server keeps more: {each:?}");
    assert_eq!(database_bytes(&cells), each.iter().sum::<u64>(), "none shares its tables");
}

#[test]
fn what_is_said_of_the_engine_itself_stands_over_what_is_said_of_both() {
    let text = "[base]\nworkload='tpcc'\n'engine.io_capacity'=100\n\
                [factors]\n'database.io_capacity'=[200]\ntarget=['engine','mysql']";
    let cells = cells(text);
    assert_eq!(said(&cells[0]), "engine.io_capacity=100 warehouses=2");
    assert_eq!(said(&cells[1]), "database.io_capacity=200 warehouses=2");
    assert_eq!((cells[0].id.as_str(), cells[1].id.as_str()), ("engine", "io200_mysql"));
}

#[test]
fn redo_of_its_own_volume_needs_one() {
    let text = "[base]\nworkload='updates'\nfilesystem='ext4'\n[factors]\n\
                redo_volume=[false,true]";
    let both = cells(text);
    let counts: Vec<u32> = both.iter().map(|cell| cell.volume.count).collect();
    assert_eq!(counts, [1, 2]);
    assert_eq!((both[0].id.as_str(), both[1].id.as_str()), ("no_redo_volume", "redo_volume"));
    assert_eq!(
        said(&both[1]),
        "random_distribution=uniform redo_volume=true row_updates=10 rows=100000"
    );
}

#[test]
fn what_a_target_cannot_be_given_is_refused_with_its_place() {
    let wrong: [(&str, &str, &[&str]); 5] = [
        ("workload='tpcc_compat'\n[factors]\nworkers=[1]", "4:10", &["only servers take"]),
        (
            "workload='updates'\nredo_volume=true\n[factors]\nworkers=[1]",
            "5:13",
            &["use filesystem ext4"],
        ),
        ("workload='updates'\ntarget='mysql-9.x'\n[factors]\nworkers=[1]", "5:8", &["mysql-10.11"]),
        ("workload='updates'\n[factors]\nstorage_engine=['InnoDB']", "6:17", &["has no meaning"]),
        (
            "workload='updates'\ntarget='mysql'\nsecond_workers=2\n'second.policy'='steady'\n\
             [factors]\nworkers=[1]",
            "6:16",
            &["only with an engine"],
        ),
    ];
    for (text, place, words) in wrong {
        let error = parsed(&format!("[base]\n{text}")).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(&format!("a.toml:{place}: ")), "{text}\n{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{text}\n{error}");
    }
}

fn refused(settings: &str) -> String {
    let text =
        format!("name = 'a'\ntitle = 'a'\n[base]\nworkload = 'updates'\n[factors]\n{settings}\n");
    let parsed = StudySpec::parse(&text, "a.toml");
    parsed.map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn what_the_engine_does_not_have_is_refused_with_its_place() {
    assert_eq!(refused("'engine.policy' = ['adaptive', 'steady']"), "");
    let text = refused("'engine.polciy' = ['adaptive']");
    assert!(text.starts_with("a.toml:6:20: engine.polciy"), "{text}");
    assert!(text.contains("policy"), "{text}");
    let text = refused("workers = [1]\n'engine.policy' = ['adaptive', 'adaptve']");
    assert!(text.starts_with("a.toml:7:32: engine.policy `adaptve`"), "{text}");
    let text = refused("'engine.redo_directory' = ['/tmp']");
    assert!(text.contains("redo lies on the volume"), "{text}");
    let text = refused("'database.policy' = ['steady']");
    assert!(text.starts_with("a.toml:6:22: database.policy"), "{text}");
    assert!(text.contains("engine.NAME or server.NAME"), "{text}");
    let text = refused("'database.io_capacity' = ['many']");
    assert!(text.starts_with("a.toml:6:27: database.io_capacity"), "{text}");
    assert_eq!(refused("target = ['mysql']\n'server.any_thing' = ['at all']"), "");
    let text = refused("'engine.buffer_pool_size' = ['256K']\n'engine.page_size' = ['64K']");
    assert_eq!(
        text,
        "study a, point buffer256k_page64k: buffer_pool_size is 256K, and page_size is 64K; \
         buffer_pool_size must be at least 64 pages, that is 4M"
    );
}
