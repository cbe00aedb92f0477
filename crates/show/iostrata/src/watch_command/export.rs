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
    server: MetricsServer,
}

impl Export {
    /// Listens, before anything else is done; it has no targets yet.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn listen(address: SocketAddr) -> Result<Self, ExitError> {
        let board = Arc::new(Mutex::new(Board::new(&[])));
        let read = Arc::clone(&board);
        let text = move || locked(&read).text();
        let server = MetricsServer::start(address, Arc::new(text))
            .map_err(|error| ExitError::NotHere(format!("--metrics-addr: {error}")))?;
        Ok(Self { board, server })
    }

    /// Exports these targets from now on, and says where.
    pub fn begin(&self, targets: &[WatchTarget], display: &Display) {
        *self.board() = Board::new(targets);
        let address = self.server.address();
        display.note(&format!("Metrics for Prometheus at http://{address}/metrics"));
    }

    /// What is told, to be added to.
    pub fn board(&self) -> MutexGuard<'_, Board> {
        locked(&self.board)
    }
}

fn locked(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}
