//! A claim that is kept while nothing else is asked on its connection.
//!
//! Invariant: the server ends a claim that is silent for a minute and a half, so it is asked every
//! half minute. What was lost once stays lost: somebody else may have had it meanwhile.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use iostrata_database::target::TargetError;
use iostrata_server::Claim;

/// How often a claim is asked.
const EVERY: Duration = Duration::from_secs(30);

/// Asks a claim; why it is of no use any more.
type Asks = Box<dyn FnMut() -> Result<Option<String>, TargetError> + Send>;

/// A claim that is asked until it is dropped.
pub struct KeptClaim {
    asked: Arc<Mutex<ClaimState>>,
    /// Ends the thread with the claim.
    _end: Sender<()>,
}

struct ClaimState {
    asks: Asks,
    lost: Option<String>,
}

impl KeptClaim {
    /// Keeps this one, and sees that its server stays one that is written to.
    pub fn keep(mut claim: Claim) -> Self {
        let asks = move || match claim.holds()? {
            true => Ok(claim.role()?.replica),
            false => Ok(Some("the server has dropped the claim that keeps tuners away".to_owned())),
        };
        Self::asked(Box::new(asks), EVERY)
    }

    fn asked(asks: Asks, every: Duration) -> Self {
        let asked = Arc::new(Mutex::new(ClaimState { asks, lost: None }));
        let (end, ended) = channel();
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                look(&kept);
            }
        });
        Self { asked, _end: end }
    }

    /// Asks now; why it is lost.
    pub fn look(&self) -> Option<String> {
        look(&self.asked)
    }

    /// Why it is lost, as far as that is known.
    pub fn lost(&self) -> Option<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).lost.clone()
    }
}

fn look(asked: &Mutex<ClaimState>) -> Option<String> {
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.lost.is_none() {
        asked.lost = (asked.asks)().unwrap_or_else(|error| Some(error.to_string()));
    }
    asked.lost.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_asked_again_and_again_until_it_is_lost() {
        let (asked, askings) = channel();
        let mut left = 3;
        let asks = move || {
            left -= 1;
            asked.send(left).unwrap();
            Ok((left == 0).then(|| "dropped".to_owned()))
        };
        let kept = KeptClaim::asked(Box::new(asks), Duration::from_millis(1));
        // Nobody looks; the thread does.
        assert_eq!(askings.iter().take(3).collect::<Vec<i32>>(), [2, 1, 0]);
        assert_eq!(kept.look().as_deref(), Some("dropped"));
        assert_eq!(kept.lost().as_deref(), Some("dropped"));
        assert!(askings.try_recv().is_err(), "what is lost is not asked");
    }
}
