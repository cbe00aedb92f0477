//! File APIs, file sets and the disk a storage engine stands on
