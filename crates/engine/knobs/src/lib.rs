//! Settings and counters of the embedded engine under InnoDB's names.
