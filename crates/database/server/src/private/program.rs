//! Server programs: found by name or path, with their version.
//!
//! Invariant: a program is only run with `--version`; where its files are follows from where it is,
//! as for a distribution's package or an unpacked archive.

use std::fmt;
use std::path::{Path, PathBuf};

use iostrata_change::{BoundCommand, RunError};

use super::error::PrivateError;

/// Directories of programs that a user's path may not hold.
const USUAL_DIRS: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/libexec"];
/// Where the files of the system's own packages are, which their programs find by themselves.
const SYSTEM_BASE: &str = "/usr";
/// Of a directory with a server's messages and character sets.
const SHARE_MARK: &str = "charsets/Index.xml";

/// An installed server program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProgram {
    /// Its path.
    pub path: PathBuf,
    /// The version that it reports.
    pub version: ProgramVersion,
    base: PathBuf,
    share: Option<PathBuf>,
}

impl ServerProgram {
    /// Finds a program by its name, as `mariadbd`, or by its path, and reads its version.
    ///
    /// # Errors
    /// [`PrivateError::Missing`] and [`PrivateError::NotAServer`].
    pub fn find(asked: &str) -> Result<Self, PrivateError> {
        let variable = std::env::var_os("PATH").unwrap_or_default();
        let mut dirs: Vec<PathBuf> = std::env::split_paths(&variable).collect();
        dirs.extend(USUAL_DIRS.iter().map(PathBuf::from));
        Self::find_in(asked, &dirs)
    }

    fn find_in(asked: &str, dirs: &[PathBuf]) -> Result<Self, PrivateError> {
        let candidates: Vec<PathBuf> = match asked.contains('/') {
            true => vec![std::path::absolute(asked).unwrap_or_else(|_| asked.into())],
            false => dirs.iter().map(|dir| dir.join(asked)).collect(),
        };
        let Some(path) = candidates.iter().find(|path| path.is_file()) else {
            let mut looked: Vec<String> = Vec::new();
            for dir in candidates.iter().filter_map(|path| path.parent()) {
                let dir = dir.display().to_string();
                if !looked.contains(&dir) {
                    looked.push(dir);
                }
            }
            return Err(PrivateError::Missing {
                asked: asked.to_owned(),
                looked: looked.join(", "),
                package: package(asked),
            });
        };
        Self::at(path)
    }

    fn at(path: &Path) -> Result<Self, PrivateError> {
        // Links are followed because the files are next to the program itself.
        let path = path.canonicalize().map_err(|e| PrivateError::system("look at", path, e))?;
        let ask = BoundCommand {
            program: path.clone(),
            arguments: ["--no-defaults", "--version"].map(str::to_owned).to_vec(),
            ..BoundCommand::default()
        };
        let not_a_server = |said: String| PrivateError::NotAServer { program: path.clone(), said };
        let said = ask.run().map_err(|error: RunError| not_a_server(error.to_string()))?;
        let Some(version) = ProgramVersion::parse(&said) else {
            let first = said.lines().next().unwrap_or("nothing").to_owned();
            return Err(not_a_server(format!("for --version it printed: {first}")));
        };
        let base = base_of(&path);
        let share = ["share/mariadb", "share/mysql", "share"].map(|name| base.join(name));
        let share = share.into_iter().find(|dir| dir.join(SHARE_MARK).is_file());
        Ok(Self { path, version, base, share })
    }

    /// A file with statements that make the tables of the server.
    ///
    /// # Errors
    /// [`PrivateError::NoTables`] when there is none of these names.
    pub(super) fn statements(&self, names: &[String]) -> Result<PathBuf, PrivateError> {
        let share = self.share.as_deref().unwrap_or(&self.base);
        let mut files = names.iter().map(|name| share.join(name));
        files.find(|file| file.is_file()).ok_or_else(|| PrivateError::NoTables {
            program: self.path.clone(),
            missing: names.join(" or "),
            looked: share.display().to_string(),
        })
    }

    /// The same program, started by a script that ends by executing it with its own arguments.
    pub(super) fn run_by(&self, script: PathBuf) -> Self {
        Self { path: script, ..self.clone() }
    }

    /// Arguments for the places of its own files; none for a program of the system.
    pub(super) fn places(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.base == Path::new(SYSTEM_BASE) {
            return arguments;
        }
        arguments.push(format!("--basedir={}", self.base.display()));
        if let Some(share) = &self.share {
            arguments.push(format!("--lc-messages-dir={}", share.display()));
            arguments.push(format!("--character-sets-dir={}", share.join("charsets").display()));
        }
        let plugins = ["lib/mysql/plugin", "lib/mariadb/plugin", "lib/plugin", "lib64/plugin"];
        if let Some(dir) = plugins.iter().map(|name| self.base.join(name)).find(|dir| dir.is_dir())
        {
            arguments.push(format!("--plugin-dir={}", dir.display()));
        }
        arguments
    }
}

