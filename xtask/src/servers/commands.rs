//! Programs that are run for the fleet, and scripts that run others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Writes a script that runs a program with its own arguments.
///
/// # Errors
/// When it cannot be written.
pub fn write_wrapper(path: &Path, run: &str) -> Result<()> {
    fs::write(path, format!("#!/bin/sh\n{run} \"$@\"\n"))?;
    make_executable(path)
}

/// Lets everybody run a file.
///
/// # Errors
/// When it is not there or somebody else's.
pub fn make_executable(path: &Path) -> Result<()> {
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, mode).with_context(|| path.display().to_string())
}

/// What a command said.
///
/// # Errors
/// When it is missing or fails, with what it said.
pub fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if !output.status.success() {
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        bail!("{name}: {}", lines.into_iter().rev().collect::<Vec<_>>().join("; "));
    }
    Ok(text)
}
