//! A run directory as HTML, Markdown and terminal text
