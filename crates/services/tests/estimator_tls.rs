//! Who is let in? TLS, client certificates, and new certificates while serving.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod serving;
mod signing;

use loadline_api::estimator::replicas_request;
use loadline_api::estimator::service::estimator_client::EstimatorClient;
use loadline_services::estimator::Members;
use loadline_services::estimator::server::Options;
use loadline_services::serve::{self, Clients, Error, Limits, Tls};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serving::{Serving, cluster, members, publish};
use signing::{Authority, Files, Pair};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

fn one_cluster() -> Arc<Members> {
    let members = members(&["a"]);
    publish(&members, "a", &cluster(1, "8", &[]));
    members
}

async fn start(tls: Tls) -> Serving {
    Serving::with(&one_cluster(), Options::default(), Some(tls), Limits::default()).await
}

async fn channel(
    address: SocketAddr,
    trusts: &Authority,
    shows: Option<&Pair>,
) -> Result<Channel, tonic::transport::Error> {
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&trusts.pem));
    if let Some(pair) = shows {
        tls = tls.identity(Identity::from_pem(&pair.certificate, &pair.key));
    }
    let endpoint = Endpoint::from_shared(format!("https://{address}")).expect("an address");
    endpoint.tls_config(tls)?.connect().await
}

/// Asks for replicas over a new connection.
async fn ask(serving: &Serving, trusts: &Authority, shows: Option<&Pair>) -> Result<i32, String> {
    let channel = channel(serving.address, trusts, shows).await.map_err(|e| format!("{e:?}"))?;
    let answer = EstimatorClient::new(channel).max_available_replicas(replicas_request("a", None, &[])).await;
    answer.map(|answer| answer.into_inner().max_replicas).map_err(|status| format!("{status:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn with_client_certificates_required_only_their_holders_are_answered() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let files = Files::new(&ours.sign("server"), &ours);
    let serving = start(files.tls(Clients::Required)).await;
    let client = ours.sign("scheduler");
    assert_eq!(ask(&serving, &ours, Some(&client)).await, Ok(110));
    ask(&serving, &ours, None).await.expect_err("a client without a certificate");
    ask(&serving, &ours, Some(&theirs.sign("x"))).await.expect_err("a certificate nobody here signed");
    ask(&serving, &theirs, Some(&client)).await.expect_err("a client that does not trust the server");
    assert_eq!(ask(&serving, &ours, Some(&client)).await, Ok(110), "others go on being answered");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_verification_clients_need_no_certificate() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let files = Files::new(&ours.sign("server"), &ours);
    let serving = start(files.tls(Clients::Offered)).await;
    assert_eq!(ask(&serving, &ours, None).await, Ok(110));
    assert_eq!(ask(&serving, &ours, Some(&ours.sign("scheduler"))).await, Ok(110));
    ask(&serving, &ours, Some(&theirs.sign("x"))).await.expect_err("who shows one shows a good one");
    serving.end().await;
    let serving = start(files.tls(|_| Clients::Anyone)).await;
    assert_eq!(ask(&serving, &ours, None).await, Ok(110));
    assert_eq!(ask(&serving, &ours, Some(&theirs.sign("x"))).await, Ok(110), "nobody looks");
    serving.end().await;
}

/// Who trusts that authority and speaks those versions.
fn client(trusts: &Authority, versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusts.pem.as_bytes()).expect("PEM")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(versions).expect("versions");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// A handshake of those versions; the protocol agreed on.
async fn shake(
    address: SocketAddr,
    trusts: &Authority,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<Option<Vec<u8>>> {
    let config = client(trusts, versions);
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(config).connect(name, stream).await?;
    let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    stream.shutdown().await?;
    Ok(agreed)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_tls_1_3_is_spoken() {
    let ours = Authority::new("ours");
    let files = Files::new(&ours.sign("server"), &ours);
    let serving = start(files.tls(|_| Clients::Anyone)).await;
    let error = shake(serving.address, &ours, &[&rustls::version::TLS12]).await.unwrap_err();
    assert!(error.to_string().contains("ProtocolVersion"), "{error}");
    let agreed = shake(serving.address, &ours, &[&rustls::version::TLS13]).await.unwrap();
    assert_eq!(agreed.as_deref(), Some(&b"h2"[..]));

    // Who speaks no TLS at all gets no answer, and others do.
    let mut plain = TcpStream::connect(serving.address).await.unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // Closed or reset, with an alert at most.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(ask(&serving, &ours, None).await, Ok(110));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_certificates_are_taken_over_and_bad_ones_are_not() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let files = Files::new(&old.sign("server"), &old);
    let serving = start(files.tls(|_| Clients::Anyone)).await;
    let certificates = serving.certificates.clone().unwrap();
    // One that is open stays open.
    let open = channel(serving.address, &old, None).await.unwrap();
    assert!(!certificates.look().unwrap(), "nothing has changed");

    let pair = new.sign("server");
    std::fs::write(files.path("tls.crt"), &pair.certificate).unwrap();
    let error = certificates.look().unwrap_err().to_string();
    assert!(error.contains("tls.key: does not go with the certificate in"), "half a rotation: {error}");
    assert!(!certificates.look().unwrap(), "it is told once");
    assert_eq!(ask(&serving, &old, None).await, Ok(110), "what was served is still served");

    std::fs::write(files.path("tls.key"), &pair.key).unwrap();
    assert!(certificates.look().unwrap());
    assert_eq!(ask(&serving, &new, None).await, Ok(110));
    ask(&serving, &old, None).await.expect_err("the old certificate is not served any more");
    let answer = EstimatorClient::new(open).max_available_replicas(replicas_request("a", None, &[])).await;
    assert_eq!(answer.unwrap().into_inner().max_replicas, 110);

    std::fs::remove_file(files.path("tls.key")).unwrap();
    assert!(certificates.look().unwrap_err().to_string().contains("tls.key: cannot read it"));
    assert!(!certificates.look().unwrap(), "it is told once");
    files.write(&pair);
    assert!(certificates.look().unwrap(), "it is back");
    assert_eq!((certificates.reloads(), certificates.failures()), (2, 2));

    serving.estimator.watch(certificates);
    let text = serving.metrics.text().unwrap();
    assert!(text.contains(r#"loadline_estimator_certificate_reloads_total{result="success"} 2"#), "{text}");
    assert!(text.contains(r#"loadline_estimator_certificate_reloads_total{result="error"} 2"#), "{text}");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_is_noticed_without_being_told() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let files = Files::new(&old.sign("server"), &old);
    let every = Duration::from_millis(5);
    let serving = start(Tls { every, ..files.tls(|_| Clients::Anyone) }).await;
    let certificates = serving.certificates.clone().unwrap();
    files.write(&new.sign("server"));
    while certificates.reloads() == 0 {
        tokio::time::sleep(every).await;
    }
    assert_eq!(ask(&serving, &new, None).await, Ok(110));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_have_ended_or_are_not_good_yet_open_nothing() {
    let ours = Authority::new("ours");
    let files = Files::new(&ours.sign("server"), &ours);
    let serving = start(files.tls(Clients::Required)).await;
    let client = |years| ours.sign_for("scheduler", &["localhost"], years);
    for (years, why) in [((2000, 2001), "it has ended"), ((4000, 4001), "it is not good yet")] {
        ask(&serving, &ours, Some(&client(years))).await.expect_err(why);
    }
    assert_eq!(ask(&serving, &ours, Some(&client((2000, 4001)))).await, Ok(110));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_an_authority_that_was_replaced_open_nothing_any_more() {
    let (ours, old, new) = (Authority::new("ours"), Authority::new("old"), Authority::new("new"));
    let files = Files::new(&ours.sign("server"), &old);
    let serving = start(files.tls(Clients::Required)).await;
    let certificates = serving.certificates.clone().unwrap();
    let (theirs, others) = (old.sign("scheduler"), new.sign("scheduler"));
    assert_eq!(ask(&serving, &ours, Some(&theirs)).await, Ok(110));
    ask(&serving, &ours, Some(&others)).await.expect_err("nobody trusts it yet");
    // Both, while certificates are being replaced.
    std::fs::write(files.path("ca.crt"), format!("{}{}", old.pem, new.pem)).unwrap();
    assert!(certificates.look().unwrap());
    assert_eq!(ask(&serving, &ours, Some(&theirs)).await, Ok(110));
    assert_eq!(ask(&serving, &ours, Some(&others)).await, Ok(110));
    std::fs::write(files.path("ca.crt"), &new.pem).unwrap();
    assert!(certificates.look().unwrap());
    ask(&serving, &ours, Some(&theirs)).await.expect_err("nobody trusts it any more");
    assert_eq!(ask(&serving, &ours, Some(&others)).await, Ok(110));
    serving.end().await;
}

/// Makes a mistake; the function tells where a file of that name is.
type Change = fn(&mut Tls, &dyn Fn(&str) -> PathBuf);

async fn refused(tls: Tls) -> String {
    let listening = serve::listen(([127, 0, 0, 1], 0).into(), Some(tls), false).await;
    let error = listening.expect_err("files that cannot be used");
    assert!(matches!(error, Error::Certificate { .. }), "{error:?}");
    let line = error.to_string();
    assert!(!line.contains('\n'), "one line: {line}");
    line
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_one_line_that_names_it() {
    let ours = Authority::new("ours");
    let pair = ours.sign("server");
    let files = Files::new(&pair, &ours);
    std::fs::write(files.path("empty"), "").unwrap();
    std::fs::write(files.path("garbage"), "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n")
        .unwrap();
    std::fs::write(files.path("other.key"), &ours.sign("other").key).unwrap();
    let cases: [(Change, &str); 8] = [
        (|tls, at| tls.certificate = at("gone"), "gone: cannot read it: No such file"),
        (|tls, at| tls.certificate = at("empty"), "empty: expected certificates as PEM, found none"),
        (|tls, at| tls.certificate = at("garbage"), "garbage: expected certificates as PEM"),
        (|tls, at| tls.key = at("gone"), "gone: cannot read it: No such file"),
        (|tls, at| tls.key = at("tls.crt"), "tls.crt: expected a private key as PEM"),
        (|tls, at| tls.key = at("other.key"), "other.key: does not go with the certificate in"),
        (|tls, at| tls.clients = Clients::Required(at("gone")), "gone: cannot read it: No such file"),
        (
            |tls, at| tls.clients = Clients::Offered(at("tls.key")),
            "tls.key: expected certificates as PEM, found none",
        ),
    ];
    for (change, expected) in cases {
        let mut tls = files.tls(Clients::Required);
        change(&mut tls, &|name| files.path(name));
        let line = refused(tls).await;
        assert!(line.contains(expected), "{expected}: {line}");
    }
}

#[tokio::test]
async fn plaintext_is_for_loopback_unless_allowed() {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let error = serve::listen(everywhere, None, false).await.unwrap_err();
    let want = "refusing to listen on 0.0.0.0:0 without TLS: give a certificate and a key, listen on 127.0.0.1, \
                or allow plaintext explicitly";
    assert_eq!(error.to_string(), want);
    serve::listen(everywhere, None, true).await.unwrap();
    let taken = serve::listen(([127, 0, 0, 1], 0).into(), None, false).await.unwrap();
    let error = serve::listen(taken.address(), None, false).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot listen on {}: ", taken.address())), "{error}");
    let ours = Authority::new("ours");
    let files = Files::new(&ours.sign("server"), &ours);
    serve::listen(everywhere, Some(files.tls(Clients::Required)), false).await.unwrap();
}

/// The one place there is, taken by somebody who says only that, once there is a handshake if there is one; whether it
/// is closed, and the next is answered.
async fn says_only(said: &[u8], tls: Option<(&Files, &Authority)>) {
    // Whether a head is waited for, an answer to a ping, or the next request: all of it ends. Whoever does speak has to be faster, also
    // on a busy machine.
    let brief = Duration::from_millis(500);
    let limits = Limits { connections: 1, handshake: brief, idle: brief, ..Limits::default() };
    let with = tls.map(|(files, _)| files.tls(|_| Clients::Anyone));
    let serving = Serving::with(&one_cluster(), Options::default(), with, limits).await;
    let mut stream = TcpStream::connect(serving.address).await.unwrap();
    // Closed or reset, whatever is told before.
    let mut told = Vec::new();
    if let Some((_, trusts)) = tls {
        let name = ServerName::try_from("localhost").expect("a name");
        let config = client(trusts, &[&rustls::version::TLS13]);
        let mut stream = TlsConnector::from(config).connect(name, stream).await.unwrap();
        stream.write_all(said).await.unwrap();
        let _ = stream.read_to_end(&mut told).await;
        assert_eq!(ask(&serving, trusts, None).await, Ok(110));
    } else {
        stream.write_all(said).await.unwrap();
        let _ = stream.read_to_end(&mut told).await;
        let answer = serving.client().await.max_available_replicas(replicas_request("a", None, &[])).await;
        assert_eq!(answer.unwrap().into_inner().max_replicas, 110);
    }
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_gives_up_the_place() {
    let ours = Authority::new("ours");
    let files = Files::new(&ours.sign("server"), &ours);
    let said: [&[u8]; 6] = [
        b"",
        // What both versions of HTTP may go on from.
        b"P",
        b"PRI * H",
        b"POST /x HTTP/1.1\r\nHost: x\r\n",
        // HTTP/2 as it should be, without a request.
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ];
    for said in said {
        says_only(said, None).await;
        says_only(said, Some((&files, &ours))).await;
    }
    // Before the handshake.
    let limits = Limits { connections: 1, handshake: Duration::from_millis(500), ..Limits::default() };
    let tls = Some(files.tls(|_| Clients::Anyone));
    let serving = Serving::with(&one_cluster(), Options::default(), tls, limits).await;
    let mut silent = TcpStream::connect(serving.address).await.unwrap();
    assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0, "closed");
    assert_eq!(ask(&serving, &ours, None).await, Ok(110));
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_pings_and_asks_nothing_more_gives_up_the_place() {
    let limits = Limits { connections: 1, idle: Duration::from_millis(50), ..Limits::default() };
    let serving = Serving::with(&one_cluster(), Options::default(), None, limits).await;
    // A client of gRPC answers pings as long as it is there.
    let mut first = serving.client().await;
    for _ in 0..2 {
        first.max_available_replicas(replicas_request("a", None, &[])).await.unwrap();
    }
    let mut second = serving.client().await;
    second.max_available_replicas(replicas_request("a", None, &[])).await.unwrap();
    drop(second);
    let again = first.max_available_replicas(replicas_request("a", None, &[])).await;
    assert_eq!(again.unwrap().into_inner().max_replicas, 110, "over a new connection, as it was told");
    serving.end().await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_no_answer_and_answers_pings_gives_up_the_place() {
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const ACK: u8 = 1;
    let brief = Duration::from_millis(500);
    let limits = Limits { connections: 1, handshake: brief, idle: brief, ..Limits::default() };
    let listening = serve::listen(([127, 0, 0, 1], 0).into(), None, false).await.unwrap().limited(limits);
    let (address, stop) = (listening.address(), CancellationToken::new());
    let router = axum::Router::new().route("/healthz", axum::routing::get(|| async { "ok\n" }));
    let serving = tokio::spawn(serve::run(listening, router, stop.clone()));

    // No room for a body: SETTINGS_INITIAL_WINDOW_SIZE is 0. Then `GET http /healthz`, without an end of its own.
    let no_room = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let path = b"/healthz";
    let head = [&[0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()], &path[..]].concat();
    let request = frame(1, 0b101, 1, &head);
    let (mut from, mut to) = TcpStream::connect(address).await.unwrap().into_split();
    to.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &no_room[..], &request].concat()).await.unwrap();
    let mut got_head = false;
    loop {
        let mut start = [0; 9];
        if from.read_exact(&mut start).await.is_err() {
            break;
        }
        let length = usize::from(start[1]) << 8 | usize::from(start[2]);
        let mut body = vec![0; length];
        if from.read_exact(&mut body).await.is_err() {
            break;
        }
        got_head |= start[3] == 1;
        let answer = match (start[3], start[4] & ACK) {
            (SETTINGS, 0) => frame(SETTINGS, ACK, 0, &[]),
            (PING, 0) => frame(PING, ACK, 0, &body),
            _ => continue,
        };
        let _ = to.write_all(&answer).await;
    }
    assert!(got_head, "it was answered, as far as it took the answer");

    let mut next = TcpStream::connect(address).await.unwrap();
    next.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut told = String::new();
    next.read_to_string(&mut told).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn who_sends_half_a_body_is_told_and_gives_up_the_place() {
    let limits = Limits { connections: 1, body: Duration::from_millis(50), ..Limits::default() };
    let listening = serve::listen(([127, 0, 0, 1], 0).into(), None, false).await.unwrap().limited(limits);
    let (address, stop) = (listening.address(), CancellationToken::new());
    let read = |body: axum::body::Bytes| async move { body };
    let router = axum::Router::new().fallback(read);
    let serving = tokio::spawn(serve::run(listening, router, stop.clone()));
    for half in ["content-length: 9\r\n\r\nhalf", "transfer-encoding: chunked\r\n\r\n9\r\nhalf"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("POST / HTTP/1.1\r\nhost: x\r\n{half}").as_bytes()).await.unwrap();
        let mut told = Vec::new();
        let _ = stream.read_to_end(&mut told).await;
        let told = String::from_utf8_lossy(&told);
        assert!(told.starts_with("HTTP/1.1 400 ") && told.contains("did not come in time"), "{told}");
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    let whole = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 5\r\n\r\nwhole";
    stream.write_all(whole).await.unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 200 ") && told.ends_with("whole"), "{told}");
    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_do_nothing_do_not_hold_up_the_end() {
    let ours = Authority::new("ours");
    let files = Files::new(&ours.sign("server"), &ours);
    let limits = Limits { grace: Duration::from_hours(1), ..Limits::default() };
    let serving = Serving::with(&one_cluster(), Options::default(), None, limits).await;
    let _idle = serving.channel().await;
    let _silent = TcpStream::connect(serving.address).await.unwrap();
    serving.end().await;
    let tls = Some(files.tls(|_| Clients::Anyone));
    let serving = Serving::with(&one_cluster(), Options::default(), tls, limits).await;
    let _idle = channel(serving.address, &ours, None).await.unwrap();
    serving.end().await;

    // Who is in the middle of a handshake is cut off when patience ends.
    let tls = Some(files.tls(|_| Clients::Anyone));
    let limits =
        Limits { grace: Duration::from_millis(20), handshake: Duration::from_hours(1), ..Limits::default() };
    let serving = Serving::with(&one_cluster(), Options::default(), tls, limits).await;
    let mut silent = TcpStream::connect(serving.address).await.unwrap();
    assert_eq!(ask(&serving, &ours, None).await, Ok(110), "it has been accepted by now");
    serving.end().await;
    assert_eq!(silent.read(&mut [0; 8]).await.unwrap_or_default(), 0, "closed");
}
