//! Which server program a study's word for a target means.
//!
//! Invariant: programs that the user named come first, then those of the environment, then what is
//! installed; each is asked for its version once. A server that is not there is a result.

use iostrata_server::private::{ProgramVersion, ServerProgram};
use iostrata_study::StudyError;

use crate::exit_error::ExitError;

/// Names further programs, separated by `:`.
const VARIABLE: &str = "IOSTRATA_SERVER_PROGRAMS";
/// What is looked for where programs are installed.
const INSTALLED: [&str; 2] = ["mariadbd", "mysqld"];

/// Server programs at hand.
#[derive(Debug, Default)]
pub struct ServerPrograms {
    named: Vec<ServerProgram>,
    /// Those of the environment and of the system, once they were looked for.
    others: Option<Vec<ServerProgram>>,
}

impl ServerPrograms {
    /// With the programs that the user named.
    ///
    /// # Errors
    /// The first one that is no server.
    pub fn named(programs: &[String]) -> Result<Self, ExitError> {
        let find = |asked: &String| {
            ServerProgram::find(asked)
                .map_err(|error| ExitError::Usage(format!("--server {asked}: {error}")))
        };
        let named = programs.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Self { named, others: None })
    }

    /// The program of a target such as `mariadb-10.11` or `mysql`.
    ///
    /// # Errors
    /// [`StudyError::NotHere`].
    pub fn find(&mut self, target: &str) -> Result<ServerProgram, StudyError> {
        let others = self.others.get_or_insert_with(others);
        let mut all = self.named.iter().chain(others.iter());
        if let Some(program) = all.find(|program| is_meant(target, &program.version)) {
            return Ok(program.clone());
        }
        let known = self.named.iter().chain(others.iter());
        let known: Vec<String> = known.map(|program| program.version.to_string()).collect();
        let there = match known.is_empty() {
            true => "no server program is".to_owned(),
            false => format!("only {} are", known.join(", ")),
        };
        Err(StudyError::NotHere {
            why: format!("there is no program of {target} here: {there}"),
            fix: format!("give one with --server PROGRAM, or name it in {VARIABLE}"),
        })
    }
}

/// What the environment names and the system has. One that does not run is none.
fn others() -> Vec<ServerProgram> {
    let variable = std::env::var(VARIABLE).unwrap_or_default();
    let asked = variable.split(':').filter(|path| !path.is_empty()).chain(INSTALLED);
    let mut found: Vec<ServerProgram> = Vec::new();
    for program in asked.filter_map(|asked| ServerProgram::find(asked).ok()) {
        if found.iter().all(|other| other.path != program.path) {
            found.push(program);
        }
    }
    found
}

/// Whether a program is of the flavour, and of the version as far as that is named.
fn is_meant(target: &str, version: &ProgramVersion) -> bool {
    let (flavour, asked) = target.split_once('-').unwrap_or((target, ""));
    let (major, minor, patch) = version.number;
    let parts = [major, minor, patch].map(|number| number.to_string());
    let asked: Vec<&str> = asked.split('.').filter(|part| !part.is_empty()).collect();
    (flavour == "mariadb") == version.is_mariadb
        && asked.iter().zip(&parts).all(|(asked, is)| asked == is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_flavour_and_as_much_of_a_version_as_it_names() {
        let maria = ProgramVersion::parse("mariadbd  Ver 10.11.6-MariaDB for x on y").unwrap();
        let mysql = ProgramVersion::parse("mysqld  Ver 9.7.4 for Linux on x86_64 (x)").unwrap();
        for target in ["mariadb", "mariadb-10", "mariadb-10.11", "mariadb-10.11.6"] {
            assert!(is_meant(target, &maria) && !is_meant(target, &mysql), "{target}");
        }
        for target in ["mariadb-10.1", "mariadb-11", "mysql-10.11", "mysql"] {
            assert!(!is_meant(target, &maria), "{target}");
        }
        assert!(is_meant("mysql-9.7", &mysql) && !is_meant("mysql-5.6", &mysql));
    }

    #[test]
    fn a_server_that_is_not_there_is_named_with_the_ways_to_give_it() {
        let said = ServerPrograms::default().find("mysql-3.23").unwrap_err().to_string();
        assert!(said.contains("mysql-3.23") && said.contains("--server PROGRAM"), "{said}");
        assert!(said.contains(VARIABLE), "{said}");
        let refused = ServerPrograms::named(&["/no/such/mysqld".to_owned()]).unwrap_err();
        assert!(refused.to_string().contains("--server /no/such/mysqld"), "{refused}");
    }
}
