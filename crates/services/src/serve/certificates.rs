//! Which certificates are served now? The newest on disk that can be used.
//!
//! Files are read again and again and compared by content: that notices every kind of rotation, be it a new file, a
//! changed one or a symbolic link that points elsewhere. New content that cannot be used changes nothing; what was
//! served goes on being served. Half a rotation (a certificate whose key is not there yet) is such content.

use super::Error;
use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

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

impl Clients {
    fn authority(&self) -> Option<&Path> {
        match self {
            Self::Anyone => None,
            Self::Offered(file) | Self::Required(file) => Some(file),
        }
    }
}

/// Where certificates are.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl Tls {
    /// How often files are looked at, unless said otherwise.
    pub const EVERY: Duration = Duration::from_secs(10);
}

/// What is in the files.
#[derive(PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<Vec<u8>>,
}

/// The certificates served with.
pub struct Certificates {
    tls: Tls,
    now: ArcSwap<ServerConfig>,
    /// What was looked at last, whether it could be used or not; `None` if it could not be read.
    seen: Mutex<Option<Content>>,
    reloads: AtomicU64,
    failures: AtomicU64,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").field("tls", &self.tls).finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads them.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub fn load(tls: Tls) -> Result<Self, Error> {
        let content = Content::read(&tls)?;
        let now = ArcSwap::from_pointee(content.config(&tls)?);
        let seen = Mutex::new(Some(content));
        Ok(Self { tls, now, seen, reloads: AtomicU64::new(0), failures: AtomicU64::new(0) })
    }

    /// Looks at the files now: did they change, and is what is in them served from now on?
    ///
    /// # Errors
    /// When they changed and cannot be used; it is told once, and what was served goes on being served.
    pub fn look(&self) -> Result<bool, Error> {
        let read = Content::read(&self.tls);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = match read {
            Ok(content) if Some(&content) == seen.as_ref() => return Ok(false),
            Ok(content) => {
                let config = content.config(&self.tls);
                *seen = Some(content);
                config
            }
            Err(_) if seen.is_none() => return Ok(false),
            Err(error) => {
                *seen = None;
                Err(error)
            }
        };
        match fresh {
            Ok(config) => {
                self.now.store(Arc::new(config));
                self.reloads.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// How often new certificates were taken over.
    #[must_use]
    pub fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Relaxed)
    }

    /// How often new certificates could not be used.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Looks at the files from time to time, without end.
    pub(super) async fn follow(&self) {
        let mut ticks = tokio::time::interval(self.tls.every.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.look() {
                Ok(true) => {
                    info!(certificate = %self.tls.certificate.display(), "took over new certificates");
                }
                Ok(false) => {}
                Err(error) => warn!(%error, "cannot use new certificates, keeping those there are"),
            }
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.now.load_full())
    }
}

impl Content {
    fn read(tls: &Tls) -> Result<Self, Error> {
        let read =
            |file: &Path| std::fs::read(file).map_err(|error| at(file, format!("cannot read it: {error}")));
        Ok(Self {
            certificate: read(&tls.certificate)?,
            key: read(&tls.key)?,
            authority: tls.clients.authority().map(read).transpose()?,
        })
    }

    fn config(&self, tls: &Tls) -> Result<ServerConfig, Error> {
        let chain = certificates(&self.certificate, &tls.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| at(&tls.key, format!("expected a private key as PEM: {error}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| at(&tls.certificate, error.to_string()))?;
        let builder = match (tls.clients.authority(), &self.authority) {
            (Some(file), Some(content)) => {
                let unusable =
                    |error: String| at(file, format!("expected certificates of authorities: {error}"));
                let mut roots = RootCertStore::empty();
                for certificate in certificates(content, file)? {
                    roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = match tls.clients {
                    Clients::Required(_) => verifier,
                    Clients::Anyone | Clients::Offered(_) => verifier.allow_unauthenticated(),
                };
                builder
                    .with_client_cert_verifier(verifier.build().map_err(|error| unusable(error.to_string()))?)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| {
            at(
                &tls.key,
                format!("does not go with the certificate in {}: {error}", tls.certificate.display()),
            )
        })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn certificates(content: &[u8], file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(content).collect();
    let found = read.map_err(|error| at(file, format!("expected certificates as PEM: {error}")))?;
    if found.is_empty() {
        return Err(at(file, "expected certificates as PEM, found none".into()));
    }
    Ok(found)
}

fn at(file: &Path, problem: String) -> Error {
    Error::Certificate { file: file.into(), problem }
}
