//! Sizes, durations and rates: parsed from what users type, printed as they read them
