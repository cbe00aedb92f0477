//! Words that sysbench takes in addition to its present ones: its option file, names of versions
//! before 1.0, scripts by their path.
//!
//! Invariant: a line that begins with a command of ours that is no test of sysbench stays as it is.

use std::ffi::OsString;
use std::path::Path;

use iostrata_workload::oltp::Member;

/// Options of versions before 1.0, and what they are called since. `oltp-` before a name has gone.
const OPTIONS: [(&str, &str); 9] = [
    ("num-threads", "threads"),
    ("max-requests", "events"),
    ("tx-rate", "rate"),
    ("oltp-tables-count", "tables"),
    ("oltp-dist-type", "rand-type"),
    ("oltp-dist-pct", "rand-spec-pct"),
    ("oltp-dist-res", "rand-spec-res"),
    ("oltp-dist-iter", "rand-spec-iter"),
    ("mysql-table-engine", "mysql-storage-engine"),
];

/// Scripts of versions before 1.0, and the tests that have their transactions.
const SCRIPTS: [(&str, &str); 9] = [
    ("oltp", "oltp_read_write"),
    ("oltp_simple", "oltp_point_select"),
    ("select", "oltp_point_select"),
    ("update_index", "oltp_update_index"),
    ("update_non_index", "oltp_update_non_index"),
    ("insert", "oltp_insert"),
    ("delete", "oltp_delete"),
    ("parallel_prepare", "oltp_read_write"),
    // It loads and removes what all the others use.
    ("oltp_common", "oltp_read_write"),
];

/// The tests whose names are words of their own.
const TESTS: [&str; 4] = ["fileio", "bulk_insert", "select_random_points", "select_random_ranges"];

/// Options that a run here is without, with or without a value: times and counts that end nothing,
/// levels of its own notes.
const WITHOUT_EFFECT: [&str; 3] = ["init-rng", "report-checkpoints", "mysql-debug"];
/// Those of its test of files.
const WITHOUT_EFFECT_ON_FILES: [&str; 9] = [
    "debug",
    "forced-shutdown",
    "thread-init-timeout",
    "thread-stack-size",
    "rand-type",
    "rand-spec-iter",
    "rand-spec-pct",
    "rand-spec-res",
    "rand-pareto-h",
];

/// Options that change nothing with these values, and with all others request what is not here.
const ABSENT: [(&str, &[&str], &str); 7] = [
    ("create-secondary", &["on", "1", "true"], "tables always have their index of k"),
    ("mysql-compression", &["off", "0", "false"], "connections are never compressed"),
    ("mysql-dry-run", &["off", "0", "false"], "statements are always sent"),
    ("reconnect", &["0"], "sessions stay connected"),
    ("file-merged-requests", &["0"], "requests are never merged"),
    (
        "validate",
        &["off", "0", "false"],
        "contents are not verified; iostrata fio does, by --verify=crc32c",
    ),
    ("luajit-cmd", &["off"], "no Lua is run"),
];

/// The options that begin so are those of another family of servers.
const PGSQL: [&str; 2] = ["--pgsql-", "--db-driver=pgsql"];

/// Why a line cannot be run, where it requests something of [`ABSENT`] or PostgreSQL, or has no
/// option file.
pub(super) fn refused(arguments: &[OsString]) -> Option<String> {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let is_of_pgsql = |word: &&str| {
        let word = word.replace('_', "-");
        PGSQL.iter().any(|begin| word.starts_with(begin))
    };
    if let Some(word) = words.find(is_of_pgsql) {
        let why = "PostgreSQL is no target; use a server of MySQL's family (mysql://...), or \
                   --target engine:DIR";
        return Some(format!("{word}: {why}"));
    }
    let line = match present(arguments.to_vec()) {
        Ok(line) => line,
        Err(why) => return Some(why),
    };
    let is_oltp = line.get(1).is_some_and(|word| word == "oltp");
    if !is_oltp && line.get(1).is_none_or(|word| word != "fileio") {
        return None;
    }
    let words = line.iter().filter_map(|word| word.to_str());
    let verb = words.clone().skip(2).take(2).find(|word| ["prewarm", "warmup"].contains(word));
    if let Some(verb) = verb.filter(|_| is_oltp) {
        return Some(format!(
            "{verb}: use run, whose --warmup-time reads tables before it measures"
        ));
    }
    let mut absent = words.filter_map(|word| {
        let name = word.split('=').next()?.strip_prefix("--")?;
        let (_, _, why) = ABSENT.iter().find(|(absent, ..)| *absent == name)?;
        // The program's own commands take this word.
        (name != "validate" || !is_oltp).then(|| format!("{word}: {why}; leave it out"))
    });
    absent.next()
}

