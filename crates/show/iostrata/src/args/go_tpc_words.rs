//! Words of go-tpc (`tiup bench`) that ours have another name for, or no use.
//!
//! Invariant: only lines of `tpcc` are read, and of these only options that are not ours.

use std::ffi::{OsStr, OsString};

/// Options without effect here: whether one takes a value.
const WITHOUT_EFFECT: [(&str, bool); 12] = [
    ("silence", false),
    ("check-all", false),
    ("no-check", false),
    ("max-procs", true),
    ("pprof", true),
    ("statusPort", true),
    ("acThreads", true),
    ("max-measure-latency", true),
    ("retry-count", true),
    ("retry-interval", true),
    ("partition-type", true),
    ("report-csv", true),
];

/// Options for something that is not here: name, the value that is accepted, why the others are
/// refused.
const ABSENT: [(&str, &str, &str); 5] = [
    ("parts", "1", "tables are not partitioned; leave it out"),
    ("conn-params", "", "write parameters into --target, as mysql://USER@HOST/DB?NAME=VALUE"),
    ("output-type", "", "tables are loaded, and not written as files; leave it out"),
    ("output-dir", "", "tables are loaded, and not written as files; leave it out"),
    ("enable-purge", "no", "old orders are not removed; leave it out"),
];

/// go-tpc's other tests.
const TESTS: [&str; 3] = ["tpch", "ch", "rawsql"];

/// Levels of isolation as Go numbers them, and ours.
const LEVELS: [(&str, &str); 3] =
    [("2", "read-committed"), ("4", "repeatable-read"), ("6", "serializable")];

/// Why a line cannot be run that uses what go-tpc has and iostrata lacks.
pub(super) fn refused(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let command = *words.get(1)?;
    if TESTS.contains(&command) {
        let text = "go-tpc's other tests are not here; iostrata has tpcc, oltp and fileio";
        return Some(format!("{command}: {text}"));
    }
    let mut words = words.into_iter().skip(2).filter(|_| command == "tpcc");
    words.find_map(|word| {
        let name = word.strip_prefix("--")?.split('=').next()?;
        let (_, _, why) = ABSENT.iter().find(|(absent, ..)| *absent == name)?;
        Some(format!("{word}: {why}"))
    })
}

/// A line of `tpcc` in our words.
pub(super) fn in_ours(arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_none_or(|command| command != "tpcc") {
        return arguments;
    }
    let loads = arguments.iter().any(|word| word == "prepare");
    let is_time = |word: &OsString| option(word).is_some_and(|(name, _)| name == "time");
    let has_time = arguments.iter().any(is_time);
    let mut ours = Vec::new();
    let mut rest = arguments.into_iter().peekable();
    while let Some(word) = rest.next() {
        let Some((name, value)) = option(&word) else {
            ours.push(word);
            continue;
        };
        let mut own = || value.clone().or_else(|| rest.next()?.into_string().ok());
        let without_effect = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name);
        match (name.as_str(), without_effect) {
            (_, Some((_, has_value))) => {
                if *has_value {
                    own();
                }
            }
            ("dropdata", _) => ours.push("--reset".into()),
            ("ignore-error", _) => ours.push("--mysql-ignore-errors=all".into()),
            ("count", _) => {
                let count = own().unwrap_or_default();
                ours.push(format!("--events={count}").into());
                if !has_time {
                    ours.push("--time=0".into());
                }
            }
            ("output", _) => {
                if own().as_deref() == Some("json") {
                    ours.push("--json".into());
                }
            }
            ("interval", _) => {
                let seconds = own().map(|text| text.trim_end_matches('s').to_owned());
                ours.push(format!("--interval={}", seconds.unwrap_or_default()).into());
            }
            ("isolation", _) => {
                let level = own().unwrap_or_default();
                let known = LEVELS.iter().find(|(number, _)| *number == level);
                let name = known.map_or(level.as_str(), |(_, name)| name);
                if level != "0" {
                    ours.push(format!("--isolation={name}").into());
                }
            }
            ("use-fk", _) if value.is_none() => {
                let is_value = |word: &OsString| word == "0" || word == "1";
                let given = rest.next_if(is_value).and_then(|word| word.into_string().ok());
                ours.push(format!("--use-fk={}", given.as_deref().unwrap_or("1")).into());
            }
            (name, _) => match ABSENT.iter().find(|(absent, ..)| *absent == name) {
                // Parts are of tables that are there already.
                Some((_, neutral, _)) => {
                    let given = own().unwrap_or_default();
                    let asks = given != *neutral && (name != "parts" || loads);
                    if asks {
                        ours.push(format!("--{name}={given}").into());
                    }
                }
                None => ours.push(word),
            },
        }
    }
    ours
}

/// The name of a long option, with dashes, and its value behind a `=`.
fn option(word: &OsStr) -> Option<(String, Option<String>)> {
    let word = word.to_str()?.strip_prefix("--").filter(|word| !word.is_empty())?;
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word, None),
    };
    Some((name.replace('_', "-"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn of(line: &str) -> String {
        in_ours(words(line)).join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn options_of_go_tpc_have_our_names_or_none() {
        for (line, expected) in [
            (
                "x tpcc -H h -P 4000 --warehouses 4 --parts 4 run --time 300s --ignore-error",
                "x tpcc -H h -P 4000 --warehouses 4 run --time 300s --mysql-ignore-errors=all",
            ),
            (
                "x tpcc prepare --warehouses 4 --parts 1 --dropdata --no-check -T 8",
                "x tpcc prepare --warehouses 4 --reset -T 8",
            ),
            ("x tpcc run --output json --interval 10s", "x tpcc run --json --interval=10"),
            ("x tpcc run --output=plain --isolation 2", "x tpcc run --isolation=read-committed"),
            (
                "x tpcc run --isolation RC --count 9",
                "x tpcc run --isolation=RC --events=9 --time=0",
            ),
            ("x tpcc run --max-measure-latency 16s --silence", "x tpcc run"),
            ("x tpcc prepare --use-fk -D t", "x tpcc prepare --use-fk=1 -D t"),
            ("x tpcc prepare --use_fk 0", "x tpcc prepare --use-fk=0"),
            ("x tpcc run --use_fk=0 --enable_purge=no", "x tpcc run --use_fk=0"),
            ("x tpcc run --count 9 --time 5s", "x tpcc run --events=9 --time 5s"),
            ("x oltp read_only run --count 9", "x oltp read_only run --count 9"),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_not_here_is_refused_with_the_way_out() {
        let why = |line: &str| refused(&in_ours(words(line)));
        for (line, expected) in [
            ("x tpcc prepare --parts 4", "--parts=4: tables are not partitioned; leave it out"),
            ("x tpcc run --conn-params a=b", "--conn-params=a=b: write parameters into --target"),
            ("x tpcc run --enable_purge=yes", "--enable-purge=yes: old orders are not removed"),
            ("x tpch prepare --sf 1", "tpch: go-tpc's other tests are not here"),
        ] {
            let found = why(line).unwrap();
            assert!(found.starts_with(expected), "{found}");
        }
        assert_eq!(why("x tpcc run --parts 4 --warehouses 4"), None);
    }
}
