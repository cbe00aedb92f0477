//! The database server of the machine.

use super::FakePlatform;
use crate::variables::{ServerError, ServerToken, ServerValues, Servers};

impl Servers for FakePlatform {
    fn look(&self, _: &str, names: &[&str]) -> Result<(ServerToken, ServerValues), ServerError> {
        if !self.server_answers.get() {
            return Err(ServerError::NoAnswer("connection refused".to_owned()));
        }
        let machine = self.machine.borrow();
        let (data_dir, started_s) = ("/data/mysql".into(), machine.started_s);
        let (place, uid) = ("host:3306".to_owned(), self.server_uid.borrow().clone());
        let token = ServerToken { data_dir, place, started_s, uid };
        let value = |name: &&str| Some(((*name).to_owned(), machine.variables.get(*name)?));
        let values = names.iter().filter_map(value);
        Ok((token, values.map(|(name, value)| (name, value.to_string())).collect()))
    }

    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError> {
        self.look(address, &[])?;
        let refused = || ServerError::Refused(format!("{name} can't be {value}"));
        if self.refused_variable.borrow().as_deref() == Some(name) {
            return Err(refused());
        }
        let value = value.parse().map_err(|_| refused())?;
        let set = self.alter(|machine| {
            machine.set_variable(name, value);
            Ok(())
        });
        set.map_err(|_| refused())
    }
}
