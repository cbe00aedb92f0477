//! `iostrata watch --summary`: what a server is, on one page.
//!
//! Invariant: a rate states over which seconds it was counted; what the server does not report is
//! left out of the page and null in the document.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use iostrata_database::target::{Sampler, Target, TargetFacts, TargetSample};
use iostrata_run::{
    ConnectionSummary, PoolSummary, RedoSummary, SampleField, SampleSpan, ServerSummaryDocument,
    SettingOrigin, SettingSource, TransactionDurability,
};
use iostrata_server::ServerTarget;
use iostrata_show::report::wrapped;
use iostrata_stats::units::{bytes, count, percent, seconds};

use crate::args::WatchArgs;
use crate::display::{print_json, print_text};
use crate::exit_error::ExitError;
use crate::server_group::managed_service;
use crate::signals::Interruption;
use crate::test_database::{ending, server_address};

/// Seconds over which rates are counted where `--time` names none.
const WINDOW: Duration = Duration::from_secs(10);

/// Minutes of a month, beyond which it does not matter how long the redo lasts.
const LONG_MIN: f64 = 30.0 * 24.0 * 60.0;

/// Runs it.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &WatchArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let [name] = &args.targets[..] else {
        let count = args.targets.len();
        return Err(ExitError::Usage(format!("--summary: {count} targets were named; name one")));
    };
    if !name.starts_with("mysql://") {
        let place = name.split(':').next().unwrap_or_default();
        return Err(ExitError::Usage(format!(
            "{place}: --summary is of a server; write mysql://user@host:port, or \
             iostrata engine stats DIR for an engine"
        )));
    }
    let address = server_address(name, &args.login.credentials(), "")?;
    let server = ServerTarget::open(address, None).map_err(ending)?;
    let facts = server.facts().map_err(ending)?;
    let Some(mut sampler) = server.sampler().map_err(ending)? else {
        return Err(ExitError::NotHere(format!(
            "{}: {} {} has no InnoDB; name a MySQL, MariaDB or Percona Server",
            facts.name, facts.flavour, facts.version
        )));
    };
    let window = args.time.unwrap_or(WINDOW).max(args.interval);
    let samples = samples(sampler.as_mut(), window, args.interval, interruption)?;
    if interruption.is_set() {
        return Err(ExitError::Interrupted(interruption.exit_code()));
    }
    let status = server.status().map_err(ending)?;
    let role = server.role().map_err(ending)?;
    let settings = server.setting_origins().map_err(ending)?;
    let document = ServerSummaryDocument {
        replica: role.replica,
        replication_is_hidden: role.is_hidden,
        member: role.member,
        settings,
        ..summary(&facts, &status, &samples)
    };
    match args.printing.json {
        true => print_json(&document),
        false => print_text(&format!("{}\n", page(&document))),
    }
}

/// A sample with its time in seconds.
type TimedSample = (f64, TargetSample);

fn samples(
    sampler: &mut dyn Sampler,
    window: Duration,
    interval: Duration,
    interruption: &Interruption,
) -> Result<Vec<TimedSample>, ExitError> {
    let began = Instant::now();
    let mut samples = vec![(0.0, sampler.sample().map_err(ending)?)];
    let mut due = interval;
    while due <= window && !interruption.is_set() {
        std::thread::sleep(due.saturating_sub(began.elapsed()).min(Duration::from_millis(100)));
        if began.elapsed() >= due {
            samples.push((began.elapsed().as_secs_f64(), sampler.sample().map_err(ending)?));
            due += interval;
        }
    }
    Ok(samples)
}

