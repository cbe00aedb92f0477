//! Servers of the MySQL family: connections, flavours, private instances, and the target.

pub mod private;
