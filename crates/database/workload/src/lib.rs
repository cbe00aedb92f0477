//! Database workloads: TPC-C and the OLTP family.
