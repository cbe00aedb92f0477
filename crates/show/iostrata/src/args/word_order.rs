//! Command lines as sysbench, go-tpc and sysbench-tpcc have them, in our order: options may stand
//! before the verb, names of workloads may have their `oltp_`, and every verb takes every option.
//!
//! Invariant: a line that is in our order already stays as it is, but for options that only another
//! verb uses.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};
use iostrata_workload::oltp::Member;

use super::workload::commands;

/// What sysbench measures besides databases and files.
const ELSEWHERE: [(&str, &str); 4] = [
    ("cpu", "processors"),
    ("memory", "memory"),
    ("threads", "the scheduler"),
    ("mutex", "locks of the C library"),
];

/// Options of HammerDB, and ours; its times are minutes.
const HAMMERDB: [(&str, &str); 10] = [
    ("count_ware", "--warehouses N"),
    ("num_vu", "--threads N"),
    ("rampup", "--warmup-time Nm"),
    ("duration", "--time Nm"),
    ("host", "--mysql-host HOST"),
    ("port", "--mysql-port PORT"),
    ("socket", "--mysql-socket PATH"),
    ("user", "--mysql-user USER"),
    ("pass", "--mysql-password PASSWORD"),
    ("dbase", "--mysql-db DATABASE"),
];

const VERBS: [&str; 7] = ["prepare", "run", "check", "cleanup", "clean", "prewarm", "warmup"];
/// The script of sysbench-tpcc.
const KIT: [&str; 2] = ["tpcc.lua", "./tpcc.lua"];

/// Why a line cannot be run, where it names a test of sysbench that iostrata does not have.
pub(super) fn refused(arguments: &[OsString]) -> Option<String> {
    if let Some(why) = of_hammerdb(arguments) {
        return Some(why);
    }
    let words = arguments.iter().skip(1).take(3).filter_map(|word| word.to_str());
    let words: Vec<&str> = words.filter(|word| *word != "oltp" && !VERBS.contains(word)).collect();
    let (name, of) = ELSEWHERE.iter().find(|(name, _)| words.first() == Some(name))?;
    Some(format!(
        "{name}: sysbench's test of {of} measures neither storage nor a database, and iostrata does \
         not have it; it has oltp, tpcc and fileio"
    ))
}

/// Why a line with options of HammerDB cannot be run, where ours have other names.
fn of_hammerdb(arguments: &[OsString]) -> Option<String> {
    if arguments.get(1).is_none_or(|command| command != "tpcc") {
        return None;
    }
    let ours = |word: &OsString| {
        let word = word.to_str()?;
        // The names of options have dashes by now.
        let name = word.trim_start_matches('-').split(['=', ' ']).next()?.replace('-', "_");
        let short = name.strip_prefix("mysql_").or(name.strip_prefix("maria_"));
        // sysbench has some of these names, too, behind dashes.
        let is_shared = ["host", "port", "socket", "user"].contains(&short.unwrap_or_default());
        let is_option = !(is_shared && word.starts_with('-'));
        let found = HAMMERDB.iter().find(|(name, _)| short == Some(name) && is_option);
        found.map(|(_, ours)| (name.clone(), *ours))
    };
    let pairs: Vec<(String, &str)> = arguments.iter().skip(2).filter_map(ours).collect();
    let (first, _) = pairs.first()?;
    let pairs: Vec<String> =
        pairs.iter().map(|(name, ours)| format!("{ours} for {name}")).collect();
    Some(format!("{first} is an option of HammerDB; use {}", pairs.join(", ")))
}

/// The arguments in our order.
pub(super) fn in_our_order(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let Some(first) = arguments.get(1).and_then(|word| word.to_str()).map(str::to_owned) else {
        return arguments;
    };
    let rest = arguments.split_off(1);
    let mut ordered = arguments;
    match first.as_str() {
        "oltp" => ordered.extend(oltp(rest[1..].to_vec())),
        word if member(word).is_some() => ordered.extend(oltp(rest)),
        word if KIT.contains(&word) => ordered.extend(kit(rest[1..].to_vec())),
        word if has_verbs(word) => {
            ordered.push(rest[0].clone());
            ordered.extend(verb_first(rest[1..].to_vec()));
        }
        // sysbench's options may stand before everything else.
        word if word.starts_with("--") => ordered.extend(later(rest)),
        _ => ordered.extend(rest),
    }
    ordered
}

