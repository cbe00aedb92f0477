//! Frames of made-up targets, as a terminal shows them.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Modifier;

use iostrata_run::{WatchSample, WatchTarget};

use crate::screen::draw::draw;
use crate::screen::look::Look;
use crate::screen::made_up;
use crate::screen::view::{Key, View};

const PLAIN: Look = Look { colour: false, unicode: true };
const ASCII: Look = Look { colour: false, unicode: false };

fn frame(view: &View, width: u16, height: u16, look: Look) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame.buffer_mut(), view, look)).unwrap();
    terminal.backend().buffer().clone()
}

fn rows(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let row = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_owned()
    };
    buffer.content().chunks(width).map(row).collect()
}

fn text(view: &View, width: u16, height: u16, look: Look) -> String {
    rows(&frame(view, width, height, look)).join("\n")
}

/// The text that is reverse in a frame.
fn reversed(buffer: &Buffer) -> String {
    let cells = buffer.content().iter();
    let is_reversed = |cell: &&ratatui::buffer::Cell| cell.modifier.contains(Modifier::REVERSED);
    cells.filter(is_reversed).map(ratatui::buffer::Cell::symbol).collect()
}

/// The stalling server after so many seconds.
fn stalling(seconds: u64) -> View {
    let mut view = View::new(&[made_up::stalling()]);
    (0..=seconds).for_each(|second| view.take(0, made_up::stalling_at(second)));
    view
}

fn several(seconds: u64) -> View {
    let mut view = View::new(&[made_up::steady(), made_up::vanishing(), made_up::stalling()]);
    for second in 0..=seconds {
        view.take(0, made_up::steady_at(second));
        view.take(1, made_up::vanishing_at(second));
        view.take(2, made_up::stalling_at(second));
    }
    view
}

#[test]
fn everything_is_on_eighty_columns() {
    let found = text(&stalling(74), 80, 24, PLAIN);
    for wanted in [
        "127.0.0.1:3391/tpcc  MariaDB 10.11.19",
        "00:01:14",
        "STALL: redo full for",
        "checkpoint age 79.",
        "of 80.3 MiB",
        "full in",
        "async 88 %",
        "sync 94 %",
        "writers wait 100 %",
        "tps",
        "adaptive",
        "LRU",
        "background",
        "sync",
        "dirty",
        "pages per transaction",
        "history",
        "pending reads 0   writes 64   syncs 1",
        "reads/s",
        "in flight",
        "vda",
        "Events",
        "so far",
        "q quit",
        "? help",
    ] {
        assert!(found.contains(wanted), "no {wanted:?} in\n{found}");
    }
}

#[test]
fn pressure_and_files_have_rows_where_there_is_room() {
    for (width, height) in [(80, 26), (120, 40)] {
        let found = text(&stalling(74), width, height, PLAIN);
        for wanted in [
            "pressure  io 9",
            "memory 0 %",
            "I/O limit 91 % of 1.5 K writes/s",
            "written  data 2",
            "doublewrite 2",
        ] {
            assert!(found.contains(wanted), "no {wanted:?} in\n{found}");
        }
    }
    let mut view = View::new(&[made_up::steady()]);
    view.take(0, made_up::steady_at(1));
    let found = text(&view, 120, 40, PLAIN);
    assert!(found.contains("pressure  io n/a") && found.contains("written n/a"), "{found}");
    assert!(found.contains("I/O limit n/a   quota n/a"), "{found}");
}

#[test]
fn a_stall_is_seen_without_colours() {
    let buffer = frame(&stalling(74), 80, 24, PLAIN);
    let found = reversed(&buffer);
    assert!(found.contains("STALL: redo full for") && found.contains('!'), "{found}");
    let coloured = |cell: &ratatui::buffer::Cell| {
        cell.fg != ratatui::style::Color::Reset || cell.bg != ratatui::style::Color::Reset
    };
    assert!(!buffer.content().iter().any(coloured), "NO_COLOR means none");
    let calm = reversed(&frame(&stalling(60), 80, 24, PLAIN));
    assert!(!calm.contains("for"), "only the mark of the stall before is reverse: {calm}");
}

#[test]
fn what_is_not_told_is_never_zero() {
    let mut view = View::new(&[WatchTarget::default()]);
    view.take(0, WatchSample { t_s: 1.0, ..WatchSample::default() });
    for (width, height) in [(80, 24), (120, 40), (60, 24)] {
        let found = rows(&frame(&view, width, height, PLAIN));
        let figures = found[2..].join("\n").replace("last 0 s", "");
        assert!(!figures.contains('0'), "{width}:\n{figures}");
        assert!(figures.matches("n/a").count() > 8, "{figures}");
    }
}

#[test]
fn a_target_that_does_not_answer_says_why() {
    let mut view = View::new(&[made_up::vanishing()]);
    (0..70).for_each(|second| view.take(0, made_up::vanishing_at(second)));
    let found = text(&view, 80, 24, PLAIN);
    assert!(found.contains("NO ANSWER for 10 s: no status page"), "{found}");
    assert!(found.contains("checkpoint age n/a"), "old figures are not shown as new: {found}");
}

