//! From the text of a job file to sections of options.
//!
//! Invariant: any bytes give sections or an error with a line. Options keep their order and their
//! origin; their meaning is not checked, only their names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalogue::{self, FioOption};
use super::environment::Environment;
use super::error::{FioError, Origin};
use super::expand::expand;

const INCLUDES_MAX: usize = 16;
const LINES_MAX: usize = 100_000;

/// One option as it was written.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub entry: &'static FioOption,
    /// The name as it was written, which may be another than the entry's.
    pub name: String,
    /// The value, with what it refers to put in; empty when there was none.
    pub value: String,
    pub origin: Origin,
}

impl Assignment {
    /// The option as it was written.
    pub(super) fn shown(&self) -> String {
        match self.value.as_str() {
            "" => self.name.clone(),
            value => format!("{}={value}", self.name),
        }
    }
}

/// One `[section]`.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub name: String,
    pub origin: Origin,
    pub assignments: Vec<Assignment>,
    /// Lines that are no option.
    pub unread: Vec<FioError>,
}

impl Section {
    pub(super) fn new(name: &str, origin: Origin) -> Self {
        Self { name: name.to_owned(), origin, assignments: Vec::new(), unread: Vec::new() }
    }

    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// The sections of a job file, with included files in place. What is no section at all is refused
/// in `refused`.
pub(super) fn read(
    path: &Path,
    environment: &dyn Environment,
    refused: &mut Vec<FioError>,
) -> Vec<Section> {
    let mut reader = LineReader {
        environment,
        sections: Vec::new(),
        including: Vec::new(),
        lines: 0,
        refused: Vec::new(),
    };
    let whole = Origin::whole(path.to_owned());
    if let Err(error) = reader.file(path, &whole, "job file") {
        reader.refused.push(error);
    }
    refused.append(&mut reader.refused);
    reader.sections
}

struct LineReader<'a> {
    environment: &'a dyn Environment,
    sections: Vec<Section>,
    /// Files that are being read, the outermost first.
    including: Vec<PathBuf>,
    lines: usize,
    refused: Vec<FioError>,
}

impl LineReader<'_> {
    fn file(&mut self, path: &Path, asked_by: &Origin, what: &str) -> Result<(), FioError> {
        let refuse =
            |why: String| FioError { origin: asked_by.clone(), what: what.to_owned(), why };
        if self.including.iter().any(|open| open == path) {
            return Err(refuse("it includes itself; take the line out".to_owned()));
        }
        if self.including.len() >= INCLUDES_MAX {
            return Err(refuse(format!("more than {INCLUDES_MAX} files include each other")));
        }
        let bytes = self.environment.read(path).map_err(|why| match what == "job file" {
            true => refuse(format!("it cannot be read: {why}")),
            false => refuse(format!("{} cannot be read: {why}", path.display())),
        })?;
        self.including.push(path.to_owned());
        let file = Arc::new(path.to_owned());
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let origin = Origin::File { file: Arc::clone(&file), line: number as u32 + 1 };
            self.lines += 1;
            if self.lines > LINES_MAX {
                let why = format!("more than {LINES_MAX} lines; this is no job file");
                return Err(FioError { origin, what: what.to_owned(), why });
            }
            let Ok(line) = std::str::from_utf8(line) else {
                let why = "the line is no UTF-8 text; is this a job file?".to_owned();
                return Err(FioError { origin, what: what.to_owned(), why });
            };
            if let Err(error) = self.line(line, origin) {
                self.refused.push(error);
            }
        }
        self.including.pop();
        Ok(())
    }

    fn line(&mut self, line: &str, origin: Origin) -> Result<(), FioError> {
        let end = line.find([';', '#']).unwrap_or(line.len());
        let text = line[..end].trim_matches(|c: char| c.is_whitespace() || c.is_control());
        if text.is_empty() {
            return Ok(());
        }
        if let Some(rest) = text.strip_prefix('[') {
            return self.section(text, rest, origin);
        }
        if let Some(name) =
            text.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t']))
        {
            let path = match &origin {
                Origin::File { file, .. } => beside(file, Path::new(name.trim())),
                Origin::Argument { .. } => PathBuf::from(name.trim()),
            };
            return self.file(&path, &origin, text);
        }
        self.option(text, origin)
    }

    fn section(&mut self, text: &str, rest: &str, origin: Origin) -> Result<(), FioError> {
        let name = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
        let Some(name) = name else {
            let why = "this is no section; write [name]".to_owned();
            return Err(FioError { origin, what: text.to_owned(), why });
        };
        self.sections.push(Section::new(name, origin));
        Ok(())
    }

    fn option(&mut self, text: &str, origin: Origin) -> Result<(), FioError> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let (name, value) = (name.trim(), value.trim());
        // Files that others include have no section of their own.
        if self.sections.is_empty() {
            self.sections.push(Section::new("global", origin.clone()));
        }
        let Some(section) = self.sections.last_mut() else { return Ok(()) };
        let refuse = |origin: Origin, why: String| FioError { origin, what: text.to_owned(), why };
        match (catalogue::find(name), expand(value, self.environment)) {
            (None, _) => section.unread.push(refuse(origin, unknown(name, &[]))),
            (Some(_), Err(why)) => section.unread.push(refuse(origin, why.0)),
            (Some(entry), Ok(value)) => {
                section.assignments.push(Assignment {
                    entry,
                    name: name.to_owned(),
                    value,
                    origin,
                });
            }
        }
        Ok(())
    }
}

