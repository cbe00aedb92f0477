//! Settings and programs during a probe, removed again when they are dropped.

use std::fs;
use std::process::{Child, Stdio};

use crate::harness::beside;

/// A setting of the machine that is put back when this is dropped.
pub struct Setting(pub String, pub String);

impl Setting {
    pub fn set(file: &str, value: &str) -> Self {
        let text = fs::read_to_string(file).unwrap();
        // Of several choices the one in use stands in brackets.
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let before = chosen.map_or(text.trim(), |(name, _)| name).to_owned();
        fs::write(file, value).unwrap();
        Self(file.to_owned(), before)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, &self.1);
    }
}

/// A program that is ended when this is dropped.
pub struct Beside(Child);

impl Beside {
    pub fn start(program: &str, words: &[&str]) -> Self {
        let mut command = beside(program);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
