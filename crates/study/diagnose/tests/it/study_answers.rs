//! A study's headline, and the cautions of its points.

use iostrata_diagnose::{ProbeEnd, summarise_study};
use iostrata_plan::study::{
    Answer, AnswerFrom, Contrast, ContrastEffect, LevelAt, Take, ThenMetric,
};
use iostrata_run::{Event, Replicate, StudyAnswer, StudyDocument};
use iostrata_stats::{Measured, Verdict, Verdicts};

use crate::study::{Storage, clean, events, level, of_2012, plan};
use crate::support::host;

/// One file of a file system against the raw device, and four files against one.
fn asked(kind: &str) -> Vec<Answer> {
    let answer = |asks: &str, of: LevelAt, over: LevelAt, at: Vec<LevelAt>, take: Take| Answer {
        asks: asks.to_owned(),
        from: AnswerFrom::Contrast(Contrast {
            effects: Vec::new(),
            metric: ThenMetric::Iops,
            at,
            of: vec![of],
            over: vec![over],
            take,
            more: "{times} times as much".to_owned(),
            less: "one hot file takes {of}, {share} of {over}".to_owned(),
            same: "no difference".to_owned(),
        }),
    };
    let system = || level("filesystem", kind);
    vec![
        answer(
            "whether the file system takes anything",
            system(),
            level("filesystem", "raw"),
            vec![level("files", 1)],
            Take::Max,
        ),
        answer(
            "whether four files do more than one",
            level("files", 4),
            level("files", 1),
            vec![system(), level("workers", 64)],
            Take::Only,
        ),
    ]
}

fn answered(kind: &str, storage: Storage, replicates: u32) -> StudyDocument {
    let mut plan = plan();
    plan.answers = asked(kind);
    plan.measuring.replicates = replicates;
    summarise_study(host(), &plan, &events(&plan, storage), ProbeEnd::default())
}

#[test]
fn a_question_is_answered_by_its_own_contrasts() {
    let document = answered("ext4", of_2012, 4);
    let [system, files] = document.answers.as_slice() else { panic!("{:?}", document.answers) };
    assert!(system.text.starts_with("one hot file takes 12"), "{}", system.text);
    assert!(system.text.contains("% of 94"), "of the best raw point: {}", system.text);
    assert!(system.text.ends_with(" %)"), "its interval is a share as well: {}", system.text);
    assert_eq!(system.over, ["raw_w128_f1"]);
    assert!(files.text.starts_with("4.0"), "{}", files.text);
    assert!(files.text.contains(" times as much (95 % 3."), "{}", files.text);
    assert_eq!(document.headline[0], format!("O{}.", &system.text[1..]));
    assert_eq!(document.headline.len(), 3, "the answers and how sure: {:?}", document.headline);

    let same = answered("ext4", clean, 4);
    for answer in &same.answers {
        assert!(
            answer.is_known && answer.text.starts_with("no difference (equal within 10 %, 95 % "),
            "{answer:?}"
        );
    }
}

#[test]
fn the_first_answer_leads_and_what_is_not_known_comes_last() {
    let mut plan = plan();
    let [system, files] = <[Answer; 2]>::try_from(asked("ext4")).unwrap();
    let unknown = |asks: &str| {
        let mut answer = Answer { asks: asks.to_owned(), ..files.clone() };
        let AnswerFrom::Contrast(two) = &mut answer.from else { panic!("a contrast") };
        two.of = vec![level("files", 2)];
        answer
    };
    plan.answers = vec![unknown("whether first"), unknown("whether later"), system, files.clone()];
    let mut all = events(&plan, of_2012);
    all.retain(|event| match event {
        Event::Replicate(one) => one.point.id != "ext4_w64_f2" || one.replicate < 2,
        _ => true,
    });
    let document = summarise_study(host(), &plan, &all, ProbeEnd::default());
    let begins =
        ["It cannot be said whether first", "One hot", "4.0", "It cannot be said whether later"];
    for (sentence, begin) in document.headline.iter().zip(begins) {
        assert!(sentence.starts_with(begin), "{begin}: {:?}", document.headline);
    }
    assert_eq!(document.headline.len(), begins.len() + 1);
    assert_eq!(document.answers[1].asks, "whether later", "the answers stay as they were asked");
}

#[test]
fn an_answer_has_the_figures_of_every_level_beside_the_two_it_asks_about() {
    let document = answered("ext4", of_2012, 4);
    let [system, files] = document.answers.as_slice() else { panic!("{:?}", document.answers) };
    assert_eq!((system.metric.as_str(), system.unit.as_str()), ("iops", "IOPS"));
    assert_eq!(
        (&system.factors[..], &files.factors[..]),
        (&["filesystem".into()][..], &["files".into()][..])
    );
    let points = |answer: &StudyAnswer| -> Vec<String> {
        answer.figures.iter().map(|figure| figure.point.clone()).collect()
    };
    assert_eq!(points(files), [1, 2, 4, 8].map(|files| format!("ext4_w64_f{files}")));
    let of_systems = points(system);
    assert_eq!(of_systems.len(), 15, "all workers of three systems: {of_systems:?}");
    assert!(
        of_systems.contains(&"xfs_w4_f1".to_owned())
            && !of_systems.contains(&"xfs_w4_f2".to_owned())
    );
    for figure in &files.figures {
        let point = document.points.iter().find(|point| point.id == figure.point).unwrap();
        assert_eq!((figure.value, figure.value_ci95), (point.value, point.value_ci95));
    }
}

