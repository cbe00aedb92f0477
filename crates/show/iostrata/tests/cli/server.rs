//! `tpcc` on a private MariaDB that is not ready, is held up, or dies.

use std::io::{Read, Write};
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use iostrata_change::{Session, StateDir, System};
use iostrata_database::target::{
    Access, ColumnType, Op, OpId, Rows, Schema, SessionOptions, Target,
};
use iostrata_server::private::{PrivatePlan, PrivateServer, ServerProgram};
use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use serde_json::Value;

use crate::harness::{Bench, completed, document, number, stderr, stdout, usual_or_soak};

/// Every server program that there is: the installed one, and those named for tests.
pub fn programs() -> Vec<String> {
    let more = std::env::var("IOSTRATA_TEST_PROGRAMS").unwrap_or_default();
    let more = more.split(':').filter(|path| !path.is_empty()).map(str::to_owned);
    let installed = ServerProgram::find("mariadbd").ok();
    let mut all: Vec<String> =
        installed.map(|found| found.path.display().to_string()).into_iter().chain(more).collect();
    all.dedup();
    if all.is_empty() {
        eprintln!("skipped: mariadbd is not installed");
    }
    all
}

/// A server in a directory of its own.
pub struct Private {
    session: Session<System>,
    server: PrivateServer,
    dir: tempfile::TempDir,
}

impl Private {
    /// With these options; none where no server is installed, which it prints.
    pub fn start(options: &[&str]) -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), options)
    }

    /// In this directory.
    pub fn start_in(dir: tempfile::TempDir, options: &[&str]) -> Option<Self> {
        let program = match ServerProgram::find("mariadbd") {
            Ok(program) => program,
            Err(missing) => {
                eprintln!("skipped: {missing}");
                return None;
            }
        };
        Some(Self::of(program, dir, options, &[]))
    }

    /// Of this program, with statements that its administrator runs first.
    pub fn of(
        program: ServerProgram,
        dir: tempfile::TempDir,
        options: &[&str],
        first_statements: &[&str],
    ) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let state = StateDir::at(dir.path().join("state"));
        let mut session = Session::begin(&state, System::new()).unwrap();
        let (options, first_statements) = (owned(options), owned(first_statements));
        let plan = PrivatePlan::new(program, dir.path().join("s"));
        let plan = PrivatePlan { options, first_statements, ..plan };
        let plan = plan.on_shared_fresh_data().unwrap();
        let server = PrivateServer::start(&mut session, &plan).unwrap();
        Self { session, server, dir }
    }

    /// Sessions in a database until the server refuses another.
    pub fn use_up(&self, database: &str) -> Vec<Box<dyn iostrata_database::target::Session>> {
        let address: ServerAddress = self.target("root", database).parse().unwrap();
        let address = Credentials::default().complete(address).unwrap();
        let target = ServerTarget::open(address, None).unwrap();
        let one = || target.session(&Arc::new(Schema::default()), &SessionOptions::default());
        std::iter::from_fn(|| one().ok()).collect()
    }

    /// The address of a database there, for this user; the database is made.
    pub fn target(&self, user: &str, database: &str) -> String {
        let target = self.bare_target("root", database);
        let address = target.parse::<ServerAddress>().unwrap();
        let address = Credentials::default().complete(address).unwrap();
        // A server that is down has its database already.
        let _down = ServerTarget::create_database(address);
        self.bare_target(user, database)
    }

    /// The address of a database, whether it is there or not.
    pub fn bare_target(&self, user: &str, database: &str) -> String {
        let address = self.server.address().replacen("/?", &format!("/{database}?"), 1);
        address.replacen("root@", &format!("{user}@"), 1)
    }

    /// Runs statements in a transaction, which stays open while something else is done.
    pub fn hold_in(&self, database: &str, statements: &[&str], meanwhile: impl FnOnce()) {
        hold_at(&self.target("root", database), statements, meanwhile);
    }

    pub fn kill(&mut self) {
        self.server.kill(&self.session).unwrap();
        self.server.stop(&mut self.session).unwrap();
    }

    /// Starts it again on the same data.
    pub fn start_again(&mut self) {
        self.server.run(&mut self.session, &[]).unwrap();
    }

    pub fn end(mut self) -> tempfile::TempDir {
        self.server.remove(&mut self.session).unwrap();
        self.dir
    }
}

