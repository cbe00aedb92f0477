//! Figures as the screen writes them.
//!
//! Invariant: what is not reported is [`NOT_REPORTED`], never 0.

use iostrata_run::{Figure, WatchTarget};

/// What stands in place of a figure that the target does not report.
pub(crate) const NOT_REPORTED: &str = "n/a";

/// A figure, or that it is not reported.
pub(crate) fn told(value: Option<f64>, write: impl Fn(f64) -> String) -> String {
    value.filter(|value| value.is_finite()).map_or(NOT_REPORTED.to_owned(), write)
}

/// A figure by its unit; seconds are those ahead.
pub(crate) fn figure(figure: &Figure, value: Option<f64>) -> String {
    match figure.unit {
        "percent" => percent(value),
        "s" => ahead(value),
        "bytes/s" => told(value, |rate| format!("{}/s", iostrata_stats::units::bytes(rate))),
        _ => count(value),
    }
}

/// A count or a rate: `1.48 K`.
pub(crate) fn count(value: Option<f64>) -> String {
    told(value, iostrata_stats::units::count)
}

/// A count of things: `12.3 K`.
pub(crate) fn number(value: Option<u64>) -> String {
    count(value.map(|value| value as f64))
}

/// Bytes: `80.1 MiB`.
pub(crate) fn bytes(value: Option<u64>) -> String {
    told(value.map(|value| value as f64), iostrata_stats::units::bytes)
}

/// A share to a tenth, since the last percent before a limit decides: `99.7 %`.
pub(crate) fn percent(value: Option<f64>) -> String {
    told(value, |value| format!("{value:.1} %"))
}

/// Milliseconds, the number only: `5.20`, `85`.
pub(crate) fn milliseconds(value: Option<f64>) -> String {
    told(value, |value| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") })
}

/// A time ahead: seconds up to two minutes, then no closer than it can be known.
pub(crate) fn ahead(value: Option<f64>) -> String {
    told(value, |value| match value {
        value if value >= 36_000.0 => "> 10 h".to_owned(),
        value if value >= 120.0 => format!("{:.0} min", value / 60.0),
        value if value >= 10.0 => format!("{value:.0} s"),
        value => format!("{value:.1} s"),
    })
}

/// How long something lasted: `14 s`, `2 min 21 s`.
pub(crate) fn length(length_s: f64) -> String {
    let seconds = length_s.round() as u64;
    if seconds < 120 {
        return iostrata_stats::units::seconds(length_s);
    }
    format!("{} min {} s", seconds / 60, seconds % 60)
}

/// A moment since watching began: `00:01:23`.
pub(crate) fn clock(t_s: f64) -> String {
    let seconds = t_s.max(0.0) as u64;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A target's family as its makers write it, and its version without what follows it.
pub(crate) fn version(target: &WatchTarget) -> String {
    let family = match target.flavour.as_str() {
        "mysql" => "MySQL",
        "mariadb" => "MariaDB",
        "percona" => "Percona Server",
        other => other,
    };
    let number = target.version.split(['-', ' ']).next().unwrap_or_default();
    format!("{family} {number}").trim().to_owned()
}

/// An address in few columns: without its scheme and user, its middle left out where it must be.
pub fn short_name(name: &str, room: usize) -> String {
    let rest = name.split_once("://").map_or(name, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let chars: Vec<char> = rest.chars().collect();
    if chars.len() <= room {
        return rest.to_owned();
    }
    let kept = room.saturating_sub(2);
    let (head, tail) = (kept / 2, kept - kept / 2);
    let part = |chars: &[char]| chars.iter().collect::<String>();
    format!("{}..{}", part(&chars[..head]), part(&chars[chars.len() - tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_never_zero() {
        assert_eq!((count(None), number(None), bytes(None)), three("n/a"));
        assert_eq!((percent(None), milliseconds(None), ahead(None)), three("n/a"));
        assert_eq!(count(Some(f64::NAN)), "n/a");
        assert_eq!((count(Some(0.0)), number(Some(0)), percent(Some(0.0))).0, "0");
    }

    fn three(text: &str) -> (String, String, String) {
        (text.to_owned(), text.to_owned(), text.to_owned())
    }

    #[test]
    fn figures_are_short() {
        assert_eq!((percent(Some(99.87)).as_str(), clock(3723.9).as_str()), ("99.9 %", "01:02:03"));
        assert_eq!((ahead(Some(0.04)), ahead(Some(600.0))), ("0.0 s".into(), "10 min".into()));
        assert_eq!(
            (milliseconds(Some(5.2)), milliseconds(Some(85.4))),
            ("5.20".into(), "85".into())
        );
        let target = WatchTarget {
            flavour: "mariadb".into(),
            version: "11.8.9-MariaDB-4 from Debian".into(),
            ..WatchTarget::default()
        };
        assert_eq!(version(&target), "MariaDB 11.8.9");
        assert_eq!(version(&WatchTarget::default()), "");
    }

    #[test]
    fn addresses_keep_their_ends() {
        let name = "mysql://b@127.0.0.1:3391/tpcc";
        assert_eq!(short_name(name, 30), "127.0.0.1:3391/tpcc");
        assert_eq!(short_name(name, 12), "127.0../tpcc");
        assert_eq!(short_name("engine:/srv/data", 30), "engine:/srv/data");
    }
}
