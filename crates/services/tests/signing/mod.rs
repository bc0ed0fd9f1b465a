//! Certificates for tests: who signs them, and the files a server reads them from.

#![allow(dead_code, reason = "each test program uses a part of it")]

use loadline_services::serve::{Clients, Tls};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Somebody who signs certificates.
pub struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub fn sign(&self, name: &str) -> Pair {
        self.sign_for(name, &["localhost", "127.0.0.1"], (2000, 4096))
    }

    /// For a host of those names, from the beginning of one year to that of another.
    pub fn sign_for(&self, name: &str, hosts: &[&str], (from, to): (i32, i32)) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(to, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        Pair { certificate, key: key.serialize_pem() }
    }
}

/// Files a server reads.
pub struct Files {
    folder: TempDir,
}

impl Files {
    pub fn new(pair: &Pair, authority: &Authority) -> Self {
        let files = Self { folder: tempfile::tempdir().expect("a folder") };
        files.write(pair);
        std::fs::write(files.path("ca.crt"), &authority.pem).expect("a file");
        files
    }

    pub fn write(&self, pair: &Pair) {
        std::fs::write(self.path("tls.crt"), &pair.certificate).expect("a file");
        std::fs::write(self.path("tls.key"), &pair.key).expect("a file");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Files are looked at when a test says so.
    pub fn tls(&self, clients: impl FnOnce(PathBuf) -> Clients) -> Tls {
        Tls {
            certificate: self.path("tls.crt"),
            key: self.path("tls.key"),
            clients: clients(self.path("ca.crt")),
            every: Duration::from_hours(1),
        }
    }
}
