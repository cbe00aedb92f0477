//! A report as data: sections of sentences, tables, lists and charts, which any renderer shows.
//!
//! Invariant: nothing here depends on HTML, Markdown or a terminal but [`On`], which selects what
//! is for whom: charts are for the page, the short forms of long tables for a terminal.

use iostrata_stats::Verdicts;
use std::collections::BTreeSet;

use iostrata_stats::Verdict;

use crate::report::cell::{Cell, Text, Tone};
use crate::report::chart::{Chart, Stroke};

/// The renderers that show something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct On(u8);

impl On {
    pub(crate) const PAGE: Self = Self(1);
    pub(crate) const MARKDOWN: Self = Self(2);
    pub(crate) const TERMINAL: Self = Self(4);
    pub(crate) const FILES: Self = Self(1 | 2);
    pub(crate) const ALL: Self = Self(1 | 2 | 4);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A run as it is shown.
pub(crate) struct Report {
    /// The verdict, the most important sentence first.
    pub(crate) headline: Vec<String>,
    /// The question of the run.
    pub(crate) question: Option<Text>,
    /// A few figures that stand out.
    pub(crate) strip: Vec<Card>,
    /// What it took and how sure it is: below the headline of the page, at the end of the rest.
    pub(crate) summary: Text,
    pub(crate) sections: Vec<Section>,
    /// Where the run or its report is.
    pub(crate) kept: Option<Text>,
    /// What the page's script draws when a point is chosen, as JSON.
    pub(crate) points: Option<String>,
}

impl Report {
    pub(crate) fn new(headline: &[String], summary: impl Into<Text>) -> Self {
        Self {
            headline: headline.to_vec(),
            question: None,
            strip: Vec::new(),
            summary: summary.into(),
            sections: Vec::new(),
            kept: None,
            points: None,
        }
    }

    /// Adds a section unless it is empty.
    pub(crate) fn add(&mut self, id: &str, title: &str, body: impl Into<Option<Blocks>>) {
        let (id, title) = (id.to_owned(), title.to_owned());
        let body: Option<Blocks> = body.into();
        self.sections.extend(body.map(|body| Section { id, title, body }));
    }
}

/// A part of a report with a name.
pub(crate) struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) body: Blocks,
}

/// One of the figures at the top.
pub(crate) struct Card {
    pub(crate) title: &'static str,
    pub(crate) big: Text,
    pub(crate) text: Text,
}

/// What a section consists of.
pub(crate) enum Block {
    /// The name of what follows.
    Title(Text),
    Text(Style, Text),
    List(Vec<Text>),
    /// Names with their texts; the number that a terminal shows at most.
    Facts(Vec<(Text, Text)>, usize),
    /// Sentences by name, one below the other; the number that a terminal shows at most.
    Named(Vec<(String, String)>, usize),
    /// Every verdict with its meaning.
    Verdicts(Vec<Verdict>),
    Table(Table),
    Chart(Chart),
    Panels(Panels),
    /// Charts that take turns in one place: the noun, and each one's title.
    Choice(&'static str, Vec<(String, Vec<Chart>)>),
    Entries(Vec<Entry>),
    /// Lines to be copied.
    Snippet(&'static str, String),
    /// What the page shows when it is unfolded.
    Folded(String, Blocks),
    /// Where the page's script shows this number of points.
    Points(usize),
}

/// The weight of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// What is most worth reading.
    Lead(Tone),
    /// What the figures below mean.
    Say,
    /// An aside.
    Note(Tone),
    Plain,
}

/// Blocks, each with the renderers that it is for.
#[derive(Default)]
pub(crate) struct Blocks(pub(crate) Vec<(On, Block)>);

impl Blocks {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(&mut self, on: On, block: Block) -> &mut Self {
        self.0.push((on, block));
        self
    }

    /// What the figures below mean, for readers of files.
    pub(crate) fn say(&mut self, text: impl Into<Text>) -> &mut Self {
        self.add(On::FILES, Block::Text(Style::Say, text.into()))
    }

