//! The one function that changes pages.

use crate::edit::PageEdit;
use crate::fault::ApplyFault;
use crate::ids::PageNo;
use crate::record::Record;

impl Record<'_> {
    /// Changes the page as the record says.
    ///
    /// # Errors
    /// Why the record does not fit the page, which is unchanged then.
    pub fn apply(&self, page: &mut PageEdit<'_>, no: PageNo) -> Result<(), ApplyFault> {
        match *self {
            Self::Init { kind, level, table, left, right } => {
                page.format(kind, level, table, no, left, right);
            }
            Self::SetLeft(left) => page.set_left(left),
            Self::SetRight(right) => page.set_right(right),
            _ => return Err(ApplyFault::Damaged { page: no }),
        }
        Ok(())
    }
}
