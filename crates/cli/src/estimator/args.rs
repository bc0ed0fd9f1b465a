//! What can be said to `loadline estimator`. Flags of Karmada's estimator keep their names where they mean the same.

use crate::signal::Shutdown;
use clap::Args;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

pub const EXAMPLES: &str = "\
Examples:
  loadline estimator --cluster-name m1 --kubeconfig m1.kubeconfig
      for one cluster, on this machine only
  loadline estimator --cluster m1=m1.kubeconfig --cluster m2=m2.kubeconfig
      one process for two
  loadline estimator --cluster-dir /etc/clusters --load --policy policy.yaml
      a kubeconfig per cluster, and counting stops at the load line
  loadline estimator --cluster-name m1 --kubeconfig m1.kubeconfig --grpc-auth-cert-file tls.crt
        --grpc-auth-key-file tls.key --grpc-client-ca-file ca.crt
      for a fleet: mutual TLS, on every address

What each kubeconfig must allow, and no more:
  list, watch   nodes, pods, replicasets.apps, deployments.apps
  list, watch   resourcequotas, unless --feature-gates ResourceQuotaEstimate=false
  list          nodes.metrics.k8s.io, with --load

A cluster that cannot be reached ends nothing: it is tried again, and the others are answered for.

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, Args)]
pub struct Estimator {
    /// Name of the cluster behind --kubeconfig
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// How to reach it; without, as the pod this runs in
    #[arg(long, value_name = "FILE", requires = "cluster_name")]
    pub kubeconfig: Option<PathBuf>,
    /// A cluster and its kubeconfig; may be given several times
    #[arg(long = "cluster", value_name = "NAME=FILE", value_parser = cluster)]
    pub clusters: Vec<(String, PathBuf)>,
    /// A folder of kubeconfigs: each file is a cluster, named as the file without its extension
    #[arg(long, value_name = "FOLDER")]
    pub cluster_dir: Option<PathBuf>,

    /// Address of the gRPC server; every address with a certificate, this machine only without
    #[arg(long, value_name = "ADDRESS", help_heading = "Serving")]
    pub bind_address: Option<IpAddr>,
    /// Port of the gRPC server; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 10352, help_heading = "Serving")]
    pub server_port: u16,
    /// The server's certificate, as PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "grpc_auth_key_file", help_heading = "Serving")]
    pub grpc_auth_cert_file: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "grpc_auth_cert_file", help_heading = "Serving")]
    pub grpc_auth_key_file: Option<PathBuf>,
    /// Let in only clients with a certificate signed by an authority in this file
    #[arg(long, value_name = "FILE", requires = "grpc_auth_cert_file", help_heading = "Serving")]
    pub grpc_client_ca_file: Option<PathBuf>,
    /// Let in clients without a certificate, too
    #[arg(long, requires = "grpc_client_ca_file", help_heading = "Serving")]
    pub insecure_skip_grpc_client_verify: bool,
    /// Serve beyond this machine without TLS: everybody on the way can read along and ask
    #[arg(long, conflicts_with = "grpc_auth_cert_file", help_heading = "Serving")]
    pub allow_plaintext: bool,
    /// Address of /healthz and /readyz, such as :10351; 0 for none [default: port 10351 beside the gRPC server]
    #[arg(long, value_name = "ADDRESS", help_heading = "Serving")]
    pub health_probe_bind_address: Option<Place>,
    /// Address of /metrics, such as :8080; 0 for none [default: port 8080 beside the gRPC server]
    #[arg(long, value_name = "ADDRESS", help_heading = "Serving")]
    pub metrics_bind_address: Option<Place>,

    #[command(flatten, next_help_heading = "Serving")]
    pub shutdown: Shutdown,

    /// Count no further than the load line of each node, by what the metrics API measures
    #[arg(long, help_heading = "Counting")]
    pub load: bool,
    /// A file with a load policy (`DynamicSchedulerPolicy`) and, if wanted, settings (`LoadSettings`); read again when it
    /// changes
    #[arg(long, value_name = "FILE", requires = "load", help_heading = "Counting")]
    pub policy: Option<PathBuf>,
    /// Keep room for pods that have no node yet
    #[arg(long, help_heading = "Counting")]
    pub count_pending: bool,
    /// Switches of Karmada: `ResourceQuotaEstimate` and `SchedulingOvercommitProtection`, both on unless =false
    #[arg(long, value_name = "GATE=BOOL,…", value_delimiter = ',', value_parser = gate, help_heading = "Counting")]
    pub feature_gates: Vec<(String, bool)>,

    /// No effect: objects are watched, not asked for
    #[arg(long, value_name = "N", help_heading = "Taken for Karmada's sake")]
    pub kube_api_qps: Option<f64>,
    /// No effect
    #[arg(long, value_name = "N", help_heading = "Taken for Karmada's sake")]
    pub kube_api_burst: Option<u32>,
    /// No effect: answers take no time worth sharing
    #[arg(long, value_name = "N", help_heading = "Taken for Karmada's sake")]
    pub parallelism: Option<u32>,
}

/// An address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Nowhere,
    At(SocketAddr),
}

impl FromStr for Place {
    type Err = String;

    /// `10.0.0.1:8080`, `:8080` for every address, `0` for none.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("expected an address such as 127.0.0.1:8080 or :8080, or 0 for none, not {text:?}");
        if text == "0" {
            return Ok(Self::Nowhere);
        }
        if let Some(port) = text.strip_prefix(':') {
            let port = port.parse().map_err(|_| wrong())?;
            return Ok(Self::At((Ipv4Addr::UNSPECIFIED, port).into()));
        }
        text.parse().map(Self::At).map_err(|_| wrong())
    }
}

fn cluster(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err(format!("expected NAME=KUBECONFIG such as m1=m1.kubeconfig, not {text:?}")),
    }
}

fn gate(text: &str) -> Result<(String, bool), String> {
    let wrong = || format!("expected GATE=true or GATE=false, not {text:?}");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = match value.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" => true,
        "false" | "f" | "0" => false,
        _ => return Err(wrong()),
    };
    if name.is_empty() { Err(wrong()) } else { Ok((name.to_owned(), value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_upstream_writes_them() {
        for (text, expected) in [
            ("0", Some(Place::Nowhere)),
            (":8080", Some(Place::At(([0, 0, 0, 0], 8080).into()))),
            ("127.0.0.1:1", Some(Place::At(([127, 0, 0, 1], 1).into()))),
            ("[::1]:1", Some(Place::At("[::1]:1".parse().unwrap()))),
            ("8080", None),
            (":none", None),
            ("localhost:1", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Place>().ok(), expected, "{text}");
        }
    }

    #[test]
    fn clusters_and_gates_have_a_name_and_a_value() {
        assert_eq!(cluster("m1=a=b"), Ok(("m1".into(), "a=b".into())));
        assert!(cluster("m1").is_err() && cluster("=a").is_err() && cluster("m1=").is_err());
        for (text, expected) in [
            ("A=true", Some(true)),
            ("A=False", Some(false)),
            ("A=1", Some(true)),
            ("A", None),
            ("A=yes", None),
            ("=true", None),
        ] {
            assert_eq!(gate(text).ok().map(|(_, value)| value), expected, "{text}");
        }
    }
}