#[test]
fn an_old_transaction_and_a_restart_are_told() {
    let mut view = View::new(&[WatchTarget::default()]);
    let open = |second: u64| WatchSample {
        sessions_running: Some(7),
        oldest_transaction_s: Some(second as f64),
        oldest_transaction_id: Some(41),
        restarted: second == 20,
        ..made_up::steady_at(second)
    };
    (0..59).for_each(|second| view.take(0, open(second)));
    let found = text(&view, 80, 24, PLAIN);
    assert!(!found.contains("is open for") && found.contains("sessions 7"), "{found}");
    assert!(found.contains("restarted"), "{found}");
    view.take(0, open(75));
    let found = text(&view, 80, 24, PLAIN);
    assert!(found.contains("running; no stall so far; a transaction is open for 75 s (id 41)"));
    let found = text(&view, 120, 40, PLAIN);
    assert!(found.contains("open 75 s (id 41)"), "{found}");
}

#[test]
fn every_size_is_drawn_without_a_panic() {
    let mut views = [stalling(300), several(100), View::new(&[]), View::new(&[made_up::steady()])];
    for round in 0..3 {
        for view in &mut views {
            for (width, height) in
                [(1, 1), (2, 40), (39, 16), (40, 17), (60, 24), (80, 1), (109, 30), (110, 17)]
                    .into_iter()
                    .chain([(120, 40), (250, 90), (500, 8), (40, 200)])
            {
                for look in [PLAIN, ASCII] {
                    text(view, width, height, look);
                }
            }
            view.press([Key::Open, Key::Help, Key::Log][round]);
        }
    }
}

#[test]
fn narrow_screens_keep_what_matters() {
    let found = text(&stalling(74), 60, 24, PLAIN);
    for wanted in ["STALL: redo full", "age 79.", "full in", "adaptive", "history", "w/s", "Events"]
    {
        assert!(found.contains(wanted), "no {wanted:?} in\n{found}");
    }
    let small = text(&stalling(74), 30, 10, PLAIN);
    assert!(small.contains("STALL") && small.contains("40x17"), "{small}");
}

#[test]
fn ascii_terminals_get_ascii() {
    for view in [stalling(74), several(90)] {
        let found = text(&view, 120, 40, ASCII);
        assert!(found.is_ascii(), "{found}");
    }
}

#[test]
fn the_table_shows_the_worst_first() {
    let mut view = several(74);
    let buffer = frame(&view, 80, 24, PLAIN);
    let found = rows(&buffer);
    let row = |name: &str| found.iter().position(|row| row.contains(name)).unwrap();
    assert!(row("127.0.0.1:3391") < row("engine:") && row("engine:") < row("db2.exa"));
    assert!(
        reversed(&buffer).contains("STALL: redo full") && reversed(&buffer).contains("NO ANSWER")
    );
    view.press(Key::Target(1));
    assert!(text(&view, 80, 24, PLAIN).contains("1/3  mysql://b@db2.example"));
}

#[test]
fn a_held_screen_and_a_logarithmic_one_say_so() {
    let mut view = stalling(60);
    let linear = text(&view, 80, 24, PLAIN);
    view.press(Key::Pause);
    view.take(0, made_up::stalling_at(65));
    assert!(text(&view, 80, 24, PLAIN).contains("PAUSED, 5 s behind"));
    view.press(Key::Pause);
    let mut view = stalling(60);
    view.press(Key::Log);
    let log = text(&view, 80, 24, PLAIN);
    assert!(log.contains(", log") && !linear.contains(", log"));
    view.press(Key::Help);
    let help = text(&view, 80, 24, PLAIN);
    assert!(help.contains("hold the screen") && help.contains("pages flushed by sync flushing"));
    assert!(help.contains("not reported by the target"), "24 rows hold the whole page: {help}");
    let widest = text(&view, 300, 24, PLAIN);
    let widest = widest.lines().map(|line| line.trim_end().chars().count()).max().unwrap();
    assert!(widest <= 80, "80 columns hold the whole page: {widest}");
}

/// The frame in the document is what is drawn; `UPDATE_TEXTS=1` rewrites it.
#[test]
fn the_document_shows_this_screen() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/watch-screen.md");
    let document = std::fs::read_to_string(path).unwrap();
    let mut expected = document.clone();
    for (name, view) in [("one", stalling(74)), ("several", several(74))] {
        let frame = format!("```text {name}\n{}\n```", text(&view, 80, 24, PLAIN));
        let from = expected.find(&format!("```text {name}\n")).unwrap();
        let length = expected[from + 3..].find("\n```").unwrap() + 3 + "\n```".len();
        expected.replace_range(from..from + length, &frame);
    }
    if std::env::var_os("UPDATE_TEXTS").is_some() {
        std::fs::write(path, expected).unwrap();
    } else {
        assert!(document == expected, "run with UPDATE_TEXTS=1; drawn is\n{expected}");
    }
}
