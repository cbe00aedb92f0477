//! What a study's headline says and which cautions stand beside its points.

use iostrata_diagnose::{ProbeEnd, summarise_study};
use iostrata_run::{Event, Replicate, StudyDocument};
use iostrata_spec::study::{
    Answer, AnswerFrom, Contrast, ContrastStep, LevelAt, StudyPlan, Take, ThenMetric,
};
use iostrata_stats::{Measured, Verdict, Verdicts};

use crate::study::{Storage, clean, events, level, of_2012, plan};
use crate::support::host;

/// One file of a file system against the raw device, and four files against one.
fn asked(kind: &str) -> Vec<Answer> {
    let answer = |asks: &str, of: LevelAt, over: LevelAt, at: Vec<LevelAt>, take: Take| Answer {
        asks: asks.to_owned(),
        from: AnswerFrom::Contrast(Contrast {
            steps: Vec::new(),
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
    assert_eq!(system.over, ["raw_w128_f1"]);
    assert!(files.text.starts_with("4.0"), "{}", files.text);
    assert!(files.text.contains(" times as much (95 % 3."), "{}", files.text);
    assert_eq!(document.headline[0], format!("O{}.", &system.text[1..]));
    assert_eq!(document.headline.len(), 3, "the answers and how sure: {:?}", document.headline);

    let same = answered("ext4", clean, 4);
    for answer in &same.answers {
        assert!(answer.is_known && answer.text.starts_with("no difference (95 % "), "{answer:?}");
    }
}

#[test]
fn a_ratio_is_split_into_the_steps_that_were_measured() {
    let mut plan = plan();
    let mut answers = asked("ext4");
    let AnswerFrom::Contrast(files) = &mut answers[1].from else { panic!("a contrast") };
    let step = |name: &str, files: u32| ContrastStep {
        name: name.to_owned(),
        to: vec![level("files", files)],
    };
    files.steps = vec![step("a second file makes", 2), step("two more", 4)];
    plan.answers = answers;
    let text = |plan: &StudyPlan, events: &[Event]| {
        let document = summarise_study(host(), plan, events, ProbeEnd::default());
        document.answers[1].text.clone()
    };
    let all = events(&plan, of_2012);
    let said = text(&plan, &all);
    let parts = ["4.0", ". Of this a second file makes ", " %; 95 % ", ", two more "];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    let shares: f64 = said
        .split("times (")
        .skip(1)
        .map(|rest| rest.split(" %").next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert!((99.0..=101.0).contains(&shares), "{shares}: {said}");
    let gone = |event: &Event| match event {
        Event::Replicate(one) => one.point.id != "ext4_w64_f2",
        _ => true,
    };
    let without: Vec<Event> = all.into_iter().filter(gone).collect();
    assert!(text(&plan, &without).contains("cannot be split"), "a step is missing");
    let same = text(&plan, &events(&plan, clean));
    assert!(same.starts_with("no difference") && !same.contains("Of this"), "nothing to share out");
}

#[test]
fn an_answer_that_cannot_be_given_says_why() {
    let few = answered("ext4", of_2012, 2);
    let text = "it cannot be said whether four files do more than one: 2 of the 3 pairs";
    assert!(few.answers[1].text.starts_with(text), "{:?}", few.answers);
    assert!(few.answers.iter().all(|answer| !answer.is_known));
    let missing = answered("btrfs", of_2012, 4);
    assert!(missing.answers[0].text.contains("no points were measured"), "{:?}", missing.answers);

    let mut plan = plan();
    plan.answers = asked("ext4");
    let mut wild = events(&plan, clean);
    for event in &mut wild {
        if let Event::Replicate(one) = event
            && one.point.id == "ext4_w64_f4"
            && let Some(total) = &mut one.streams[0].total
        {
            let value = total.value * [0.3, 1.0, 2.0, 1.0][one.replicate as usize];
            *total = Measured::new(value, [value * 0.99, value * 1.01], 40, Verdicts::none());
        }
    }
    let document = summarise_study(host(), &plan, &wild, ProbeEnd::default());
    let text = &document.answers[1].text;
    assert!(text.contains("its replicates differ too much"), "{text}");

    let quoted = Answer {
        asks: "how many files are enough".to_owned(),
        from: AnswerFrom::Findings(vec!["enough".to_owned()]),
    };
    plan.answers = vec![quoted.clone()];
    let document = summarise_study(host(), &plan, &events(&plan, of_2012), ProbeEnd::default());
    assert!(document.answers[0].text.contains("are enough"), "{:?}", document.answers);
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