    pub(crate) fn note(&mut self, text: impl Into<Text>) -> &mut Self {
        self.add(On::ALL, Block::Text(Style::Note(Tone::Plain), text.into()))
    }

    pub(crate) fn title(&mut self, on: On, text: impl Into<Text>) -> &mut Self {
        self.add(on, Block::Title(text.into()))
    }

    pub(crate) fn chart(&mut self, chart: Chart) -> &mut Self {
        self.add(On::PAGE, Block::Chart(chart))
    }

    pub(crate) fn table(&mut self, on: On, table: impl Into<Table>) -> &mut Self {
        self.add(on, Block::Table(table.into()))
    }

    /// A block that the page folds and the others show.
    pub(crate) fn folded(
        &mut self,
        on: On,
        name: impl Into<String>,
        block: impl Into<Block>,
    ) -> &mut Self {
        self.add(on, Block::Folded(name.into(), Self(vec![(on, block.into())])))
    }

    /// The blocks of one renderer.
    pub(crate) fn on(&self, on: On) -> impl Iterator<Item = &Block> {
        self.0.iter().filter(move |(of, _)| of.has(on)).map(|(_, block)| block)
    }
}

/// Charts next to each other whose lines look alike.
pub(crate) struct Panels {
    pub(crate) legend: Vec<(Stroke, String)>,
    pub(crate) charts: Vec<Chart>,
    /// Whether the reader may switch to a logarithmic scale.
    pub(crate) has_switch: bool,
}

/// Panels as one picture, which other documents embed.
pub(crate) struct Sheet {
    pub(crate) title: String,
    /// What was run.
    pub(crate) says: String,
    pub(crate) panels: Panels,
}

/// What answers a question as one picture under one sentence.
pub(crate) struct Picture {
    pub(crate) says: String,
    pub(crate) parts: Vec<PicturePart>,
    /// How it was measured, stated once for all parts.
    pub(crate) notes: Vec<String>,
}

/// Charts of one kind, with the figures of the answers that they show.
pub(crate) struct PicturePart {
    /// What is drawn, and what all of its points have in common.
    pub(crate) title: String,
    pub(crate) common: String,
    pub(crate) charts: Vec<Chart>,
    pub(crate) figures: Vec<String>,
}

/// A finding or an advice.
#[derive(Default)]
pub(crate) struct Entry {
    /// The element's id, and what it is an entry of.
    pub(crate) anchor: Option<String>,
    pub(crate) of: String,
    pub(crate) title: Text,
    /// What kind it is, from where, how sure.
    pub(crate) about: Text,
    pub(crate) text: Vec<String>,
    pub(crate) facts: Vec<(Text, Text)>,
}

/// How a page lays out a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableLayout {
    /// Rows become blocks with names on a narrow screen.
    Stack,
    /// The same with more words and figures than fit next to each other: on a wide screen intervals
    /// stand below their figures.
    Tight,
    /// More columns than fit next to a text: as wide as a wide screen allows, with heads and
    /// intervals on several lines; rows become blocks with names on a narrow one.
    Broad,
    /// Few columns, which fit a narrow screen.
    Slim,
    /// Many columns: moved sideways, sorted by a click on a head.
    Wide,
}

pub(crate) struct Table {
    pub(crate) kind: TableLayout,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Rows that a terminal shows at most.
    pub(crate) most: usize,
}

impl Table {
    /// A table with a row for each item; its columns follow.
    pub(crate) fn of<T>(items: impl IntoIterator<Item = T>) -> TableOf<T> {
        let items: Vec<T> = items.into_iter().collect();
        let rows = items.iter().map(|_| Row::default()).collect();
        let table = Self { kind: TableLayout::Stack, columns: Vec::new(), rows, most: usize::MAX };
        TableOf { items, table }
    }