/// A line in sysbench's present words, with the options of its option file before its own options.
///
/// # Errors
/// An option file that cannot be read.
pub(super) fn present(arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut words = Vec::new();
    for argument in &arguments {
        let Some(text) = argument.to_str() else { return Ok(arguments) };
        words.push(text.to_owned());
    }
    let Some(first) = words.get(1).cloned() else { return Ok(arguments) };
    let is_sysbenchs = |word: &String| {
        let is_option = |name: &str| ["test", "config-file"].contains(&name);
        test(word).is_some() || option(word).is_some_and(|(name, _)| is_option(&name))
    };
    let names_test = words[1..].iter().any(is_sysbenchs);
    if !names_test || !(first.starts_with('-') || first == "oltp" || test(&first).is_some()) {
        return Ok(arguments);
    }
    let is_ours = first == "oltp";
    let (begin, line) = words.split_at(1 + usize::from(is_ours));
    let line = Line::of(line.to_vec(), is_ours)?;
    // A test by its whole name needs no command before it.
    let begin = if line.test.is_some() { &begin[..1] } else { begin };
    Ok(begin.iter().cloned().chain(line.words()).map(OsString::from).collect())
}

/// The test that a word names, by its name, its script or the script's path.
fn test(word: &str) -> Option<String> {
    if word.starts_with('-') {
        return None;
    }
    let file = Path::new(word).file_name()?.to_str()?;
    let (name, is_script) = match file.strip_suffix(".lua") {
        Some(name) => (name, true),
        None => (word, false),
    };
    let is_member = |name: &str| Member::ALL.iter().any(|member| member.name() == name);
    let is_present = name.strip_prefix("oltp_").is_some_and(is_member) || TESTS.contains(&name);
    if is_present {
        return Some(name.to_owned());
    }
    if is_script && name == "tpcc" {
        return Some("tpcc.lua".to_owned());
    }
    let (_, present) = SCRIPTS.iter().find(|(old, _)| *old == name)?;
    (is_script || name == "oltp_common").then(|| (*present).to_owned())
}

/// A line of sysbench.
struct Line {
    test: Option<String>,
    options: Vec<String>,
    from_file: Vec<String>,
}

impl Line {
    fn of(words: Vec<String>, is_ours: bool) -> Result<Self, String> {
        let (test, words) = named(words);
        let mut line = Self { test, options: Vec::new(), from_file: Vec::new() };
        let mut words = words.into_iter();
        let (mut is_read_only, mut is_simple) = (false, false);
        while let Some(word) = words.next() {
            let Some((name, value)) = option(&word) else {
                line.options.push(word);
                continue;
            };
            let mut own = || value.map(str::to_owned).or_else(|| words.next()).unwrap_or_default();
            match name.as_str() {
                "config-file" => line.from_file.extend(options_of(&own())?),
                "oltp-read-only" => is_read_only = own() != "off",
                "oltp-test-mode" => is_simple = own() == "simple",
                _ if line.is_without_effect(&name, value) => {}
                _ => line.options.push(renamed(&word, &name)),
            }
        }
        if line.test.as_deref() == Some("oltp_read_write") && (is_simple || is_read_only) {
            let other = if is_simple { "oltp_point_select" } else { "oltp_read_only" };
            line.test = Some(other.to_owned());
        }
        if !is_ours {
            line.bound_as_time();
        }
        Ok(line)
    }

    /// Whether an option changes nothing here.
    fn is_without_effect(&self, name: &str, value: Option<&str>) -> bool {
        let is_of_files = self.test.as_deref() == Some("fileio");
        let value = value.unwrap_or("on");
        let absent = ABSENT.iter().find(|(absent, ..)| *absent == name);
        let is_neutral = absent.is_some_and(|(_, neutral, _)| neutral.contains(&value));
        WITHOUT_EFFECT.contains(&name)
            || is_of_files && WITHOUT_EFFECT_ON_FILES.contains(&name)
            || is_neutral
    }

    /// The time of a line of sysbench before 1.0 is no bound on the whole command, as ours is.
    fn bound_as_time(&mut self) {
        let is = |word: &String, name: &str| {
            word.split('=').next().is_some_and(|word| word.replace('_', "-") == name)
        };
        if self.from_file.iter().chain(&self.options).any(|word| is(word, "--time")) {
            return;
        }
        for word in self.from_file.iter_mut().chain(&mut self.options) {
            if is(word, "--max-time") {
                *word = format!("--time{}", &word["--max-time".len()..]);
            }
        }
    }

    fn words(self) -> impl Iterator<Item = String> {
        self.test.into_iter().chain(self.from_file).chain(self.options)
    }
}

/// The test of a line, and all its other words.
fn named(words: Vec<String>) -> (Option<String>, Vec<String>) {
    let (mut found, mut rest) = (None, Vec::new());
    let mut words = words.into_iter();
    let mut is_value = false;
    while let Some(word) = words.next() {
        match option(&word) {
            Some((name, value)) if name == "test" => {
                let named = value.map(str::to_owned).or_else(|| words.next()).unwrap_or_default();
                let old = SCRIPTS.iter().find(|(old, _)| *old == named);
                let old = old.map(|(_, present)| (*present).to_owned());
                found = Some(test(&named).or(old).unwrap_or(named));
                is_value = false;
            }
            Some((_, value)) => {
                is_value = value.is_none();
                rest.push(word);
            }
            None => match test(&word).filter(|_| !is_value && found.is_none()) {
                Some(test) => found = Some(test),
                None => {
                    is_value = false;
                    rest.push(word);
                }
            },
        }
    }
    (found, rest)
}

