//! How does a test stop a client in the middle of one certain request?
//!
//! A port of its own that passes HTTP/1.1 on to another one on this machine, in the open. Of the requests that are like the wanted
//! one, the nth is kept: it never arrives, or it does and its answer never comes back. The test is told, and does with the client what it
//! likes; what that sends on other connections goes through.

use crate::control_plane::Error;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What of a request does not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The request, so that it never arrives.
    Request,
    /// Its answer: it has been carried out, or refused, by then.
    Answer,
}

/// Which request is kept.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub method: &'static str,
    /// What its path begins and ends with, the query left out.
    pub begins: &'static str,
    pub ends: &'static str,
    /// Which of those, counted from one over all connections.
    pub nth: usize,
    pub kept: Kept,
}

impl Wanted {
    fn fits(&self, head: &[u8]) -> bool {
        let head = String::from_utf8_lossy(head);
        let mut words = head.split_whitespace();
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default();
        method == self.method && path.starts_with(self.begins) && path.ends_with(self.ends)
    }
}

#[derive(Debug)]
struct Shared {
    wanted: Wanted,
    state: Mutex<State>,
    reached: Condvar,
}

#[derive(Debug, Default)]
struct State {
    seen: usize,
    is_reached: bool,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is this the one?
    fn is_it(&self, head: &[u8]) -> bool {
        if !self.wanted.fits(head) {
            return false;
        }
        let mut state = self.lock();
        state.seen += 1;
        state.seen == self.wanted.nth
    }

    fn reach(&self) {
        self.lock().is_reached = true;
        self.reached.notify_all();
    }
}

/// A gate before a server on this machine. Dropping it closes it.
#[derive(Debug)]
pub struct Gate {
    port: u16,
    shared: Arc<Shared>,
}

impl Gate {
    /// A gate before this port.
    ///
    /// # Errors
    /// When there is no port to be had.
    pub fn to(server: u16, wanted: Wanted) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("find a free port"))?;
        let port = listener.local_addr().map_err(Error::io("find a free port"))?.port();
        let shared = Arc::new(Shared { wanted, state: Mutex::default(), reached: Condvar::new() });
        let known = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if known.lock().is_closed {
                    return;
                }
                if let Ok(client) = client {
                    // A server that is away is a connection that ends.
                    let _ = connect(&client, server, &known);
                }
            }
        });
        Ok(Self { port, shared })
    }

    /// Where it is.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until the wanted request, or its answer, is kept; says whether that was so in time.
    #[must_use]
    pub fn waits(&self, patience: Duration) -> bool {
        let not_yet = |state: &mut State| !state.is_reached;
        let waited = self.shared.reached.wait_timeout_while(self.shared.lock(), patience, not_yet);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_reached
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        // Wakes who waits for connections.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Joins a connection to one to the server.
fn connect(client: &TcpStream, server: u16, shared: &Arc<Shared>) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
    let is_mute = Arc::<AtomicBool>::default();
    let (said, to) = (client.try_clone()?, server.try_clone()?);
    let (known, mute) = (shared.clone(), is_mute.clone());
    thread::spawn(move || {
        // What is kept stays open, until whoever asks has gone.
        if let Ok(false) | Err(_) = requests(&said, &to, &known, &mute) {
            let _ = to.shutdown(Shutdown::Both);
        }
    });
    let (heard, from, known) = (client.try_clone()?, server, shared.clone());
    thread::spawn(move || answers(from, heard, &known, &is_mute));
    Ok(())
}

/// Passes requests on, one after the other, up to the one that is kept; says whether there was one.
fn requests(
    client: &TcpStream,
    server: &TcpStream,
    shared: &Shared,
    is_mute: &AtomicBool,
) -> io::Result<bool> {
    let (mut client, mut server) = (BufReader::new(client), server);
    loop {
        let mut whole = Vec::new();
        while !whole.ends_with(b"\r\n\r\n") {
            if client.read_until(b'\n', &mut whole)? == 0 {
                return Ok(false);
            }
        }
        let is_it = shared.is_it(&whole);
        let mut body = vec![0; length(&whole)];
        client.read_exact(&mut body)?;
        whole.extend(body);
        if is_it && shared.wanted.kept == Kept::Request {
            shared.reach();
            return Ok(true);
        }
        if is_it {
            is_mute.store(true, Ordering::SeqCst);
        }
        server.write_all(&whole)?;
    }
}

/// How long the body is; clients of API servers say so.
fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let said = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    said.unwrap_or(0)
}

/// Passes on what the server says, unless nobody may hear it.
fn answers(mut server: TcpStream, mut client: TcpStream, shared: &Shared, is_mute: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        if is_mute.load(Ordering::SeqCst) {
            shared.reach();
        } else if client.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    if !is_mute.load(Ordering::SeqCst) {
        let _ = client.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    const PATIENCE: Duration = Duration::from_mins(1);

    /// Answers every request, and counts them.
    fn server(count: &Arc<AtomicUsize>) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let count = count.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let count = count.clone();
                thread::spawn(move || {
                    let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
                    let mut client = client;
                    while let Some(Ok(line)) = lines.next() {
                        if line.is_empty() {
                            count.fetch_add(1, Ordering::SeqCst);
                            client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                        }
                    }
                });
            }
        });
        port
    }

    fn ask(stream: &mut TcpStream, head: &str) -> String {
        write!(stream, "{head} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut answer = [0; 15];
        stream
            .read_exact(&mut answer)
            .map_or_else(|error| error.to_string(), |()| String::from_utf8_lossy(&answer).into())
    }

    #[test]
    fn the_nth_request_or_its_answer_is_kept_and_everything_else_gets_through() {
        for (kept, arrived) in [(Kept::Request, 3), (Kept::Answer, 4)] {
            let count = Arc::<AtomicUsize>::default();
            let wanted = Wanted { method: "POST", begins: "/pods/", ends: "/eviction", nth: 2, kept };
            let gate = Gate::to(server(&count), wanted).unwrap();
            let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, gate.port())).unwrap();
            for head in ["GET /pods/a/eviction", "POST /pods/a", "POST /pods/a/eviction?dry=1"] {
                assert!(ask(&mut connect(), head).starts_with("HTTP/1.1 200"), "{head}");
            }
            let mut stopped = connect();
            write!(stopped, "POST /pods/b/eviction HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
            assert!(gate.waits(PATIENCE));
            assert_eq!(count.load(Ordering::SeqCst), arrived, "{kept:?}");
            stopped.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            stopped.read_exact(&mut [0]).unwrap_err();
            assert!(ask(&mut connect(), "POST /pods/c/eviction").starts_with("HTTP/1.1 200"), "the third");
        }
    }
}
