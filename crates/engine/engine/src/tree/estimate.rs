//! How many rows a tree has, from a few of its leaves.

use crate::error::EngineError;
use crate::page::PageView;
use crate::pages::Pages;
use crate::tree::Tree;

/// Leaves that are looked at.
const LEAVES: u32 = 16;

impl Tree {
    /// About how many rows there are. Each descent takes one child of every page on its way; what
    /// it finds in the leaf stands for as many leaves as there were ways to go. The ways of all
    /// descents are spread evenly over the tree. A way that others cut off meanwhile is left out.
    pub fn rows_estimate(&self, pages: &Pages) -> Result<u64, EngineError> {
        let (mut rows, mut ways, mut cut_off) = (0.0, 0, None);
        for way in 0..LEAVES {
            let place = (f64::from(way) + 0.5) / f64::from(LEAVES);
            match self.unless_dropped(|| self.rows_by_way(pages, place)) {
                Ok(found) => {
                    rows += found;
                    ways += 1;
                }
                Err(error @ EngineError::Corrupt { .. }) => cut_off = Some(error),
                Err(error) => return Err(error),
            }
        }
        match cut_off.filter(|_| ways == 0) {
            Some(error) => Err(error),
            None => Ok((rows / f64::from(ways)).round() as u64),
        }
    }

    /// The rows that the leaf at a place stands for; places go from 0 to below 1.
    fn rows_by_way(&self, pages: &Pages, mut place: f64) -> Result<f64, EngineError> {
        let (mut page, mut parent, mut leaves) = (self.root, None, 1.0);
        loop {
            let node = pages.pin(page)?.shared();
            let view = PageView::new(&node);
            let level = self.check(page, &view, parent)?;
            let count = view.count();
            if level == 0 {
                let is_row = |slot: &usize| !view.cell(*slot).is_tombstone();
                return Ok(leaves * (0..count).filter(is_row).count() as f64);
            }
            let slot = (place * count as f64) as usize;
            place = place * count as f64 - slot as f64;
            leaves *= count as f64;
            (page, parent) = (view.child(slot.min(count - 1)), Some(level));
        }
    }
}