/// The name of an option, with dashes, and its value behind a `=`.
fn option(word: &str) -> Option<(String, Option<&str>)> {
    let word = word.strip_prefix("--").filter(|word| !word.is_empty())?;
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    Some((name.replace('_', "-"), value))
}

/// An option under its present name.
fn renamed(word: &str, name: &str) -> String {
    let known = OPTIONS.iter().find(|(old, _)| *old == name).map(|(_, present)| *present);
    match known.or_else(|| name.strip_prefix("oltp-")) {
        Some(present) => format!("--{present}{}", &word["--".len() + name.len()..]),
        None => word.to_owned(),
    }
}

/// The options of a file: `name=value` by lines.
fn options_of(path: &str) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("--config-file={path}: it cannot be read: {error}"))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('['));
    let option = |line: &str| match line.split_once('=') {
        Some((name, value)) => {
            let name = name.trim().trim_start_matches('-');
            let value = value.trim().trim_matches(['"', '\'']);
            renamed(&format!("--{name}={value}"), &name.replace('_', "-"))
        }
        None => format!("--{}", line.trim_start_matches('-')),
    };
    Ok(lines.map(option).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = present(words).unwrap();
        words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn scripts_and_names_of_old_versions_are_tests_of_the_present_one() {
        for (line, expected) in [
            (
                "x /usr/share/sysbench/oltp_read_only.lua --tables=2 run",
                "x oltp_read_only --tables=2 run",
            ),
            ("x --tables=2 ./oltp_insert.lua run", "x oltp_insert --tables=2 run"),
            (
                "x --test=oltp --num-threads=4 --max-time=60 --max-requests=0 run",
                "x oltp_read_write --threads=4 --time=60 --events=0 run",
            ),
            (
                "x --test=/usr/share/doc/sysbench/tests/db/oltp.lua --oltp-tables-count=8 \
                 --oltp-table-size=1000 --mysql-table-engine=innodb --oltp-read-only=on \
                 --oltp_point_selects=9 --tx-rate=300 run",
                "x oltp_read_only --tables=8 --table-size=1000 --mysql-storage-engine=innodb \
                 --point-selects=9 --rate=300 run",
            ),
            ("x --test oltp --oltp-test-mode=simple run", "x oltp_point_select run"),
            ("x --test=oltp --oltp-test-mode=complex run", "x oltp_read_write run"),
            ("x --test=cpu --cpu-max-prime=2 run", "x cpu --cpu-max-prime=2 run"),
            ("x --test=fileio --init-rng=on --file-num=2 run", "x fileio --file-num=2 run"),
            ("x fileio --max-time=300 run", "x fileio --time=300 run"),
            ("x fileio --max-time 300 --time=2 run", "x fileio --max-time 300 --time=2 run"),
            ("x oltp_common prepare --tables=2", "x oltp_read_write prepare --tables=2"),
            ("x /opt/tpcc.lua --scale=2 run", "x tpcc.lua --scale=2 run"),
            ("x oltp_insert --out fileio run", "x oltp_insert --out fileio run"),
            ("x oltp oltp_insert --tables=2 run", "x oltp_insert --tables=2 run"),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_that_are_not_sysbenchs_stay_as_they_are() {
        for line in [
            "x",
            "x oltp read_write run --max-time 60",
            "x probe --max-time 5",
            "x io --name=fileio --rw=read",
            "x insert run --max-time=5",
            "x --version",
            "x fio --name=oltp_read_write --max-time=5",
        ] {
            assert_eq!(of(line), line);
        }
    }

    #[test]
    fn an_option_file_stands_before_the_lines_own_options() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let text = "# of a server\nmysql-host = db1\nmysql_port=4000 # its port\n\n\
                    num-threads=8\nmax-time=30\nskip-trx\n[other]\nmysql-password=\"p w\"\n";
        std::fs::write(&path, text).unwrap();
        let path = path.display();
        let expected = "x oltp_point_select --mysql-host=db1 --mysql_port=4000 --threads=8 \
                        --time=30 --skip-trx --mysql-password=p w --threads=2 run";
        for line in [
            format!("x --config-file={path} oltp_point_select --threads=2 run"),
            format!("x oltp_point_select --threads=2 --config-file {path} run"),
        ] {
            assert_eq!(of(&line), expected);
        }
        let words = ["x", "oltp_insert", "--config-file=/none", "run"].map(OsString::from);
        let error = present(words.into()).unwrap_err();
        assert!(error.starts_with("--config-file=/none: it cannot be read: "), "{error}");
    }
}
