//! A file system that does not begin on a boundary of the blocks below it.
//!
//! Every request then covers one block more than it has to, and the first and the last of them in
//! part: a write becomes a read and a write. Offsets add up from the top down to the disk.

use iostrata_plan::Layer;
use iostrata_run::host::{BlockLayer, LayerKind};
use iostrata_stats::units::bytes;

use crate::case::Case;
use crate::statement::Statement;

/// Its name in the catalogue.
pub(crate) const MISALIGNED_START: &str = "misaligned_start";

/// Where a device begins on what lies below it.
#[derive(Clone, Debug, PartialEq)]
struct Start<'c> {
    device: &'c str,
    what: &'static str,
    /// Bytes from a boundary.
    off_bytes: u64,
    below: String,
    unit_bytes: u64,
}

pub(crate) fn misaligned_start(case: &Case<'_, '_>) -> Option<Statement> {
    let layers = &case.host.path.block_stack;
    let tops = layers.iter().filter(|layer| layer.depth == 0);
    let start = tops.into_iter().find_map(|top| misaligned(case, top))?;
    let Start { device, what, off_bytes, below, unit_bytes } = &start;
    let text = format!(
        "{device} begins {} beyond a boundary of the {} blocks of {below}: every page covers one \
         block too many, and writing it has to read first. Let the {what} begin at a multiple of \
         1 MiB.",
        bytes(*off_bytes as f64),
        bytes(*unit_bytes as f64)
    );
    Some(
        Statement::new(Layer::Block, 0, text)
            .with("device", *device)
            .with("begin_of", *what)
            .with("offset_bytes", *off_bytes)
            .with("block_bytes", *unit_bytes),
    )
}

/// Walks down from a top layer to the disk and adds up where each layer begins.
fn misaligned<'c>(case: &Case<'c, '_>, top: &'c BlockLayer) -> Option<Start<'c>> {
    let layers = &case.host.path.block_stack;
    let (mut at, mut offset) = (top, 0_u64);
    let mut starts: Vec<(&BlockLayer, &'static str, u64)> = Vec::new();
    // Layers are listed once each, from the top down: the walk ends.
    for _ in 0..layers.len() {
        if let Some((what, own)) = start_of(at) {
            offset = offset.saturating_add(own);
            starts.push((at, what, own));
        }
        let lower = below_of(case, at);
        if let Some((below, unit)) = lower.filter(|(_, unit)| !offset.is_multiple_of(*unit)) {
            let (layer, what, _) = starts.iter().find(|(_, _, own)| !own.is_multiple_of(unit))?;
            let off_bytes = offset % unit;
            return Some(Start { device: &layer.name, what, off_bytes, below, unit_bytes: unit });
        }
        let [below] = at.below.as_slice() else { return None };
        at = layers.iter().find(|other| other.name == *below)?;
    }
    None
}

/// What lies directly below a layer, in words, and the size of its blocks: of the file system that
/// holds a loop device's file, else of the device.
fn below_of(case: &Case<'_, '_>, layer: &BlockLayer) -> Option<(String, u64)> {
    if let LayerKind::Loop { backing_block_bytes: Some(unit), backing_file_system, .. } =
        &layer.kind
    {
        let name = backing_file_system.as_deref().unwrap_or("file system");
        return Some((format!("the {name} that holds its file"), *unit)).filter(|one| one.1 > 0);
    }
    let [below] = layer.below.as_slice() else { return None };
    let device = case.host.path.devices.iter().find(|device| device.name == *below)?;
    let unit = device.physical_block_bytes.filter(|unit| *unit > 0)?;
    Some((below.clone(), unit))
}

/// Where a partition or a loop device begins, in bytes, and what sets it.
fn start_of(layer: &BlockLayer) -> Option<(&'static str, u64)> {
    match &layer.kind {
        LayerKind::Partition { start_bytes, .. } => Some(("partition", (*start_bytes)?)),
        LayerKind::Loop { offset_bytes, .. } => Some(("loop device", (*offset_bytes)?)),
        _ => None,
    }
}
