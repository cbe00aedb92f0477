//! What the screen shows: a state that samples and keys change.
//!
//! Invariants: pure. While it is held, samples are taken but not shown. One table of keys serves
//! the line at the bottom, the help page and the meaning.

use iostrata_run::{Figure, WatchSample, WatchTarget};

use crate::screen::course::{Course, Health};

/// What a key leads to beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Goes on.
    Stay,
    /// Ends.
    End,
    /// Ends as Ctrl-C does.
    Interrupt,
    /// Stops until the shell continues it.
    Suspend,
}

/// What is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The table of targets.
    Table,
    /// The chosen target.
    One,
}

/// What the screen shows.
#[derive(Clone, Debug)]
pub(crate) struct View {
    courses: Vec<Course>,
    held: Option<Vec<Course>>,
    /// What is on the screen.
    pub(crate) page: Page,
    /// The target that the user chose, by its index.
    picked: Option<usize>,
    /// Charts are logarithmic.
    pub(crate) is_log: bool,
    /// The help page lies over all.
    pub(crate) is_help: bool,
}

impl View {
    /// No sample has come yet. Several targets begin with their table.
    pub(crate) fn new(targets: &[WatchTarget]) -> Self {
        let page = if targets.len() > 1 { Page::Table } else { Page::One };
        let courses = targets.iter().cloned().map(Course::new).collect();
        Self { courses, held: None, page, picked: None, is_log: false, is_help: false }
    }

    /// Takes a sample of the target with this index; there is nothing to show of others.
    pub(crate) fn take(&mut self, index: usize, sample: WatchSample) {
        if let Some(course) = self.courses.get_mut(index) {
            course.take(sample);
        }
    }

    /// Handles a key.
    pub(crate) fn press(&mut self, key: Key) -> Next {
        match key {
            Key::Quit if self.is_help => self.is_help = false,
            Key::Quit => return Next::End,
            Key::Interrupt => return Next::Interrupt,
            Key::Suspend => return Next::Suspend,
            Key::Pause => {
                self.held = if self.held.is_none() { Some(self.courses.clone()) } else { None };
            }
            Key::Log => self.is_log = !self.is_log,
            Key::Help => self.is_help = !self.is_help,
            Key::Before => self.step(-1),
            Key::After => self.step(1),
            Key::Open => {
                self.picked = Some(self.chosen());
                self.page = Page::One;
            }
            Key::Back if self.is_help => self.is_help = false,
            Key::Back if self.has_several() => self.page = Page::Table,
            Key::Target(number) if (1..=self.courses.len()).contains(&number) => {
                self.picked = Some(number - 1);
                self.page = Page::One;
            }
            Key::Back | Key::Target(_) => {}
        }
        Next::Stay
    }

    /// Chooses another target: by rows in the table, by numbers in the view of one.
    fn step(&mut self, by: isize) {
        let order = match self.page {
            Page::Table => self.worst_first(),
            Page::One => (0..self.courses.len()).collect(),
        };
        let at = order.iter().position(|index| *index == self.chosen()).unwrap_or(0);
        if let Some(index) = at.checked_add_signed(by).and_then(|at| order.get(at)) {
            self.picked = Some(*index);
        }
    }

    /// What is shown of every target.
    pub(crate) fn shown(&self) -> &[Course] {
        self.held.as_deref().unwrap_or(&self.courses)
    }

    /// The target that is chosen, by its index: the worst one until the user chooses.
    pub(crate) fn chosen(&self) -> usize {
        self.picked.or_else(|| self.worst_first().first().copied()).unwrap_or(0)
    }

    /// What is shown of the chosen target.
    pub(crate) fn one(&self) -> Option<&Course> {
        self.shown().get(self.chosen())
    }

    /// There is more than one target.
    pub(crate) fn has_several(&self) -> bool {
        self.courses.len() > 1
    }

    /// The screen is held, and by so many seconds it lags behind.
    pub(crate) fn lag_s(&self) -> Option<f64> {
        let newest = |courses: &[Course]| {
            let times = courses.iter().filter_map(|one| Some(one.last()?.t_s));
            times.fold(0.0, f64::max)
        };
        self.held.as_deref().map(|held| newest(&self.courses) - newest(held))
    }

    /// Indices of targets: those that stall, those that do not answer, then by what compares first.
    pub(crate) fn worst_first(&self) -> Vec<usize> {
        let weight = |index: usize| {
            let course = &self.shown()[index];
            let rank = match course.state() {
                Health::Stalled(_) => 3,
                Health::Silent(_) => 2,
                Health::Running => 1,
                Health::Waiting => 0,
            };
            let first = course.last().zip(Figure::all_compared().next());
            (rank, first.and_then(|(last, figure)| (figure.of)(last)).unwrap_or(-1.0))
        };
        let mut order: Vec<usize> = (0..self.shown().len()).collect();
        order.sort_by(|a, b| {
            let (a, b) = (weight(*a), weight(*b));
            b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
        });
        order
    }
}

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// End.
    Quit,
    /// End as Ctrl-C does.
    Interrupt,
    /// Stop the program until the shell continues it.
    Suspend,
    /// Hold the screen, or go on.
    Pause,
    /// Logarithmic charts, or linear ones.
    Log,
    /// The help page, or back.
    Help,
    /// The target before.
    Before,
    /// The target after.
    After,
    /// The chosen target.
    Open,
    /// The table of targets.
    Back,
    /// The target with this number, from 1.
    Target(usize),
}