fn summary(
    facts: &TargetFacts,
    status: &BTreeMap<String, String>,
    samples: &[TimedSample],
) -> ServerSummaryDocument {
    let counter = |name: &str| status.get(name).and_then(|value| value.parse::<u64>().ok());
    let setting = |name: &str| {
        let found = facts.settings.iter().find(|(known, _)| known == name);
        found.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let last = samples.last().map(|(_, last)| last);
    let sampled = |field: SampleField| last.and_then(field);
    let share = |part: Option<u64>, all: Option<u64>| {
        part.zip(all)
            .filter(|(_, all)| *all > 0)
            .map(|(part, all)| 100.0 * part as f64 / all as f64)
    };
    let uptime_s = counter("Uptime");
    let total = sampled(|one| one.pool_pages);
    ServerSummaryDocument {
        name: facts.name.clone(),
        flavour: facts.flavour.clone(),
        version: facts.version.clone(),
        service: managed_service(facts).map(|service| service.name().to_owned()),
        uptime_s,
        commit_survives: commit_survives(&facts.durability),
        durability: facts.durability.clone(),
        window_s: samples.last().map_or(0.0, |(at_s, _)| *at_s),
        samples: samples.len() as u64,
        tps: rates(samples, |one| one.transactions).map(|rates| rates.mean),
        redo: redo(samples, counter("Innodb_os_log_written"), uptime_s),
        pool: PoolSummary {
            bytes: setting("innodb_buffer_pool_size"),
            dirty_pct: share(sampled(|one| one.dirty_pages), total),
            free_pct: share(counter("Innodb_buffer_pool_pages_free"), total),
            misses_pct: share(sampled(|one| one.pool_reads), sampled(|one| one.pool_requests)),
            free_page_waits: sampled(|one| one.free_page_waits),
        },
        connections: ConnectionSummary {
            now: sampled(|one| one.connections),
            most: counter("Max_used_connections"),
            limit: sampled(|one| one.connections_limit),
        },
        temporary_tables_on_disk_pct: share(
            sampled(|one| one.temporary_tables_on_disk),
            counter("Created_tmp_tables"),
        ),
        deadlocks: sampled(|one| one.deadlocks),
        ..ServerSummaryDocument::default()
    }
}

/// Rates of a counter between samples, per second.
struct Rates {
    mean: f64,
    most: f64,
}

/// Nothing where the counter is not reported, or went back.
fn rates(samples: &[TimedSample], field: SampleField) -> Option<Rates> {
    let rate = |(from_s, first): &TimedSample, (to_s, last): &TimedSample| {
        SampleSpan::between(first, last, to_s - from_s).per_s(field)
    };
    let mean = rate(samples.first()?, samples.last()?)?;
    let each = samples.windows(2).map(|pair| rate(&pair[0], &pair[1]));
    let most = each.collect::<Option<Vec<f64>>>()?.into_iter().fold(mean, f64::max);
    Some(Rates { mean, most })
}

fn redo(samples: &[TimedSample], written: Option<u64>, uptime_s: Option<u64>) -> RedoSummary {
    let Some((_, last)) = samples.last() else { return RedoSummary::default() };
    let rates = rates(samples, |one| one.redo_end_bytes);
    let limit_bytes = last.checkpoint_age_limit_bytes;
    let minutes = |rate: Option<f64>| {
        let (limit, rate) = limit_bytes.zip(rate.filter(|rate| *rate > 0.0))?;
        Some(limit as f64 / rate / 60.0)
    };
    let peak = rates.as_ref().map(|rates| rates.most);
    let since_start = written.zip(uptime_s.filter(|uptime| *uptime > 0));
    let since_start = since_start.map(|(written, uptime)| written as f64 / uptime as f64);
    RedoSummary {
        capacity_bytes: last.redo_capacity_bytes,
        limit_bytes,
        checkpoint_age_bytes: last.checkpoint_age_bytes,
        peak_bytes_per_s: peak,
        mean_bytes_per_s: rates.map(|rates| rates.mean),
        mean_bytes_per_s_since_start: since_start,
        minutes_at_peak: minutes(peak),
        minutes_at_mean_since_start: minutes(since_start),
    }
}

fn commit_survives(durability: &TransactionDurability) -> Option<String> {
    let has_loose_binlog =
        durability.binlog == Some(true) && durability.sync_binlog.is_some_and(|every| every != 1);
    let text = match durability.flush_log_at_commit? {
        1 if has_loose_binlog => {
            "a crash of the host; the binary log may lack the last transactions then"
        }
        1 => "a crash of the host",
        2 => "a crash of the server, not one of its host",
        _ => "no crash: the last second of commits may be lost",
    };
    Some(text.to_owned())
}

/// The page: a line per subject.
fn page(document: &ServerSummaryDocument) -> String {
    let mut page = Page::default();
    let up = document.uptime_s.map(|up| format!(", up {}", long(up as f64)));
    page.line(
        "Server",
        format!("{} {}{}", document.flavour, document.version, up.unwrap_or_default()),
    );
    page.line("Address", document.name.clone());
    let service = document.service.as_ref();
    page.line(
        "Service",
        service.map_or_else(String::new, |service| {
            format!("{service}: it allows no SET GLOBAL; settings are changed at the service")
        }),
    );
    let role = document.replica.clone().or_else(|| document.member.clone());
    let alone = match document.replication_is_hidden {
        true => "written to; whether it replicates this user may not see (GRANT PROCESS ON *.*)",
        false => "written to; replicates from no other server",
    };
    page.line("Role", role.unwrap_or_else(|| alone.to_owned()));
    page.line("Durability", durability(document));
    for line in redo_lines(document) {
        page.line("Redo", line);
    }
    page.line("Pool", pool(&document.pool));
    page.line("Load", load(document));
    let Some(settings) = &document.settings else {
        page.line(
            "Settings",
            "this server does not report their origin; MySQL from 8.0 and MariaDB from 10.1 on do"
                .to_owned(),
        );
        return page.text;
    };
    let of = |source| settings.iter().filter(move |one| one.source == source);
    if of(SettingSource::Changed).next().is_none() {
        page.line("Changed", "no setting since the server was started".to_owned());
    }
    for one in of(SettingSource::Changed) {
        page.line("Changed", format!("{}{}", assigned(one), changed_by(one)));
    }
    for (subject, source) in [
        ("Persisted", SettingSource::Persisted),
        ("Option file", SettingSource::OptionFile),
        ("Command line", SettingSource::CommandLine),
    ] {
        let all: Vec<String> = of(source).map(assigned).collect();
        page.list(subject, &all);
    }
    page.text
}

/// Lines with their subject, which is written once.
#[derive(Default)]
struct Page {
    text: String,
    subject: &'static str,
}

/// Columns of a page, and of its subjects.
const WIDTH: usize = 96;
const SUBJECT: usize = 14;

impl Page {
    fn line(&mut self, subject: &'static str, text: String) {
        if text.is_empty() {
            return;
        }
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        self.wrapped(subject, &words);
    }

    /// As many as fit on a line.
    fn list(&mut self, subject: &'static str, all: &[String]) {
        let last = all.len().saturating_sub(1);
        let comma =
            |(at, one): (usize, &String)| if at < last { format!("{one},") } else { one.clone() };
        self.wrapped(subject, &all.iter().enumerate().map(comma).collect::<Vec<_>>());
    }

    fn wrapped(&mut self, subject: &'static str, words: &[String]) {
        for (at, line) in wrapped(words, WIDTH - SUBJECT).iter().enumerate() {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            let head = if at == 0 && subject != self.subject { subject } else { "" };
            self.text.push_str(&format!("{head:SUBJECT$}{line}"));
        }
        self.subject = subject;
    }
}

fn durability(document: &ServerSummaryDocument) -> String {
    let TransactionDurability {
        flush_log_at_commit,
        doublewrite,
        flush_method,
        binlog,
        sync_binlog,
    } = &document.durability;
    let mut settings = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| format!("{name}={value}")));
    };
    add("innodb_flush_log_at_trx_commit", flush_log_at_commit.map(|value| value.to_string()));
    add("innodb_doublewrite", doublewrite.clone());
    add("innodb_flush_method", flush_method.clone());
    add("log_bin", binlog.map(|is_on| if is_on { "ON".to_owned() } else { "OFF".to_owned() }));
    add("sync_binlog", sync_binlog.map(|value| value.to_string()));
    let survives = document.commit_survives.as_ref();
    let survives = survives.map_or(String::new(), |text| format!("a commit survives {text}: "));
    format!("{survives}{}", settings.join(", "))
}

