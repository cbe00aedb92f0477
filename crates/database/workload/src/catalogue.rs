//! Every workload, in the order of the help.

use crate::workload::{Workload, WorkloadError, WorkloadKind, WorkloadSettings};
use crate::{compat, insert, oltp, stress, tpcc};

/// All of them: each is a file of its own and its line here.
pub static WORKLOADS: [&WorkloadKind; 5] =
    [&tpcc::WORKLOAD, &compat::WORKLOAD, &oltp::WORKLOAD, &stress::WORKLOAD, &insert::WORKLOAD];

/// The workload of a name, with these settings.
///
/// # Errors
/// No such workload exists; a setting that it cannot have.
pub fn workload(
    name: &str,
    settings: &WorkloadSettings,
) -> Result<Box<dyn Workload>, WorkloadError> {
    match WORKLOADS.iter().find(|kind| (kind.has)(name)) {
        Some(kind) => (kind.of)(name, settings),
        None => WorkloadError::setting(format!(
            "there is no workload {name}; use one of {}",
            WORKLOADS.map(|kind| kind.name).join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_what_its_words_say() {
        let of = |name: &str, settings: &[(&str, &str)]| {
            workload(name, &WorkloadSettings::to_load(settings.iter().copied())).unwrap()
        };
        for (name, settings, tables, size) in [
            ("tpcc", ("warehouses", "3"), "tpcc-3", (3, "warehouses")),
            ("tpcc_compat", ("warehouses", "3"), "kit-3", (3, "warehouses")),
            ("stress", ("objects", "500"), "stress-500", (500, "objects")),
            ("insert", ("rows", "500"), "insert-500", (500, "rows")),
            ("updates", ("rows", "500"), "updates-500", (1, "tables")),
            ("oltp_write_only", ("rows", "500"), "oltp-500", (1, "tables")),
            ("oltp_read_write", ("table-size", "500"), "oltp-500", (1, "tables")),
        ] {
            let found = of(name, &[settings]);
            assert_eq!((found.tables_name().as_str(), found.size()), (tables, size), "{name}");
        }
        assert!(of("oltp_read_only", &[]).only_reads() && !of("updates", &[]).only_reads());
        let refused = workload("tpch", &WorkloadSettings::default()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "there is no workload tpch; use one of tpcc, tpcc_compat, oltp, stress, insert"
        );
    }

    #[test]
    fn settings_that_cannot_be_are_refused_by_name() {
        for (name, setting, says) in [
            ("tpcc", ("mix", "1,2"), "--mix 1,2: write five shares"),
            ("tpcc", ("warehouses", "many"), "--warehouses many: write a number"),
            ("tpcc", ("warehouses", "0"), "--warehouses 0: load at least one"),
            ("tpcc", ("wait", "perhaps"), "--wait perhaps: write 1 or 0"),
            ("oltp_read_write", ("tables", "0"), "--tables 0: at least 1 is needed"),
            ("oltp_read_write", ("rand-pareto-h", "1"), "--rand-pareto-h 1: use a number between"),
            ("oltp_read_write", ("rand-type", "odd"), "--rand-type odd: use uniform"),
            ("stress", ("objects", "0"), "--objects 0: use 1 to"),
            ("stress", ("mix", "0,0,0"), "--mix 0,0,0: write three shares"),
            ("insert", ("rows-per-commit", "0"), "--rows-per-commit 0: use 1 to 100000"),
            ("insert", ("rows", "3000000000"), "--rows 3000000000: use 0 to 2147483647"),
        ] {
            let refused = workload(name, &WorkloadSettings::to_load([setting])).unwrap_err();
            assert!(refused.to_string().starts_with(says), "{name}: {refused}");
        }
    }

    #[test]
    fn options_are_named_once_and_by_those_who_need_them() {
        for kind in WORKLOADS {
            for option in kind.options {
                let same = |one: &&crate::workload::WorkloadOption| {
                    one.name == option.name
                        && one.verbs.iter().any(|verb| option.verbs.contains(verb))
                };
                let name = option.name;
                assert_eq!(kind.options.iter().filter(same).count(), 1, "{}: {name}", kind.name);
                let is_known =
                    |verb: &crate::workload::Verb| kind.verbs.iter().any(|help| help.verb == *verb);
                assert!(option.verbs.iter().all(is_known), "{}: {name}", kind.name);
            }
        }
    }
}
