//! How does a test ask an HTTP server one thing without a client library?
//!
//! HTTP/1.0 over one connection per request, with TLS unless told otherwise: the server then neither chunks nor keeps the connection, so the
//! whole answer is what comes before its end. Enough to wait for readiness and to look at a few objects; tests of
//! a client bring that client and use [`crate::ControlPlane`]'s address, authority and token.

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest silence of a server before a request is given up: a hung server must fail a test, not hang it.
const SILENCE: Duration = Duration::from_secs(30);

/// A server's answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status code.
    pub status: u16,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as JSON; `null` when it is none, so that tests can index it and fail on what they look for.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Talks to servers on loopback whose certificates one authority signed.
#[derive(Clone, Debug)]
pub struct Client {
    tls: Arc<ClientConfig>,
    token: String,
    /// The port of a server that speaks without TLS.
    plain: Option<u16>,
}

impl Client {
    /// A client that trusts `authority` (DER) only and sends `token` as its bearer token.
    ///
    /// # Errors
    /// When `authority` is not a certificate.
    pub fn new(authority: &[u8], token: &str) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.to_vec()))?;
        // The provider is named here: the process-wide default belongs to the program under test.
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { tls: Arc::new(tls), token: token.to_owned(), plain: None })
    }

    /// The same, without TLS where that port is concerned.
    #[must_use]
    pub fn plain_at(self, port: u16) -> Self {
        Self { plain: Some(port), ..self }
    }

    /// One request to that port of this machine. A body is sent as JSON, for `PATCH` as a merge patch.
    ///
    /// # Errors
    /// When there is no connection, no TLS, silence for 30 s, or an answer that is not HTTP.
    pub fn send(&self, port: u16, method: &str, path: &str, body: Option<&Value>) -> io::Result<Reply> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        finish(self.open(port, method, path, kind, &body)?)
    }

    /// Server-side apply of one object as YAML, such as the text of a file.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn apply(&self, port: u16, path: &str, yaml: &str) -> io::Result<Reply> {
        finish(self.open(port, "PATCH", path, "application/apply-patch+yaml", yaml)?)
    }

    /// Opens a watch and gives its events, for no longer than `patience` in all.
    ///
    /// # Errors
    /// As [`Client::send`], and when the server does not answer with 200.
    pub fn watch(&self, port: u16, path: &str, patience: Duration) -> io::Result<Events> {
        let until = Instant::now() + patience;
        let mut stream = BufReader::new(self.open(port, "GET", path, "application/json", "")?);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_until(b'\n', &mut head)? == 0 {
                break;
            }
        }
        let reply = parse(&head)?;
        if reply.status != 200 {
            return Err(io::Error::other(format!("a watch of {path} is answered with {}", reply.status)));
        }
        Ok(Events { stream, until })
    }

    fn open(&self, port: u16, method: &str, path: &str, kind: &str, body: &str) -> io::Result<Stream> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        // Handshake and request are small writes one after another: each would wait for the last to be confirmed.
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        let mut stream = if self.plain == Some(port) {
            Stream::Plain(socket)
        } else {
            let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
            let session = ClientConnection::new(self.tls.clone(), name).map_err(io::Error::other)?;
            Stream::Secure(Box::new(StreamOwned::new(session, socket)))
        };

        let (token, length) = (&self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }
}

/// A connection.
#[derive(Debug)]
enum Stream {
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
    Plain(TcpStream),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Secure(stream) => &stream.sock,
            Self::Plain(socket) => socket,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Secure(stream) => stream.read(into),
            Self::Plain(socket) => socket.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Secure(stream) => stream.write(bytes),
            Self::Plain(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Secure(stream) => stream.flush(),
            Self::Plain(socket) => socket.flush(),
        }
    }
}

/// The events of a watch, each as the server sent it: an object with `type` and `object`.
///
/// Ends when the server ends it; a time that runs out is an error of the kind `TimedOut`.
#[derive(Debug)]
pub struct Events {
    stream: BufReader<Stream>,
    until: Instant,
}

impl Iterator for Events {
    type Item = io::Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl Events {
    /// One line is one event.
    fn read(&mut self) -> io::Result<Option<Value>> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no further event in time");
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        self.stream.get_ref().socket().set_read_timeout(Some(left))?;
        let mut line = Vec::new();
        match self.stream.read_until(b'\n', &mut line) {
            Ok(0) => Ok(None),
            Ok(_) => serde_json::from_slice(&line).map(Some).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            // What a socket's own limit is called depends on the system.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(late())
            }
            Err(error) => Err(error),
        }
    }
}

/// The whole answer: everything before the connection's end.
fn finish(mut stream: Stream) -> io::Result<Reply> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // A server may close without TLS's farewell; what came is judged below.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => parse(&answer),
    }
}

fn parse(answer: &[u8]) -> io::Result<Reply> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(bad)?;
    let head = std::str::from_utf8(&answer[..end]).map_err(|_| bad())?;
    let code = head.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)).ok_or_else(bad)?;
    Ok(Reply { status: code.parse().map_err(|_| bad())?, body: answer[end + 4..].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_split_into_status_and_body() {
        let reply = parse(b"HTTP/1.0 404 Not Found\r\nA: b\r\n\r\n{\"code\":404}").unwrap();
        assert_eq!((reply.status, reply.json()["code"].as_u64()), (404, Some(404)));
    }

    #[test]
    fn what_is_not_http_is_an_error() {
        for answer in ["", "\r\n\r\n", "HTTP/1.0\r\n\r\n", "HTTP/1.0 many\r\n\r\n", "SSH-2.0-x 200\r\n\r\n"] {
            assert!(parse(answer.as_bytes()).is_err(), "{answer:?}");
        }
    }
}
