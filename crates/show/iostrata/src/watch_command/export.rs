//! Watched targets for Prometheus, beside whatever else shows them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use iostrata_metrics::{Board, MetricsServer};

use super::stream::Stream;
use crate::display::Display;
use crate::exit_error::ExitError;

/// Answers until it is dropped.
pub struct Export {
    _server: MetricsServer,
}

impl Export {
    /// Listens, and has the stream tell every sample.
    ///
    /// # Errors
    /// An address at which nobody may listen.
    pub fn start(
        address: SocketAddr,
        stream: &mut Stream<'_>,
        display: &Display,
    ) -> Result<Self, ExitError> {
        let board = Arc::new(Mutex::new(Board::new(&stream.targets)));
        let read = Arc::clone(&board);
        let text = move || read.lock().unwrap_or_else(PoisonError::into_inner).text();
        let server = MetricsServer::start(address, Arc::new(text))
            .map_err(|error| ExitError::NotHere(format!("--metrics-addr: {error}")))?;
        display.note(&format!("Metrics for Prometheus at http://{}/metrics", server.address()));
        stream.export_to(board);
        Ok(Self { _server: server })
    }
}