/// The same at the address of any server.
pub fn hold_at(address: &str, statements: &[&str], meanwhile: impl FnOnce()) {
    let address = Credentials::default().complete(address.parse().unwrap()).unwrap();
    let target = ServerTarget::open(address, None).unwrap();
    let op = |sql: &&str| {
        let gives = if sql.starts_with("SELECT") { vec![ColumnType::LongText] } else { vec![] };
        let access = Access::Statement { sql: (*sql).to_owned(), gives };
        Op { name: "statement", table: 0, access }
    };
    let ops = statements.iter().map(op).collect();
    let options = SessionOptions { ops, ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(Schema::default()), &options).unwrap();
    session.begin().unwrap();
    for op in 0..statements.len() {
        session.run(OpId(op), &[], &mut Rows::default()).unwrap();
    }
    meanwhile();
    let ticket = session.commit().unwrap();
    session.settle(ticket, true).unwrap();
}

fn start(bench: &Bench, line: &str) -> Child {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn refused(bench: &Bench, line: &str, words: &[&str]) {
    let output = bench.line(line);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{line}: {said}");
    for word in words {
        assert!(said.contains(word), "{line}: {word} is missing in {said}");
    }
}

/// The sum of all errors of a document.
fn errors(document: &Value) -> f64 {
    document["errors"].as_object().unwrap().values().filter_map(Value::as_f64).sum()
}

/// A server with the tables of one warehouse, in the database `tpcc`; its address.
fn with_a_warehouse(bench: &Bench) -> Option<(Private, String)> {
    let private = Private::start(&[])?;
    let target = private.target("root", "tpcc");
    let prepare = format!("tpcc prepare --target {target} --warehouses 1 --threads 2 --quiet");
    let prepared = bench.line(&prepare);
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    Some((private, target))
}

#[test]
fn a_server_that_is_not_ready_is_told_with_code_and_fix() {
    let Some(private) = Private::start(&[]) else { return };
    let bench = Bench::new();
    let (root, wrong) =
        (private.bare_target("root", "tpcc"), private.bare_target("root:wrong", "tpcc"));
    let run = |target: &str| format!("tpcc run --target {target} --time 1");
    refused(&bench, &run(&wrong), &["mysql://", "1045", "check user and password"]);
    refused(&bench, &run(&root), &["1049", "Unknown database 'tpcc'", "CREATE DATABASE `tpcc`"]);
    let prepare = format!("tpcc prepare --target {root} --warehouses 1");
    refused(&bench, &prepare, &["1049", "CREATE DATABASE `tpcc`, or add --create-database"]);
    let none = private.target("root", "mysql");
    refused(&bench, &run(&none), &["no TPC-C tables are there", "tpcc prepare"]);
    drop(private.end());
}

/// What every transaction would meet ends the run, with the server's words and what helps.
#[test]
fn a_run_whose_transactions_all_fail_is_a_failure() {
    let Some(private) = Private::start(&[]) else { return };
    let bench = Bench::new();
    let target = private.target("root", "sbtest");
    let tables = format!("--target {target} --tables 2 --table-size 100");
    let prepared = bench.line(&format!("oltp read_write prepare {tables}"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    let failed = |words: &[&str], code: &str| {
        let line = format!("oltp read_write run {tables} --time 60 --warmup-time 0 --json");
        let output = bench.line(&line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "no {word} in {said}"));
        let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(completed(&document), 0.0);
        assert!(number(&document, &format!("/errors/{code}")) >= 1.0);
        assert!(number(&document, "/duration_s") < 30.0, "it does not go on for a minute");
    };
    private.hold_in("sbtest", &["SET GLOBAL tx_read_only = ON"], || {});
    failed(&["error 1792", "use a primary"], "1792");
    private.hold_in("sbtest", &["SET GLOBAL tx_read_only = OFF"], || {});
    // Its rows are counted before the run, so it has to be stopped during the run.
    let gone = start(&bench, &format!("oltp read_write run {tables} --time 60 --json"));
    std::thread::sleep(Duration::from_secs(1));
    private.hold_in("sbtest", &["DROP TABLE sbtest2"], || {});
    let gone = gone.wait_with_output().unwrap();
    assert_eq!(gone.status.code(), Some(3), "{}", stderr(&gone));
    assert!(stderr(&gone).contains("error 1146"), "{}", stderr(&gone));
    assert!(serde_json::from_str::<Value>(&stdout(&gone)).is_ok());
    drop(private.end());
}

/// Some servers take no table without a primary key, and HISTORY has none.
#[test]
fn tpcc_runs_where_every_table_needs_a_key() {
    let Some(private) = Private::start(&["--innodb-force-primary-key=ON"]) else { return };
    let bench = Bench::new();
    let target = private.target("root", "tpcc");
    for line in [
        "prepare --warehouses 1 --threads 2 --quiet",
        "run --threads 2 --time 1 --warmup-time 0 --check --quiet",
        "cleanup",
    ] {
        let output = bench.line(&format!("tpcc {line} --target {target}"));
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
    drop(private.end());
}

/// What is not ours stays, and what should not be written to is not.
#[test]
fn other_tables_and_read_only_servers_are_left_alone() {
    let Some(private) = Private::start(&[]) else { return };
    let bench = Bench::new();
    let target = private.target("root", "sbtest");
    private.hold_in("sbtest", &["CREATE TABLE sbtest1 (id INT PRIMARY KEY, mine INT)"], || {});
    let line = |rest: &str| format!("oltp {rest} --target {target} --tables 1 --table-size 100");
    let words = ["sbtest1", "id, mine", "iostrata did not make it", "another database"];
    refused(&bench, &line("read_write cleanup"), &words);
    private.hold_in("sbtest", &["SELECT mine FROM sbtest1", "DROP TABLE sbtest1"], || {});
    private.hold_in("sbtest", &["SET GLOBAL read_only = ON"], || {});
    refused(&bench, &line("read_write prepare"), &["read_only is ON", "--insist"]);
    let made = bench.line(&line("read_write prepare --insist"));
    assert!(made.status.success(), "{}", stderr(&made));
    refused(&bench, &line("write_only run --time 1"), &["read_only is ON", "--insist"]);
    let read = bench.line(&line("point_select run --time 0.2 --warmup-time 0"));
    assert!(read.status.success(), "{}", stderr(&read));
    drop(private.end());
}

/// Another session holds the districts, which every order and payment needs.
#[test]
fn a_load_that_is_held_up_by_a_lock_shows_the_stall() {
    let bench = Bench::new();
    let Some((private, target)) = with_a_warehouse(&bench) else { return };
    let run = |more: &str| format!("tpcc run --target {target} --time 1 {more}");
    refused(&bench, &run("--warehouses 2"), &["--warehouses 2", "1 are loaded", "--reset"]);
    let version = |to: &str| {
        let sql = format!("UPDATE iostrata_dataset SET value = '{to}' WHERE name = 'version'");
        private.hold_in("tpcc", &[&sql], || {});
    };
    version("99");
    refused(&bench, &run(""), &["mysql://", "version 99, this program's 1", "--reset"]);
    version("1");
    let [time, before, held] = usual_or_soak([9, 4, 3], [14, 5, 4]);
    let run = format!("tpcc run --target {target} --threads 4 --time {time} --warmup-time 1");
    let child = start(&bench, &format!("{run} --json"));
    std::thread::sleep(Duration::from_secs(before));
    let (lock, held) = ("SELECT d_name FROM district FOR UPDATE", Duration::from_secs(held));
    private.hold_in("tpcc", &[lock], || std::thread::sleep(held));
    let run = document(&child.wait_with_output().unwrap(), "tpcc");
    let stalls = run["stalls"].as_array().unwrap();
    let by_locks: Vec<&Value> = stalls.iter().filter(|stall| stall["cause"] == "lock").collect();
    // One, however a busy machine cuts it: it is as long as the lock was held.
    let length_s: f64 = by_locks.iter().map(|stall| number(stall, "/length_s")).sum();
    let held_s = held.as_secs_f64();
    assert!((held_s / 2.0..held_s + 2.0).contains(&length_s), "{stalls:?}");
    let waited =
        |stall: &&Value| stall["evidence"].as_str().unwrap().contains("of 4 sessions waited");
    assert!(by_locks.iter().any(waited), "{stalls:?}");
    assert!(number(&run, "/sampler/samples") >= (time - 2) as f64 && run["sampler"]["failed"] == 0);
    assert!(number(&run, "/sampler/sample_us_max") > 0.0);
    let made = number(&run, "/dataset/orders_after") - number(&run, "/dataset/orders_before");
    assert!(number(&run, "/dataset/orders_before") == 30_000.0 && made > 0.0, "{made}");
    // Those of the warm-up were made as well; one in a hundred is rolled back.
    assert!(made >= 0.9 * number(&run, "/completed/new_order"), "{made}");
    assert!(number(&run, "/dataset/bytes_after") >= number(&run, "/dataset/bytes_before"));
    let (first, last) = (number(&run, "/drift/first_tps"), number(&run, "/drift/last_tps"));
    let change = number(&run, "/drift/change_pct");
    assert!((change - (last / first - 1.0) * 100.0).abs() < 1e-6, "{}", run["drift"]);
    drop(private.end());
}

/// The server dies and comes back: the run goes on.
#[test]
fn a_run_goes_on_when_its_server_comes_back() {
    let bench = Bench::new();
    let Some((mut private, target)) = with_a_warehouse(&bench) else { return };
    let [time, before] = usual_or_soak([14, 3], [24, 4]);
    let line = format!("tpcc run --target {target} --threads 4 --time {time} --warmup-time 1");
    let child = start(&bench, &format!("{line} --json --out KILLED"));
    std::thread::sleep(Duration::from_secs(before));
    private.kill();
    std::thread::sleep(Duration::from_millis(1_500));
    private.start_again();
    let run = document(&child.wait_with_output().unwrap(), "tpcc");
    assert!(completed(&run) > 0.0 && errors(&run) >= 1.0, "{}", run["errors"]);
    let last = run["series"]["tps"].as_array().unwrap().last().and_then(Value::as_f64);
    assert!(last.unwrap() > 0.0, "it went on: {}", run["series"]);
    let stalls = run["stalls"].as_array().unwrap();
    let said = |stall: &&Value| stall["evidence"].as_str().unwrap().contains("did not answer");
    assert!(stalls.iter().any(|stall| said(&stall)), "{stalls:?}");
    assert!(number(&run, "/sampler/failed") >= 1.0);
    let checked = bench.line(&format!("tpcc check --target {target} --json"));
    assert_eq!(document(&checked, "tpcc-check")["ok"], true);
    drop(private.end());
}

/// The server dies and stays away: what was measured is printed and kept.
#[test]
fn a_run_whose_server_stays_away_ends_with_what_it_measured() {
    let bench = Bench::new();
    let Some(mut private) = Private::start(&[]) else { return };
    let few = ("oltp update_index", "--table-size 1000", "transaction", 2);
    let (words, size, kind, before) =
        usual_or_soak(few, ("tpcc", "--warehouses 1", "new_order", 4));
    let on = format!("--target {} {size}", private.target("root", "own"));
    let prepared = bench.line(&format!("{words} prepare {on} --quiet"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    let run = format!("{words} run {on} --threads 2 --time 60 --warmup-time 0");
    let child = start(&bench, &format!("{run} --json --out AWAY"));
    std::thread::sleep(Duration::from_secs(before));
    private.kill();
    let output: Output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for word in ["mysql://", "all 2 sessions were gone", "the last error was", "still runs"] {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
    let run: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(errors(&run) >= 1.0 && number(&run, &format!("/completed/{kind}")) > 0.0);
    assert!(number(&run, "/duration_s") < 50.0, "{}", run["duration_s"]);
    assert!(bench.path("AWAY/result.json").is_file());
    drop(private.end());
}

#[test]
fn a_rate_that_holds_an_objective_is_found_on_the_engine() {
    let bench = Bench::new();
    let target = "--target engine:db --engine buffer_pool_size=64M --engine redo_log_capacity=64M";
    let tables = "--tables 1 --table-size 2000";
    let prepared = bench.line(&format!("oltp point_select prepare {target} {tables}"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    let search = |objective: &str, more: &str| {
        let line = format!(
            "oltp point_select run {target} {tables} --threads 4 --time 1 --warmup-time 0 \
             --latency-target {objective} {more} --json"
        );
        document(&bench.line(&line), "tpcc")
    };
    let loose = search("10s", "--latency-percentile p90");
    assert_eq!(loose["latency_target"]["percentile"], 90.0);
    assert!(loose["levels"][0]["rate_per_s"].is_null() && !loose["response_us"].is_null());
    let held = number(&loose, "/latency_target/rate_per_s");
    let share = held / number(&loose, "/latency_target/capacity_tps");
    // Machines whose processors come and go do not bear the first rate; a lower one they do.
    match loose["latency_target"]["bound"].as_str() {
        Some("capacity") => {
            assert_eq!(loose["levels"].as_array().unwrap().len(), 2);
            assert_eq!(loose["levels"][1]["holds_target"], true);
            assert!((share - 0.95).abs() < 1e-9, "{share}");
        }
        bound => {
            assert_eq!(bound, Some("objective"));
            assert_eq!(loose["levels"][1]["holds_target"], false);
            assert!(share < 0.95, "{share}");
        }
    }

    let hopeless = search("1us", "");
    assert_eq!(hopeless["latency_target"]["bound"], "objective");
    assert!(hopeless["latency_target"]["rate_per_s"].is_null());
    assert_eq!(number(&hopeless, "/latency_target/rate_per_s_between/0"), 0.0);
    let levels = hopeless["levels"].as_array().unwrap();
    assert!(levels[1..].iter().all(|level| level["holds_target"] == false), "{levels:?}");

    let short = search("1us", "--max-time 3");
    assert_eq!(short["latency_target"]["bound"], "time");
    for (more, word) in [
        ("--rate 100 --latency-target 1ms", "--latency-target"),
        ("--latency-percentile 99", "--latency-target"),
        ("--latency-target 1ms --latency-percentile 100", "not a percentile"),
        ("--latency-target 1ms --threads 1,2", "leave the list out"),
    ] {
        let output = bench.line(&format!("oltp point_select run {target} {tables} {more}"));
        assert_eq!(output.status.code(), Some(2), "{more}");
        assert!(stderr(&output).contains(word), "{more}: {}", stderr(&output));
    }
}

#[test]
fn a_server_of_no_known_kind_is_driven_and_named_by_its_own_words() {
    let Some(private) = Private::start(&["--version=11.4.5-strange"]) else { return };
    let bench = Bench::new();
    let on = format!("--target {} --table-size 1000", private.target("root", "oltp"));
    let prepared = bench.line(&format!("oltp read_write prepare {on} --quiet"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    let line = format!("oltp read_write run {on} --threads 2 --time 2 --warmup-time 0 --json");
    let run = document(&bench.line(&line), "tpcc");
    assert_eq!(run["target"]["flavour"], "unknown (11.4.5-strange)", "{}", run["target"]);
    assert!(completed(&run) > 0.0 && errors(&run) == 0.0, "{}", run["errors"]);
    drop(private.end());
}

#[test]
fn words_of_a_server_steer_no_terminal() {
    let Some(private) = Private::start(&["--version=11.4.5-\u{1b}[31mred\u{7}"]) else { return };
    let bench = Bench::new();
    for command in ["watch --once", "watch --lines --time 2"] {
        let output = bench.line(&format!("{command} {}", private.target("root", "")));
        let words = stderr(&output) + &stdout(&output);
        let steers = |letter: char| letter.is_control() && letter != '\n';
        assert!(words.contains("\\u{1b}[31mred"), "{command}: {words:?}");
        assert!(!words.contains(steers), "{command}: {words:?}");
    }
    drop(private.end());
}

#[test]
fn each_target_logs_in_as_its_section_of_the_option_file_says() {
    let Ok(program) = ServerProgram::find("mariadbd") else { return };
    let users = ["one", "two"]
        .map(|user| format!("CREATE USER IF NOT EXISTS {user}@localhost IDENTIFIED BY 'p_{user}'"));
    let users = users.each_ref().map(String::as_str);
    let private = Private::of(program, tempfile::tempdir().unwrap(), &[], &users);
    let bench = Bench::new();
    let socket = private.target("root", "").split_once("socket=").unwrap().1.to_owned();
    let mut file = format!("[client]\nsocket={socket}\npassword=other\n");
    for user in ["one", "two"] {
        file += &format!("[client.{user}]\nuser={user}\npassword=p_{user}\n");
    }
    std::fs::write(bench.path("my.cnf"), file).unwrap();
    let watch = "watch --defaults-file my.cnf --once";
    let output = bench.line(&format!("{watch} mysql://?group=one mysql://?group=two"));
    let words = stderr(&output);
    assert!(output.status.success(), "{words}");
    assert!(words.contains("mysql://one@") && words.contains("mysql://two@"), "{words}");
    assert!(!words.contains("p_"), "{words}");
    for (line, fix) in [
        ("mysql://?group=three", "no section [client.three] in my.cnf"),
        ("mysql://one@", "user and password"),
    ] {
        let output = bench.line(&format!("{watch} {line}"));
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains(fix), "{line}: {}", stderr(&output));
    }
    drop(private.end());
}

#[test]
fn an_option_file_that_wants_encryption_is_followed_or_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A server of MySQL's family without encryption, as far as its greeting goes.
    let greet = move || {
        while let Ok((mut client, _)) = listener.accept() {
            let mut greeting = b"\x4a\0\0\0\x0a8.0.36\0\x07\0\0\x0012345678\0".to_vec();
            greeting.extend(b"\x0f\xa2\xff\x02\0\x0f\0\x15\0\0\0\0\0\0\0\0\0\0");
            greeting.extend(b"901234567890\0mysql_native_password\0");
            let _ = client.write_all(&greeting);
            let _ = client.read(&mut [0; 512]);
        }
    };
    std::thread::spawn(greet);
    let bench = Bench::new();
    let strict = "[client]\nssl-mode=VERIFY_IDENTITY\nssl-ca=ca.pem\n";
    for (file, words) in [
        (strict, "cannot read ssl_ca=ca.pem"),
        ("[client]\nssl-mode=VERIFY_IDENTITY\n", "the server offers no encryption"),
        ("[client]\nssl-crl=crl.pem\n", "my.cnf:2: ssl-crl is not understood"),
    ] {
        std::fs::write(bench.path("my.cnf"), file).unwrap();
        let logins = [
            format!("watch --once mysql://b@127.0.0.1:{port}"),
            format!("tune --time 1 mysql://b@127.0.0.1:{port}"),
            format!("restore --target mysql://b@127.0.0.1:{port}"),
            format!("probe --target mysql://b@127.0.0.1:{port}/x"),
            format!("oltp read_only run --tables 1 --target mysql://b@127.0.0.1:{port}/x"),
        ];
        for login in logins {
            let output = bench.line(&format!("{login} --defaults-file my.cnf"));
            let said = stderr(&output) + &stdout(&output);
            assert!(!output.status.success() || login.starts_with("restore"), "{login}: {said}");
            let has_nothing_to_ask = login.starts_with("restore") && !file.contains("crl");
            assert!(said.contains(words) || has_nothing_to_ask, "{login}: {said}");
        }
    }
}
