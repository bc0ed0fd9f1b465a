//! How does a test get one server of its own, on a port nobody uses?
//!
//! A free port is chosen, the server started with it in a temporary folder, and waited for until it listens. When
//! someone else takes the port in between, it is tried again with another. The server ends with the value, or with
//! the process if that comes first (see [`crate::guard`]).

use crate::control_plane::Error;
use crate::guard::Guard;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take for what a test waits for: seconds on an idle machine, much more beside a running
/// compiler.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Pause between two looks at a server that is not ready yet.
const PAUSE: Duration = Duration::from_millis(50);

/// How often a start is tried again after someone else took a port between our choosing and the server's binding it.
const TRIES: usize = 5;

/// Lines of a server's log shown when it does not do what it should.
const SHOWN: usize = 20;

/// A running server. Dropping it ends its process and removes its folder.
#[derive(Debug)]
pub struct Running {
    // Declared, and so dropped, before the folder it writes to.
    guard: Guard,
    folder: TempDir,
    port: u16,
}

impl Running {
    /// Starts `program` with the flags that `flags` makes for a port, and waits until it listens there.
    ///
    /// # Errors
    /// When it cannot be started or does not listen; the message shows the end of its log.
    pub fn start(name: &str, program: &Path, flags: impl Fn(u16) -> Vec<String>) -> Result<Self, Error> {
        with_free_ports(|| {
            let [port] = free_ports()?;
            let folder = tempfile::Builder::new().prefix("loadline-").tempdir();
            let folder = folder.map_err(Error::io("make a temporary folder"))?;
            let guard = Guard::start(name, folder.path(), program, &flags(port));
            let running = Self { guard: guard.map_err(Error::io("start a server"))?, folder, port };
            wait(&running.guard, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())?;
            Ok(running)
        })
    }

    /// The port it was told to listen on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id, to read what the system knows of it.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.guard.pid()
    }

    /// Its own folder: a place for a test's files that goes with it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All it has said up to now.
    #[must_use]
    pub fn output(&self) -> String {
        self.guard.output()
    }

    /// Waits until `done` is true of all it has said.
    ///
    /// # Errors
    /// When it ends first, or does not say so in time.
    pub fn wait_until(&self, done: impl Fn(&str) -> bool) -> Result<(), Error> {
        wait(&self.guard, || done(&self.output()))
    }

    /// The error for something it did not do.
    pub(crate) fn failure(&self, what: String) -> Error {
        failure(&self.guard, what)
    }
}

fn failure(server: &Guard, what: String) -> Error {
    Error::NotReady { name: server.name().to_owned(), what, lines: server.last_lines(SHOWN) }
}

/// Looks until `ready` says yes, the server ends, or patience does.
pub(crate) fn wait(server: &Guard, ready: impl Fn() -> bool) -> Result<(), Error> {
    let started = Instant::now();
    while !ready() {
        let what = match server.ended() {
            Some(status) => format!("ended with status {status}"),
            None if started.elapsed() > PATIENCE => format!("was not ready after {PATIENCE:?}"),
            None => {
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        return Err(failure(server, what));
    }
    Ok(())
}

/// Calls `start`, which chooses its ports, until nobody was faster in taking one.
pub(crate) fn with_free_ports<T>(start: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let mut tries = 1;
    loop {
        match start() {
            Err(error) if error.is_port_taken() && tries < TRIES => tries += 1,
            result => return result,
        }
    }
}

/// Distinct ports nobody uses now: all are held until the last is known.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("find a free port"))?;
        *port = listener.local_addr().map_err(Error::io("find a free port"))?.port();
        held.push(listener);
    }
    Ok(ports)
}
