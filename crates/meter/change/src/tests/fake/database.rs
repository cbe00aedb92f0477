//! The database server of the machine.

use super::FakePlatform;
use crate::variables::{ServerError, ServerToken, Servers};

impl FakePlatform {
    fn answer<T>(&self, answer: impl FnOnce() -> Option<T>) -> Result<T, ServerError> {
        if !self.server_answers.get() {
            return Err(ServerError::NoAnswer("connection refused".to_owned()));
        }
        answer().ok_or_else(|| ServerError::Refused("unknown system variable".to_owned()))
    }
}

impl Servers for FakePlatform {
    fn identify(&self, _: &str) -> Result<ServerToken, ServerError> {
        let started_s = self.machine.borrow().started_s;
        self.answer(|| Some(ServerToken { data_dir: "/data/mysql".into(), started_s }))
    }

    fn variable(&self, _: &str, name: &str) -> Result<String, ServerError> {
        let machine = self.machine.borrow();
        self.answer(|| machine.variables.get(name).map(u64::to_string))
    }

    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError> {
        self.variable(address, name)?;
        let refused = |_| ServerError::Refused(format!("{name} can't be {value}"));
        let value = value.parse().map_err(refused)?;
        let set = self.alter(|machine| {
            machine.set_variable(name, value);
            Ok(())
        });
        set.map_err(|error| ServerError::Refused(error.to_string()))
    }
}
