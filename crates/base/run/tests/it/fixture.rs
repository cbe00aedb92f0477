//! Runs that older versions wrote stay readable. A fixture is never written again: when the format
//! changes, a new directory is added next to it.

use std::path::Path;

use iostrata_run::{Event, RunReader, RunResult};

use crate::sample;

#[test]
fn version_1_is_read() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
    let mut read = RunReader::open(&dir).unwrap();
    let mut manifest = sample::manifest();
    manifest.format_version.minor = 0;
    assert_eq!(read.manifest(), &manifest);
    assert_eq!(
        read.events(),
        [
            sample::unavailable(),
            Event::Replicate(Box::new(sample::replicate(0))),
            Event::Finished { at_s: 4.5, bytes_written: 4096 },
        ]
    );
    assert_eq!(read.result(), Some(&RunResult::Probe(Box::new(sample::document()))));
    read.read_histograms().unwrap();
    let whole = Event::Replicate(Box::new(sample::replicate_with_histogram(0)));
    assert_eq!(read.events()[1], whole);
}