/// A line that begins with options: in our order where a word of sysbench comes later.
fn later(mut rest: Vec<OsString>) -> Vec<OsString> {
    let is_named = |word: &OsString| {
        word.to_str().is_some_and(|word| {
            word.starts_with("oltp_") && member(word).is_some()
                || word == "fileio"
                || word == "bulk_insert"
                || word.starts_with("select_random_")
                || KIT.contains(&word)
        })
    };
    let Some(at) = rest.iter().position(is_named) else { return rest };
    let name = rest.remove(at);
    let mut line = vec![OsString::from("iostrata"), name];
    line.extend(rest);
    in_our_order(line).split_off(1)
}

/// Whether a command has verbs, which come behind its options elsewhere.
fn has_verbs(word: &str) -> bool {
    word == "fileio" || commands().any(|kind| kind.name == word)
}

/// The member of the family that a word names, with `oltp_` or without.
fn member(word: &str) -> Option<OsString> {
    let name = word.strip_suffix(".lua").unwrap_or(word);
    let short = name.strip_prefix("oltp_").unwrap_or(name);
    let has_own_name = ["bulk_insert", "select_random_points", "select_random_ranges"];
    // Without it `insert` and the like are words of their own.
    let is_long = name != short || has_own_name.contains(&name);
    (is_long && is_member(short)).then(|| short.into())
}

fn is_member(word: &str) -> bool {
    Member::ALL.iter().any(|member| member.name() == word)
}

fn oltp(mut rest: Vec<OsString>) -> Vec<OsString> {
    let mut line = vec![OsString::from("oltp")];
    let is_short = |word: &OsStr| word.to_str().is_some_and(is_member);
    let long =
        rest.iter().position(|word| word.to_str().is_some_and(|word| member(word).is_some()));
    // A word that is none is refused where a member belongs.
    let is_plain = |word: &OsStr| {
        let text = word.to_str().unwrap_or_default();
        !text.starts_with('-') && !VERBS.contains(&text)
    };
    let first = rest.first().is_some_and(|word| is_plain(word)).then_some(0);
    let at = long.or_else(|| free(&rest, &|word| is_short(word))).or(first);
    if let Some(at) = at {
        let word = rest.remove(at);
        line.push(word.to_str().and_then(member).unwrap_or(word));
    }
    line.extend(verb_first(rest));
    line
}

fn kit(rest: Vec<OsString>) -> Vec<OsString> {
    let mut line = vec![OsString::from("tpcc")];
    line.extend(verb_first(rest));
    line.push("--compat=sysbench-tpcc".into());
    line
}

fn verb_first(mut rest: Vec<OsString>) -> Vec<OsString> {
    let is_verb = |word: &OsStr| VERBS.iter().any(|verb| word == *verb);
    if rest.first().is_some_and(|word| is_verb(word)) {
        return rest;
    }
    let last = rest.iter().rposition(|word| is_verb(word)).filter(|at| at + 1 == rest.len());
    if let Some(at) = last.or_else(|| free(&rest, &is_verb)) {
        let verb = rest.remove(at);
        rest.insert(0, verb);
    }
    rest
}

/// The first such word that is no value of an option before it; else the first at all.
fn free(words: &[OsString], is_it: &dyn Fn(&OsStr) -> bool) -> Option<usize> {
    let is_value = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| words[before].to_str());
        before.is_some_and(|before| before.starts_with('-') && !before.contains('='))
    };
    let mut found = words.iter().enumerate().filter(|(_, word)| is_it(word));
    let free = found.clone().find(|(at, _)| !is_value(*at));
    free.or_else(|| found.next()).map(|(at, _)| at)
}

/// The arguments without the options that another verb of the same command uses and this one does
/// not: elsewhere one line serves all verbs.
pub(super) fn without_other_verbs(command: &Command, arguments: Vec<OsString>) -> Vec<OsString> {
    let word = |at: usize| arguments.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let verb_at = match word(1) {
        "oltp" => 3,
        "tpcc" | "fileio" => 2,
        _ => return arguments,
    };
    let Some(command) = command.find_subcommand(word(1)) else { return arguments };
    let (Some(own), verb) = (command.find_subcommand(word(verb_at)), word(verb_at)) else {
        return arguments;
    };
    if verb == "run" {
        return arguments;
    }
    let Some(run) = command.find_subcommand("run") else { return arguments };
    let mut kept = Vec::new();
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        match (option(own, text), option(run, text)) {
            (None, Some(other)) => {
                let has_value = other.get_action().takes_values() && !other.is_require_equals_set();
                if has_value && !text.contains('=') && (text.starts_with("--") || text.len() == 2) {
                    rest.next();
                }
            }
            _ => kept.push(argument.clone()),
        }
    }
    kept
}

