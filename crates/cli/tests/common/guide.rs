//! A page of the guide, done as it says: each block of commands in a terminal of its own.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use loadline_testkit::parts::find_or_skip;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A page, a folder to do it in, and a path with our binary and kubectl.
pub struct Guide {
    page: String,
    folder: tempfile::TempDir,
    path: String,
    addresses: Vec<(String, String)>,
}

impl Guide {
    /// The page with its addresses replaced by free ones; nothing without kubectl, where it need not be there.
    pub fn start(page: &str, addresses: &[&str]) -> Option<Self> {
        let kubectl = find_or_skip("kubectl")?;
        let loadline = Path::new(env!("CARGO_BIN_EXE_loadline")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{path}", loadline.display(), kubectl.parent().unwrap().display());
        let free = |address: &&str| {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            ((*address).to_owned(), format!("127.0.0.1:{port}"))
        };
        let addresses: Vec<(String, String)> = addresses.iter().map(free).collect();
        let page = addresses.iter().fold(page.to_owned(), |page, (from, to)| page.replace(from, to));
        Some(Self { page, folder: tempfile::tempdir().unwrap(), path, addresses })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The blocks to be typed into a shell.
    pub fn blocks(&self) -> Vec<String> {
        let blocks = self.page.split("```sh\n").skip(1);
        blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).current_dir(self.folder.path()).env("PATH", &self.path);
        shell
    }

    /// Types a block that goes on until it is ended.
    pub fn open(&self, script: &str) -> Terminal {
        let out = self.folder.path().join(format!("out-{}", script.len()));
        let run = format!("exec {}", script.trim());
        let to = std::fs::File::create(&out).unwrap();
        let child = self.shell(&run).stdout(to).stderr(Stdio::null()).spawn().unwrap();
        Terminal { child, out }
    }

    /// Types a block and waits for its end; says what it printed.
    pub fn run(&self, script: &str) -> String {
        let output = self.shell(script).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Does somebody listen at an address of the guide?
    pub fn answers(&self, address: &str) -> bool {
        self.addresses.iter().any(|(from, here)| from == address && TcpStream::connect(here).is_ok())
    }

    /// A page served at an address of the guide.
    pub fn get(&self, address: &str, path: &str) -> String {
        let (_, here) = self.addresses.iter().find(|(from, _)| from == address).unwrap();
        let mut stream = TcpStream::connect(here).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// Ends with the test.
pub struct Terminal {
    child: Child,
    out: PathBuf,
}

impl Terminal {
    /// What it has printed so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    /// Ctrl-C, as it were; says what it printed.
    pub fn end(mut self) -> String {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
        assert!(self.child.wait().unwrap().success());
        std::fs::read_to_string(&self.out).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
