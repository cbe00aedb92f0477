//! On a pseudo terminal of `script`: shown while it lasts, given back in whatever way it ends.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use iostrata_show::screen::{Look, made_up, run};
use rustix::process::{Pid, Signal, kill_process};

/// What the part of a test on the terminal does.
const PART: &str = "IOSTRATA_SCREEN_TEST_PART";

/// Marks of the terminal's other screen: entered, left.
const ENTERED: &str = "\x1b[?1049h";
const LEFT: &str = "\x1b[?1049l";

/// The part on the terminal; does nothing where it is not requested.
#[test]
fn part_on_the_terminal() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop)).unwrap();
    println!("PID={}=", std::process::id());
    let (sender, receiver) = mpsc::channel();
    for second in 0..75 {
        sender.send((0, made_up::stalling_at(second))).unwrap();
    }
    let kept = (part != "ends").then(|| sender.clone());
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        drop(sender);
        assert!(part != "panics", "broken on purpose");
    });
    let look = Look { colour: true, unicode: true };
    match run(&[made_up::stalling()], &receiver, &stop, look) {
        Ok(ending) => println!("ENDED={ending:?}="),
        Err(error) => println!("ENDED={error}="),
    }
    drop(kept);
}

/// Runs a part on a terminal of 24 rows; `act` gets the terminal's keys and the part's process once
/// it is on the other screen. Returns all that was written to the terminal.
fn on_terminal(part: &str, act: impl FnOnce(&mut dyn Write, Pid)) -> Option<String> {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: no script (apt-get install bsdutils)");
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let command = format!(
        "stty rows 24 cols 80; echo MODE=$(stty -g)=; {} --exact screen::terminal::part_on_the_terminal \
         --nocapture; echo MODE=$(stty -g)=",
        program.display()
    );
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .env(PART, part)
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut told = Vec::new();
    let mut read = |told: &mut Vec<u8>| {
        let mut some = [0; 4096];
        let count = out.read(&mut some).unwrap();
        told.extend_from_slice(&some[..count]);
        count > 0
    };
    // The line of keys is the last thing of the first frame.
    while !String::from_utf8_lossy(&told).contains("help") && read(&mut told) {}
    let pid = between(&String::from_utf8_lossy(&told), "PID=").and_then(|pid| pid.parse().ok());
    act(&mut keys, pid.and_then(Pid::from_raw).unwrap());
    while read(&mut told) {}
    child.wait().unwrap();
    Some(String::from_utf8_lossy(&told).into_owned())
}

fn between<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark)?.1.split('=').next()
}

/// The terminal is as it was, and the part ended as it should.
fn assert_given_back(told: &str, ending: &str) {
    let modes: Vec<&str> =
        told.split("MODE=").skip(1).map(|rest| rest.split('=').next().unwrap()).collect();
    assert_eq!(modes.len(), 2, "{told}");
    assert_eq!(modes[0], modes[1], "the terminal's mode is put back");
    let (entered, left) = (told.find(ENTERED).unwrap(), told.rfind(LEFT).unwrap());
    assert!(entered < left && told.matches(LEFT).count() == 1, "left once");
    let ended = told.find("ENDED=").unwrap();
    assert!(left < ended, "nothing is said on the other screen");
    assert_eq!(between(told, "ENDED="), Some(ending));
    assert!(told[entered..left].contains("STALL"), "it was shown");
}

#[test]
fn q_ends_it() {
    let Some(told) = on_terminal("shows", |keys, _| keys.write_all(b"q").unwrap()) else { return };
    assert_given_back(&told, "Quit");
}

#[test]
fn control_c_ends_it() {
    let Some(told) = on_terminal("shows", |keys, _| keys.write_all(b"\x03").unwrap()) else {
        return;
    };
    assert_given_back(&told, "Interrupted");
}

#[test]
fn a_signal_ends_it() {
    let kill = |_: &mut dyn Write, pid| kill_process(pid, Signal::TERM).unwrap();
    let Some(told) = on_terminal("shows", kill) else { return };
    assert_given_back(&told, "Stopped");
}

#[test]
fn the_end_of_the_samples_ends_it() {
    let Some(told) = on_terminal("ends", |_, _| ()) else { return };
    assert_given_back(&told, "StreamEnded");
}

#[test]
fn a_panic_elsewhere_is_read_on_the_users_own_screen() {
    let Some(told) = on_terminal("panics", |_, _| ()) else { return };
    assert_given_back(&told, "a broken invariant stopped the program while the screen was shown");
    assert!(told.find(LEFT) < told.find("broken on purpose"), "{told}");
}

#[test]
fn without_a_terminal_it_says_so() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "screen::terminal::part_on_the_terminal", "--nocapture"])
        .env(PART, "shows")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("ENDED=standard output is no terminal; --json-lines"), "{told}");
}
