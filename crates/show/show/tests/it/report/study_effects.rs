//! What each factor of a study does, in words.

use iostrata_run::StudyDocument;
use iostrata_show::report::{html, markdown, terminal};
use iostrata_stats::Conclusion;

use crate::report::study::without;

#[test]
fn no_difference_is_told_from_one_that_depends_and_from_what_is_not_known() {
    let card = |ci95: [f64; 2], depends: bool| {
        let sample = without(|study| {
            for effect in &mut study.effects {
                effect.conclusion = Conclusion::NoMeasurableDifference;
                effect.ratio_ci95 = Some(ci95);
            }
            study.interactions.retain(|_| depends);
        });
        let page = html(&sample.view());
        ["It depends", "No factor makes one", "differ too much to tell"]
            .map(|text| page.contains(text))
    };
    assert_eq!(card([0.97, 1.03], true), [true, false, false]);
    assert_eq!(card([0.97, 1.03], false), [false, true, false]);
    assert_eq!(card([0.5, 1.9], false), [false, false, true]);
}

#[test]
fn an_effect_that_another_factor_changes_depends_on_it() {
    let with = |is_altered: bool| {
        without(|study| {
            let effect = &mut study.effects[0];
            effect.conclusion = Conclusion::NoMeasurableDifference;
            let (factor, from, to) =
                (effect.factor.clone(), effect.from.clone(), effect.to.clone());
            study.interactions.truncate(usize::from(is_altered));
            if let Some(one) = study.interactions.first_mut() {
                (one.by, one.by_from, one.by_to) = (factor, from, to);
                one.factor = "method".to_owned();
            }
        })
    };
    assert!(markdown(&with(true).view()).contains("| depends on method |"));
    assert!(!markdown(&with(false).view()).contains("depends on method"));
}

#[test]
fn an_effect_that_every_point_shows_is_told_by_their_range() {
    let with = |is_everywhere: bool| {
        without(|study: &mut StudyDocument| {
            study.interactions.clear();
            let effect = &mut study.effects[0];
            (effect.ratio, effect.ratio_ci95) = (0.2, Some([0.002, 19.0]));
            (effect.ratio_min, effect.ratio_max) = (0.14, 0.28);
            effect.conclusion = Conclusion::NoMeasurableDifference;
            effect.is_everywhere = is_everywhere;
        })
    };
    for text in [with(true), with(false)].map(|one| terminal(&one.view(), 120, false)) {
        let row = text.lines().find(|line| line.contains("raw device to ext4")).unwrap();
        let told = row.contains("0.28] at single points") && !row.contains("19");
        assert!(told != (row.contains("undecided") && row.contains("19")), "{row}");
    }
    assert!(markdown(&with(true).view()).contains("at single points"));
    let page = html(&with(true).view());
    assert!(page.contains(">0.14x to 0.28x<"), "the card has no single ratio either");
}
