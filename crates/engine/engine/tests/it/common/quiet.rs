//! Panics as results, and an end to what hangs.
//!
//! A sweep that looks for damage must go on after a panic and print nothing for it; a recovery that
//! never ends must name the image it hangs on.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

/// Far beyond anything a small image takes, even on a busy machine.
const HANGS_AFTER: Duration = Duration::from_secs(120);

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `work`; a panic is its error, with the place.
pub fn quietly<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if IS_QUIET.get() {
                LAST.set(info.to_string().replace('\n', " "));
            } else {
                usual(info);
            }
        }));
    });
    let before = IS_QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_QUIET.set(before);
    result.unwrap_or_else(|_panic| Err(LAST.take()))
}

/// Ends the process when one piece of work takes too long, and names the test.
pub struct Watch(Arc<Mutex<Option<(Instant, String)>>>);

impl Watch {
    pub fn new() -> Self {
        let current = Arc::new(Mutex::new(None::<(Instant, String)>));
        let watched = Arc::downgrade(&current);
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        std::thread::spawn(move || {
            while let Some(current) = watched.upgrade() {
                if let Ok(guard) = current.lock()
                    && let Some((since, what)) = &*guard
                    && since.elapsed() > HANGS_AFTER
                {
                    eprintln!("{test} hangs: {what}");
                    std::process::exit(101);
                }
                drop(current);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        Self(current)
    }

    /// Nothing is being watched for a while.
    pub fn rest(&self) {
        if let Ok(mut current) = self.0.lock() {
            *current = None;
        }
    }

    /// What is being done from now on.
    pub fn on(&self, what: String) {
        if let Ok(mut current) = self.0.lock() {
            *current = Some((Instant::now(), what));
        }
    }
}
