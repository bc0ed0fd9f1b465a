//! Which programs come as packages of Debian? They are unpacked in the user's cache, not installed: nothing is started,
//! and no rights are needed.

use super::{Group, Places};
use std::env;
use std::path::PathBuf;

/// A program in a package.
#[derive(Debug, PartialEq, Eq)]
pub struct Package {
    /// What tests call it.
    pub name: &'static str,
    /// What it belongs to.
    pub group: Group,
    /// The package.
    pub package: &'static str,
    /// Where it is in the package.
    pub file: &'static str,
}

/// Every program that comes as a package.
pub static PACKAGES: &[Package] = &[
    Package {
        name: "prometheus",
        group: Group::Monitoring,
        package: "prometheus",
        file: "usr/bin/prometheus",
    },
    Package { name: "promtool", group: Group::Monitoring, package: "prometheus", file: "usr/bin/promtool" },
    Package {
        name: "prometheus-node-exporter",
        group: Group::Monitoring,
        package: "prometheus-node-exporter",
        file: "usr/bin/prometheus-node-exporter",
    },
    Package { name: "containerd", group: Group::Node, package: "containerd", file: "usr/bin/containerd" },
    Package {
        name: "containerd-shim-runc-v2",
        group: Group::Node,
        package: "containerd",
        file: "usr/bin/containerd-shim-runc-v2",
    },
    Package { name: "ctr", group: Group::Node, package: "containerd", file: "usr/bin/ctr" },
    Package { name: "runc", group: Group::Node, package: "runc", file: "usr/sbin/runc" },
    // The plugins a pod's network is made with are beside it.
    Package {
        name: "ptp",
        group: Group::Node,
        package: "containernetworking-plugins",
        file: "usr/lib/cni/ptp",
    },
    Package { name: "ip", group: Group::Node, package: "iproute2", file: "bin/ip" },
];

impl Package {
    /// Where the package is unpacked; none without a home folder.
    #[must_use]
    pub fn folder(&self, places: &Places) -> Option<PathBuf> {
        Some(places.cache.as_ref()?.with_file_name("packages").join(self.package))
    }

    /// The program: one in `KUBEBUILDER_ASSETS`, one that is installed, or the unpacked one.
    #[must_use]
    pub fn find(&self, places: &Places) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = places.assets.clone().into_iter().chain(env::split_paths(&path));
        let installed = folders.map(|folder| folder.join(self.name));
        let unpacked = self.folder(places).map(|folder| folder.join(self.file));
        installed.chain(unpacked).find(|file| file.is_file())
    }
}