fn redo_lines(document: &ServerSummaryDocument) -> Vec<String> {
    let redo = &document.redo;
    let size = redo.capacity_bytes.map(|size| bytes(size as f64));
    let limit = redo.limit_bytes.map(|limit| format!("writers wait at {}", bytes(limit as f64)));
    let age = redo.checkpoint_age_bytes.map(|age| format!("checkpoint age {}", bytes(age as f64)));
    let rate = |rate: Option<f64>, minutes: Option<f64>, over: String| {
        let lasts = minutes.map_or(String::new(), |minutes| match minutes > LONG_MIN {
            true => "; the limit lasts for more than a month".to_owned(),
            false => format!("; the limit lasts {}", long(60.0 * minutes)),
        });
        rate.map(|rate| format!("{}/s {over}{lasts}", bytes(rate)))
    };
    let window = format!("in the busiest interval of {}", seconds(document.window_s));
    [
        Some([size, limit, age].into_iter().flatten().collect::<Vec<_>>().join(", ")),
        rate(redo.peak_bytes_per_s, redo.minutes_at_peak, window),
        rate(
            redo.mean_bytes_per_s_since_start,
            redo.minutes_at_mean_since_start,
            "on average since the start".to_owned(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn pool(pool: &PoolSummary) -> String {
    let parts = [
        pool.bytes.map(|size| bytes(size as f64)),
        pool.free_pct.map(|share| format!("{} free", percent(share))),
        pool.dirty_pct.map(|share| format!("{} dirty", percent(share))),
        pool.misses_pct
            .map(|share| format!("{} of all reads since the start from disk", percent(share))),
        pool.free_page_waits
            .filter(|waits| *waits > 0)
            .map(|waits| format!("{} waits for a free page", count(waits as f64))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn load(document: &ServerSummaryDocument) -> String {
    let ConnectionSummary { now, most, limit } = document.connections;
    let tps = document
        .tps
        .map(|tps| format!("{} transactions/s over {}", count(tps), seconds(document.window_s)));
    let limit = limit.map_or(String::new(), |limit| format!(" of {limit}"));
    let most = most.map_or(String::new(), |most| format!(" (at most {most} since the start)"));
    let parts = [
        tps,
        now.map(|now| format!("{now}{limit} connections{most}")),
        document
            .temporary_tables_on_disk_pct
            .map(|share| format!("{} of temporary tables on disk", percent(share))),
        document.deadlocks.map(|deadlocks| format!("{} deadlocks", count(deadlocks as f64))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn assigned(one: &SettingOrigin) -> String {
    format!("{}={}", one.name, if one.value.is_empty() { "''" } else { &one.value })
}

fn changed_by(one: &SettingOrigin) -> String {
    let by = one.set_by.as_ref().map(|user| format!(" by {user}")).unwrap_or_default();
    let at = one.set_at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    let said = format!("{by}{at}");
    if said.is_empty() { said } else { format!(", set{said}") }
}

/// A time from seconds to days.
fn long(time_s: f64) -> String {
    match time_s {
        time_s if time_s >= 2.0 * 86_400.0 => format!("{:.1} days", time_s / 86_400.0),
        time_s if time_s >= 2.0 * 3_600.0 => format!("{:.1} hours", time_s / 3_600.0),
        time_s if time_s >= 120.0 => format!("{:.1} minutes", time_s / 60.0),
        time_s => seconds(time_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_managed_service_is_named_where_there_is_one() {
        let of = |settings: &[(&str, &str)]| {
            let settings =
                settings.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            let facts = TargetFacts { settings: settings.collect(), ..TargetFacts::default() };
            page(&summary(&facts, &BTreeMap::new(), &[]))
        };
        let page = of(&[("basedir", "/rdsdbbin/mysql-8.0.35.R3/")]);
        assert!(page.contains("Service       Amazon RDS: it allows no SET GLOBAL"), "{page}");
        assert!(!of(&[("basedir", "/usr/")]).contains("Service"));
    }
}