/// Why a name is no option; `more` are names in addition to the catalogue's.
pub(super) fn unknown(name: &str, more: &[String]) -> String {
    match catalogue::nearest(name, more) {
        Some(near) => format!("there is no such option; did you mean {near}?"),
        None => "there is no such option; docs/fio.md lists them".to_owned(),
    }
}

/// A path as an included file names it: seen from the file that includes it.
fn beside(file: &Path, named: &Path) -> PathBuf {
    match file.parent() {
        Some(directory) if named.is_relative() => directory.join(named),
        _ => named.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::stand_in::Desk;
    use super::*;

    fn sections(text: impl Into<Vec<u8>>) -> Result<Vec<Section>, FioError> {
        read_all("a.fio", &Desk::default().with_file("a.fio", text))
    }

    /// The sections, or the first thing that is wrong with them.
    fn read_all(path: &str, desk: &Desk) -> Result<Vec<Section>, FioError> {
        let mut refused = Vec::new();
        let found = read(Path::new(path), desk, &mut refused);
        refused.extend(found.iter().flat_map(|section| section.unread.iter().cloned()));
        refused.into_iter().next().map_or(Ok(found), Err)
    }

    fn line(assignment: &Assignment) -> (PathBuf, u32) {
        match &assignment.origin {
            Origin::File { file, line } => (file.as_ref().clone(), *line),
            Origin::Argument { .. } => panic!("it stands in a file"),
        }
    }

    #[test]
    fn comments_blanks_and_line_ends_do_not_matter() {
        let text = "; first\r\n# second\n\n [ a ]  \r\n  bs = 4k ; behind\n\ttime_based # too\n";
        let found = sections(text).unwrap();
        assert_eq!((found.len(), found[0].name.as_str()), (1, "a"));
        let shown: Vec<String> = found[0].assignments.iter().map(Assignment::shown).collect();
        assert_eq!(shown, ["bs=4k", "time_based"]);
        assert_eq!(line(&found[0].assignments[0]), ("a.fio".into(), 5));
    }

    #[test]
    fn included_lines_stand_where_they_are_included() {
        let desk = Desk::default()
            .with_file("d/a.fio", "[a]\ninclude b.inc\nbs=8k")
            .with_file("d/b.inc", "rw=write\n[b]\nsize=1m");
        let found = read_all("d/a.fio", &desk).unwrap();
        let names: Vec<&str> = found.iter().map(|section| section.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(found[1].assignments[1].shown(), "bs=8k");
        assert_eq!(line(&found[0].assignments[0]), ("d/b.inc".into(), 1));
        let circle = Desk::default().with_file("a.fio", "[a]\ninclude a.fio");
        let error = read_all("a.fio", &circle).unwrap_err();
        assert!(error.to_string().starts_with("a.fio:2: include a.fio: it includes itself"));
    }

    #[test]
    fn what_is_no_job_file_is_refused_with_its_line() {
        for (text, expected) in [
            (
                "[a]\niodpeth=4",
                "a.fio:2: iodpeth=4: there is no such option; did you mean iodepth?",
            ),
            ("[a\n", "a.fio:1: [a: this is no section"),
            ("[]\n", "a.fio:1: []: this is no section"),
            ("[a]\ninclude none\n", "a.fio:2: include none: none cannot be read"),
        ] {
            let error = sections(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = sections(vec![0x5b, 0xff]);
        assert!(error.unwrap_err().to_string().contains("a.fio:1"));
    }
}
