//! The report from outside: made from a sample run, read as text, opened in a browser.

mod browser;
mod chromium;
mod complete;
mod fits;
mod gallery;
mod hostile;
mod picture;
mod sample;
mod study;
mod study_browser;
mod study_effects;
mod study_text;
mod terminal;
mod transactions;
mod unknown;
mod watch;
