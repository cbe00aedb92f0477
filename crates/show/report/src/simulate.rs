//! A simulated queue by kernel, device and queue size, for every view alike.
//!
//! Invariant: selects and orders, never computes a figure.

use iostrata_run::{KernelThen, QueueDevice, QueueDocument, QueueRun, QueueThenRow};

/// The kernels that were simulated, in order of time.
pub(crate) fn kernels(queue: &QueueDocument) -> Vec<KernelThen> {
    let is_there = |kernel: &KernelThen| queue.runs.iter().any(|run| run.kernel == *kernel);
    KernelThen::ALL.into_iter().filter(is_there).collect()
}

/// The queue sizes that were asked for, rising.
pub(crate) fn sizes(queue: &QueueDocument) -> Vec<u64> {
    let mut sizes: Vec<u64> = queue.runs.iter().map(|run| run.nr_requests).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The runs on a device under a kernel, by rising queue size.
pub(crate) fn runs_on<'a>(
    queue: &'a QueueDocument,
    device: &QueueDevice,
    kernel: KernelThen,
) -> Vec<&'a QueueRun> {
    let same = |run: &&QueueRun| run.device == device.device && run.kernel == kernel;
    let mut runs: Vec<&QueueRun> = queue.runs.iter().filter(same).collect();
    runs.sort_by_key(|run| run.nr_requests);
    runs
}

/// Whether any run has a reader beside the inserts.
pub(crate) fn has_reader(queue: &QueueDocument) -> bool {
    queue.runs.iter().any(|run| run.reader.is_some())
}

/// The printed figures of one moment.
pub(crate) struct Moment<'a> {
    /// When.
    pub(crate) name: &'a str,
    /// The figures, in the order in which they are printed.
    pub(crate) rows: Vec<&'a QueueThenRow>,
}

/// The moments at which the post prints figures.
pub(crate) fn moments(queue: &QueueDocument) -> Vec<Moment<'_>> {
    let mut moments: Vec<Moment<'_>> = Vec::new();
    for row in &queue.then {
        match moments.iter_mut().find(|moment| moment.name == row.moment) {
            Some(moment) => moment.rows.push(row),
            None => moments.push(Moment { name: &row.moment, rows: vec![row] }),
        }
    }
    moments
}

/// The names of the printed figures, each once, in the order in which they are printed.
pub(crate) fn figures<'a>(moments: &[Moment<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for row in moments.iter().flat_map(|moment| &moment.rows) {
        if !names.contains(&row.row.text.as_str()) {
            names.push(&row.row.text);
        }
    }
    names
}

/// A kernel in words.
pub(crate) fn kernel_words(kernel: KernelThen) -> &'static str {
    match kernel {
        KernelThen::Y2009 => "the kernel of 2009",
        KernelThen::Today => "today's kernel",
    }
}

/// `100,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let comma = |place: usize| place > 0 && (digits.len() - place).is_multiple_of(3);
    let letter = |(place, letter)| [comma(place).then_some(','), Some(letter)];
    digits.chars().enumerate().flat_map(letter).flatten().collect()
}

/// A printed figure or the one beside it, without the unit that its name has already.
pub(crate) fn bare(value: f64, unit: &str) -> String {
    match unit {
        "ms" => crate::words::value(value, "ms"),
        _ => crate::words::value(value, ""),
    }
}

/// What a queue size became: `100,000`, or `100,000 (takes 2,048)`.
pub(crate) fn asked_and_taken(run: &QueueRun) -> String {
    let asked = grouped(run.nr_requests);
    match run.nr_requests_taken {
        taken if taken == run.nr_requests => asked,
        taken => format!("{asked} (takes {})", grouped(taken)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([128, 1_024, 100_000].map(grouped), ["128", "1,024", "100,000"]);
        assert_eq!(bare(43_582.33, "ms"), "43.6 s");
        assert_eq!(bare(2_487.33, "/s"), "2.49 K");
    }
}
