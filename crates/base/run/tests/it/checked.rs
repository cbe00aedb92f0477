//! Figures that cannot be leave a probe's document, with everything that quotes them.

use iostrata_plan::Layer;
use iostrata_run::{
    Advice, Curve, CurvePoint, Finding, FindingKind, Loss, ProbeDocument, Refusal, Risk,
    Verification,
};

use crate::sample;

fn checked(mut document: ProbeDocument) -> ProbeDocument {
    document.check();
    document
}

fn why(document: &ProbeDocument) -> Vec<(&str, Refusal)> {
    document.unknown.iter().map(|one| (one.name.as_str(), one.why)).collect()
}

fn loss(id: &str, pct: f64) -> Finding {
    Finding {
        id: id.to_owned(),
        kind: FindingKind::Loss,
        text: format!("it takes away {pct} %"),
        layer: Layer::Filesystem,
        effect_pct: Some(pct),
        effect_pct_ci95: None,
        effect_pct_n: 3,
        evidence: [].into(),
    }
}

fn advice(setting: &str, why: &[&str]) -> Advice {
    Advice {
        versions: None,
        source: None,
        setting: setting.to_owned(),
        value: "1".to_owned(),
        default: None,
        where_: "my.cnf [mysqld]".to_owned(),
        why: why.iter().map(|&id| id.to_owned()).collect(),
        text: String::new(),
        risk: Risk::None,
        undo: String::new(),
        expected: None,
    }
}

#[test]
fn an_impossible_loss_leaves_no_sentence() {
    let mut document = sample::document();
    document.losses = vec![Loss {
        from: "raw".to_owned(),
        to: "path".to_owned(),
        layer: Layer::Filesystem,
        loss_pct: 15_898.0,
        loss_pct_ci95: None,
        loss_pct_n: 3,
        basis: "paired_rungs".to_owned(),
        text: "it takes away 15898 %".to_owned(),
    }];
    document.findings = vec![loss("broken", 293.0), loss("sound", 30.0)];
    document.advice =
        vec![advice("a", &["broken", "sound"]), advice("b", &["broken"]), advice("c", &[])];
    let document = checked(document);
    let text = serde_json::to_string(&document).unwrap();
    assert!(!text.contains("15898") && !text.contains("293"), "{text}");
    let expected =
        [("loss from raw to path", Refusal::BeyondWhole), ("broken", Refusal::BeyondWhole)];
    assert_eq!(why(&document), expected);
    assert_eq!(document.findings, [loss("sound", 30.0)]);
    assert_eq!(document.advice, [advice("a", &["sound"]), advice("c", &[])]);
    assert_eq!(checked(document.clone()), document);
}

#[test]
fn an_impossible_verification_is_named() {
    let mut document = sample::document();
    let verification = |setting: &str, after: f64| Verification {
        setting: setting.to_owned(),
        text: String::new(),
        before: 100.0,
        before_ci95: Some([90.0, 110.0]),
        before_n: 3,
        after,
        after_ci95: None,
        after_n: 3,
        unit: "writes/s".to_owned(),
        effect_pct: None,
        effect_pct_ci95: None,
        effect_pct_n: 0,
        confirmed: true,
    };
    document.verifications = vec![verification("a", 0.0), verification("b", 120.0)];
    let document = checked(document);
    assert_eq!(document.verifications, [verification("b", 120.0)]);
    assert_eq!(why(&document), [("a after", Refusal::NothingCompleted)]);
}

#[test]
fn a_curve_keeps_what_is_known_and_no_knee_without_its_point() {
    let point = |x: f64, value: f64, value_ci95: [f64; 2]| CurvePoint {
        rung: format!("reads_{x}"),
        x,
        value,
        value_ci95: Some(value_ci95),
        value_n: 3,
        latency_mean_us: None,
        latency_p99_us: None,
    };
    let mut document = sample::document();
    let curve = Curve {
        name: "reads".to_owned(),
        title: "Reads".to_owned(),
        axis: "depth".to_owned(),
        unit: "reads/s".to_owned(),
        text: "The knee is at 4.".to_owned(),
        points: vec![
            point(1.0, 100.0, [90.0, 110.0]),
            point(2.0, 993.0, [-1_511.0, 3_497.0]),
            point(4.0, 200.0, [190.0, 210.0]),
            point(8.0, 210.0, [200.0, 220.0]),
        ],
        knee_x: Some(4.0),
    };
    let mut broken = curve.clone();
    broken.name = "broken".to_owned();
    broken.points[2].value = 0.0;
    document.curves = vec![curve.clone(), broken];
    let document = checked(document);
    let [kept, shortened] = &document.curves[..] else { panic!("{:?}", document.curves) };
    assert_eq!((kept.points.len(), kept.knee_x, &kept.text), (3, Some(4.0), &curve.text));
    assert_eq!((shortened.points.len(), shortened.knee_x), (2, None));
    assert_ne!(shortened.text, curve.text);
    let expected = [
        ("reads at 2", Refusal::WiderThanValue),
        ("broken at 2", Refusal::WiderThanValue),
        ("broken at 4", Refusal::NothingCompleted),
    ];
    assert_eq!(why(&document), expected);
}
