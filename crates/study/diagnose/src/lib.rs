//! From measured points to suspicions, findings, losses and advice
