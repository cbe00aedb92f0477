//! fio's command line: job options among the program's own.
//!
//! Invariant: an option takes its value as fio's getopt does: behind a `=`, or as the next argument
//! unless it stands without one. Options before the first `--name` are defaults of all jobs, also
//! of those in files, wherever the files stand.

use std::ffi::OsString;
use std::str::FromStr;

use super::catalogue::{self, FioOption, OptionEffect};
use super::error::{FioError, FioWarning, Origin};
use super::lines::{Assignment, Section, unknown};

/// One option of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioArgument {
    /// Which argument, from 1.
    pub number: u32,
    /// Its name without dashes.
    pub name: String,
    /// Its value; empty when there was none.
    pub value: String,
}

impl FioArgument {
    fn shown(&self) -> String {
        match self.value.as_str() {
            "" => self.name.clone(),
            value => format!("{}={value}", self.name),
        }
    }
}

impl std::fmt::Display for FioArgument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}={}", self.number, self.name, self.value)
    }
}

impl FromStr for FioArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').and_then(|(number, option)| {
            let (name, value) = option.split_once('=')?;
            let (name, value) = (name.to_owned(), value.to_owned());
            Some(Self { number: number.parse().ok()?, name, value })
        });
        parts.ok_or("write NUMBER:NAME=VALUE")
    }
}

/// Parts the arguments behind `fio` into options of jobs and all others, which keep their order.
/// `own` are names of the program's own options, which come first where fio has the name for
/// something that belongs to no job.
pub fn split(arguments: &[OsString], own: &[String]) -> (Vec<FioArgument>, Vec<OsString>) {
    let (mut jobs, mut rest) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        let number = at as u32;
        let text = argument.to_str().unwrap_or_default();
        if text == "--" {
            rest.extend_from_slice(&arguments[at - 1..]);
            break;
        }
        let option = text.strip_prefix("--").or_else(|| text.strip_prefix('-'));
        let Some(option) = option.filter(|option| option.starts_with(char::is_alphabetic)) else {
            rest.push(argument.clone());
            continue;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let is_short = name.len() == 1 && !text.starts_with("--");
        let (name, stands_alone) = match known(name, own) {
            ArgumentName::Own(_) if is_short => (name, None),
            ArgumentName::Own(name) => (name, None),
            ArgumentName::Fio(name, entry) => (name, Some(entry.bare)),
            ArgumentName::No if is_short => (name, None),
            ArgumentName::No => (name, Some(false)),
        };
        let Some(stands_alone) = stands_alone else {
            // As the program's own parser takes it, whatever the number of dashes.
            let value = value.map_or(String::new(), |value| format!("={value}"));
            let dashes = if is_short { "-" } else { "--" };
            rest.push(format!("{dashes}{name}{value}").into());
            continue;
        };
        let next =
            || arguments.get(at).and_then(|next| next.to_str()).filter(|next| is_value(next));
        let value = match value {
            Some(value) => value,
            None if stands_alone => String::new(),
            None => next().map_or(String::new(), |next| {
                at += 1;
                next.to_owned()
            }),
        };
        jobs.push(FioArgument { number, name: name.to_owned(), value });
    }
    (jobs, rest)
}

fn is_value(argument: &str) -> bool {
    let option = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
    !option.is_some_and(|option| option.starts_with(char::is_alphabetic))
}

enum ArgumentName<'a> {
    Own(&'a str),
    Fio(&'a str, &'static FioOption),
    No,
}

/// The option of a name; an unambiguous abbreviation is accepted, as by getopt.
fn known<'a>(name: &'a str, own: &'a [String]) -> ArgumentName<'a> {
    let is_own = |own: &&String| own.replace('-', "_") == name.replace('-', "_");
    if let Some(entry) = catalogue::find(name) {
        return ArgumentName::Fio(name, entry);
    }
    if let Some(own) = own.iter().find(is_own) {
        return ArgumentName::Own(own);
    }
    if let Some(entry) = catalogue::find_of_command(name) {
        return ArgumentName::Fio(name, entry);
    }
    let is_here = |entry: &&FioOption| !matches!(entry.effect, OptionEffect::Refused(_));
    let of_fio = catalogue::entries().chain(catalogue::of_command()).filter(is_here);
    let names = of_fio.flat_map(|entry| entry.names().map(move |name| (name, Some(entry))));
    let own = own.iter().map(|name| (name.as_str(), None));
    let begins = |known: &str| known.replace('-', "_").starts_with(&name.replace('-', "_"));
    let mut begun = names.chain(own).filter(|(known, _)| name.len() > 1 && begins(known));
    match (begun.next(), begun.next()) {
        (Some((known, Some(entry))), None) => ArgumentName::Fio(known, entry),
        (Some((known, None)), None) => ArgumentName::Own(known),
        _ => ArgumentName::No,
    }
}

