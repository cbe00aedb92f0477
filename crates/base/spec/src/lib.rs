//! What to measure, as plain data that has been checked
