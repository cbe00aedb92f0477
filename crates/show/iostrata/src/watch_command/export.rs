//! Watched and tuned targets for Prometheus, beside whatever else shows them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iostrata_run::WatchTarget;
use iostrata_show::metrics::{Board, MetricsServer};

use crate::display::Display;
use crate::exit_error::ExitError;

/// Answers until it is dropped.
pub struct Export {
    /// The samples that are exported; who takes them puts them there.
    pub board: Arc<Mutex<Board>>,
    _server: MetricsServer,
}

impl Export {
    /// Listens; nothing is told yet.
    ///
    /// # Errors
    /// An address at which nobody may listen.
    pub fn start(
        address: SocketAddr,
        targets: &[WatchTarget],
        display: &Display,
    ) -> Result<Self, ExitError> {
        let board = Arc::new(Mutex::new(Board::new(targets)));
        let read = Arc::clone(&board);
        let text = move || locked(&read).text();
        let server = MetricsServer::start(address, Arc::new(text))
            .map_err(|error| ExitError::NotHere(format!("--metrics-addr: {error}")))?;
        display.note(&format!("Metrics for Prometheus at http://{}/metrics", server.address()));
        Ok(Self { board, _server: server })
    }

    /// What is told, to be added to.
    pub fn board(&self) -> MutexGuard<'_, Board> {
        locked(&self.board)
    }
}

fn locked(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}
