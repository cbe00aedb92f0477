//! What a contrast is made of, as written in a text.

use super::*;

#[test]
fn effects_stand_each_alone_against_what_is_below_the_line() {
    let answer = |effects: &str| {
        let text = format!(
            "name = 'a'\ntitle = 'b'\n[factors]\nworkers = [1, 2, 4, 8]\n\n[[answer]]\n\
             asks = 'what eight workers do'\nof = {{ workers = 8 }}\nover = {{ workers = 1 }}\n\
             more = 'm'\nless = 'l'\nsame = 's'\n{effects}"
        );
        StudySpec::parse(&text, "a.toml").map_err(|error| error.to_string())
    };
    let two = "[[answer.effect]]\nname = 'two'\nto = { workers = 2 }";
    let four = "[[answer.effect]]\nname = 'four'\nto = { workers = 4 }";
    let spec = answer(&format!("{two}\n{four}")).unwrap();
    let plan = spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap();
    let AnswerFrom::Contrast(contrast) = &plan.answers[0].from else { panic!("a contrast") };
    let effects = contrast.of_effects();
    assert_eq!((effects.len(), effects[1].0), (2, "four"));
    assert_eq!((&effects[1].1.of, &effects[1].1.over), (&contrast.effects[1].to, &contrast.over));
    let eight = "[[answer.effect]]\nname = 'a'\nto = { workers = 8 }";
    let below = "[[answer.effect]]\nname = 'a'\nto = { workers = 1 }";
    for (effects, words) in [
        (two, "does not make up a whole"),
        (&format!("{two}\n{eight}"), "comes to `of` itself"),
        (&format!("{two}\n{below}"), "no two points differ"),
        (&format!("take = 'max'\n{two}\n{four}"), "take = \"only\""),
        (&format!("metric = 'stalled_pct'\n{two}\n{four}"), "nothing multiplies to it"),
        ("[[answer.effect]]\nto = { workers = 4 }", "say what is changed"),
        ("[[answer.effect]]\nname = 'a'", "name the levels"),
    ] {
        let said = answer(effects).map(drop).unwrap_err();
        assert!(said.starts_with("a.toml:") && said.contains(words), "{said}");
    }
}

#[test]
fn an_extent_answers_nothing_about_levels_that_it_does_not_have() {
    let text = |base: &str| {
        let answer = |files: u32| {
            format!(
                "[[answer]]\nasks = 'of {files}'\nat = {{ files = {files} }}\n\
                 of = {{ workers = 8 }}\nover = {{ workers = 1 }}\n\
                 more = 'm'\nless = 'l'\nsame = 's'\n"
            )
        };
        let figure = |files: u32| {
            format!(
                "[[then.figure]]\ntext = 'of {files}'\nvalue = 1\n\
                 at = {{ files = {files}, workers = 1 }}\n"
            )
        };
        format!(
            "name = 'a'\ntitle = 'b'\n{base}[factors]\nworkers = [1, 8]\n\
             [[full.part]]\nname = 'files'\n[full.part.factors]\nfiles = [1, 4]\n\
             {}{}[then]\nsource = 's'\nmachine = 'm'\n{}{}",
            answer(1),
            answer(4),
            figure(1),
            figure(4)
        )
    };
    let said = |base: &str, extent| {
        let spec = StudySpec::parse(&text(base), "a.toml").unwrap();
        let plan = spec.plan(extent, None, &MeasuringOverrides::default()).unwrap();
        let asks: Vec<String> = plan.answers.into_iter().map(|answer| answer.asks).collect();
        let then = plan.then.unwrap().figures.into_iter().map(|figure| figure.text);
        assert_eq!(asks, then.collect::<Vec<_>>());
        asks.concat()
    };
    for (base, quick) in [("", "of 1"), ("[quick.base]\nfiles = 4\n", "of 4")] {
        assert_eq!(said(base, Extent::Quick), quick);
        assert_eq!(said(base, Extent::Full), "of 1of 4");
    }
}

#[test]
fn a_level_of_another_extent_holds_where_all_that_it_sets_is_so() {
    let asks = |base: &str, at: &str| {
        let text = format!(
            "name = 'a'\ntitle = 'b'\n[base]\ndirect = true\n{base}[factors]\nworkers = [1, 8]\n\
             [full.factors.way]\nfew = {{ files = 1, bs = '4k' }}\nmany = {{ files = 4, bs = '4k' }}\n\
             [[full.part]]\nname = 'other'\n[full.part.factors]\ndirect = [false]\n\
             [[answer]]\nasks = 'it'\nat = {{ {at} }}\nof = {{ workers = 8 }}\n\
             over = {{ workers = 1 }}\nmore = 'm'\nless = 'l'\nsame = 's'\n"
        );
        let spec = StudySpec::parse(&text, "a.toml").unwrap();
        let plan = spec.plan(Extent::Quick, None, &MeasuringOverrides::default()).unwrap();
        plan.answers.len()
    };
    assert_eq!(asks("", "way = 'few', direct = true"), 1);
    assert_eq!(asks("", "way = 'many', direct = true"), 0);
    assert_eq!(asks("", "way = 'few', direct = false"), 0);
    assert_eq!(asks("[quick.base]\nfiles = 4\n", "way = 'many', direct = true"), 1);
    assert_eq!(asks("[quick.base]\nbs = '8k'\n", "way = 'few', direct = true"), 0);
}