/// Eight files over one, of which two and four are the changes made alone.
fn split(storage: Storage, keeps: impl Fn(&Replicate) -> bool) -> String {
    split_answer(storage, keeps).text
}

fn split_answer(storage: Storage, keeps: impl Fn(&Replicate) -> bool) -> StudyAnswer {
    let mut plan = plan();
    let mut answers = asked("ext4");
    let AnswerFrom::Contrast(files) = &mut answers[1].from else { panic!("a contrast") };
    files.of = vec![level("files", 8)];
    let effect = |name: &str, files: u32| ContrastEffect {
        name: name.to_owned(),
        to: vec![level("files", files)],
    };
    files.effects = vec![effect("two make", 2), effect("four", 4)];
    plan.answers = answers;
    let mut all = events(&plan, storage);
    all.retain(|event| !matches!(event, Event::Replicate(one) if !keeps(one)));
    summarise_study(host(), &plan, &all, ProbeEnd::default()).answers[1].clone()
}

#[test]
fn the_parts_of_a_split_are_figures_too() {
    let storage: Storage = |_, _, files| 1e4 * [1.0, 2.0, 3.0, 12.0][files.ilog2() as usize];
    let answer = split_answer(storage, |_| true);
    let split = answer.split.unwrap();
    let names: Vec<&str> = split.effects.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["two make", "four"]);
    let product: f64 = split.effects.iter().map(|one| one.ratio).product();
    let whole = answer.ratio.unwrap();
    assert!((product * split.rest / whole - 1.0).abs() < 1e-9, "{product} {} {whole}", split.rest);
    let explained: f64 = split.effects.iter().map(|one| one.share_pct).sum();
    assert!((explained - 100.0 * product.ln() / whole.ln()).abs() < 1e-9, "{explained}");
    assert_eq!(split_answer(clean, |_| true).split, None, "nothing differs");
}

