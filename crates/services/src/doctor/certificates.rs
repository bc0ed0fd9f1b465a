//! Which certificate is served, and until when is it good? Nobody has to trust it to look at it.

use futures::future::join_all;
use loadline_api::certificate::validity;
use loadline_core::doctor::Certificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Where a certificate is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// `HOST:PORT` of a server.
    At(String),
    /// A file of certificates as PEM; the one that ends first counts.
    File(PathBuf),
}

type Good = Result<(jiff::Timestamp, jiff::Timestamp), String>;

pub(super) async fn all(served: &[Served], deadline: Duration) -> Vec<Certificate> {
    let one = |served: &Served| {
        let served = served.clone();
        async move {
            match served {
                Served::At(address) => {
                    let late = || Err(format!("no answer within {deadline:?}"));
                    let good = timeout(deadline, at(&address)).await.unwrap_or_else(|_| late());
                    Certificate { from: address, good }
                }
                Served::File(file) => {
                    Certificate { good: within(&file).await, from: file.display().to_string() }
                }
            }
        }
    };
    join_all(served.iter().map(one)).await
}

async fn within(file: &Path) -> Good {
    let text = tokio::fs::read(file).await.map_err(|error| error.to_string())?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| error.to_string())?;
    let good: Result<Vec<_>, String> = all.iter().map(|one| validity(one)).collect();
    good?
        .into_iter()
        .min_by_key(|(_, until)| *until)
        .ok_or_else(|| "expected a certificate as PEM".to_owned())
}

async fn at(address: &str) -> Good {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare).map_err(|error| error.to_string())?;
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let seen = Arc::new(Seen { provider: provider.clone(), first: Mutex::default() });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(seen.clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let ended = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    // Whoever wants to see a certificate of ours shows theirs first.
    match seen.first.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(good) => good,
        None => Err(ended.err().map_or_else(|| "none was shown".to_owned(), |error| error.to_string())),
    }
}

/// Notes the certificate that is shown, and takes any: nothing is sent over this connection.
#[derive(Debug)]
struct Seen {
    provider: Arc<CryptoProvider>,
    first: Mutex<Option<Good>>,
}

impl ServerCertVerifier for Seen {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(validity(certificate));
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
