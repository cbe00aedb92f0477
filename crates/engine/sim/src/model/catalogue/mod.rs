//! Every model: which real drive it stands for, its parameters, and where they are from.
//!
//! Invariant: a value here is read from the parameters that the model runs with, so that the two
//! can't differ; docs/disks.md is generated from this and held by a test.

mod cloud;
mod flash;
mod hdd;
mod measured;
mod raid;

use std::time::Duration;

/// Where a parameter is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It stands in one of the sources.
    Source,
    /// It follows from figures in the sources, as said.
    Derived(&'static str),
    /// Nobody publishes it; the reasoning.
    Estimated(&'static str),
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: String,
    /// Of what; empty for a plain word.
    pub unit: &'static str,
    /// Where it is from.
    pub origin: Origin,
}

/// Something that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Citation {
    /// Its title, and what was taken from it.
    pub title: &'static str,
    /// Where it was found; none for what is known by its title only.
    pub url: Option<&'static str>,
}

/// A model as the documents describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// How a user names it.
    pub name: &'static str,
    /// The drive that it stands for.
    pub real_drive: &'static str,
    /// What a power cut can take.
    pub power_cut: &'static str,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// What was read.
    pub sources: &'static [Citation],
}

/// Every model, in the order of [`DiskModel::NAMED`](iostrata_plan::disk::DiskModel::NAMED), and
/// the measured one last.
pub fn catalogue() -> Vec<Model> {
    let mut models = hdd::models();
    models.push(raid::model());
    models.extend(flash::models());
    models.push(cloud::model());
    models.push(measured::model());
    models
}

fn parameter(
    name: &'static str,
    value: impl ToString,
    unit: &'static str,
    origin: Origin,
) -> Parameter {
    Parameter { name, value: value.to_string(), unit, origin }
}

/// A time in ns as microseconds or milliseconds.
fn time(name: &'static str, ns: u64, origin: Origin) -> Parameter {
    let (value, unit) = match Duration::from_nanos(ns) {
        time if time >= Duration::from_millis(1) => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e3, "us"),
    };
    parameter(name, value, unit, origin)
}

/// A rate in bytes per second as decimal megabytes, as data sheets have it.
fn bandwidth(name: &'static str, bytes_per_s: f64, origin: Origin) -> Parameter {
    parameter(name, (bytes_per_s / 1e5).round() / 10.0, "MB/s", origin)
}

/// A share with three digits.
fn share(name: &'static str, value: f64, origin: Origin) -> Parameter {
    parameter(name, format!("{:.1}", 100.0 * value), "%", origin)
}
