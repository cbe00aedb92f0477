//! Charts: from figures of the run directory to what Plotly draws.
//!
//! Invariant: every number handed over is the run directory's own, so that what a reader sees on
//! hover is what was measured. Colours of text and grid are left to the page, which knows whether
//! it is light or dark.

mod bars;
mod embed;
mod forest;
mod frame;
mod lines;
mod panel;
mod sizes;
mod stack;
mod theme;
mod time;

pub(crate) use bars::{Bar, bars};
pub(crate) use embed::{Charts, for_script, plotly_script};
pub(crate) use forest::{Branch, forest};
pub(crate) use frame::{Hover, reach_of};
pub(crate) use lines::{Line, Mark, lines};
pub(crate) use panel::{PanelTrace, Scale, dash_style, panel};
pub(crate) use sizes::{Tick, Vertical, sizes};
pub(crate) use stack::{Share, Stack, stacks};
pub(crate) use theme::{GREY, kernel_colour, layer_colour, line_colour, segment_colour};
pub(crate) use time::{TimePoint, time_series};

use plotly::{Layout, Traces};
use serde::Serialize;

/// One chart: its place in the page and what Plotly is to draw there.
#[derive(Serialize)]
pub(crate) struct Chart {
    /// Unique in the page; its element is `chart-NAME`.
    #[serde(skip)]
    pub(crate) name: String,
    /// Height in pixels.
    #[serde(skip)]
    pub(crate) height: usize,
    data: Traces,
    layout: Layout,
}

/// A name that can stand in an element's id.
pub(crate) fn id_of(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(plain).collect()
}

/// Text from outside as Plotly text: Plotly reads a few HTML tags and entities in its labels.
pub(crate) fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_no_markup() {
        assert_eq!(plain("<a href='x'>&lt;</a>"), "&lt;a href='x'&gt;&amp;lt;&lt;/a&gt;");
        assert_eq!(id_of("reads/s <b>"), "reads-s--b-");
    }
}
