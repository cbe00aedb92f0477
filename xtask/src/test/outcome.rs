//! Counts what a test binary printed.
//!
//! Purpose: from libtest's text (run with `--show-output`) to passed, failed and skipped tests,
//! with the reasons.
//! Invariant: a test that printed `skipped: ...` is not also counted as passed; a binary that ended
//! badly without naming a failed test counts as one failure; a test that passes only when it is run
//! a second time is named at the end.

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

/// So many failed tests of a binary are run again at most: more are no accident.
const RUN_AGAIN_MAX: usize = 3;

/// Lines that are shown of what a binary printed that died.
const LAST_LINES: usize = 30;

/// How a test reports that it did not run.
const SKIPPED: &str = "skipped: ";

/// What one binary came to.
#[derive(Debug, Default)]
pub struct TestOutcome {
    name: String,
    seconds: f64,
    /// Seconds of processor time, with what it started.
    pub processor_s: f64,
    passed: u64,
    failures: Vec<String>,
    /// Whether each of the failures is the name of a test.
    is_named: bool,
    /// Tests that failed first and passed then.
    unsteady: Vec<String>,
    skips: Vec<Skip>,
    /// What to show when something failed.
    details: String,
}

/// A test that did not run.
#[derive(Debug, PartialEq, Eq)]
struct Skip {
    /// Unknown when the line did not go through libtest's capture.
    test: Option<String>,
    reason: String,
}

/// The sum over all binaries.
#[derive(Debug, Default)]
pub struct TestTally {
    /// Tests that ran and held.
    pub passed: u64,
    /// Tests that did not hold.
    pub failed: u64,
    /// Names of the failed.
    pub failures: Vec<String>,
    /// Names of tests that failed first and passed then.
    pub unsteady: Vec<String>,
    /// What did not run.
    pub skips: Vec<Omission>,
}

/// A test, or several, that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    /// Its name, with the binary's.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// So many tests are named that did not run for the same reason.
const NAMED_MAX: usize = 3;

/// A line for each reason, with its tests: in the order in which the reasons came.
pub fn by_reason(omissions: &[Omission]) -> Vec<String> {
    let mut reasons: Vec<&str> = omissions.iter().map(|one| &*one.reason).collect();
    let mut known = std::collections::BTreeSet::new();
    reasons.retain(|reason| known.insert(*reason));
    let line = |reason: &str| {
        let of_reason = omissions.iter().filter(|one| one.reason == reason);
        let names: Vec<&str> = of_reason.map(|one| &*one.name).collect();
        match names.len() {
            0..=NAMED_MAX => format!("{}: {reason}", names.join(", ")),
            count => format!("{count} tests, {} among them: {reason}", names[0]),
        }
    };
    reasons.into_iter().map(line).collect()
}

impl TestOutcome {
    /// The failed tests, where a few failed and each has a name: those may be run again.
    pub fn to_run_again(&self) -> Option<&[String]> {
        let is_few = (1..=RUN_AGAIN_MAX).contains(&self.failures.len());
        (self.is_named && is_few).then_some(&*self.failures)
    }

    /// What it came to when the failed tests were run again, alone.
    pub fn run_again(mut self, second: Self) -> Self {
        let failed_first = std::mem::replace(&mut self.failures, second.failures);
        let is_steady = |test: &String| !self.failures.contains(test);
        if second.is_named || self.failures.is_empty() {
            self.unsteady = failed_first.into_iter().filter(is_steady).collect();
        }
        self.passed += second.passed;
        self.skips.extend(second.skips);
        self.is_named = second.is_named;
        self.seconds += second.seconds;
        self.processor_s += second.processor_s;
        self.details += &second.details;
        self
    }

    /// A process that could not be run, which counts as one failure.
    pub fn not_run(name: &str, test: Option<&str>, error: &anyhow::Error) -> Self {
        let test = test.map(|test| format!("{test}: ")).unwrap_or_default();
        let failures = vec![format!("{test}could not be run: {error:#}")];
        Self { name: name.to_owned(), failures, ..Self::default() }
    }

