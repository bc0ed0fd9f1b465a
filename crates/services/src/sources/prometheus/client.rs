//! How is a Prometheus reached? By HTTP or HTTPS, with what it wants to see.
//!
//! Secrets are files, read anew for every request, so that rotated ones are used; they are never shown.

use crate::cluster::connection::chain;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::fs;
use tokio::time::timeout;

/// Answers may not be larger: twenty thousand nodes take half of it.
const LARGEST: usize = 16 << 20;
const CONNECT: Duration = Duration::from_secs(5);

/// Where it is, and what it wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// With a scheme and perhaps a path: `https://thanos.example.com/tenant`.
    pub address: Uri,
    pub auth: Auth,
    /// Certificates of authorities, as PEM, in place of the usual.
    pub authority: Option<PathBuf>,
    /// Our certificate and its key, as PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Sent with every request, such as a tenant. Not shown anywhere: they may be secret.
    pub headers: Headers,
}

/// Headers, the values of which nobody gets to see.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(HeaderName, HeaderValue)>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Who we say we are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    #[default]
    Nobody,
    /// A token in that file.
    Bearer(PathBuf),
    /// `user:password` in that file.
    Basic(PathBuf),
}

impl Target {
    /// At an address, which must have a scheme and a host.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub fn new(address: &str) -> Result<Self, String> {
        let wrong =
            |why: &str| format!("{address:?} {why}, expected such as http://prometheus.monitoring:9090");
        let uri: Uri = address.parse().map_err(|error| wrong(&format!("is no address ({error})")))?;
        match (uri.scheme_str(), uri.host()) {
            (Some("http" | "https"), Some(_)) => {}
            (None, _) => return Err(wrong("has no scheme")),
            (Some(_), _) => return Err(wrong("is neither http nor https")),
        }
        if uri.query().is_some() || uri.authority().is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(wrong("has a query or credentials in it"));
        }
        Ok(Self {
            address: uri,
            auth: Auth::Nobody,
            authority: None,
            certificate: None,
            headers: Headers::default(),
        })
    }

    /// Can its files be used?
    ///
    /// # Errors
    /// All that is wrong, a line each.
    pub async fn check(&self) -> Result<(), String> {
        let mut problems = Vec::new();
        problems.extend(self.authorization().await.err());
        problems.extend(tls(self).await.err());
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    async fn authorization(&self) -> Result<Option<HeaderValue>, String> {
        let text = match &self.auth {
            Auth::Nobody => return Ok(None),
            Auth::Bearer(file) => format!("Bearer {}", read(file).await?.trim()),
            Auth::Basic(file) => {
                let pair = read(file).await?;
                let pair = pair.trim_end_matches(['\r', '\n']);
                if !pair.contains(':') {
                    return Err(format!("{}: expected user:password", file.display()));
                }
                format!("Basic {}", BASE64_STANDARD.encode(pair))
            }
        };
        let file = match &self.auth {
            Auth::Bearer(file) | Auth::Basic(file) => file.display().to_string(),
            Auth::Nobody => String::new(),
        };
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| format!("{file}: cannot be sent in a header"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

async fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).await.map_err(|error| format!("{}: {error}", file.display()))
}

type Http = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Asks one Prometheus.
#[derive(Clone, Debug)]
pub struct Client {
    target: Target,
    http: Http,
}

impl Client {
    /// With the certificates there are now.
    ///
    /// # Errors
    /// When they cannot be used.
    pub async fn new(target: Target) -> Result<Self, String> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT));
        http.set_nodelay(true);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls(&target).await?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(http);
        let http = hyper_util::client::legacy::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .build(connector);
        Ok(Self { target, http })
    }

    /// The answer to an instant query, whatever it says.
    ///
    /// # Errors
    /// When there is none in time, or it is not one that Prometheus gives.
    pub async fn query(&self, query: &str, within: Duration) -> Result<Bytes, String> {
        self.ask("query", &[("query", query)], within).await.map_err(|trouble| trouble.to_string())
    }

    /// The answer to a query over some time, whatever it says.
    ///
    /// # Errors
    /// When there is none in time, or it is too large, or not one that Prometheus gives.
    pub async fn query_range(&self, query: &str, range: Range, within: Duration) -> Result<Bytes, Trouble> {
        let Range { first, last, step } = range;
        let (first, last, step) = (first.to_string(), last.to_string(), step.to_string());
        let asked = [("query", query), ("start", &first), ("end", &last), ("step", &step)];
        self.ask("query_range", &asked, within).await
    }

    /// What it says of itself at a path below `/api/v1`, such as `status/config`.
    ///
    /// # Errors
    /// When there is no answer in time, or it is not one that Prometheus gives.
    pub async fn get(&self, what: &str, within: Duration) -> Result<Bytes, String> {
        let answer = self.send(Method::GET, what, &[], within).await;
        answer.map_err(|trouble| trouble.to_string())
    }

    async fn ask(&self, what: &str, asked: &[(&str, &str)], within: Duration) -> Result<Bytes, Trouble> {
        self.send(Method::POST, what, asked, within).await
    }

    async fn send(
        &self,
        method: Method,
        what: &str,
        asked: &[(&str, &str)],
        within: Duration,
    ) -> Result<Bytes, Trouble> {
        let address = &self.target.address;
        let other = |why: String| Trouble::Other(format!("{address}: {why}"));
        let answer = async {
            let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(asked).finish();
            let uri = format!("{}/api/v1/{what}", address.to_string().trim_end_matches('/'));
            let mut request = Request::builder()
                .method(method)
                .uri(uri)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .header(ACCEPT, "application/json");
            if let Some(value) = self.target.authorization().await.map_err(other)? {
                request = request.header(AUTHORIZATION, value);
            }
            for (name, value) in &self.target.headers.0 {
                request = request.header(name, value);
            }
            let request = request.body(Full::from(body)).map_err(|error| other(error.to_string()))?;
            let answer = self.http.request(request).await.map_err(|error| other(chain(&error)))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LARGEST).collect().await.map_err(|error| {
                if error.is::<http_body_util::LengthLimitError>() {
                    Trouble::TooMuch(format!("{address}: the answer is larger than {} MiB", LARGEST >> 20))
                } else {
                    other(error.to_string())
                }
            })?;
            judged(status, body.to_bytes()).map_err(other)
        };
        timeout(within, answer).await.unwrap_or_else(|_| {
            Err(Trouble::TooMuch(format!("{address}: no answer within {} s", within.as_secs_f32())))
        })
    }
}

