//! What the keys mean.
//!
//! Invariant: one table for the line of keys at the bottom, the help page and the meaning.

/// What a key asks for.
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

/// What a character asks for.
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
