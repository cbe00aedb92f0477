//! `${NAME}` from the environment, and fio's `$pagesize`, `$mb_memory`, `$ncpus`.
//!
//! Invariant: a variable that is not set is refused, since fio would silently leave a hole. What is
//! computed is whole.

use super::arithmetic::evaluate;
use super::environment::Environment;
use super::error::Why;

/// The value with everything put in that it refers to.
pub(super) fn expand(value: &str, environment: &dyn Environment) -> Result<String, Why> {
    let with_variables = variables(value, environment)?;
    keywords(with_variables, environment)
}

fn variables(value: &str, environment: &dyn Environment) -> Result<String, Why> {
    let mut result = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            return Err(Why::new("`${` has no `}`; close it"));
        };
        let Some(found) = environment.variable(name) else {
            let why = format!("the environment has no {name}; set it, or write the value");
            return Err(Why::new(why));
        };
        result.push_str(before);
        result.push_str(&found);
        rest = behind;
    }
    result.push_str(rest);
    Ok(result)
}

fn keywords(value: String, environment: &dyn Environment) -> Result<String, Why> {
    if !value.contains('$') {
        return Ok(value);
    }
    let machine = environment.machine();
    let mut replaced = value.clone();
    for (keyword, number) in [
        ("$pagesize", machine.page_bytes),
        ("$mb_memory", machine.memory_mb),
        ("$ncpus", machine.cpus),
    ] {
        replaced = replaced.replace(keyword, &number.to_string());
    }
    let computes = replaced.contains(['+', '-', '*', '/', '%', '^', '('])
        && replaced.chars().all(|c| c.is_ascii_digit() || " .+-*/%^()".contains(c));
    if replaced == value || !computes {
        return Ok(replaced);
    }
    let plain = |text: &str| text.parse().map_err(|_| Why::new(format!("`{text}` is no number")));
    let number = evaluate(&replaced, &plain)?;
    Ok(format!("{}", number.trunc()))
}

#[cfg(test)]
mod tests {
    use super::super::stand_in::Desk;
    use super::*;

    #[test]
    fn variables_and_keywords_are_put_in() {
        let desk = Desk::default().with_variable("DIR", "/data");
        for (value, expected) in [
            ("${DIR}/a", "/data/a"),
            ("$pagesize", "4096"),
            ("8*$ncpus", "16"),
            ("$mb_memory*2", "2000"),
            ("$jobname.$filenum", "$jobname.$filenum"),
            ("no-keyword*2", "no-keyword*2"),
        ] {
            assert_eq!(expand(value, &desk).as_deref(), Ok(expected), "{value}");
        }
        for value in ["${NOT_SET}", "${DIR", "$ncpus/0"] {
            assert!(expand(value, &desk).is_err(), "{value}");
        }
    }
}
