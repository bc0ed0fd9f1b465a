//! How does a test cut the line between a client and its server?
//!
//! A port of its own whose connections lead to another one on this machine. Cut, all of them end at once, what is under
//! way is lost in both directions, and nobody gets a new one that leads anywhere until the line is mended. Held, the client
//! hears everything, and what it says arrives once the line is let go.

use crate::control_plane::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A line to a server on this machine. Dropping it cuts it.
#[derive(Debug)]
pub struct Line {
    begin: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    let_go: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    is_held: bool,
    open: Vec<TcpStream>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns while the line is not held.
    fn wait(&self) {
        let held = |state: &mut State| state.is_held;
        drop(self.let_go.wait_while(self.lock(), held).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Line {
    /// A line to this port.
    ///
    /// # Errors
    /// When there is no port to be had.
    pub fn to(server: u16) -> Result<Self, Error> {
        Self::at((Ipv4Addr::LOCALHOST, 0), server)
    }

    /// A line that begins at this address of the machine; port 0 is any that is free.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn at(address: (Ipv4Addr, u16), server: u16) -> Result<Self, Error> {
        let listener = TcpListener::bind(address).map_err(Error::io("find a free port"))?;
        let begin = listener.local_addr().map_err(Error::io("find a free port"))?;
        let shared = Arc::<Shared>::default();
        let held = Arc::downgrade(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                // Nobody holds the line any more.
                let Some(shared) = held.upgrade() else { return };
                if let Ok(client) = client {
                    // A server that is away is a connection that ends.
                    let _ = connect(&client, server, &shared);
                }
            }
        });
        Ok(Self { begin, shared })
    }

    /// Where it begins.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.begin.port()
    }

    /// Ends all connections, and new ones as they come.
    pub fn cut(&self) {
        let mut state = self.shared.lock();
        state.is_cut = true;
        for stream in state.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// New connections lead to the server again.
    pub fn mend(&self) {
        self.shared.lock().is_cut = false;
    }

    /// Keeps what the client says from now on.
    pub fn hold(&self) {
        self.shared.lock().is_held = true;
    }

    /// What was kept arrives.
    pub fn let_go(&self) {
        self.shared.lock().is_held = false;
        self.shared.let_go.notify_all();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.cut();
        self.let_go();
        // Wakes who waits for connections, to find that nobody holds the line.
        self.shared = Arc::default();
        let _ = TcpStream::connect(self.begin);
    }
}

/// Joins a connection to one to the server, unless the line is cut.
fn connect(client: &TcpStream, server: u16, shared: &Arc<Shared>) -> io::Result<()> {
    let mut state = shared.lock();
    if state.is_cut {
        return client.shutdown(Shutdown::Both);
    }
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
    let (said, to) = (client.try_clone()?, server.try_clone()?);
    let (heard, from) = (client.try_clone()?, server.try_clone()?);
    let line = shared.clone();
    thread::spawn(move || pass(said, to, || line.wait()));
    thread::spawn(move || pass(from, heard, || ()));
    state.open.extend([client.try_clone()?, server]);
    Ok(())
}

/// Passes on what comes until either side ends.
fn pass(mut from: TcpStream, mut to: TcpStream, wait: impl Fn()) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        wait();
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says back what it is told.
    fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let back = client.try_clone().unwrap();
                thread::spawn(move || pass(client, back, || ()));
            }
        });
        port
    }

    fn ask(stream: &mut TcpStream) -> io::Result<[u8; 2]> {
        let mut answer = [0; 2];
        stream.write_all(b"ho")?;
        stream.read_exact(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn a_line_that_is_cut_leads_nowhere_until_it_is_mended() {
        let line = Line::to(echo()).unwrap();
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, line.port())).unwrap();
        let mut first = connect();
        assert_eq!(ask(&mut first).unwrap(), *b"ho");
        line.cut();
        ask(&mut first).unwrap_err();
        ask(&mut connect()).unwrap_err();
        line.mend();
        ask(&mut first).unwrap_err();
        assert_eq!(ask(&mut connect()).unwrap(), *b"ho");
    }

    #[test]
    fn what_is_said_on_a_line_that_is_held_arrives_later() {
        let line = Line::to(echo()).unwrap();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, line.port())).unwrap();
        line.hold();
        stream.write_all(b"ho").unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).unwrap_err();
        line.let_go();
        stream.set_read_timeout(None).unwrap();
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"ho");
    }
}
