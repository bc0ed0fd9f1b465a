//! Which keys and certificates does a throw-away control plane need?
//!
//! One authority, one serving certificate for the loopback names shared by all servers, the one by which kube-apiserver
//! proves itself to servers of aggregated APIs, and the key pair that signs service account tokens. All on P-256: kube-apiserver takes it everywhere, and making one is instant.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::net::Ipv4Addr;

/// Whom servers of aggregated APIs believe what it says about users.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

/// What kube-apiserver calls the server of the metrics API, whatever its address is.
const METRICS_SERVER: &str = "metrics-server.kube-system.svc";

/// Everything as PEM, and the authority also as DER for our own client.
pub(crate) struct Certs {
    pub(crate) authority: String,
    pub(crate) authority_der: Vec<u8>,
    pub(crate) serving: String,
    pub(crate) serving_key: String,
    pub(crate) proxy: String,
    pub(crate) proxy_key: String,
    pub(crate) accounts_public: String,
    pub(crate) accounts_private: String,
}

impl Certs {
    /// With one more address under which the servers are reached.
    pub(crate) fn make(address: Ipv4Addr) -> Result<Self, rcgen::Error> {
        let authority_key = KeyPair::generate()?;
        let mut params = named(Vec::new(), "loadline test authority")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = params.self_signed(&authority_key)?;

        let serving_key = KeyPair::generate()?;
        let issuer = Issuer::new(params, authority_key);
        let address = address.to_string();
        let names = ["localhost", "127.0.0.1", METRICS_SERVER, &address].map(str::to_owned);
        let serving = named(names.into(), "loadline test server")?.signed_by(&serving_key, &issuer)?;

        let proxy_key = KeyPair::generate()?;
        let proxy = named(Vec::new(), FRONT_PROXY)?.signed_by(&proxy_key, &issuer)?;

        let accounts = KeyPair::generate()?;
        Ok(Self {
            authority: authority.pem(),
            authority_der: authority.der().to_vec(),
            serving: serving.pem(),
            serving_key: serving_key.serialize_pem(),
            proxy: proxy.pem(),
            proxy_key: proxy_key.serialize_pem(),
            accounts_public: accounts.public_key_pem(),
            accounts_private: accounts.serialize_pem(),
        })
    }
}

fn named(hosts: Vec<String>, name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}
