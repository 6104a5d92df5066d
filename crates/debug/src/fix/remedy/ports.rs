//! Host ports: drop the port, or delete the pod that holds it.

use super::{Need, Remedies, delete};
use crate::edit::{HostPort, PodEdit};
use crate::why::cause::PortTaken;
use kubestep_api::Protocol;
use kubestep_api::intern::Symbol;

pub(super) fn taken(need: &Need<'_>, taken: &PortTaken) -> Remedies {
    let protocols = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
    let named = |protocol: &Protocol| protocol.as_str() == taken.protocol.as_str();
    let protocol = protocols.into_iter().find(named).unwrap_or(Protocol::Tcp);
    let port = HostPort { port: taken.port, protocol, ip: Symbol::EMPTY };
    let mut remedies = vec![vec![need.pod(PodEdit::Unport(port))]];
    remedies.extend(taken.holder.map(|holder| vec![delete(holder)]));
    remedies
}
