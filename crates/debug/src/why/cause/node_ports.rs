//! NodePorts: which host port, and which pod holds it.

use serde::Serialize;

use super::{Case, Cause, Outlook, Words};
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::ports::HostPort;
use kubestep_framework::pod::{NamespacedName, PodInfo};

/// A host port that is taken.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PortTaken {
    /// The port.
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Symbol,
    /// The host IP that the pod requests; `0.0.0.0` for all.
    pub address: Symbol,
    /// The host IP on which it is taken.
    pub taken_on: Symbol,
    /// The pod that holds it; `None` if it was just deleted.
    pub holder: Option<NamespacedName>,
}

impl Words for PortTaken {
    fn gist(&self) -> String {
        format!("host port {}/{} is in use", self.port, self.protocol)
    }

    fn words(&self) -> String {
        let on = match (self.address == self.taken_on, self.taken_on.as_str()) {
            (true, _) => String::new(),
            (false, "0.0.0.0") => " on all addresses".to_owned(),
            (false, address) => format!(" on {address}"),
        };
        match self.holder {
            Some(holder) => {
                format!("host port {}/{} is used by {holder}{on}", self.port, self.protocol)
            }
            None => self.gist() + &on,
        }
    }
}

pub(super) fn explain(case: &Case<'_>) -> Vec<Cause> {
    let (wanted, node) = (&case.probe.pod().host_ports, case.node);
    let taken = |port: &HostPort| {
        let used = node.used_ports.iter().find(|used| used.conflicts_with(port))?;
        let holds = |pod: &PodInfo| pod.host_ports.contains(used);
        let holder = node.pods.iter().find(|pod| holds(pod)).map(|pod| pod.key());
        let HostPort { ip, protocol, port } = *port;
        let taken = PortTaken { port, protocol, address: ip, taken_on: used.ip, holder };
        Some(Cause::new(taken, 1.0, Outlook::Cluster))
    };
    wanted.iter().filter_map(taken).collect()
}
