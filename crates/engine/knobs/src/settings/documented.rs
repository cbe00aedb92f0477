//! docs/settings.md.
