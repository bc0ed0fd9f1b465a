//! How do pods of a node reach the API server, and how does kubelet reach them to ask how they are?
//!
//! The node's pods are on a network of their own, the API server and kubelet on the machine's. A pair of virtual interfaces
//! joins the two; it goes with the node's network. On the machine's end the API server answers under an address that its
//! certificate names, for those who come from the pods and for nobody else.
//!
//! Addresses come from 198.18.0.0/15, which is no real network's, and from the API server's port, which no other control
//! plane on this machine has.

use crate::control_plane::Error;
use crate::line::Line;
use crate::parts;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

/// How many addresses a node has for its pods.
const SIZE: u16 = 64;

/// The addresses of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// Of the API server, on the machine's end.
    pub(crate) server: Ipv4Addr,
    /// The first of the node's.
    network: Ipv4Addr,
}

impl Addresses {
    /// Those of the node of the API server with that port.
    pub(crate) fn of(port: u16) -> Self {
        let [high, low] = port.to_be_bytes();
        let [third, fourth] = (port % (u16::MAX / SIZE) * SIZE).to_be_bytes();
        Self { server: Ipv4Addr::new(198, 19, high, low), network: Ipv4Addr::new(198, 18, third, fourth) }
    }

    fn nth(self, number: u16) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network) + u32::from(number))
    }

    /// As plugins write it.
    pub(super) fn subnet(self) -> String {
        format!("{}/{}", self.network, 32 - SIZE.ilog2())
    }

    /// The last one a pod may have.
    pub(super) fn last(self) -> Ipv4Addr {
        self.nth(SIZE - 3)
    }

    /// The node's end.
    fn node(self) -> Ipv4Addr {
        self.nth(SIZE - 2)
    }
}

/// The pair, and what answers on the machine's end. The pair itself goes with the node's network.
#[derive(Debug)]
pub(super) struct Link {
    _line: Line,
}

impl Link {
    /// Joins the network of the process `node` to the machine's.
    pub(super) fn make(port: u16, node: u32) -> Result<Self, Error> {
        let addresses = Addresses::of(port);
        let (server, end, subnet) = (addresses.server, addresses.node(), addresses.subnet());
        let name = format!("loadline{port}");
        ip(None, &format!("link add {name} type veth peer name machine netns {node}"))?;
        ip(None, &format!("address add {server}/32 peer {end}/32 dev {name}"))?;
        ip(None, &format!("link set {name} up"))?;
        ip(Some(node), "link set lo up")?;
        ip(Some(node), &format!("address add {end}/32 peer {server}/32 dev machine"))?;
        ip(Some(node), "link set machine up")?;
        ip(None, &format!("route add {subnet} via {end} dev {name}"))?;
        Ok(Self { _line: Line::at((server, port), port)? })
    }
}

/// `ip WORDS`, on the machine's network or on that of a process.
fn ip(of: Option<u32>, words: &str) -> Result<(), Error> {
    let program = parts::find("ip")?;
    let mut command = match of {
        None => Command::new(program),
        Some(process) => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--target={process}")).arg("--net").arg(program);
            command
        }
    };
    let output = command.args(words.split(' ')).output().map_err(Error::io("start ip"))?;
    if !output.status.success() {
        let said = format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim());
        return Err(Error::io("join a node's network to the machine's")(io::Error::other(said)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_from_the_port() {
        let addresses = Addresses::of(40_123);
        assert_eq!(addresses.server.to_string(), "198.19.156.187");
        assert_eq!(addresses.subnet(), "198.18.56.128/26");
        assert_eq!(
            (addresses.last().to_string(), addresses.node().to_string()),
            ("198.18.56.189".into(), "198.18.56.190".into())
        );
    }
}
