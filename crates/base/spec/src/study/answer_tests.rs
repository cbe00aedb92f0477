//! What a contrast is made of, as a text says it.

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