/// A key as it is written, in few words and in a sentence.
pub(crate) struct KeyHelp {
    /// As it stands on the keyboard.
    pub(crate) keys: &'static str,
    /// For the line at the bottom.
    pub(crate) short: &'static str,
    /// For the help page.
    pub(crate) long: &'static str,
    /// Only where there are several targets.
    pub(crate) several: bool,
}

/// Every key, in the order in which they are shown.
pub(crate) const KEYS: &[KeyHelp] = &[
    KeyHelp { keys: "q", short: "quit", long: "quit; Ctrl-C too", several: false },
    KeyHelp {
        keys: "space",
        short: "pause",
        long: "hold the screen; samples are still taken",
        several: false,
    },
    KeyHelp { keys: "l", short: "log", long: "charts on a logarithmic scale", several: false },
    KeyHelp { keys: "?", short: "help", long: "this page; h and F1 too", several: false },
    KeyHelp { keys: "Enter", short: "open", long: "open the chosen target", several: true },
    KeyHelp { keys: "Esc", short: "all", long: "back to the table of targets", several: true },
    KeyHelp {
        keys: "1-9",
        short: "target",
        long: "this target; arrows: the one before or after",
        several: true,
    },
];

/// The action of a character.
pub(crate) fn of_character(character: char) -> Option<Key> {
    Some(match character {
        'q' | 'Q' => Key::Quit,
        ' ' | 'p' => Key::Pause,
        'l' | 'L' => Key::Log,
        '?' | 'h' => Key::Help,
        'k' => Key::Before,
        'j' => Key::After,
        '\n' | '\r' => Key::Open,
        '1'..='9' => Key::Target(character as usize - '0' as usize),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    fn targets(count: usize) -> Vec<WatchTarget> {
        vec![WatchTarget::default(); count]
    }

    fn aged(pct: Option<f64>) -> WatchSample {
        WatchSample { checkpoint_age_pct: pct, ..WatchSample::default() }
    }

    #[test]
    fn the_worst_target_is_first() {
        let mut view = View::new(&targets(6));
        view.take(0, aged(None));
        view.take(1, aged(Some(40.0)));
        view.take(2, WatchSample { error: Some("gone".to_owned()), ..aged(None) });
        view.take(3, WatchSample { stalled: true, ..aged(Some(10.0)) });
        view.take(4, aged(Some(90.0)));
        assert_eq!(view.worst_first(), [3, 2, 4, 1, 0, 5]);
        assert_eq!(view.page, Page::Table);
        // The arrows follow the rows, and what is chosen stays chosen when the rows change.
        assert_eq!(view.chosen(), 3, "the worst until the user chooses");
        view.press(Key::After);
        view.press(Key::After);
        assert_eq!(view.chosen(), 4);
        view.press(Key::After);
        assert_eq!(view.chosen(), 1);
        view.take(1, WatchSample { stalled: true, ..aged(Some(99.0)) });
        assert_eq!((view.chosen(), view.worst_first()[0]), (1, 1));
        view.press(Key::Before);
        assert_eq!(view.chosen(), 1, "there is none above the first");
    }

    #[test]
    fn keys_open_and_leave_a_target() {
        let mut view = View::new(&targets(3));
        view.press(Key::Target(3));
        assert_eq!((view.page, view.chosen()), (Page::One, 2));
        view.press(Key::Target(4));
        assert_eq!(view.chosen(), 2);
        view.press(Key::Before);
        view.press(Key::Back);
        assert_eq!((view.page, view.chosen()), (Page::Table, 1));
        view.press(Key::Open);
        assert_eq!(view.page, Page::One);
        assert_eq!(view.press(Key::Quit), Next::End);
        view.press(Key::Help);
        assert_eq!(view.press(Key::Quit), Next::Stay, "leaves the help");
        assert!(!view.is_help);
        assert_eq!(view.press(Key::Interrupt), Next::Interrupt);
        let mut alone = View::new(&targets(1));
        alone.press(Key::Back);
        assert_eq!(alone.page, Page::One, "a single target has no table");
    }

    #[test]
    fn a_held_screen_stands_still_and_catches_up() {
        let mut view = View::new(&targets(1));
        view.take(0, WatchSample { t_s: 1.0, ..WatchSample::default() });
        assert_eq!(view.lag_s(), None);
        view.press(Key::Pause);
        view.take(0, WatchSample { t_s: 5.0, ..WatchSample::default() });
        assert_eq!((view.lag_s(), view.one().unwrap().last().unwrap().t_s), (Some(4.0), 1.0));
        view.press(Key::Pause);
        assert_eq!((view.lag_s(), view.one().unwrap().last().unwrap().t_s), (None, 5.0));
        view.take(7, WatchSample::default());
    }

    #[test]
    fn every_character_in_the_table_of_keys_has_a_meaning() {
        let written = KEYS.iter().filter(|one| one.keys.len() == 1);
        for one in written {
            assert!(one.keys.chars().all(|c| of_character(c).is_some()), "{}", one.keys);
        }
        assert_eq!(of_character('7'), Some(Key::Target(7)));
        assert_eq!(of_character('0'), None);
    }
}
