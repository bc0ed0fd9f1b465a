//! Whom does the extender answer over TLS? Those whose certificate its authority signed.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod signing;

use loadline_apiserver::ApiServer;
use loadline_core::cluster::Keep;
use loadline_services::Ctx;
use loadline_services::cluster::Access;
use loadline_services::scheduler::{self, Options, extender};
use loadline_services::serve::{self, Clients};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use signing::{Authority, Files, Pair};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);

/// Asks a question that needs no thought; the first line of the answer.
async fn ask(address: SocketAddr, trusts: &Authority, shows: Option<&Pair>) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusts.pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match shows {
        None => config.with_no_client_auth(),
        Some(pair) => {
            let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_all(b"GET /filter HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_holders_of_a_certificate_its_authority_signed_are_answered() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let files = Files::new(&ours.sign("extender"), &ours);
    let listening =
        serve::listen(([127, 0, 0, 1], 0).into(), Some(files.tls(Clients::Required)), false).await.unwrap();
    let address = listening.address();
    let ctx = Ctx::new("test", CancellationToken::new());
    let extender = Some(extender::Options { listening, keep: Keep::All, reserve_for: PATIENCE });
    let client = kube::Client::new(ApiServer::default(), "default");
    let options = Options { extender, ..Options::new(Access::Client(client)) };
    let running = tokio::spawn(scheduler::run(ctx.clone(), options));

    let (good, bad) = (ours.sign("kube-scheduler"), theirs.sign("kube-scheduler"));
    let ask = |shows| timeout(PATIENCE, ask(address, &ours, shows));
    let answered = "HTTP/1.1 405 Method Not Allowed";
    assert_eq!(ask(Some(&good)).await.unwrap().unwrap(), answered, "it is understood, and there is no GET");
    ask(Some(&bad)).await.unwrap().expect_err("a certificate nobody here signed, with the right name in it");
    ask(None).await.unwrap().expect_err("none at all");
    assert_eq!(ask(Some(&good)).await.unwrap().unwrap(), answered, "others go on being answered");
    let head = b"GET /filter HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, plain.read_to_end(&mut answer)).await.unwrap();
    assert!(!answer.starts_with(b"HTTP"), "and nobody without TLS");
    ctx.stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
}
