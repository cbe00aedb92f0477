//! The screen with made-up samples: a server whose redo fills up and stalls.
//!
//! `cargo run -p iostrata-show --example demo [-- [several] [fast] [seconds=N]]`: three targets
//! instead of one; ten samples a second; that many seconds of history before the first frame.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use iostrata_show::screen::{Look, made_up, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|one| one == word);
    let seconds = arguments.iter().find_map(|one| one.strip_prefix("seconds=")?.parse().ok());
    let mut targets = vec![made_up::stalling()];
    if has("several") {
        targets.extend([made_up::steady(), made_up::vanishing()]);
    }
    let pause = Duration::from_millis(if has("fast") { 100 } else { 1000 });
    let (sender, receiver) = mpsc::channel();
    let ready = seconds.unwrap_or(90);
    thread::spawn(move || {
        for second in 0.. {
            let sent = [
                sender.send((0, made_up::stalling_at(second))),
                sender.send((1, made_up::steady_at(second))),
                sender.send((2, made_up::vanishing_at(second))),
            ];
            if sent.iter().any(Result::is_err) {
                return;
            }
            if second >= ready {
                thread::sleep(pause);
            }
        }
    });
    match run(&targets, &receiver, &AtomicBool::new(false), Look::of_environment()) {
        Ok(ending) => eprintln!("ended: {ending:?}"),
        Err(error) => eprintln!("demo: {error}"),
    }
}
