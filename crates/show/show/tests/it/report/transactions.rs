//! The report of transactions.

use iostrata_run::{
    InsertFigures, InsertGrowth, LatencyTarget, RateBound, RunResult, TransactionDocument,
};
use iostrata_show::report::{html, markdown, terminal};

use crate::report::complete::changed;
use crate::report::sample::{self, Sample};

fn of(document: TransactionDocument) -> Sample {
    let mut sample = sample::transactions();
    sample.result = Some(RunResult::Transactions(Box::new(document)));
    sample
}

#[test]
fn steadiness_stands_beside_speed() {
    let sample = sample::transactions();
    let text = terminal(&sample.view(), 100, false);
    let head: Vec<&str> = text.lines().take(8).collect();
    let head = head.join("\n");
    for said in ["1.43 K transactions/s", "38,508 new orders per minute", "16 threads", "41 %"] {
        assert!(head.contains(said), "{said} is not in the head:\n{text}");
    }
    for said in ["new orders", "from schedule", "1213", "16 threads give nearly all"] {
        assert!(text.contains(said), "{said} is missing in:\n{text}");
    }
}

#[test]
fn every_figure_is_in_the_files() {
    let view_of = sample::transactions();
    let (page, written) = (html(&view_of.view()), markdown(&view_of.view()));
    for said in [
        "43,020 arrived by the schedule",
        "31 were dropped",
        "begun again 118 times",
        "after 7.5 s of warm-up",
        "DETECT_AND_RECOVER",
        "repeatable read",
        "orders are kept for ever",
        "the server sits on the same machine",
        "like TPC-C and no TPC-C result",
        "round trips per transaction",
        "12 % slower than the first (95 %: 9.8 to 14 %)",
        "orders from 120,000 to 139,254",
        "checkpoint age was at 99 % of its limit",
        "sampled 31 times, of which 1 failed",
    ] {
        assert!(page.contains(said), "{said} is not in the page");
        assert!(written.contains(said), "{said} is not in\n{written}");
    }
    for chart in ["chart-time-transactions", "chart-levels", "chart-levels-latency"] {
        assert!(page.contains(chart), "{chart} is missing");
    }
    assert!(page.contains("(590)") || page.contains("590"), "the hole of second 17");
    assert!(page.contains("&lt;b&gt;terminal&lt;/b&gt;") && !page.contains("<b>terminal</b>"));
}

#[test]
fn every_text_of_the_document_is_in_the_page() {
    let tokens = std::cell::RefCell::new(Vec::new());
    let document = sample::transactions_document();
    let document = changed(&document, |path, old| {
        // The page is in that directory.
        if path == "/run" {
            return old.to_owned();
        }
        let token = format!("token{}end", tokens.borrow().len());
        tokens.borrow_mut().push((path.to_owned(), token.clone()));
        format!("{old} {token}")
    });
    let kept = serde_json::to_string(&document).unwrap();
    let page = html(&of(document).view());
    let tokens = tokens.into_inner();
    let missing: Vec<_> =
        tokens.iter().filter(|(_, token)| kept.contains(token) && !page.contains(token)).collect();
    assert!(tokens.len() >= 10, "{}", tokens.len());
    assert!(missing.is_empty(), "not in the page: {missing:?}");
}

#[test]
fn a_search_says_what_it_found_and_what_bounds_it() {
    let mut document = sample::transactions_document();
    document.knee_threads = None;
    let target = LatencyTarget {
        percentile: 99.0,
        target_us: 20_000.0,
        capacity_tps: 1_400.0,
        rate_per_s: Some(900.0),
        rate_per_s_between: [900.0, 940.0],
        response_us: Some(18_000.0),
        bound: RateBound::Objective,
    };
    document.latency_target = Some(target);
    for (level, rate) in document.levels.iter_mut().skip(1).zip([1_330.0, 665.0, 900.0]) {
        (level.rate_per_s, level.holds_target) = (Some(rate), Some(rate <= 900.0));
    }
    let text = terminal(&of(document.clone()).view(), 100, false);
    let held = "900 transactions/s hold p99 of response time within 20 ms (measured: 18 ms)";
    for said in ["By the rate of arrivals", held, "missed", "held"] {
        assert!(text.contains(said), "{said} is missing in:\n{text}");
    }
    document.latency_target = Some(LatencyTarget {
        rate_per_s: None,
        rate_per_s_between: [0.0, 21.0],
        bound: RateBound::Time,
        ..target
    });
    let text = terminal(&of(document).view(), 100, false);
    assert!(text.contains("No rate that was tried") && text.contains("time of the run"), "{text}");
}

#[test]
fn inserts_show_rows_and_what_they_cost_as_the_indexes_grow() {
    let mut document = sample::transactions_document();
    let growth = InsertGrowth {
        t_s: vec![1.0, 2.0, 3.0],
        threads: vec![4, 4, 4],
        rows: vec![1_100_000, 1_190_000, 1_234_567],
        rows_per_s: vec![100_000.0, 90_000.0, 44_567.0],
        index_bytes: Some(vec![Some(1 << 30), Some(3 << 29), Some(2 << 30)]),
        table_bytes: None,
    };
    document.insert = Some(InsertFigures {
        rows_per_commit: 100,
        rows_per_s: Some(143_260.0),
        rows_per_s_ci95: Some([141_100.0, 145_400.0]),
        rows_per_s_n: 61,
        storage_engine: Some("Aria".into()),
        growth,
    });
    let text = terminal(&of(document.clone()).view(), 100, false);
    for said in ["143 K rows/s with 16 threads", "1,234,567", "Aria", "indexes at the end"] {
        assert!(text.contains(said), "{said} is missing in:\n{text}");
    }
    assert!(!text.contains("table at the end"), "it was not told");
    let page = html(&of(document.clone()).view());
    for said in ["chart-insert-time", "chart-insert-size", "GiB of indexes", "1,190,000 rows"] {
        assert!(page.contains(said), "{said} is not in the page");
    }
    let insert = document.insert.as_mut().unwrap();
    insert.growth.table_bytes = insert.growth.index_bytes.take();
    let page = html(&of(document).view());
    assert!(page.contains("GiB of table and indexes"));
}

#[test]
fn a_window_without_a_transaction_says_so() {
    let mut document = TransactionDocument::default();
    document.check();
    let text = terminal(&of(document).view(), 100, false);
    assert!(text.contains("no request completed") && !text.contains("0 transactions/s"), "{text}");
}
