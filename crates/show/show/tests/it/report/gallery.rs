//! The gallery: the text between the marks of an entry, and its picture, agree with its kept runs.
//!
//! A kept run is a directory of `docs/gallery/runs/` that is reduced to manifest and result by
//! `cargo xtask gallery RUN`; its arguments are its command, without where its files were.
//! Invariant: an entry with runs has no figure that is not made here but in the words around its
//! marks.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use iostrata_plan::study::Extent;
use iostrata_run::{RunReader, RunResult, StudyAnswer, StudyDocument, ThenRow};
use iostrata_show::report::{RunView, svg};
use iostrata_stats::{Interval, units};

fn gallery() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/gallery")
}

/// The runs of each entry, the oldest first.
fn entries() -> Vec<(String, Vec<RunReader>)> {
    let mut dirs: Vec<PathBuf> =
        fs::read_dir(gallery().join("runs")).unwrap().map(|one| one.unwrap().path()).collect();
    dirs.sort();
    let mut entries: Vec<(String, Vec<RunReader>)> = Vec::new();
    for dir in dirs {
        let run = RunReader::open(&dir).unwrap();
        let name = study(&run).study.clone();
        match entries.iter_mut().find(|(known, _)| *known == name) {
            Some((_, runs)) => runs.push(run),
            None => entries.push((name, vec![run])),
        }
    }
    for (_, runs) in &mut entries {
        runs.sort_by_key(|run| run.manifest().started_at);
    }
    entries
}

fn study(run: &RunReader) -> &StudyDocument {
    match run.result() {
        Some(RunResult::Study(study)) => study,
        _ => panic!("a run of the gallery is a study that ended"),
    }
}

/// What begins and what ends the part of an entry that is made.
fn marks(name: &str) -> [String; 2] {
    [format!("<!-- {name}: made of its runs by `cargo xtask gallery` -->\n"), "<!-- end -->".into()]
}

fn range(least: f64, most: f64, words: impl Fn(f64) -> String) -> String {
    let (least, most) = (words(least), words(most));
    if least == most { least } else { format!("{least} to {most}") }
}

/// `29 November 2026, quick, 97 points in 9.8 min, 3 to 5 windows of 1.5 s each`.
fn when_and_how(run: &RunReader) -> String {
    let study = study(run);
    let extent = match study.extent {
        Extent::Quick => "quick",
        Extent::Full => "full",
    };
    let replicates = || study.points.iter().map(|point| point.replicates);
    let [least, most] = [replicates().min(), replicates().max()].map(Option::unwrap);
    format!(
        "{}, {extent}, {} points in {}, {} windows of {} each",
        run.manifest().started_at.strftime("%-d %B %Y"),
        study.points.len(),
        units::seconds(study.duration_s),
        range(least.into(), most.into(), units::count),
        windows(run),
    )
}

/// How long the windows of a point are, the shortest and the longest.
fn windows(run: &RunReader) -> String {
    let points = study(run).points.iter();
    let each = points.map(|point| point.measured_s / f64::from(point.replicates.max(1)));
    let ends =
        each.fold([f64::INFINITY, 0.0_f64], |[low, high], one| [low.min(one), high.max(one)]);
    range(ends[0], ends[1], units::seconds)
}