/// The option of a command that an argument names.
fn option<'a>(command: &'a Command, argument: &str) -> Option<&'a Arg> {
    let name = argument.split('=').next().unwrap_or_default();
    let is_it = |one: &&Arg| match name.strip_prefix("--") {
        Some(long) => {
            one.get_long() == Some(long)
                || one.get_all_aliases().is_some_and(|all| all.contains(&long))
        }
        None => {
            let short = name.strip_prefix('-').and_then(|name| name.chars().next());
            short.is_some() && one.get_short() == short
        }
    };
    command.get_arguments().find(is_it)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn ordered(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let words = without_other_verbs(&Cli::command(), in_our_order(words));
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn options_of_hammerdb_are_refused_with_ours() {
        let why = |line: &str| refused(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let line = "x tpcc prepare --mysql_count_ware=8 --mysql_num_vu 4 -D tpcc";
        let expected = "mysql_count_ware is an option of HammerDB; use --warehouses N for \
                        mysql_count_ware, --threads N for mysql_num_vu";
        assert_eq!(why(line).as_deref(), Some(expected));
        assert_eq!(why(&line.replace("mysql_", "mysql-")).as_deref(), Some(expected));
        let bare = why("x tpcc run mysql_rampup 2 mysql_duration 5 maria_host h").unwrap();
        assert!(bare.contains("--warmup-time Nm for mysql_rampup, --time Nm for mysql_duration"));
        assert!(bare.ends_with("--mysql-host HOST for maria_host"), "{bare}");
        assert_eq!(why("x tpcc run --mysql_host=h --mysql-db=t --threads 4"), None);
    }

    #[test]
    fn lines_of_sysbench_come_into_our_order() {
        for (line, ours) in [
            (
                "x oltp_read_write --target engine:db --table-size=5 run",
                "x oltp read_write run --target engine:db --table-size=5",
            ),
            ("x oltp_read_only run --tables 2", "x oltp read_only run --tables 2"),
            ("x oltp read_only run", "x oltp read_only run"),
            (
                "x oltp oltp_read_write --mysql-host=h --threads=4 run",
                "x oltp read_write run --mysql-host=h --threads=4",
            ),
            ("x oltp --tables=2 oltp_read_only run", "x oltp read_only run --tables=2"),
            ("x --tables=2 oltp_insert --skip-trx run", "x oltp insert run --tables=2 --skip-trx"),
            ("x bulk_insert --threads=2 run", "x oltp bulk_insert run --threads=2"),
            ("x oltp --tables 2 insert --skip-trx run", "x oltp insert run --tables 2 --skip-trx"),
            ("x insert run --time 2", "x insert run --time 2"),
            ("x fileio --file-num=2 run", "x fileio run --file-num=2"),
            ("x ./tpcc.lua --scale=2 run", "x tpcc run --scale=2 --compat=sysbench-tpcc"),
            ("x tpcc --warehouses 4 run -T 2", "x tpcc run --warehouses 4 -T 2"),
            ("x tpcc run --out run", "x tpcc run --out run"),
            ("x oltp read_only run --out prepare", "x oltp read_only run --out prepare"),
            ("x probe --max-time 5", "x probe --max-time 5"),
        ] {
            assert_eq!(ordered(line), ours, "{line}");
        }
    }

    #[test]
    fn a_verb_takes_what_only_another_one_looks_at() {
        assert_eq!(
            ordered(
                "x oltp_read_write --tables=2 --time=60 --report-interval 1 --nonsense prepare"
            ),
            "x oltp read_write prepare --tables=2 --nonsense"
        );
        assert_eq!(ordered("x tpcc --warehouses 4 -T 5 cleanup -H h"), "x tpcc cleanup -H h");
    }

    #[test]
    fn what_measures_neither_storage_nor_databases_is_refused_by_name() {
        let of = |line: &str| refused(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "x cpu run",
            "x oltp memory run",
            "x oltp run memory",
            "x mutex",
            "x threads --threads=2 run",
        ] {
            assert!(of(line).unwrap().contains("does not have it"), "{line}");
        }
        assert_eq!(of("x oltp read_only run"), None);
    }
}