/// The directory that a program's files are below.
fn base_of(path: &Path) -> PathBuf {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let is_below = ["bin", "sbin", "libexec"].iter().any(|name| dir.ends_with(name));
    let base = if is_below { dir.parent().unwrap_or(dir) } else { dir };
    base.to_owned()
}

/// Debian's package with this program.
fn package(asked: &str) -> &'static str {
    let name = asked.rsplit('/').next().unwrap_or(asked);
    if name.contains("mysqld") {
        "mysql-server-core or mariadb-server-core"
    } else {
        "mariadb-server-core"
    }
}

/// Version of a server program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramVersion {
    /// MariaDB; otherwise MySQL or one of its close relatives.
    pub is_mariadb: bool,
    /// Major, minor and patch.
    pub number: (u32, u32, u32),
    /// As the program prints it, such as `11.4.5-MariaDB`.
    pub text: String,
}

impl ProgramVersion {
    /// Reads what `--version` printed, as `mysqld  Ver 8.4.3 for Linux on x86_64 (...)`.
    pub fn parse(said: &str) -> Option<Self> {
        let line = said.lines().find(|line| line.contains("Ver "))?;
        let (_, rest) = line.split_once("Ver ")?;
        let text = rest.split(" for ").next()?.trim();
        let digits = |part: &str| {
            let end = part.find(|char: char| !char.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse::<u32>().ok()
        };
        let mut parts = text.splitn(3, '.').map(digits);
        let number = (parts.next()??, parts.next()??, parts.next()??);
        Some(Self { is_mariadb: line.contains("MariaDB"), number, text: text.to_owned() })
    }

    /// Whether it is at least this one.
    pub fn is_from(&self, major: u32, minor: u32) -> bool {
        (self.number.0, self.number.1) >= (major, minor)
    }
}

impl fmt::Display for ProgramVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_mariadb { "MariaDB" } else { "MySQL" };
        let (major, minor, patch) = self.number;
        write!(f, "{name} {major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = ServerProgram::find("no-such-mariadbd").unwrap_err().to_string();
        assert!(error.contains("mariadb-server-core") && error.contains("/usr/sbin"), "{error}");
        let error = ServerProgram::find("/no/such/mysqld").unwrap_err().to_string();
        assert!(error.contains("/no/such") && error.contains("mysql-server-core"), "{error}");
    }

    #[test]
    fn another_program_is_no_server() {
        for program in ["/bin/true", "/bin/false"] {
            let error = ServerProgram::find(program).unwrap_err();
            assert!(matches!(error, PrivateError::NotAServer { .. }), "{error}");
        }
    }

    #[test]
    fn the_files_are_beside_the_program() {
        for (path, base) in [
            ("/usr/sbin/mysqld", "/usr"),
            ("/opt/mysql/bin/mysqld", "/opt/mysql"),
            ("/opt/mysql/mysqld", "/opt/mysql"),
        ] {
            assert_eq!(base_of(Path::new(path)), Path::new(base), "{path}");
        }
    }

    #[test]
    fn versions_are_read() {
        for (said, shown, text) in [
            (
                "/usr/sbin/mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 \
                 (Debian 12)",
                "MariaDB 10.11.6",
                "10.11.6-MariaDB-0+deb12u1",
            ),
            (
                "mariadbd  Ver 11.8.2-MariaDB-1 from Debian for debian-linux-gnu on x86_64 (--)",
                "MariaDB 11.8.2",
                "11.8.2-MariaDB-1 from Debian",
            ),
            ("mysqld  Ver 5.6.51 for Linux on x86_64 (Source)", "MySQL 5.6.51", "5.6.51"),
            ("/opt/mysqld  Ver 9.1.0-2 for Linux on x86_64 ((Debian))", "MySQL 9.1.0", "9.1.0-2"),
            (
                "warning: a\nmysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL))",
                "MySQL 8.0.35",
                "8.0.35-27",
            ),
            (
                "mysqld  Ver 5.5.68-MariaDB for Linux on x86_64 (MariaDB Server)",
                "MariaDB 5.5.68",
                "5.5.68-MariaDB",
            ),
        ] {
            let version = ProgramVersion::parse(said).unwrap();
            assert_eq!((version.to_string().as_str(), version.text.as_str()), (shown, text));
        }
        for said in ["", "GNU bash, version 5.2", "x  Ver 8 for Linux", "x  Ver a.b.c for Linux"] {
            assert_eq!(ProgramVersion::parse(said), None, "{said}");
        }
    }

    #[test]
    fn versions_are_compared() {
        let version = ProgramVersion::parse("x  Ver 10.11.6-MariaDB for Linux").unwrap();
        assert!(version.is_from(10, 6) && version.is_from(10, 11) && !version.is_from(11, 0));
    }
}
