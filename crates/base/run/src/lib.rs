//! The run directory: its types, writer and reader
