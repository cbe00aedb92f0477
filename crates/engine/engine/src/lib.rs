//! An embedded storage engine: ordered tables, atomic durable batches, InnoDB's knobs.
