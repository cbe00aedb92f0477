//! Settings of real servers, adjusted as tuning does and put back: at the end, after a kill in the
//! middle, and after a restart of the server. Nothing of InnoDB's settings may differ afterwards.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use iostrata_change::{
    ChangeError, ChangeId, How, ServerSetting, ServerSettings, Servers, Session, StateDir, System,
    end_with_starter, leftovers, restore, restore_server,
};
use iostrata_database::target::Target;
use iostrata_server::private::{PrivatePlan, PrivateServer};
use iostrata_server::{MySqlServers, ServerAddress, ServerTarget};
use rustix::process::Signal;

use super::fixture::alone_on_each_server;
use super::fleet;

/// Where the child keeps its journal, and the server that it adjusts; absent in the parent.
const STATE: &str = "IOSTRATA_TEST_SETTINGS_STATE";
const SERVER: &str = "IOSTRATA_TEST_SETTINGS_SERVER";

const PCT: &str = "innodb_max_dirty_pages_pct";
const NAMES: [&str; 9] = [
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_max_dirty_pages_pct_lwm",
    PCT,
    "innodb_adaptive_flushing_lwm",
    "innodb_flush_neighbors",
    "innodb_lru_scan_depth",
    "innodb_flushing_avg_loops",
    "innodb_adaptive_flushing",
];

/// Servers by the addresses that the tests were given, with their passwords.
fn servers() -> MySqlServers {
    let named = env::var("IOSTRATA_TEST_SERVERS").unwrap_or_default();
    let named = named.split(';').filter(|text| !text.trim().is_empty());
    let known = named.map(|text| text.trim().parse().unwrap()).collect();
    MySqlServers { known, ..MySqlServers::default() }
}

fn system() -> System {
    System::new().with_servers(servers())
}

/// The global variables of InnoDB.
fn innodb(target: &ServerTarget) -> BTreeMap<String, String> {
    let settings = target.facts().unwrap().settings.into_iter();
    settings.filter(|(name, _)| name.starts_with("innodb")).collect()
}

fn assert_same(now: &BTreeMap<String, String>, first: &BTreeMap<String, String>, when: &str) {
    let differs: Vec<_> = first.iter().filter(|(name, was)| now.get(*name) != Some(was)).collect();
    assert!(differs.is_empty() && now.len() == first.len(), "{when}: {differs:?}");
}

/// Small numbers from a seed (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Values for some of the settings, those that cross their bounds included.
    fn wanted(&mut self, takes_fractions: bool) -> Vec<ServerSetting> {
        let mut wanted = Vec::new();
        for name in NAMES {
            if self.below(2) == 0 {
                continue;
            }
            let value = match name {
                "innodb_io_capacity" | "innodb_io_capacity_max" => 100 + self.below(30_000),
                "innodb_flush_neighbors" => self.below(3),
                "innodb_lru_scan_depth" => 100 + self.below(2_000),
                "innodb_flushing_avg_loops" => 1 + self.below(60),
                "innodb_adaptive_flushing" => self.below(2),
                "innodb_adaptive_flushing_lwm" => self.below(70),
                _ => self.below(99),
            };
            let value = match name {
                PCT if takes_fractions => format!("{value}.25"),
                "innodb_adaptive_flushing" => ["OFF", "ON"][value as usize].to_owned(),
                _ => value.to_string(),
            };
            wanted.push(ServerSetting::new(name, value));
        }
        wanted
    }
}

/// A group with all of them, and whether dirty limits take fractions.
fn begin(session: &mut Session, address: &str) -> (ChangeId, bool) {
    let text = servers().look(address, &[PCT]).unwrap().1[PCT].clone();
    let adjustable = NAMES.map(str::to_owned).to_vec();
    let server = address.to_owned();
    let settings = vec![ServerSetting::new("innodb_io_capacity", 300)];
    let group = session.apply(ServerSettings { server, settings, adjustable }).unwrap();
    (group.id, text.contains('.'))
}

#[test]
fn what_was_adjusted_goes_back_at_the_end() {
    alone_on_each_server("settings", |place| {
        let first = innodb(&place.target);
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path());
        let mut session = Session::begin(&state, system()).unwrap();
        let address = place.address.to_string();
        let (group, takes_fractions) = begin(&mut session, &address);
        let mut random = Random(88_172_645_463_325_252);
        for _ in 0..30 {
            session.adjust(group, &random.wanted(takes_fractions)).unwrap();
        }
        assert!(innodb(&place.target) != first);
        let settings = vec![ServerSetting::new(PCT, 50)];
        let second = ServerSettings { server: address, settings, adjustable: vec![] };
        let mut other = Session::begin(&state, system()).unwrap();
        let taken = other.apply(second).unwrap_err().to_string();
        assert!(taken.contains(&format!("process {}", std::process::id())), "{taken}");
        let report = session.undo_all();
        assert!(report.is_settled() && report.left.is_empty(), "{report:#?}");
        assert_same(&innodb(&place.target), &first, "the end");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    });
}