    /// Adds what another process of the same binary came to.
    pub fn join(&mut self, other: Self) {
        self.is_named = (self.failures.is_empty() || self.is_named)
            && (other.failures.is_empty() || other.is_named)
            && !(self.failures.is_empty() && other.failures.is_empty());
        self.name = other.name;
        self.seconds += other.seconds;
        self.processor_s += other.processor_s;
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.unsteady.extend(other.unsteady);
        self.skips.extend(other.skips);
        self.details += &other.details;
    }

    /// What is printed of the failed, taken out.
    pub fn take_details(&mut self) -> String {
        std::mem::take(&mut self.details)
    }

    /// What failed.
    #[cfg(test)]
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// How long it took.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Reads the output; `only` is the one test that ran, where it was one. `status` is `None` when
    /// the time was over.
    pub fn of(
        name: &str,
        only: Option<&str>,
        time: Duration,
        stdout: &str,
        stderr: &str,
        status: Option<ExitStatus>,
    ) -> Self {
        let mut failures = failed_tests(stdout);
        let is_named = !failures.is_empty() && status.is_some();
        let test = only.map(|test| format!("{test} ")).unwrap_or_default();
        match status {
            None => failures.push(format!("{test}exceeded its time and was killed")),
            Some(status) if !status.success() && !is_named => {
                failures.push(format!("{test}ended with {status}"));
            }
            Some(_) => {}
        }
        let skips = match only {
            Some(test) => skip_of(test, stderr, failures.is_empty()),
            None => skips(stdout, stderr, &failures),
        };
        let said_passed: u64 = results(stdout, "passed");
        let details = match (failures.is_empty(), is_named) {
            (true, _) => String::new(),
            (false, true) => from_failures(stdout).to_owned() + stderr,
            // A log may be cut in its middle, so why it died comes first.
            (false, false) => stderr.to_owned() + last_lines(stdout),
        };
        let ignored = results(stdout, "ignored");
        Self {
            name: name.to_owned(),
            seconds: time.as_secs_f64(),
            processor_s: 0.0,
            passed: said_passed.saturating_sub(skips.len() as u64),
            failures,
            is_named,
            unsteady: Vec::new(),
            skips: skips.into_iter().chain(ignored_tests(ignored)).collect(),
            details,
        }
    }
}

impl fmt::Display for TestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<44} {:>5} passed", self.name, self.passed)?;
        write!(f, " {:>3} failed {:>3} skipped", self.failures.len(), self.skips.len())?;
        write!(f, " {:>7.1} s", self.seconds)?;
        if !self.unsteady.is_empty() {
            write!(f, ", {} passed only when run again", self.unsteady.len())?;
        }
        if !self.details.is_empty() {
            write!(f, "\n{}", self.details)?;
        }
        Ok(())
    }
}

impl TestTally {
    /// Adds one binary.
    pub fn add(&mut self, one: TestOutcome) {
        self.passed += one.passed;
        self.failed += one.failures.len() as u64;
        let named = |test: &String| format!("{}: {test}", one.name);
        self.failures.extend(one.failures.iter().map(named));
        self.unsteady.extend(one.unsteady.iter().map(named));
        self.skips.extend(one.skips.iter().map(|skip| Omission {
            name: match &skip.test {
                Some(test) => named(test),
                None => one.name.clone(),
            },
            reason: skip.reason.clone(),
        }));
    }
}

impl fmt::Display for TestTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.skips.len();
        write!(f, "{} passed, {} failed, {skipped} skipped", self.passed, self.failed)
    }
}

/// The end of what was printed.
fn last_lines(text: &str) -> &str {
    let from = text.rmatch_indices('\n').nth(LAST_LINES).map_or(0, |(at, _)| at + 1);
    &text[from..]
}

/// Sum of a count over the lines `test result: ok. 3 passed; 0 failed; 0 ignored; ...`.
fn results(stdout: &str, what: &str) -> u64 {
    let of_line = |line: &str| {
        let counts = line.split(['.', ';']).map(str::trim);
        counts.filter_map(|count| count.strip_suffix(what)?.trim().parse::<u64>().ok()).sum::<u64>()
    };
    stdout.lines().filter(|line| line.starts_with("test result: ")).map(of_line).sum()
}

