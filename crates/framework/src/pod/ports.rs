//! Host ports in use on a node.
//!
//! It is a set, not a counter, as upstream: when one of two pods that use the same port is removed,
//! the port is free. Upstream: `HostPortInfo` in
//! `staging/src/k8s.io/kube-scheduler/framework/types.go`.

use crate::pod::requests::is_sidecar;
use kubestep_api::intern::Symbol;
use kubestep_api::{Container, Pod};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;

/// One host port: address, protocol and number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct HostPort {
    /// The address; `0.0.0.0` when the pod names none.
    pub ip: Symbol,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Symbol,
    /// 1 to 65535.
    pub port: i32,
}

impl HostPort {
    /// A host port with upstream's defaults for an empty address or protocol.
    pub fn new(ip: Symbol, protocol: Symbol, port: i32) -> HostPort {
        let or =
            |text: Symbol, other: &str| if text.is_empty() { Symbol::new(other) } else { text };
        HostPort { ip: or(ip, "0.0.0.0"), protocol: or(protocol, "TCP"), port }
    }

    /// Whether both cannot be used on one node: same protocol and port, and the same address or one
    /// of them on all addresses.
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || self.ip == "0.0.0.0" || other.ip == "0.0.0.0")
    }
}

/// The host ports in use on a node, sorted.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct HostPorts(Vec<HostPort>);

impl HostPorts {
    /// Adds a port, unless it is already in the set.
    pub fn add(&mut self, port: HostPort) {
        if port.port > 0
            && let Err(at) = self.0.binary_search(&port)
        {
            self.0.insert(at, port);
        }
    }

    /// Removes a port, even if another pod uses it too.
    pub fn remove(&mut self, port: HostPort) {
        if let Ok(at) = self.0.binary_search(&port) {
            self.0.remove(at);
        }
    }

    /// The ports in use that `port` conflicts with.
    pub fn conflicting(&self, port: &HostPort) -> impl Iterator<Item = &HostPort> {
        self.0.iter().filter(move |used| port.port > 0 && used.conflicts_with(port))
    }

    /// The ports in use.
    pub fn iter(&self) -> impl Iterator<Item = &HostPort> {
        self.0.iter()
    }
}

/// The host ports that a pod uses: those of sidecars, then of app containers, in order. Plain init
/// containers do not count.
pub fn container_host_ports(pod: &Pod, features: &FeatureGates) -> Vec<HostPort> {
    let sidecars_count = features.has(Switch::SidecarHostPorts);
    let counts = |container: &&Container| sidecars_count && is_sidecar(container);
    let sidecars = pod.spec.init_containers.iter().filter(counts);
    sidecars
        .chain(&pod.spec.containers)
        .flat_map(|container| &container.ports)
        .filter(|port| port.host_port > 0)
        .map(|port| {
            HostPort::new(port.host_ip, Symbol::new(port.protocol.as_str()), port.host_port)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::decoded;
    use kubestep_config::KubeVersion;

    fn port(ip: &str, protocol: &str, port: i32) -> HostPort {
        HostPort::new(ip.into(), protocol.into(), port)
    }

    fn conflicts(used: &HostPorts, port: &HostPort) -> bool {
        used.conflicting(port).next().is_some()
    }

    #[test]
    fn the_wildcard_address_clashes_with_every_address() {
        let mut used = HostPorts::default();
        used.add(port("127.0.0.1", "TCP", 80));
        assert!(conflicts(&used, &port("", "", 80)));
        assert!(conflicts(&used, &port("127.0.0.1", "TCP", 80)));
        assert!(!conflicts(&used, &port("10.0.0.1", "TCP", 80)));
        assert!(!conflicts(&used, &port("", "UDP", 80)));
        assert!(!conflicts(&used, &port("", "", 81)));
    }

    #[test]
    fn ports_of_sidecars_count_since_1_33_4() {
        let ports = |name: &str| json!([{"containerPort": 1, "hostPort": name.len()}]);
        let pod: Pod = decoded(json!({"spec": {
            "initContainers": [
                {"name": "ab", "ports": ports("ab"), "restartPolicy": "Always"},
                {"name": "abc", "ports": ports("abc")},
            ],
            "containers": [{"name": "a", "ports": ports("a")}],
        }}));
        let count = ["1.33.3", "1.33.4"].map(|release| {
            let gates = KubeVersion::nearest(release).unwrap().gates();
            container_host_ports(&pod, &gates).iter().map(|port| port.port).collect::<Vec<_>>()
        });
        assert_eq!(count, [vec![1], vec![2, 1]]);
    }

    #[test]
    fn it_is_a_set_so_one_removal_frees_the_port() {
        let mut used = HostPorts::default();
        used.add(port("", "", 80));
        used.add(port("0.0.0.0", "TCP", 80));
        used.remove(port("", "TCP", 80));
        assert_eq!(used, HostPorts::default());
    }
}