/// The machine, and the arguments of the run.
fn machine(run: &RunReader) -> String {
    let machine = &study(run).host.machine;
    let mut parts = Vec::new();
    parts.extend(machine.cpus.map(|cpus| format!("{cpus} processors")));
    parts.extend(machine.cpu_model.clone().map(|model| format!("({model})")));
    parts.extend(
        machine.memory_bytes.map(|bytes| format!("{} of memory", units::bytes(bytes as f64))),
    );
    parts.extend(machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    parts.join(", ").replace(", (", " (")
}

/// The headline of the run, a sentence an item.
fn claims(run: &RunReader) -> String {
    let said = study(run).headline.iter();
    said.fold(String::new(), |mut text, sentence| {
        writeln!(text, "  - {sentence}").unwrap();
        text
    })
}

fn ends(ci95: Option<Interval>, words: impl Fn(f64) -> String) -> String {
    ci95.map_or_else(String::new, |[low, high]| format!(" ({} to {})", words(low), words(high)))
}

fn figure(answer: &StudyAnswer) -> Option<(String, u64)> {
    let times = |ratio: f64| match ratio {
        near if (0.9..1.1).contains(&near) => format!("{near:.3}"),
        far => units::count(far),
    };
    let (text, pairs) = match (&answer.difference, answer.ratio) {
        (Some(apart), _) => {
            let text =
                format!("{} apart{}", units::count(apart.value), ends(apart.ci95, units::count));
            (text, apart.n)
        }
        (None, Some(ratio)) => {
            let ends = ends(answer.ratio_ci95, times);
            (format!("{} times{ends}", times(ratio)), answer.ratio_n)
        }
        (None, None) => return None,
    };
    let open = if answer.is_known { "" } else { ", undecided" };
    Some((format!("{text}{open}"), pairs))
}

/// What each answer rests on, a column for each run.
fn table(runs: &[RunReader]) -> String {
    let mut text = "| it asks |".to_owned();
    for run in runs {
        let when = run.manifest().started_at.strftime("%-d %B %Y, %H:%M");
        write!(text, " {when}, windows of {}, 95 % | pairs |", windows(run)).unwrap();
    }
    text += &format!("\n|---|{}\n", "---|---|".repeat(runs.len()));
    for answer in &study(&runs[0]).answers {
        let found: Vec<Option<(String, u64)>> = runs
            .iter()
            .map(|run| {
                study(run).answers.iter().find(|one| one.asks == answer.asks).and_then(figure)
            })
            .collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        write!(text, "| {} |", answer.asks).unwrap();
        for one in found {
            let (figure, pairs) = one.map_or_else(<_>::default, |(f, n)| (f, n.to_string()));
            write!(text, " {figure} | {pairs} |").unwrap();
        }
        text.push('\n');
    }
    text
}

/// What was printed then next to today's figures, folded.
fn then(run: &RunReader) -> String {
    let rows = study(run).then.iter().filter(|row| row.now.is_some());
    let rows: Vec<&ThenRow> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let number = |value: f64, unit: &str| match unit {
        "us" => units::microseconds(value),
        // As data sheets and old posts count: in powers of 1000.
        "B/s" => format!("{}B/s", units::count(value)),
        _ => units::count(value),
    };
    let mut text = format!(
        "<details><summary>{} printed figures beside today's</summary>\n\n\
         | what | then | now | times |\n|---|---|---|---|\n",
        rows.len()
    );
    for row in rows {
        let of = |value: f64| number(value, &row.unit);
        let low = row.then.map(of).unwrap_or_default();
        let high = row.then_high.map(|high| format!(" to {}", of(high))).unwrap_or_default();
        let now = row.now.map(of).unwrap_or_default();
        let times = row.times.map(units::count).unwrap_or_default();
        let sure = ends(row.now_ci95, of);
        writeln!(text, "| {} | {low}{high} | {now}{sure} | {times} |", row.text).unwrap();
    }
    text + "\n</details>\n\n"
}

/// What stands between the marks.
fn made(name: &str, runs: &[RunReader]) -> String {
    let last = &runs[runs.len() - 1];
    let study = study(last);
    let source = match (&study.then_source, &study.then_machine) {
        (Some(source), Some(machine)) => format!("- *Then*: {source}, on {machine}.\n"),
        _ => format!("- *Asked today:* {}\n", study.question),
    };
    let command = format!("sudo iostrata {}", last.manifest().arguments.join(" "));
    format!(
        "{source}- *Now*, {}; {}:\n{}\n{}\n{}```\n{command}\n```\n\n![{}]({name}.svg)\n",
        when_and_how(last),
        machine(last),
        claims(last),
        table(runs),
        then(last),
        study.title,
    )
}

#[test]
fn text_and_pictures_are_those_of_the_kept_runs() {
    let (dir, update) = (gallery(), std::env::var_os("UPDATE_TEXTS").is_some_and(|one| one == "1"));
    let path = dir.join("README.md");
    let before = fs::read_to_string(&path).unwrap();
    let mut text = before.clone();
    for (name, runs) in entries() {
        let [begin, end] = marks(&name);
        let from = text.find(&begin).unwrap_or_else(|| panic!("README.md lacks {begin}"));
        let from = from + begin.len();
        let to = from + text[from..].find(&end).unwrap_or_else(|| panic!("{name} has no end"));
        text.replace_range(from..to, &made(&name, &runs));
        let picture = svg(&RunView::of(&runs[runs.len() - 1])).unwrap();
        let file = dir.join(format!("{name}.svg"));
        if update {
            fs::write(&file, &picture).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert!(kept == picture, "{name}.svg is not that of its run; run cargo xtask gallery");
    }
    if update {
        fs::write(&path, &text).unwrap();
    } else {
        assert!(text == before, "README.md is not what its runs say; run cargo xtask gallery");
    }
}