/// Names in the list that closes the output of a binary with failures.
fn failed_tests(stdout: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_list = false;
    for line in stdout.lines() {
        match line.strip_prefix("    ") {
            _ if line == "failures:" => in_list = true,
            Some(name) if in_list => names.push(name.to_owned()),
            _ if line.starts_with("---- ") || line.starts_with("test result: ") => in_list = false,
            _ => {}
        }
    }
    names
}

/// Everything from the output of the failed tests on; the output of the others is left out.
fn from_failures(stdout: &str) -> &str {
    stdout.find("\nfailures:\n").map_or(stdout, |at| &stdout[at..])
}

fn skips(stdout: &str, stderr: &str, failures: &[String]) -> Vec<Skip> {
    let mut skips: Vec<Skip> = Vec::new();
    let mut test: Option<String> = None;
    for line in stdout.lines() {
        if let Some(title) = line.strip_prefix("---- ").and_then(|s| s.strip_suffix(" ----")) {
            test = Some(title.trim_end_matches(" stdout").to_owned());
        } else if line == "successes:" || line == "failures:" || line.starts_with("test result: ") {
            test = None;
        } else if let Some(reason) = line.strip_prefix(SKIPPED) {
            let known = test.is_some() && skips.last().is_some_and(|last| last.test == test);
            let failed = test.as_ref().is_some_and(|name| failures.contains(name));
            if !known && !failed {
                skips.push(Skip { test: test.clone(), reason: reason.to_owned() });
            }
        }
    }
    let uncaptured = stderr.lines().filter_map(|line| line.strip_prefix(SKIPPED));
    skips.extend(uncaptured.map(|reason| Skip { test: None, reason: reason.to_owned() }));
    skips
}

/// The skip of a binary that ran one test without capturing what it printed.
fn skip_of(test: &str, stderr: &str, has_passed: bool) -> Vec<Skip> {
    let reason = stderr.lines().find_map(|line| line.strip_prefix(SKIPPED));
    let reason = reason.filter(|_| has_passed).map(str::to_owned);
    reason.into_iter().map(|reason| Skip { test: Some(test.to_owned()), reason }).collect()
}

