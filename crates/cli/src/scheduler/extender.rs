//! How is another scheduler served? The flags, and the address.

use anyhow::{Result, anyhow};
use clap::Args;
use loadline_core::cluster::Keep;
use loadline_services::scheduler::extender::Options;
use loadline_services::serve::{self, Clients, Tls};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Extender of kube-scheduler")]
pub struct Extender {
    /// Also answer kube-scheduler's questions about load there, such as 127.0.0.1:8888; with --leader-elect, only who leads
    /// answers
    #[arg(id = "extender", long, value_name = "ADDRESS", conflicts_with = "requests_only")]
    address: Option<SocketAddr>,
    /// Let `filter` tell the least loaded nodes alone, so that `prioritize` need not be asked
    #[arg(long = "extender-filter-only", requires = "extender")]
    filter_only: bool,
    /// How long a pod is taken to be on its way to the nodes told for it, if nobody knows it or kube-scheduler says that it
    /// found none; one that waits to be bound is so for longer, five minutes at most
    #[arg(
        long = "extender-reserve-for",
        value_name = "TIME",
        default_value = "10s",
        value_parser = crate::args::duration
    )]
    reserve_for: Duration,
    /// Its certificate, as PEM; needed beyond this machine
    #[arg(
        id = "extender_cert",
        long = "extender-cert",
        value_name = "FILE",
        requires_all = ["extender", "extender_key"]
    )]
    certificate: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(id = "extender_key", long = "extender-key", value_name = "FILE", requires = "extender_cert")]
    key: Option<PathBuf>,
    /// Who signed the certificates of those who may ask, as PEM; without, everybody may
    #[arg(long = "extender-client-ca", value_name = "FILE", requires = "extender_cert")]
    client_ca: Option<PathBuf>,
}

impl Extender {
    /// Binds the address, if there is one.
    ///
    /// # Errors
    /// When it is beyond this machine without TLS, cannot be had, or a certificate cannot be used.
    pub async fn listen(&self) -> Result<Option<Options>> {
        let Some(address) = self.address else { return Ok(None) };
        let tls = self.certificate.clone().zip(self.key.clone()).map(|(certificate, key)| Tls {
            certificate,
            key,
            clients: self.client_ca.clone().map_or(Clients::Anyone, Clients::Required),
            every: Tls::EVERY,
        });
        let listening = serve::listen(address, tls, false).await.map_err(|error| match error {
            serve::Error::Plaintext(address) => anyhow!(
                "refusing to serve an extender on {address} without TLS: give --extender-cert and \
                 --extender-key, or --extender 127.0.0.1:{}",
                address.port()
            ),
            other => other.into(),
        })?;
        let keep = if self.filter_only { Keep::Best } else { Keep::All };
        Ok(Some(Options { listening, keep, reserve_for: self.reserve_for }))
    }
}