    /// The columns of one renderer, by their places.
    pub(crate) fn columns_on(&self, on: On) -> Vec<(usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.on.has(on)).collect()
    }

    /// The names above groups of these columns with how many they span; nothing without groups.
    pub(crate) fn groups<'a>(columns: &[(usize, &'a Column)]) -> Vec<(&'a str, usize)> {
        let mut spans: Vec<(&str, usize)> = Vec::new();
        for (_, column) in columns {
            match spans.last_mut() {
                Some((group, span)) if *group == column.group => *span += 1,
                _ => spans.push((&column.group, 1)),
            }
        }
        if spans.iter().all(|(group, _)| group.is_empty()) { Vec::new() } else { spans }
    }
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) head: String,
    /// The name above it and its neighbours.
    pub(crate) group: String,
    /// Whether it holds numbers, which stand at the right.
    pub(crate) number: bool,
    /// Whether a narrow terminal may leave it out.
    pub(crate) is_spare: bool,
    pub(crate) on: On,
}

/// A table whose columns are still added: each with what it shows of an item.
pub(crate) struct TableOf<T> {
    items: Vec<T>,
    table: Table,
}

impl<T> TableOf<T> {
    fn add(mut self, number: bool, on: On, head: &str, of: impl Fn(&T) -> Cell) -> Self {
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.cells.push(of(item));
        }
        let (head, group) = (head.to_owned(), String::new());
        self.table.columns.push(Column { head, group, number, is_spare: false, on });
        self
    }

    /// A column of text.
    pub(crate) fn words(self, head: &str, of: impl Fn(&T) -> Cell) -> Self {
        self.add(false, On::ALL, head, of)
    }

    pub(crate) fn words_on(self, on: On, head: &str, of: impl Fn(&T) -> Cell) -> Self {
        self.add(false, on, head, of)
    }

    /// A column of numbers.
    pub(crate) fn numbers(self, head: &str, of: impl Fn(&T) -> Cell) -> Self {
        self.add(true, On::ALL, head, of)
    }

    pub(crate) fn numbers_on(self, on: On, head: &str, of: impl Fn(&T) -> Cell) -> Self {
        self.add(true, on, head, of)
    }

    /// The last column may be left out by a narrow terminal.
    pub(crate) fn spare(mut self) -> Self {
        self.table.columns.iter_mut().next_back().into_iter().for_each(|one| one.is_spare = true);
        self
    }

    /// The last columns, as many, share a name above them.
    pub(crate) fn group(mut self, name: &str, last: usize) -> Self {
        let from = self.table.columns.len() - last;
        self.table.columns[from..].iter_mut().for_each(|column| column.group = name.to_owned());
        self
    }

    /// What of a row is no cell.
    pub(crate) fn each(mut self, change: impl Fn(&T, &mut Row)) -> Self {
        self.table.rows.iter_mut().zip(&self.items).for_each(|(row, item)| change(item, row));
        self
    }

    pub(crate) fn kind(mut self, kind: TableLayout) -> Self {
        self.table.kind = kind;
        self
    }

    /// The rows that a terminal shows at most.
    pub(crate) fn most(mut self, rows: usize) -> Self {
        self.table.most = rows;
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<T> From<TableOf<T>> for Table {
    fn from(built: TableOf<T>) -> Self {
        built.table
    }
}

impl<T> From<TableOf<T>> for Block {
    fn from(built: TableOf<T>) -> Self {
        Self::Table(built.table)
    }
}

/// A row of a table.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// The name of the rows from here on.
    pub(crate) group: Option<String>,
    /// What stands below it.
    pub(crate) below: Option<String>,
    pub(crate) tone: Tone,
    /// Its point's id and title.
    pub(crate) point: Option<(String, String)>,
}

/// The verdicts of many figures, each once.
pub(crate) fn all_verdicts<'a>(all: impl IntoIterator<Item = &'a Verdicts>) -> BTreeSet<Verdict> {
    all.into_iter().flat_map(Verdicts::iter).collect()
}
