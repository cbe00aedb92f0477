//! soon
use crate::sample;
#[test]
fn write_preview() {
    let dir = std::path::Path::new("/tmp/lab/report");
    std::fs::create_dir_all(dir).unwrap();
    for (name, s) in [("probe", sample::probe()), ("clean", sample::clean_probe()), ("io", sample::io()), ("partial", sample::partial())] {
        std::fs::write(dir.join(format!("{name}.html")), iostrata_report::html(&s.view())).unwrap();
    }
}
