//! What of a study is shown where: panels, lines, stacks, the data of the page's own script.
//!
//! Invariant: selects, orders and names; no figure is made here. The only sums are those of stacks
//! that begin alike, which a flame graph is.

mod embed;
mod flame;
mod levels;
mod panels;
mod rated;
mod shared;

pub(crate) use embed::Closely;
pub(crate) use levels::{
    axis_words, factor_words, is_workload, level_words, listed, place, varying,
};
pub(crate) use panels::{Look, Panel, PanelLine, Panels, all_panels};
pub(crate) use rated::{is_rated, rated, rated_place};
pub(crate) use shared::shared_once;