/// The moments a query is answered for, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub first: i64,
    pub last: i64,
    pub step: i64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It is too large, or takes too long: less may be answered.
    #[error("{0}")]
    TooMuch(String),
    #[error("{0}")]
    Other(String),
}

/// Prometheus answers with 400, 422 and 503, too, and says why in JSON; anything else says nothing of use.
fn judged(status: StatusCode, body: Bytes) -> Result<Bytes, String> {
    let explained = matches!(status.as_u16(), 400 | 422 | 503) && body.first() == Some(&b'{');
    if status.is_success() || explained {
        return Ok(body);
    }
    let hint = match status.as_u16() {
        401 | 403 => " (see the options for tokens, passwords and certificates)",
        404 => " (is there a path missing in the address?)",
        300..=399 => " (redirections are not followed)",
        _ => "",
    };
    Err(format!("answered {status}{hint}"))
}

async fn tls(target: &Target) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let wrong = |file: &Path, error: &dyn fmt::Display| format!("{}: {error}", file.display());
    match &target.authority {
        Some(file) => {
            let text = fs::read(file).await.map_err(|error| wrong(file, &error))?;
            let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
            let all = all.map_err(|error| wrong(file, &error))?;
            if all.is_empty() {
                return Err(wrong(file, &"no certificate in it"));
            }
            for one in all {
                roots.add(one).map_err(|error| wrong(file, &error))?;
            }
        }
        // Only if it is needed: there may be no such store, in an image without any files.
        None if target.address.scheme_str() == Some("https") => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        None => {}
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let Some((certificate, key)) = &target.certificate else { return Ok(config.with_no_client_auth()) };
    let text = fs::read(certificate).await.map_err(|error| wrong(certificate, &error))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    let secret = fs::read(key).await.map_err(|error| wrong(key, &error))?;
    let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|error| wrong(key, &error))?;
    config.with_client_auth_cert(chain, secret).map_err(|error| wrong(certificate, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_no_secrets() {
        for (address, problem) in [
            ("http://prometheus:9090", ""),
            ("https://thanos.example.com/tenant/", ""),
            ("http://[fd00::7]:9090", ""),
            ("prometheus:9090", "has no scheme"),
            ("prometheus.monitoring.svc", "has no scheme"),
            ("ftp://prometheus", "is neither http nor https"),
            ("http://me:secret@prometheus", "has a query or credentials in it"),
            ("http://prometheus/?a=b", "has a query or credentials in it"),
            ("http://", "is no address"),
        ] {
            let told = Target::new(address).err().unwrap_or_default();
            assert!(told.contains(problem) && told.is_empty() == problem.is_empty(), "{address}: {told}");
        }
    }

    #[test]
    fn headers_and_files_are_shown_by_name_only() {
        let mut target = Target::new("http://prometheus").expect("an address");
        target.headers =
            Headers(vec![(HeaderName::from_static("x-scope-orgid"), HeaderValue::from_static("hidden"))]);
        let shown = format!("{target:?}");
        assert!(shown.contains("x-scope-orgid") && !shown.contains("hidden"), "{shown}");
    }
}
