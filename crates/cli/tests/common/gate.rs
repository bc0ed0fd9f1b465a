//! A socket that leads to another one, and can hold back what goes through it: questions, or answers.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What is held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    #[default]
    Nothing,
    Questions,
    Answers,
}

#[derive(Debug, Default)]
struct Shared {
    hold: Mutex<(Hold, usize)>,
    changed: Condvar,
}

/// A socket before another.
pub struct Gate {
    folder: tempfile::TempDir,
    shared: Arc<Shared>,
}

impl Gate {
    pub fn before(socket: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("gate.sock")).unwrap();
        let (shared, socket) = (Arc::<Shared>::default(), socket.to_owned());
        let through = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&socket)) else { continue };
                let (client_too, server_too) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (one, other) = (through.clone(), through.clone());
                thread::spawn(move || pass(client, server, &one, Hold::Questions));
                thread::spawn(move || pass(server_too, client_too, &other, Hold::Answers));
            }
        });
        Self { folder, shared }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("gate.sock")
    }

    /// From now on this is held back; what was, goes on.
    pub fn hold(&self, what: Hold) {
        *self.shared.hold.lock().unwrap() = (what, 0);
        self.shared.changed.notify_all();
    }

    /// Is anything held back right now?
    pub fn is_holding(&self) -> bool {
        self.shared.hold.lock().unwrap().1 > 0
    }
}

fn pass(mut from: UnixStream, mut to: UnixStream, shared: &Shared, is: Hold) {
    let mut buffer = [0; 8192];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let mut state = shared.hold.lock().unwrap();
        if state.0 == is {
            state.1 += 1;
        }
        drop(shared.changed.wait_while(state, |(hold, _)| *hold == is).unwrap());
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}
