//! What an option of jobs or an engine does here, in the format of `fio --cmdhelp` and `--enghelp`.

use iostrata_plan::fio::catalogue::{self, FioOption};
use iostrata_plan::fio::engines;

use crate::exit_error::ExitError;

/// What one option does; `all`: a line for each.
///
/// # Errors
/// There is no such option.
pub fn of_option(name: &str) -> Result<String, ExitError> {
    if name == "all" {
        let line = |entry: &FioOption| format!("{:<24}: {}\n", entry.name, entry.effect);
        return Ok(catalogue::entries().map(line).collect());
    }
    let found = catalogue::find(name).ok_or_else(|| {
        let near = catalogue::nearest(name, &[]);
        let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        ExitError::Usage(format!("--cmdhelp={name}: there is no such option{near}"))
    })?;
    let row = |title: &str, text: &str| format!("{title:>20}: {text}\n");
    let mut text = row(found.name, &found.effect.to_string());
    found.aliases.iter().for_each(|alias| text.push_str(&row("alias", alias)));
    let example = match found.example_value() {
        "" => found.name.to_owned(),
        value => format!("{}={value}", found.name),
    };
    let beside: Vec<&str> = found.example_beside().collect();
    let beside =
        if beside.is_empty() { String::new() } else { format!(", with {}", beside.join(", ")) };
    text.push_str(&row("example", &format!("{example}{beside}")));
    if !found.neutral.is_empty() {
        text.push_str(&row("no effect at", &found.neutral.join(", ")));
    }
    Ok(text)
}

/// What one engine does; with no name the list of all.
///
/// # Errors
/// There is no such engine.
pub fn of_engine(name: &str) -> Result<String, ExitError> {
    if name.is_empty() {
        let lines = engines().map(|(name, _)| format!("\t{name}\n"));
        return Ok(std::iter::once("Available IO engines:\n".to_owned()).chain(lines).collect());
    }
    // As in fio, an option may follow the engine.
    let (engine, option) = name.split_once(',').unwrap_or((name, ""));
    let found = engines().find(|(known, _)| *known == engine);
    let (known, what) = found.ok_or_else(|| {
        let why = "there is no such engine here; --enghelp lists them";
        ExitError::Usage(format!("--enghelp={engine}: {why}"))
    })?;
    match option {
        "" => Ok(format!("{known:<24}: {what}\n")),
        option => of_option(option),
    }
}