/// The program that is killed: adjusts until then.
#[test]
fn adjust_until_killed() {
    let (Ok(state), Ok(address)) = (env::var(STATE), env::var(SERVER)) else { return };
    let mut session = Session::begin(&StateDir::at(state), system()).unwrap();
    let (group, takes_fractions) = begin(&mut session, &address);
    let mut random = Random(u64::from(std::process::id()) * 7_919 + 1);
    loop {
        session.adjust(group, &random.wanted(takes_fractions)).unwrap();
    }
}

fn child(state: &StateDir, address: &ServerAddress) -> Child {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "settings::adjust_until_killed", "--nocapture"]);
    child.env(STATE, state.path()).env(SERVER, address.to_string());
    child.stdout(Stdio::null()).stderr(Stdio::null());
    let child = end_with_starter(&mut child, Signal::KILL).spawn().unwrap();
    // Until it adjusts.
    let is_adjusting = |_| {
        thread::sleep(Duration::from_millis(5));
        let journals = fs::read_dir(state.path()).into_iter().flatten().flatten();
        journals
            .map(|entry| fs::read_to_string(entry.path()).unwrap_or_default())
            .any(|text| text.matches("\"record\":\"adjusting\"").count() > 0)
    };
    assert!((0..4_000).any(is_adjusting), "the child does not adjust");
    child
}

#[test]
fn killed_while_adjusting_everything_is_put_back() {
    let kills = if env::var_os("IOSTRATA_SOAK").is_some() { 20 } else { 2 };
    alone_on_each_server("killed_settings", |place| {
        let mut random = Random(3_141_592_653_589_793_239);
        let first = innodb(&place.target);
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path());
        let (mut in_flight, mut changed) = (0, 0);
        for kill in 0..kills {
            let mut child = child(&state, &place.address);
            thread::sleep(Duration::from_micros(random.below(400_000)));
            child.kill().unwrap();
            child.wait().unwrap();
            let left = leftovers(&state);
            assert_eq!(left.len(), 1, "kill {kill}: {left:?}");
            let lines = fs::read_to_string(&left[0].path).unwrap();
            let is_adjusting = lines.lines().last().is_some_and(|line| line.contains("adjusting"));
            in_flight += u32::from(is_adjusting);
            changed += u32::from(innodb(&place.target) != first);
            let report = match kill % 2 {
                0 => restore(&state, &system()),
                _ => restore_server(&state, &system(), &place.address.to_string()),
            };
            let left: Vec<_> = report.journals.iter().flat_map(|one| &one.left).collect();
            assert!(report.is_settled() && left.is_empty(), "kill {kill}: {report:#?}\n{lines}");
            assert_same(&innodb(&place.target), &first, &format!("kill {kill}"));
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "kill {kill}");
        }
        let name = &place.target.version().text;
        eprintln!(
            "{name}: {kills} kills, {changed} with changes, {in_flight} in the middle of one"
        );
        assert!(changed > 0);
    });
}

#[test]
fn a_server_that_was_restarted_keeps_what_is_its_own() {
    for program in fleet::programs("a_server_that_was_restarted_keeps_what_is_its_own") {
        let place = fleet::Place::new();
        let name = program.version.to_string();
        let mut running = place.session();
        let mut plan = PrivatePlan::new(program, place.path("s"));
        plan.options = vec!["--innodb-buffer-pool-size=32M".to_owned()];
        let plan = plan.on_shared_fresh_data().unwrap();
        let mut server = PrivateServer::start(&mut running, &plan).unwrap();
        let open = |server: &PrivateServer| {
            ServerTarget::open(server.address().parse().unwrap(), None).unwrap()
        };
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path());
        let mut session = Session::begin(&state, system()).unwrap();
        let (group, _) = begin(&mut session, &server.address());
        let wanted = [ServerSetting::new("innodb_io_capacity", 4_321)];
        session.adjust(group, &wanted).unwrap();
        server.kill(&running).unwrap();
        let gone = session.adjust(group, &[ServerSetting::new(NAMES[1], 9_999)]).unwrap_err();
        assert!(matches!(gone, ChangeError::NoAnswer { .. }), "{name}: {gone}");
        // A start time is known to the second.
        thread::sleep(Duration::from_millis(2_100));
        server.stop(&mut running).unwrap();
        server.run(&mut running, &["--innodb_io_capacity=432".to_owned()]).unwrap();
        let own = innodb(&open(&server));
        assert_eq!(own["innodb_io_capacity"], "432", "{name}");
        let other = session.adjust(group, &wanted).unwrap_err();
        assert!(matches!(other, ChangeError::Restarted { .. }), "{name}: {other}");
        assert_eq!(session.undo(group).unwrap().how, How::AsBefore, "{name}");
        assert_same(&innodb(&open(&server)), &own, &name);
        server.remove(&mut running).unwrap();
        place.assert_empty(&name);
    }
}
