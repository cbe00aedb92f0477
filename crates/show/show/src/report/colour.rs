//! Colours of data: one per layer everywhere, and a row of others for lines that have no layer.
//!
//! Invariants: one colour has one meaning; each is readable on white and on near-black. Colours are
//! variables of the page's style, so that the style alone decides whether it is light or dark.

use iostrata_plan::Layer;
use iostrata_run::host::{KernelLayer, PathSegment};

/// A colour by what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Layer(Layer),
    Kernel(KernelLayer),
    Segment(PathSegment),
    /// The n-th line.
    Line(usize),
    /// What is there and does not matter: no measurable difference.
    Grey,
}

/// Name, colour on a light page, colour on a dark one.
const NAMED: [(&str, &str, &str); 28] = [
    ("host", "#7d8ba1", "#7d8ba1"),
    ("device", "#1f9e89", "#1f9e89"),
    ("block", "#a58b1f", "#a58b1f"),
    ("limit", "#9a62cf", "#9a62cf"),
    ("file-system", "#3f7fd1", "#3f7fd1"),
    ("file-api", "#d9822b", "#d9822b"),
    ("engine", "#cf5279", "#cf5279"),
    ("transactions", "#6f66d8", "#6f66d8"),
    ("user", "#e9a77c", "#e9a77c"),
    ("other-programs", "#9aa5b1", "#9aa5b1"),
    ("vfs", "#82aee8", "#82aee8"),
    ("journal", "#274f9c", "#5c82cc"),
    ("page-cache", "#5f9a46", "#5f9a46"),
    ("scheduler", "#77731a", "#8f8a35"),
    ("driver", "#57b8a4", "#57b8a4"),
    ("interrupt", "#8a5a3c", "#a9765a"),
    ("lock", "#cf3f4f", "#cf3f4f"),
    ("task-switch", "#d884a8", "#d884a8"),
    ("idle", "#c9ced5", "#4a515b"),
    ("other", "#66707e", "#66707e"),
    ("completion", "#b3642a", "#c2783f"),
    ("line-1", "#16324f", "#cfe3ff"),
    ("line-2", "#0091c7", "#22b8ee"),
    ("line-3", "#b3145a", "#ff6fae"),
    ("line-4", "#6b8e00", "#b4d43a"),
    ("line-5", "#7a4a9e", "#c9a0ea"),
    ("line-6", "#c24b00", "#ff9a5a"),
    ("grey", "#9aa1ab", "#79818c"),
];

/// Colours of lines without a layer.
const LINES: usize = 6;

impl Colour {
    fn name(self) -> &'static str {
        match self {
            Self::Layer(layer) => of_layer(layer),
            Self::Kernel(layer) => of_kernel(layer),
            Self::Segment(segment) => match segment {
                PathSegment::Limit => "limit",
                PathSegment::Filesystem => "file-system",
                PathSegment::Queue => "block",
                PathSegment::Device => "device",
                PathSegment::Completion => "completion",
            },
            Self::Line(n) => {
                ["line-1", "line-2", "line-3", "line-4", "line-5", "line-6"][n % LINES]
            }
            Self::Grey => "grey",
        }
    }

    /// The colour as the page's style and script know it.
    pub(crate) fn css(self) -> String {
        format!("var(--{})", self.name())
    }
}

fn of_layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Host => "host",
        Layer::Device => "device",
        Layer::Block => "block",
        Layer::Limit => "limit",
        Layer::Filesystem => "file-system",
        Layer::FileApi => "file-api",
        Layer::Engine => "engine",
        Layer::Transactions => "transactions",
    }
}

/// The colour of the ladder's layer where one exists.
fn of_kernel(layer: KernelLayer) -> &'static str {
    match layer {
        KernelLayer::User => "user",
        KernelLayer::OtherPrograms => "other-programs",
        KernelLayer::SystemCall => of_layer(Layer::FileApi),
        KernelLayer::Vfs => "vfs",
        KernelLayer::Filesystem => of_layer(Layer::Filesystem),
        KernelLayer::Journal => "journal",
        KernelLayer::PageCache => "page-cache",
        KernelLayer::Limit => of_layer(Layer::Limit),
        KernelLayer::Block => of_layer(Layer::Block),
        KernelLayer::Scheduler => "scheduler",
        KernelLayer::Driver => "driver",
        KernelLayer::Device => of_layer(Layer::Device),
        KernelLayer::Interrupt => "interrupt",
        KernelLayer::Lock => "lock",
        KernelLayer::TaskSwitch => "task-switch",
        KernelLayer::Idle => "idle",
        KernelLayer::Other => "other",
    }
}

/// The variables of the page's style.
pub(crate) fn stylesheet() -> String {
    let all = |of: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        NAMED.iter().map(|one| format!("--{}:{};", one.0, of(one))).collect::<String>()
    };
    let (light, dark) = (all(|one| one.1), all(|one| one.2));
    format!(":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}")
}

/// A text with the colours of a light page themselves in place of their variables, for files that
/// have no page around them.
pub(crate) fn on_light(text: &str) -> String {
    let replaced =
        |text: String, one: &(&str, &str, &str)| text.replace(&format!("var(--{})", one.0), one.1);
    NAMED.iter().fold(text.to_owned(), replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_colour_has_one_meaning() {
        for theme in [NAMED.map(|one| one.1), NAMED.map(|one| one.2)] {
            let mut all = theme.to_vec();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), NAMED.len(), "two meanings share a colour");
        }
        let known = |colour: Colour| NAMED.iter().any(|one| one.0 == colour.name());
        assert!(KernelLayer::ALL.iter().all(|layer| known(Colour::Kernel(*layer))));
        assert!(PathSegment::ALL.iter().all(|segment| known(Colour::Segment(*segment))));
        assert!((0..LINES).all(|n| known(Colour::Line(n))) && known(Colour::Grey));
    }
}
