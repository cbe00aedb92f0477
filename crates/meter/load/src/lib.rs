//! Pacing, generation and the measuring loop
