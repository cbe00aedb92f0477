//! Takes passwords out of an argument vector, so that a run directory is safe to share.
//!
//! Invariant: what is not a password stays as it was typed. It errs on the side of replacing.

/// What stands in the place of a password.
const HIDDEN: &str = "***";

/// The arguments with every password replaced: in `scheme://user:password@host`, in URL parameters
/// and options whose name contains `password`, `passwd`, `secret` or `token`.
pub fn scrubbed(arguments: &[String]) -> Vec<String> {
    let mut hide_next = false;
    let mut out = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let is_value = std::mem::take(&mut hide_next) && !argument.starts_with("--");
        if is_value {
            out.push(HIDDEN.to_owned());
            continue;
        }
        let is_long = argument.starts_with("--") && !argument.contains('=') && is_secret(argument);
        hide_next = is_long || argument == "-p";
        out.push(scrub_one(argument));
    }
    out
}

fn scrub_one(argument: &str) -> String {
    // As the clients of MySQL and go-tpc have it.
    if argument.len() > 2 && argument.starts_with("-p") {
        return format!("-p{HIDDEN}");
    }
    match argument.split_once('=') {
        Some((name, _)) if name.starts_with("--") && is_secret(name) => format!("{name}={HIDDEN}"),
        _ => scrub_parameters(&scrub_user(argument)),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "secret", "token"].iter().any(|word| name.contains(word))
}

/// `mysql://user:password@host` without the password. A password may itself hold `@` and `:`, so
/// the user ends at the first colon and the password at the last `@` before the path.
fn scrub_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let Some(at) = rest.rfind('@') else {
        return text.to_owned();
    };
    let (user, host) = rest.split_at(at);
    match user.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:{HIDDEN}{host}"),
        None => text.to_owned(),
    }
}

fn scrub_parameters(text: &str) -> String {
    let Some((base, parameters)) = text.split_once('?') else {
        return text.to_owned();
    };
    let kept: Vec<String> = parameters
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
            _ => parameter.to_owned(),
        })
        .collect();
    format!("{base}?{}", kept.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(argument: &str) -> String {
        scrubbed(&[argument.to_owned()]).remove(0)
    }

    #[test]
    fn passwords_are_replaced() {
        for (given, kept) in [
            ("mysql://bench:hunter2@db:3306/tpcc", "mysql://bench:***@db:3306/tpcc"),
            ("mysql://bench:hun@ter:2@db/tpcc", "mysql://bench:***@db/tpcc"),
            ("mysql://bench:hun/ter2@db/tpcc", "mysql://bench:***@db/tpcc"),
            ("--target=mysql://b:hunter2@db", "--target=mysql://b:***@db"),
            ("mysql://b@db/x?password=hunter2&socket=/s", "mysql://b@db/x?password=***&socket=/s"),
            ("--password=hunter2", "--password=***"),
            ("--api-token=hunter2", "--api-token=***"),
            ("--mysql-password=hunter2", "--mysql-password=***"),
            ("--mysql_password=hunter2", "--mysql_password=***"),
            ("-phunter2", "-p***"),
        ] {
            assert_eq!(one(given), kept);
        }
        let short = ["-p".to_owned(), "hunter2".to_owned(), "run".to_owned()];
        assert_eq!(scrubbed(&short), ["-p", "***", "run"]);
        let split = ["--password".to_owned(), "hunter2".to_owned(), "run".to_owned()];
        assert_eq!(scrubbed(&split), ["--password", "***", "run"]);
    }

    #[test]
    fn everything_else_stays() {
        for kept in ["probe", "/data/a:b@c", "--bs=4k", "mysql://b@db:3306/x", "--size", "a?b=c&d"]
        {
            assert_eq!(one(kept), kept);
        }
    }
}
