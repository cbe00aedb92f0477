//! Whether a page is exactly what its records made of it.

use crate::fault::PageFault;
use crate::view::PageView;

impl PageView<'_> {
    /// Everything there is to check in a page but its checksum: bounds, limits, order, heads,
    /// overlaps, sums.
    ///
    /// # Errors
    /// What is wrong with the page.
    pub fn verify_structure(&self) -> Result<(), PageFault> {
        self.verify_shape(self.page_no())
    }
}
