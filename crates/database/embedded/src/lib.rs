//! The embedded engine as a target of database workloads.
