//! A made-up run, in code. Its figures are plausible and were never measured.

mod document;
mod events;
mod host;
mod io;
mod rungs;
pub mod study;
mod transactions;

use iostrata_plan::fio::FioWarning;
use iostrata_run::{
    Event, FioDocument, FioJobDocument, FioWaveDocument, Manifest, ProbeDocument, RunKind,
    RunResult, StudyDocument, TransactionDocument,
};
use iostrata_show::report::RunView;

/// Everything that a view borrows.
pub struct Sample {
    pub manifest: Manifest,
    pub result: Option<RunResult>,
    pub events: Vec<Event>,
    pub notes: Vec<String>,
}

impl Sample {
    pub fn view(&self) -> RunView<'_> {
        RunView {
            manifest: &self.manifest,
            result: self.result.as_ref(),
            events: &self.events,
            notes: &self.notes,
        }
    }

    pub fn document_ref(&self) -> &ProbeDocument {
        match &self.result {
            Some(RunResult::Probe(document)) => document,
            _ => panic!("this sample is no probe"),
        }
    }

    pub fn study_ref(&self) -> &StudyDocument {
        match &self.result {
            Some(RunResult::Study(document)) => document,
            _ => panic!("this sample is no study"),
        }
    }

    pub fn study(&mut self) -> &mut StudyDocument {
        match &mut self.result {
            Some(RunResult::Study(document)) => document,
            _ => panic!("this sample is no study"),
        }
    }

    pub fn document(&mut self) -> &mut ProbeDocument {
        match &mut self.result {
            Some(RunResult::Probe(document)) => document,
            _ => panic!("this sample is no probe"),
        }
    }
}

pub fn manifest(kind: RunKind, arguments: &[&str]) -> Manifest {
    let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
    Manifest::new(kind, "0.1.0", &arguments, "2026-01-02T03:04:05Z".parse().unwrap())
}

/// A probe of a volume on which the file system loses something and settings need change.
pub fn probe() -> Sample {
    let events = events::all();
    let mut manifest = manifest(RunKind::Probe, &["probe", "/var/lib/mysql", "--verify"]);
    manifest.host = Some(host::host());
    manifest.plan = Some(events::plan());
    let document = document::probe();
    Sample { manifest, result: Some(RunResult::Probe(Box::new(document))), events, notes: vec![] }
}

/// A probe of a clean device: no loss, no advice.
pub fn clean_probe() -> Sample {
    let mut sample = probe();
    let document = sample.document();
    document.headline = vec![
        "This storage serves 104 K random 16 KiB reads and 25.7 K durable commits per second. \
         Nothing need change."
            .into(),
    ];
    document.losses.clear();
    document.findings.clear();
    document.advice.clear();
    document.verifications.clear();
    sample
}

/// One I/O workload.
pub fn io() -> Sample {
    let manifest = manifest(
        RunKind::Io,
        &["io", "--path", "/data/f", "--rw", "randrw", "--fsync", "1", "--bs", "4k"],
    );
    let result = Some(RunResult::Io(Box::new(io::io())));
    Sample { manifest, result, events: vec![events::io_event()], notes: vec![] }
}

/// Job files of two waves, the second with clones and a name that tries to be markup.
pub fn fio() -> Sample {
    let job = |name: &str, clones| FioJobDocument {
        name: name.to_owned(),
        description: Some("as an engine writes".to_owned()),
        group: 0,
        clones,
        figures: io::io(),
    };
    let wave = |jobs| FioWaveDocument { duration_s: 30.0, jobs };
    let warning = FioWarning {
        file: "jobs.fio".into(),
        line: 7,
        option: "openfiles=1".into(),
        text: "every file stays open".into(),
    };
    let document = FioDocument {
        waves: vec![wave(vec![job("redo", 1)]), wave(vec![job("<b>pages</b>", 4)])],
        warnings: vec![warning],
        bytes_written: 4096,
        run: None,
        verdicts: io::io().verdicts,
    };
    let manifest = manifest(RunKind::Fio, &["fio", "jobs.fio"]);
    let result = Some(RunResult::Fio(Box::new(document)));
    Sample { manifest, result, events: vec![events::io_event()], notes: vec![] }
}

/// A staircase of transactions.
pub fn transactions() -> Sample {
    let manifest = manifest(RunKind::Tpcc, &["tpcc", "run", "--threads", "1,4,16,64"]);
    let result = Some(RunResult::Transactions(Box::new(transactions_document())));
    Sample { manifest, result, events: vec![], notes: vec![] }
}

/// What it printed.
pub fn transactions_document() -> TransactionDocument {
    transactions::transactions()
}

/// A probe that was killed half way.
pub fn partial() -> Sample {
    let mut sample = probe();
    sample.result = None;
    sample.events.truncate(20);
    sample.notes = vec!["the run has no result: it was stopped before its end".into()];
    sample
}

/// A study in the shape of the one of 2012, with every part.
pub fn study() -> Sample {
    of_study(study::document())
}

/// The same with four points and little of each profile, for tests that change every text.
pub fn small_study() -> Sample {
    let mut document = study::document();
    let kept = ["raw_randwrite_4k_w4_direct_f1", "xfs_randwrite_4k_w"];
    document.points.retain(|point| {
        let id = &point.id;
        kept.iter().any(|start| id.starts_with(start))
            && (id.contains("_w4_") || id.contains("_w16_") || id.contains("_w64_"))
            && id.ends_with("_direct_f1")
    });
    for profile in document.points.iter_mut().filter_map(|point| point.profile.as_mut()) {
        profile.stacks.truncate(3);
        profile.symbols.truncate(2);
        let off = profile.off_cpu.as_mut().unwrap();
        off.waits.truncate(2);
        off.stacks.truncate(1);
    }
    document.axes = study::axes(&document);
    document.effects.truncate(2);
    document.interactions.truncate(1);
    of_study(document)
}

/// A run of a study with this document.
pub fn of_study(document: StudyDocument) -> Sample {
    let mut manifest = manifest(RunKind::Study, &["study", "run", "fusion-io", "--full"]);
    manifest.host = Some(host::host());
    let result = Some(RunResult::Study(Box::new(document)));
    Sample { manifest, result, events: vec![], notes: vec![] }
}
