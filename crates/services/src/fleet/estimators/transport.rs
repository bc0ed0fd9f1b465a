//! How is an estimator reached? gRPC over plain text or TLS, as Karmada's scheduler does it.
//!
//! Certificates are read whenever a connection is made, so that those that were replaced are used from the next on.

use crate::cluster::connection::chain;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::BoxError;

/// How often a connection is asked for a sign of life, and how long one may take.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// How TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Who must have signed the estimator's certificate.
    pub servers: Servers,
    /// Our certificate and its key, for those who ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Which estimators are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Servers {
    /// Those with a certificate of an authority in that file.
    SignedBy(PathBuf),
    /// Anybody.
    Anyone,
}

/// Connects to `HOST:PORT`, and again by itself if need be; each time it may take so long.
pub(super) async fn connect(address: &str, tls: Option<&Tls>, within: Duration) -> Result<Channel, String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| format!("expected HOST:PORT: {}", chain(&error)))?
        .connect_timeout(within)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .keep_alive_while_idle(true);
    let connected = match tls {
        None => endpoint.connect().await,
        Some(tls) => {
            let config = Arc::new(config(tls).await?);
            let connector = tower::service_fn(move |uri: Uri| secure(uri, config.clone()));
            endpoint.connect_with_connector(connector).await
        }
    };
    connected.map_err(|error| chain(&error))
}

async fn secure(
    uri: Uri,
    config: Arc<ClientConfig>,
) -> Result<TokioIo<tokio_rustls::client::TlsStream<TcpStream>>, BoxError> {
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = TcpStream::connect((bare.as_str(), uri.port_u16().unwrap_or_default())).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(bare)?;
    Ok(TokioIo::new(TlsConnector::from(config).connect(name, stream).await?))
}

async fn config(tls: &Tls) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match &tls.servers {
        Servers::SignedBy(file) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(file).await? {
                roots.add(certificate).map_err(|error| at(file, &error))?;
            }
            builder.with_root_certificates(roots)
        }
        Servers::Anyone => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        }
    };
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate).await?;
            let text = read(key).await?;
            let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| at(key, &error))?;
            builder.with_client_auth_cert(chain, private).map_err(|error| at(key, &error))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

async fn read(file: &Path) -> Result<Vec<u8>, String> {
    tokio::fs::read(file).await.map_err(|error| at(file, &error))
}

async fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(file).await?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| at(file, &error))?;
    if found.is_empty() {
        return Err(format!("{}: expected certificates as PEM, found none", file.display()));
    }
    Ok(found)
}

fn at(file: &Path, problem: &dyn std::fmt::Display) -> String {
    format!("{}: {problem}", file.display())
}

/// Takes every certificate; whoever asked for that knows.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
