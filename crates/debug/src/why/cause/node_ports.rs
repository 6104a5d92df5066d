//! NodePorts: which host port, and which pod holds it.

use std::sync::Arc;

use serde::Serialize;

use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::ports::HostPort;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_plugins::node_ports::taken;

/// A host port that is taken.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PortTaken {
    /// `hostPort` of the pod, 1 to 65535.
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

impl CauseText for PortTaken {
    fn gist(&self) -> String {
        format!("host port {}/{} is in use", self.port, self.protocol)
    }

    fn text(&self) -> String {
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

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let node = case.node;
    let cause = |(wanted, used): (&HostPort, &HostPort)| {
        let holds = |pod: &&Arc<PodInfo>| pod.host_ports.contains(used);
        let holder = node.pods.iter().find(holds).map(|pod| pod.key());
        let HostPort { ip, protocol, port } = *wanted;
        let taken = PortTaken { port, protocol, address: ip, taken_on: used.ip, holder };
        Cause::new(taken, 1.0, Outlook::Cluster)
    };
    taken(case.probe.pod(), node).map(cause).collect()
}
