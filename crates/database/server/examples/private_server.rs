//! Runs one private server on a port until a stop is requested: `private_server PROGRAM HOME PORT
//! [OPTION...]`. It serves once the file `HOME/ready` is there, which holds its address, and stops
//! when a file `HOME/stop` is made; with `IOSTRATA_SERVER_ENDS_WITH_PARENT` in the environment also
//! when its parent has ended. The next one cleans up what a killed one left.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use iostrata_change::{Session, StateDir, System, restore};
use iostrata_server::private::{PrivatePlan, PrivateServer, ServerProgram};
use rustix::process::getppid;

fn main() -> Result<(), String> {
    serve().map_err(|error| error.to_string())
}

fn serve() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(program), Some(home), Some(port)) = (words.next(), words.next(), words.next()) else {
        return Err("usage: private_server PROGRAM HOME PORT [OPTION...]".into());
    };
    let home = PathBuf::from(home).canonicalize()?;
    let (ready, stop) = (home.join("ready"), home.join("stop"));
    for old in [&ready, &stop] {
        if old.exists() {
            fs::remove_file(old)?;
        }
    }
    let state = StateDir::at(home.join("state"));
    restore(&state, &System::new());
    let mut session = Session::begin(&state, System::new())?;
    let mut plan = PrivatePlan::new(ServerProgram::find(&program)?, home.join("server"));
    plan.port = Some(port.parse()?);
    plan.options = words.collect();
    plan.first_statements = vec![
        "CREATE USER b@127.0.0.1 IDENTIFIED BY 'b'".to_owned(),
        "GRANT ALL PRIVILEGES ON *.* TO b@127.0.0.1 WITH GRANT OPTION".to_owned(),
    ];
    let server = PrivateServer::start(&mut session, &plan)?;
    fs::write(&ready, format!("mysql://b:b@127.0.0.1:{port}"))?;
    // Its parent becomes another one when the first ends.
    let parent = std::env::var_os("IOSTRATA_SERVER_ENDS_WITH_PARENT").map(|_| getppid());
    let is_alone = || parent.is_some_and(|parent| getppid() != parent);
    let lives = || server.process().is_some_and(|process| process.is_alive());
    while lives() && !stop.exists() && !is_alone() {
        std::thread::sleep(Duration::from_millis(100));
    }
    let was_stopped = stop.exists() || is_alone();
    server.remove(&mut session)?;
    for file in [&ready, &stop] {
        if file.exists() {
            fs::remove_file(file)?;
        }
    }
    if was_stopped { Ok(()) } else { Err("the server ended by itself".into()) }
}