/// The options of a command line that define jobs.
#[derive(Debug, Default)]
pub(super) struct LineOptions {
    pub sections: Vec<Section>,
    pub refused: Vec<FioError>,
    pub warnings: Vec<FioWarning>,
    /// The argument that forbids writes.
    pub read_only: Option<Origin>,
}

/// The sections that result from options; `own` are names to compare a misspelt one with.
pub(super) fn read(arguments: &[FioArgument], own: &[String]) -> LineOptions {
    let mut line = LineOptions::default();
    for argument in arguments {
        let origin = Origin::Argument { number: argument.number };
        let FioArgument { name, value, .. } = argument;
        if let Some(entry) = catalogue::find(name) {
            if entry.name == "name" {
                line.sections.push(Section::new(value, origin.clone()));
            } else if line.sections.is_empty() {
                line.sections.push(Section::new("global", origin.clone()));
            }
            let (name, value) = (name.clone(), value.clone());
            let assignment = Assignment { entry, name, value, origin };
            line.sections.last_mut().into_iter().for_each(|section| {
                section.assignments.push(assignment.clone());
            });
            continue;
        }
        line.of_command(argument, origin, own);
    }
    line
}

impl LineOptions {
    fn of_command(&mut self, argument: &FioArgument, origin: Origin, own: &[String]) {
        let what = argument.shown();
        let found = catalogue::find_of_command(&argument.name);
        if found.is_some_and(|entry| entry.is_neutral(&argument.value)) {
            return;
        }
        match found.map(|entry| entry.effect) {
            None => {
                let why = unknown(&argument.name, own);
                self.refused.push(FioError { origin, what, why });
            }
            Some(OptionEffect::Refused(why)) => {
                self.refused.push(FioError { origin, what, why: why.to_owned() });
            }
            Some(OptionEffect::Warned(why)) => {
                self.warnings.push(FioWarning::at(&origin, what, why.to_owned()));
            }
            Some(OptionEffect::Changes(_)) => self.read_only = Some(origin),
        }
    }
}

/// The sections as fio's command line, as `fio --showcmd` prints it.
pub(super) fn shown(sections: &[Section]) -> String {
    let mut words = vec!["fio".to_owned()];
    for section in sections {
        if !section.is_global() {
            words.push(format!("--name={}", quoted(&section.name)));
        }
        for assignment in &section.assignments {
            words.push(match assignment.value.as_str() {
                "" => format!("--{}", assignment.name),
                value => format!("--{}={}", assignment.name, quoted(value)),
            });
        }
    }
    words.join(" ")
}

fn quoted(value: &str) -> String {
    match value.contains(' ') {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (Vec<String>, Vec<String>) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let own = ["output-format", "output", "json", "help"].map(str::to_owned);
        let (jobs, rest) = split(&arguments, &own);
        let rest = rest.into_iter().map(|one| one.into_string().unwrap_or_default()).collect();
        (jobs.iter().map(FioArgument::to_string).collect(), rest)
    }

    #[test]
    fn options_take_values_as_getopt_has_it() {
        let (jobs, rest) = of("-name=a --rw randread -thread 1 --direct=1 j.fio --output f -json");
        assert_eq!(jobs, ["1:name=a", "2:rw=randread", "4:thread=", "6:direct=1"]);
        assert_eq!(rest, ["1", "j.fio", "--output", "f", "--json"]);
        let (jobs, rest) = of("--end_fsync --refill_buffers --readonly --end-fsync=1 -h -- --bs");
        let expected = ["1:end_fsync=", "2:refill_buffers=", "3:readonly=", "4:end-fsync=1"];
        assert_eq!(
            (jobs, rest),
            (
                expected.map(str::to_owned).to_vec(),
                vec!["-h".to_owned(), "--".to_owned(), "--bs".to_owned()]
            )
        );
    }

    #[test]
    fn one_beginning_stands_for_its_name_and_two_for_none() {
        assert_eq!(of("--nam=a --output_form=json").0, ["1:name=a"]);
        assert_eq!(of("--output_format=json").1, ["--output-format=json"]);
        assert_eq!(of("--si=1m").0, ["1:si=1m"], "size or significant_figures");
        assert_eq!(of("--siz=1m").0, ["1:size=1m"]);
    }

    #[test]
    fn an_argument_is_read_as_it_is_written() {
        let argument = FioArgument { number: 3, name: "bs".into(), value: "4k=:".into() };
        assert_eq!(argument.to_string().parse(), Ok(argument));
        assert!("x".parse::<FioArgument>().is_err());
    }
}
