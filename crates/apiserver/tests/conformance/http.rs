//! How are requests sent exactly as written, and watches read while they run?
//!
//! HTTP/1.0 by hand, one connection per request: the answer is what comes before the end of the connection, nothing
//! normalises an odd path or body on its way, and the same few lines speak plain HTTP and HTTPS.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Beyond this many bytes a body may be refused before it was read.
const LONG: usize = 1 << 20;

/// Who every request says it comes from; field ownership shows it.
const AGENT: &str = "conformance/1.0";

/// A server under test.
#[derive(Clone)]
pub struct Server {
    port: u16,
    secure: Option<(Arc<ClientConfig>, String)>,
}

/// An answer, or the head of one that goes on.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl Server {
    pub fn plain(port: u16) -> Self {
        Self { port, secure: None }
    }

    pub fn secure(port: u16, ca_pem: &str, token: &str) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { port, secure: Some((Arc::new(config), token.to_owned())) }
    }

    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> io::Result<Reply> {
        // A server that refuses a long body closes while we still write, and then its answer may get lost.
        let mut tries = if body.len() > LONG { 5 } else { 1 };
        let mut watch = loop {
            tries -= 1;
            match self.open(method, path, headers, body) {
                Err(_) if tries > 0 => {}
                opened => break opened?,
            }
        };
        loop {
            match watch.more(PATIENCE) {
                Ok(true) => {}
                Err(error) if error.kind() != ErrorKind::ConnectionReset || body.len() <= LONG => {
                    return Err(error);
                }
                Ok(false) | Err(_) => break,
            }
        }
        Ok(Reply { status: watch.status, headers: watch.headers, body: watch.buffer })
    }

    /// Sends a request and reads the head of the answer; the body is read by [`Watch`].
    pub fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> io::Result<Watch> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        socket.set_nodelay(true)?;
        let mut head = vec![
            format!("{method} {path} HTTP/1.0"),
            format!("Host: 127.0.0.1:{}", self.port),
            format!("User-Agent: {AGENT}"),
            format!("Content-Length: {}", body.len()),
        ];
        head.extend(self.secure.iter().map(|(_, token)| format!("Authorization: Bearer {token}")));
        head.extend(headers.iter().map(|(key, value)| format!("{key}: {value}")));
        let tls = self.secure.as_ref().map(|(config, _)| {
            let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
            ClientConnection::new(config.clone(), name).unwrap()
        });
        let mut wire = Wire { socket, tls, ended: false };
        let mut request = format!("{}\r\n\r\n", head.join("\r\n")).into_bytes();
        request.extend_from_slice(body);
        let mut buffer = wire.write(&request)?;
        let started = Instant::now();
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if started.elapsed() > PATIENCE || !wire.read(&mut buffer, PATIENCE)? {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed without an answer"));
            }
        };
        let text = String::from_utf8_lossy(&buffer[..end]).into_owned();
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        buffer.drain(..end + 4);
        let status =
            status.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the answer is not HTTP"))?;
        Ok(Watch { status, headers, wire, buffer })
    }
}

/// An answer that is still coming.
pub struct Watch {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    wire: Wire,
    buffer: Vec<u8>,
}

impl Watch {
    /// Waits for more of the body; `false` when it is over.
    fn more(&mut self, patience: Duration) -> io::Result<bool> {
        self.wire.read(&mut self.buffer, patience)
    }

    /// The next line; `None` when the answer is over.
    pub fn line(&mut self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                return Ok(Some(line));
            }
            if !self.more(patience)? {
                let rest = std::mem::take(&mut self.buffer);
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
        }
    }
}

/// A connection, encrypted or not.
struct Wire {
    socket: TcpStream,
    tls: Option<ClientConnection>,
    ended: bool,
}

impl Wire {
    /// Sends everything, or until the server answers before it has read everything (which it may, when a body is
    /// too long). Gives what it answered so far.
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut answer = Vec::new();
        self.socket.set_write_timeout(Some(Duration::from_millis(50)))?;
        loop {
            if let Some(tls) = &mut self.tls {
                if !bytes.is_empty() && !tls.is_handshaking() && !tls.wants_write() {
                    let (chunk, rest) = bytes.split_at(bytes.len().min(16 * 1024));
                    tls.writer().write_all(chunk)?;
                    bytes = rest;
                }
                if tls.is_handshaking() && !tls.wants_write() {
                    self.read(&mut answer, PATIENCE)?;
                    continue;
                }
                if !tls.wants_write() {
                    return Ok(answer);
                }
            } else if bytes.is_empty() {
                return Ok(answer);
            }
            let sent = match &mut self.tls {
                Some(tls) => tls.write_tls(&mut self.socket),
                None => self
                    .socket
                    .write(&bytes[..bytes.len().min(64 * 1024)])
                    .inspect(|sent| bytes = &bytes[*sent..]),
            };
            match sent {
                Ok(_) if bytes.len() < 64 * 1024 => {}
                // A long body: look whether the server still wants it.
                Ok(_) => {
                    if self.peek()? {
                        self.read(&mut answer, PATIENCE)?;
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.peek()? {
                        self.read(&mut answer, PATIENCE)?;
                    }
                }
                Err(error) => return if answer.is_empty() { Err(error) } else { Ok(answer) },
            }
            if !answer.is_empty() {
                return Ok(answer);
            }
        }
    }

    /// Whether there is something to read right now.
    fn peek(&self) -> io::Result<bool> {
        self.socket.set_nonblocking(true)?;
        let found = self.socket.peek(&mut [0]);
        self.socket.set_nonblocking(false)?;
        match found {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// Reads what there is, waiting for it; `false` at the end.
    fn read(&mut self, into: &mut Vec<u8>, patience: Duration) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.socket.set_read_timeout(Some(patience))?;
        let mut chunk = vec![0; 64 * 1024];
        let Some(tls) = &mut self.tls else {
            let count = self.socket.read(&mut chunk)?;
            into.extend_from_slice(&chunk[..count]);
            self.ended = count == 0;
            return Ok(count > 0);
        };
        let count = tls.read_tls(&mut self.socket)?;
        let state = tls.process_new_packets().map_err(io::Error::other)?;
        self.ended = count == 0 || state.peer_has_closed();
        let ready = state.plaintext_bytes_to_read();
        if ready > 0 {
            let start = into.len();
            into.resize(start + ready, 0);
            tls.reader().read_exact(&mut into[start..])?;
        }
        Ok(!self.ended || ready > 0)
    }
}
