//! What is drawn on: rows of text, titles, figures and bars.
//!
//! Invariant: writes inside its own size only.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols::bar;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Sparkline, SparklineBar, Widget};

use super::words::NOT_REPORTED;
use crate::screen::course::{self, Bar};
use crate::screen::look::Look;

/// Bars of a chart without block characters.
const ASCII_BARS: bar::Set<'_> = bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "=",
    five_eighths: "=",
    half: "-",
    three_eighths: "-",
    one_quarter: ".",
    one_eighth: ".",
    empty: " ",
};

/// A figure under its name.
pub(crate) struct FigureText<'a> {
    /// What it is; may be empty.
    pub(crate) name: &'a str,
    /// The figure with its unit.
    pub(crate) text: String,
    /// What follows it.
    pub(crate) after: &'a str,
    /// How it is drawn.
    pub(crate) style: Option<Style>,
}

impl<'a> FigureText<'a> {
    /// A figure with its name before it.
    pub(crate) fn new(name: &'a str, text: String) -> Self {
        Self { name, text, after: "", style: None }
    }

    /// The same with words behind it.
    pub(crate) fn after(self, after: &'a str) -> Self {
        Self { after, ..self }
    }

    /// The same in another style.
    pub(crate) fn style(self, style: Style) -> Self {
        Self { style: Some(style), ..self }
    }
}

/// What is drawn on.
pub(crate) struct Paper<'a> {
    buffer: &'a mut Buffer,
    /// Colours and characters.
    pub(crate) look: Look,
    is_log: bool,
}

impl<'a> Paper<'a> {
    pub(crate) fn new(buffer: &'a mut Buffer, look: Look, is_log: bool) -> Self {
        Self { buffer, look, is_log }
    }

    /// Up to what the bars of a chart reach.
    pub(crate) fn scale(&self, max: Option<f64>) -> String {
        let kind = if self.is_log { ", log" } else { "" };
        max.map_or(String::new(), |max| format!("to {}{kind}", iostrata_stats::units::count(max)))
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        (self.buffer.area.width, self.buffer.area.height)
    }

    /// Writes a line from a column on, up to the edge.
    pub(crate) fn write(&mut self, column: u16, row: u16, line: Line<'_>) {
        let room = self.size().0.saturating_sub(column);
        self.write_within(column, row, room, line);
    }

    /// Writes a line into so many columns.
    pub(crate) fn write_within(&mut self, column: u16, row: u16, room: u16, line: Line<'_>) {
        let (width, height) = self.size();
        if row < height && column < width {
            let room = room.min(width - column);
            self.buffer.set_line(column, row, &line, room);
        }
    }

    /// Writes a text that ends before a column.
    pub(crate) fn write_right(&mut self, end: u16, row: u16, text: &str, style: Style) {
        let from = end.saturating_sub(text.chars().count() as u16);
        self.write(from, row, Line::styled(text.to_owned(), style));
    }

    /// Gives a row a style.
    pub(crate) fn fill(&mut self, row: u16, style: Style) {
        let (width, height) = self.size();
        if row < height {
            self.buffer.set_style(Rect::new(0, row, width, 1), style);
        }
    }

    /// A title across columns, words at its left and at its right.
    pub(crate) fn title(&mut self, at: Rect, name: &str, left: Vec<Span<'_>>, right: &str) {
        let look = self.look;
        let rule = look.rule().repeat(usize::from(at.width));
        self.write_within(at.x, at.y, at.width, Line::styled(rule, look.label()));
        let mut spans = vec![Span::styled(format!(" {name} "), look.title())];
        spans.extend(left);
        let line = Line::from(spans);
        let used = line.width() as u16;
        self.write_within(at.x + 2, at.y, at.width.saturating_sub(2), line);
        let right = format!(" {right} ");
        let room = at.width.saturating_sub(used + 4);
        if right.trim() != "" && right.len() <= usize::from(room) {
            self.write_right(at.x + at.width - 2, at.y, &right, look.label());
        }
    }

    /// Figures in a row, as many as fit.
    pub(crate) fn figures(&mut self, at: Rect, figures: Vec<FigureText<'_>>) {
        let look = self.look;
        let mut spans = Vec::new();
        let mut used = 0;
        for figure in figures {
            let gap = if used == 0 { "" } else { "   " };
            let told = figure.text != NOT_REPORTED;
            let style = if told { look.figure() } else { look.absent() };
            let name = if figure.name.is_empty() { "" } else { " " };
            let parts = [
                Span::styled(format!("{gap}{}{name}", figure.name), look.label()),
                Span::styled(figure.text, figure.style.filter(|_| told).unwrap_or(style)),
                Span::styled(figure.after.to_owned(), look.label()),
            ];
            let wide: usize = parts.iter().map(Span::width).sum();
            if used + wide > usize::from(at.width) {
                break;
            }
            used += wide;
            spans.extend(parts);
        }
        self.write_within(at.x, at.y, at.width, Line::from(spans));
    }

    /// Bars from the right edge on, the newest last; gaps where nothing is reported.
    pub(crate) fn bars(
        &mut self,
        at: Rect,
        values: &[Bar],
        max: f64,
        style: impl Fn(&Bar) -> Style,
    ) {
        let at = at.intersection(self.buffer.area);
        let from = values.len().saturating_sub(usize::from(at.width));
        let values = &values[from..];
        let steps = u64::from(at.height) * 8;
        let data = values.iter().map(|bar| {
            let value = bar.value.map(|value| course::height(value, max, steps, self.is_log));
            SparklineBar::from(value).style(style(bar))
        });
        let line = Sparkline::default()
            .data(data)
            .max(steps)
            .bar_set(if self.look.unicode { bar::NINE_LEVELS } else { ASCII_BARS })
            .absent_value_symbol(" ")
            .absent_value_style(self.look.absent());
        let width = values.len() as u16;
        let left = at.x + at.width - width;
        line.render(Rect::new(left, at.y, width, at.height), self.buffer);
        let bottom = at.y + at.height.saturating_sub(1);
        for (column, bar) in (left..).zip(values) {
            if bar.value.is_none() && at.height > 0 {
                let gap = Line::styled(self.look.gap(), self.look.absent());
                self.write_within(column, bottom, 1, gap);
            }
        }
    }
}
