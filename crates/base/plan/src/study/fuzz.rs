//! Random texts: each is taken or refused, never a panic, and the work is bounded.

use proptest::prelude::*;

use super::*;

/// A line of a shipped study that is taken away, doubled, moved or changed in one place.
fn mutated(which: usize, seed: &[(usize, u8, usize)]) -> String {
    let text = shipped().get(which).unwrap().1;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (at, kind, other) in seed {
        let (at, other) = (at % lines.len(), other % lines.len());
        match kind % 6 {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[other].clone()),
            2 => lines.swap(at, other),
            3 => lines[at] = lines[at].chars().take(*kind as usize % 30).collect(),
            4 => lines[at] = lines[at].replace(char::is_numeric, "9"),
            _ => lines[at].extend("=]}\"'\u{e9}[.{,-0x".chars().nth(other % 14)),
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

fn is_handled(text: &str) -> Result<(), TestCaseError> {
    match StudySpec::parse(text, "fuzz.toml") {
        Ok(spec) => {
            let plan = spec.plan(Extent::Full, None, &MeasuringOverrides::default());
            prop_assert!(
                plan.is_ok_and(|plan| plan.cells.iter().all(|c| c.workload.check().is_ok()))
            );
        }
        Err(error) => {
            // Settings of an engine that do not go together are those of a point.
            let is_placed = error.place.is_some() || error.thing.starts_with("study ");
            prop_assert!(is_placed && !error.fix.is_empty(), "{error}");
        }
    }
    Ok(())
}

fn toml_value() -> impl Strategy<Value = String> {
    let names = setting::SETTINGS.iter().map(|setting| setting.name).collect::<Vec<_>>();
    let scalar = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        (0..300_u32).prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:?}").replace("inf", "1e999").replace("NaN", "nan")),
        "[a-z0-9%,:]{0,8}".prop_map(|text| format!("'{text}'")),
        prop::sample::select(names).prop_map(|name| format!("'{name}'")),
        Just("true".to_owned()),
        Just("'ext4'".to_owned()),
        Just("'4k'".to_owned()),
    ];
    scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|v| format!("[{}]", v.join(", "))),
            prop::collection::vec(("[a-z]{1,3}", inner), 0..3).prop_map(|fields| {
                let fields: Vec<String> =
                    fields.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("{{ {} }}", fields.join(", "))
            }),
        ]
    })
}

const TABLES: &[&str] = &[
    "[base]",
    "[factors]",
    "[factors.m]",
    "[[exclude]]",
    "[[part]]\nname = 'p'",
    "[[part]]",
    "[measure]",
    "[full.base]",
    "[quick.factors]",
    "[then]\nsource = 's'\nmachine = 'm'",
    "[[then.figure]]\ntext = 't'\nvalue = 1",
    "[[answer]]\nasks = 'a'\nmore = 'm'\nless = 'l'\nsame = 's'",
];

/// Tables in their order, so that what comes out is mostly TOML, with keys that mostly exist.
fn any_toml(mut tables: Vec<(usize, Vec<(usize, String)>)>) -> String {
    tables.sort_by_key(|(table, _)| *table);
    tables.dedup_by_key(|(table, _)| *table);
    let mut text = String::from("name = 'a'\ntitle = 'b'\n[factors]\nworkers = [1, 4]\n");
    for (table, fields) in tables {
        if table != 1 {
            text.push_str(TABLES[table]);
            text.push('\n');
        }
        for (key, value) in fields {
            let key = match (TABLES[table], setting::SETTINGS.get(key)) {
                ("[factors.m]", _) => ["a", "b", "c"][key % 3],
                ("[measure]", _) => ["budget", "seed", "precision"][key % 3],
                (table, _) if table.starts_with("[[part]]") => ["base", "factors"][key % 2],
                (table, _) if table.starts_with("[[answer") => ["at", "of", "over"][key % 3],
                (table, _) if table.starts_with("[[then") => ["at", "over", "take"][key % 3],
                (_, Some(setting)) => &setting.name,
                _ => "workers",
            };
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn changed_studies_are_taken_or_refused(
        which in 0..5_usize,
        seed in prop::collection::vec((any::<usize>(), any::<u8>(), any::<usize>()), 1..4),
    ) {
        is_handled(&mutated(which, &seed))?;
    }

    #[test]
    fn any_toml_is_taken_or_refused(
        tables in prop::collection::vec(
            (0..TABLES.len(), prop::collection::vec((0..80_usize, toml_value()), 0..4)),
            0..5,
        ),
    ) {
        is_handled(&any_toml(tables))?;
    }

    #[test]
    fn any_text_is_taken_or_refused(text in "\\PC{0,200}") {
        is_handled(&text)?;
    }
}

fn cases() -> u32 {
    if std::env::var_os("IOSTRATA_SOAK").is_some() { 20_000 } else { 200 }
}
