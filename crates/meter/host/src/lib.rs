//! What lies under a directory, and what the machine does meanwhile