fn ignored_tests(count: u64) -> impl Iterator<Item = Skip> {
    (0..count).map(|_| Skip { test: None, reason: "ignored".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const TEXT: &str = "
running 4 tests
test a ... ok
test b ... FAILED
test c ... ok
test d ... ignored

successes:

---- c stdout ----
skipped: no fio; apt-get install fio
skipped: said twice

successes:
    a
    c

failures:

---- b stdout ----
skipped: and failed after all

thread 'b' panicked at src/lib.rs:3:9:
    an indented line of the message
failures:
    b

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    fn status(program: &str) -> Option<ExitStatus> {
        Some(Command::new(program).status().unwrap())
    }

    fn tally(stdout: &str, stderr: &str, status: Option<ExitStatus>) -> TestTally {
        let mut tally = TestTally::default();
        tally.add(TestOutcome::of("p", None, Duration::ZERO, stdout, stderr, status));
        tally
    }

    #[test]
    fn each_test_is_counted_once() {
        let tally = tally(TEXT, "", status("false"));
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 2 skipped");
        assert_eq!(tally.failures, ["p: b"]);
        assert_eq!(by_reason(&tally.skips), ["p: c: no fio; apt-get install fio", "p: ignored"]);
    }

    #[test]
    fn tests_that_did_not_run_for_one_reason_share_a_line() {
        let omission = |name: &str, reason: &str| Omission {
            name: format!("p: {name}"),
            reason: reason.to_owned(),
        };
        let mut all = vec![omission("a", "long"), omission("b", "no fio"), omission("c", "long")];
        assert_eq!(by_reason(&all), ["p: a, p: c: long", "p: b: no fio"]);
        all.extend(["d", "e"].map(|name| omission(name, "long")));
        assert_eq!(by_reason(&all)[0], "4 tests, p: a among them: long");
    }

    #[test]
    fn a_test_that_passes_when_run_again_is_passed_and_named() {
        let first = || TestOutcome::of("p", None, Duration::ZERO, TEXT, "", status("false"));
        assert_eq!(first().to_run_again(), Some(&["b".to_owned()][..]));
        let added = |second: &str, status: Option<ExitStatus>| {
            let second = TestOutcome::of("p", None, Duration::ZERO, second, "", status);
            let mut tally = TestTally::default();
            tally.add(first().run_again(second));
            tally
        };
        let passed =
            added("test b ... ok\n\ntest result: ok. 1 passed; 0 failed;\n", status("true"));
        assert_eq!(passed.to_string(), "2 passed, 0 failed, 2 skipped");
        assert_eq!(passed.unsteady, ["p: b"]);
        let failed = added("failures:\n    b\n\ntest result: FAILED. 0 passed;", status("false"));
        assert_eq!((failed.failed, failed.unsteady.len()), (1, 0));
        let hung = added("running 1 test\n", None);
        assert_eq!((hung.failed, hung.unsteady.len()), (1, 0));
    }

    #[test]
    fn what_died_or_failed_often_is_not_run_again() {
        let outcome =
            |text: &str, status| TestOutcome::of("p", None, Duration::ZERO, text, "", status);
        assert_eq!(outcome("running 2 tests\n", status("false")).to_run_again(), None);
        assert_eq!(outcome(TEXT, None).to_run_again(), None);
        let four = "failures:\n    a\n    b\n    c\n    d\n";
        assert_eq!(outcome(four, status("false")).to_run_again(), None);
    }

    #[test]
    fn details_are_those_of_the_failed() {
        let outcome =
            TestOutcome::of("p", None, Duration::ZERO, TEXT, "on stderr", status("false"));
        let shown = outcome.to_string();
        assert!(shown.contains("panicked") && shown.contains("on stderr"), "{shown}");
        assert!(!shown.contains("no fio"), "{shown}");
    }

    #[test]
    fn a_binary_that_dies_or_hangs_is_a_failure() {
        let cut_off = "running 2 tests\ntest a ... ok\n";
        assert_eq!(tally(cut_off, "", status("false")).failed, 1);
        assert_eq!(tally(cut_off, "", None).failed, 1);
        assert_eq!(tally("test result: ok. 2 passed; 0 failed;", "", None).failed, 1);
    }

    #[test]
    fn why_a_binary_died_comes_before_the_last_it_printed() {
        let tests: String = (0..99).map(|n| format!("test number_{n} ... ok\n")).collect();
        let outcome =
            TestOutcome::of("p", None, Duration::ZERO, &tests, "a hangs\n", status("false"));
        let shown = outcome.to_string();
        assert!(shown.find("a hangs") < shown.find("number_98"), "{shown}");
        assert!(!shown.contains("number_60 "), "{shown}");
    }

    #[test]
    fn one_test_of_a_process_is_named_whatever_it_came_to() {
        let of = |stdout: &str, stderr: &str, status| {
            TestOutcome::of("p", Some("m::a"), Duration::ZERO, stdout, stderr, status)
        };
        let ok = "test m::a ... /dev/loop0 is gone.\nok\n\ntest result: ok. 1 passed; 0 failed;\n";
        let mut sum = of(ok, "skipped: no fio\n", status("true"));
        sum.join(of(ok, "", status("true")));
        sum.join(of("", "the last words\n", None));
        assert_eq!(sum.to_run_again(), None);
        assert!(sum.take_details().contains("the last words"));
        let mut tally = TestTally::default();
        tally.add(sum);
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 1 skipped");
        assert_eq!(tally.failures, ["p: m::a exceeded its time and was killed"]);
        assert_eq!(by_reason(&tally.skips), ["p: m::a: no fio"]);
        let failed = "failures:\n    m::a\n\ntest result: FAILED. 0 passed; 1 failed;\n";
        let mut sum = of(ok, "", status("true"));
        sum.join(of(failed, "skipped: in part\n", status("false")));
        assert_eq!(sum.to_run_again(), Some(&["m::a".to_owned()][..]));
    }

    #[test]
    fn results_of_several_crates_add_up() {
        let text = "test result: ok. 2 passed; 0 failed;\ntest result: ok. 3 passed; 0 failed;\n";
        assert_eq!(tally(text, "", status("true")).to_string(), "5 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn a_skip_that_escaped_the_capture_counts_too() {
        let text = "test result: ok. 2 passed; 0 failed;\n";
        let tally = tally(text, "skipped: no root\n", status("true"));
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 1 skipped");
    }
}
