//! Whether a page may be used at all.

use crate::fault::PageFault;
use crate::ids::PageNo;
use crate::layout::{AT_CRC, AT_KIND};
use crate::view::PageView;

/// The checksum of a page: crc32c of everything behind the field that holds it.
#[inline]
pub(crate) fn computed_crc(page: &[u8]) -> u32 {
    const { assert!(AT_CRC + 4 == AT_KIND) };
    crc32c::crc32c(page.get(AT_KIND..).unwrap_or_default())
}

impl PageView<'_> {
    /// Checksum, page number, kind and bounds: after this, every slot has its cell.
    ///
    /// # Errors
    /// What is wrong with the page.
    pub fn verify(&self, expected: PageNo) -> Result<(), PageFault> {
        let (stored, computed) = (self.crc(), computed_crc(self.bytes()));
        if stored != computed {
            let is_blank = self.bytes().iter().all(|byte| *byte == 0);
            return Err(if is_blank {
                PageFault::Blank { page: expected }
            } else {
                PageFault::Checksum { page: expected, stored, computed }
            });
        }
        self.verify_shape(expected)
    }

    /// As [`verify`](Self::verify), without the checksum: for a store that is told not to check.
    ///
    /// # Errors
    /// What is wrong with the page.
    pub fn verify_shape(&self, expected: PageNo) -> Result<(), PageFault> {
        if self.page_no() != expected {
            return Err(PageFault::OtherPage { page: expected, found: self.page_no() });
        }
        Ok(())
    }
}
