//! Which colours and characters a terminal gets.
//!
//! Invariant: without colours nothing is lost: a stall is reverse, a warning bold. The colours are
//! the sixteen that a terminal's own theme defines.

use std::env;

use ratatui::style::{Color, Modifier, Style};

/// What a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Colours are wanted.
    pub colour: bool,
    /// Block characters can be shown; ASCII otherwise.
    pub unicode: bool,
}

impl Look {
    /// As `NO_COLOR`, `TERM` and the locale (`LC_ALL`, `LC_CTYPE`, `LANG`) set it.
    pub fn of_environment() -> Self {
        let word = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(word);
        Self::of_words(word("NO_COLOR").as_deref(), locale.as_deref())
    }

    fn of_words(no_color: Option<&str>, locale: Option<&str>) -> Self {
        let charset = locale.unwrap_or_default().to_ascii_lowercase();
        Self {
            colour: no_color.is_none(),
            unicode: charset.contains("utf-8") || charset.contains("utf8"),
        }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// What a figure is called, and what is of little weight.
    pub(crate) fn label(self) -> Style {
        // Dark grey would be unseen where a theme makes it the background.
        if self.colour { Style::new().add_modifier(Modifier::DIM) } else { Style::new() }
    }

    /// The name of a group of figures.
    pub(crate) fn title(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// A figure.
    pub(crate) fn figure(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// A figure that is not reported.
    pub(crate) fn absent(self) -> Style {
        self.label()
    }

    /// As it should be.
    pub(crate) fn good(self) -> Style {
        self.coloured(Color::Green)
    }

    /// Nearing trouble.
    pub(crate) fn warning(self) -> Style {
        self.coloured(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Trouble: stands out on every terminal.
    pub(crate) fn alarm(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// A bar that is trouble.
    pub(crate) fn alarm_bar(self) -> Style {
        self.coloured(Color::Red)
    }

    /// The row that is chosen.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Horizontal line of a title.
    pub(crate) fn rule(self) -> &'static str {
        if self.unicode { "\u{2500}" } else { "-" }
    }

    /// A place of a bar or a chart for which nothing is reported.
    pub(crate) fn gap(self) -> &'static str {
        if self.unicode { "\u{b7}" } else { "?" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_what_a_terminal_shows() {
        let utf8 = Some("en_US.UTF-8");
        assert_eq!(Look::of_words(None, utf8), Look { colour: true, unicode: true });
        assert_eq!(Look::of_words(Some("1"), utf8), Look { colour: false, unicode: true });
        assert!(Look::of_words(None, Some("C.utf8")).unicode);
        for locale in [None, Some("C"), Some("de_DE.ISO-8859-1")] {
            assert!(!Look::of_words(None, locale).unicode, "{locale:?}");
        }
    }

    #[test]
    fn trouble_is_reverse_with_and_without_colours() {
        for colour in [true, false] {
            let look = Look { colour, unicode: true };
            assert!(look.alarm().add_modifier.contains(Modifier::REVERSED));
            assert_eq!(look.alarm().fg.is_some(), colour);
        }
    }
}