#[test]
fn changes_made_alone_explain_the_whole_only_where_they_multiply_to_it() {
    let all = |_: &Replicate| true;
    let explained = split(|_, _, files| 1e4 * [1.0, 2.0, 3.0, 6.0][files.ilog2() as usize], all);
    for part in
        ["6.0", ". Each alone: two make 2.", "(39 % of it; 95 % ", ", four ", " (62 % of it"]
    {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    assert!(
        explained.contains(" times: together they explain it, within 25 % (the whole is "),
        "{explained}"
    );
    let overlapping = split(|_, _, files| 1e4 * [1.0, 2.0, 3.0, 3.5][files.ilog2() as usize], all);
    assert!(overlapping.contains(" times: they overlap (the whole is 0.5"), "{overlapping}");
    let joined = split(|_, _, files| 1e4 * [1.0, 2.0, 3.0, 12.0][files.ilog2() as usize], all);
    assert!(joined.contains("they do more together than each alone (the"), "{joined}");
    let less = split(|_, _, files| 1e4 * [1.0, 0.5, 0.5, 0.4][files.ilog2() as usize], all);
    assert!(less.contains("they overlap (the whole is 1."), "{less}");
}

#[test]
fn a_whole_is_not_split_where_a_part_is_missing_or_nothing_differs() {
    let without = split(of_2012, |one| one.point.id != "ext4_w64_f2");
    assert!(without.contains("not every change was measured alone"), "{without}");
    let same = split(clean, |_| true);
    assert!(same.starts_with("no difference") && !same.contains("alone"), "{same}");
    // Beyond its interval, and yet too little to be reported as a difference.
    let little = split(|_, _, files| if files == 8 { 1.04e4 } else { 1e4 }, |_| true);
    assert!(little.starts_with("no difference") && !little.contains("alone"), "{little}");
}

/// The answer about four files over one whose replicates have these ratios, with so many equal
/// questions.
fn of_replicates(ratios: [f64; 4], times: usize) -> String {
    let mut plan = plan();
    let asked = asked("ext4");
    plan.answers = vec![asked[1].clone(); times];
    let mut all = events(&plan, |_, _, _| 1e4);
    for event in &mut all {
        if let Event::Replicate(one) = event
            && one.point.id == "ext4_w64_f4"
            && let Some(total) = &mut one.streams[0].total
        {
            let value = total.value * ratios[one.replicate as usize];
            *total = Measured::new(value, [value * 0.99, value * 1.01], 40, Verdicts::none());
        }
    }
    summarise_study(host(), &plan, &all, ProbeEnd::default()).answers[0].text.clone()
}

#[test]
fn what_one_answer_shows_one_of_twelve_does_not() {
    // Student's t is 4.3 with three degrees of freedom, p 0.02.
    let alone = of_replicates([1.2, 1.35, 1.1, 1.15], 1);
    assert!(alone.contains(" times as much (95 % "), "{alone}");
    let among = of_replicates([1.2, 1.35, 1.1, 1.15], 12);
    assert!(among.contains("not significant after correction for the number"), "{among}");
    let clear = of_replicates([1.2, 1.21, 1.2, 1.19], 12);
    assert!(clear.contains(" times as much (95 % "), "{clear}");
}

#[test]
fn an_answer_that_cannot_be_given_says_why() {
    let few = answered("ext4", of_2012, 2);
    let text = "it cannot be said whether four files do more than one: only 2 replicates";
    assert!(few.answers[1].text.starts_with(text), "{:?}", few.answers);
    assert!(few.answers.iter().all(|answer| !answer.is_known));
    let missing = answered("btrfs", of_2012, 4);
    assert!(missing.answers[0].text.contains("no points were measured"), "{:?}", missing.answers);

    let text = of_replicates([0.3, 1.0, 2.0, 1.0], 1);
    assert!(text.contains("too noisy (95 % "), "{text}");

    let mut plan = plan();
    let quoted = Answer {
        asks: "how many files are enough".to_owned(),
        from: AnswerFrom::Findings(vec!["enough".to_owned()]),
    };
    plan.answers = vec![quoted.clone()];
    let document = summarise_study(host(), &plan, &events(&plan, of_2012), ProbeEnd::default());
    assert!(document.answers[0].text.contains("no gain seen beyond"), "{:?}", document.answers);
    let none = summarise_study(host(), &plan, &[], ProbeEnd::default());
    assert!(none.answers[0].text.starts_with("it cannot be said how many"), "{:?}", none.answers);
}

/// The study with verdicts put on some replicates of every point.
fn cautioned(marked: fn(&Replicate) -> Option<Verdict>) -> StudyDocument {
    let plan = plan();
    let mut all = events(&plan, clean);
    for event in &mut all {
        if let Event::Replicate(one) = event
            && let Some(verdict) = marked(one)
        {
            one.verdicts.add(verdict);
        }
    }
    summarise_study(host(), &plan, &all, ProbeEnd::default())
}

/// Both answers of a storage of which these points were partly answered by the page cache.
fn cached(of: fn(&str) -> bool) -> StudyDocument {
    let mut plan = plan();
    plan.answers = asked("ext4");
    let mut all = events(&plan, of_2012);
    for event in &mut all {
        if let Event::Replicate(one) = event
            && of(&one.point.id)
        {
            one.verdicts.add(Verdict::Cached);
        }
    }
    summarise_study(host(), &plan, &all, ProbeEnd::default())
}

#[test]
fn a_caution_of_every_answer_is_said_once() {
    let why = Verdict::Cached.explain();
    let said = |document: &StudyDocument| document.headline.join(" ").matches(why).count();
    let all = cached(|_| true);
    assert!(
        all.answers.iter().all(|one| one.is_known && !one.text.contains(why)),
        "{:?}",
        all.answers
    );
    assert_eq!(said(&all), 1, "{:?}", all.headline);
    assert_eq!(all.headline[2], format!("Of all these answers: {why}."));
    let one = cached(|id| id == "ext4_w64_f4");
    assert!(one.answers[1].text.ends_with(&format!("; but {why}")), "{:?}", one.answers);
    assert_eq!((said(&one), one.headline.len()), (1, 3), "{:?}", one.headline);
}

#[test]
fn cautions_stand_only_where_they_change_what_may_be_concluded() {
    let marked = |document: &StudyDocument| {
        document.points.iter().filter(|point| !point.verdicts.is_sound()).count()
    };
    let once = cautioned(|one| (one.replicate == 1).then_some(Verdict::ForeignIo));
    assert_eq!(marked(&once), 0, "one of four replicates is covered by the interval");
    let twice = cautioned(|one| (one.replicate < 2).then_some(Verdict::ForeignIo));
    assert_eq!(marked(&twice), 45);
    assert!(twice.verdicts.has(Verdict::ForeignIo), "most points: of the whole run");
    let unsteady = cautioned(|_| Some(Verdict::NotSteady));
    assert_eq!(marked(&unsteady), 0, "the interval between replicates says it better");
    let cached = cautioned(|one| (one.replicate == 1).then_some(Verdict::Cached));
    assert_eq!(marked(&cached), 45, "what was measured was something else");

    let mut limited = plan();
    for cell in &mut limited.cells {
        cell.conditions.io_limits.read_iops = Some(1000);
    }
    let mut all = events(&limited, clean);
    for event in &mut all {
        if let Event::Replicate(one) = event {
            one.verdicts.add(Verdict::Throttled);
        }
    }
    let document = summarise_study(host(), &limited, &all, ProbeEnd::default());
    assert_eq!(marked(&document), 0, "the study asks for the limit");
}
