//! What becomes of the pods if nodes are lost: a zone, all nodes with a label, or one node. Each
//! loss is tried on a copy of the cluster.

use std::fmt;

use crate::Session;
use crate::edit::node_set::{domains, label_key};
use crate::edit::{Edit, EditError, NodeSet};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;

/// The word for nodes by name, in place of a label key.
pub const NODE: &str = "node";
/// The label that is tried if nothing is named.
const ZONE: &str = "zone";

/// What is lost, one at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Losses {
    /// The label key whose values are the domains; [`NODE`] if nodes are lost by name.
    pub key: Symbol,
    /// The losses, in order.
    pub each: Vec<Loss>,
    /// How many nodes are in no domain, as they lack the label.
    pub outside: usize,
}

/// The loss of one domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// The value of the label, or the node's name.
    pub value: Name,
    /// How many nodes are lost.
    pub nodes: usize,
    /// Which.
    pub set: NodeSet,
}

impl Losses {
    /// `zone` or `node` loses each zone or node in turn, `zone=a` or `node a-0` one of them. An
    /// empty text means each zone, or each node of a cluster without at least two zones.
    ///
    /// # Errors
    /// There is no such label or node.
    pub fn parse(world: &World, text: &str) -> Result<Losses, EditError> {
        match text.trim() {
            "" => Losses::default_of(world),
            NODE => Losses::of_nodes(world),
            one if one.contains(['=', ' ']) => Losses::of_one(world, one),
            key => Ok(Losses::of_label(world, label_key(world, key)?)),
        }
    }

    fn default_of(world: &World) -> Result<Losses, EditError> {
        let zones = label_key(world, ZONE).map(|key| Losses::of_label(world, key));
        match zones {
            Ok(zones) if zones.each.len() > 1 => Ok(zones),
            _ => Losses::of_nodes(world),
        }
    }

    fn of_nodes(world: &World) -> Result<Losses, EditError> {
        let mut names: Vec<Name> = world.api().nodes().map(|node| node.metadata.name).collect();
        names.sort_unstable();
        if names.is_empty() {
            return Err(EditError("the cluster has no nodes".into()));
        }
        let loss = |name| Loss { value: name, nodes: 1, set: NodeSet::Named(name) };
        Ok(Losses { key: NODE.into(), each: names.into_iter().map(loss).collect(), outside: 0 })
    }

    fn of_label(world: &World, key: Symbol) -> Losses {
        let each: Vec<Loss> = domains(world, key)
            .into_iter()
            .map(|(value, nodes)| Loss {
                value,
                nodes: nodes.len(),
                set: NodeSet::Labelled(key, value),
            })
            .collect();
        let inside: usize = each.iter().map(|loss| loss.nodes).sum();
        Losses { key, outside: world.api().nodes().count() - inside, each }
    }

    /// As the edit that loses nodes names them.
    fn of_one(world: &World, text: &str) -> Result<Losses, EditError> {
        let Edit::Lose(set) = format!("lose {text}").parse::<Edit>()? else {
            return Err(EditError(format!("{text:?} names no nodes")));
        };
        let nodes = set.nodes(world)?.len();
        let (key, value) = match set {
            NodeSet::Named(name) => (NODE.into(), name),
            NodeSet::Labelled(key, value) => (label_key(world, &key)?, value),
        };
        Ok(Losses { key, each: vec![Loss { value, nodes, set }], outside: 0 })
    }

    /// A loss in words: `node a-0`, `topology.kubernetes.io/zone=a`.
    pub fn describe(key: Symbol, value: Name) -> String {
        if key == NODE { format!("{NODE} {value}") } else { format!("{key}={value}") }
    }
}

/// `node a-0`, or `any one zone`.
impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.key.rsplit('/').next().unwrap_or_default();
        match self.each.as_slice() {
            [only] => f.write_str(&Losses::describe(short.into(), only.value)),
            _ => write!(f, "any one {short}"),
        }
    }
}

/// Loses nodes on a copy of a cluster.
#[derive(Clone, Copy)]
pub struct LossTrial<'a> {
    /// The cluster before the loss.
    pub world: &'a World,
    /// Maximum number of scheduling cycles after it.
    pub limit: usize,
    /// Memory for the history of the copy, in bytes.
    pub memory: Option<usize>,
}

impl LossTrial<'_> {
    /// The session after the nodes were lost and everything was scheduled again, with the limit if
    /// that ended it. `None` if `go_on`, which gets the number of cycles, returned false.
    ///
    /// # Errors
    /// The nodes cannot be lost.
    pub fn lose(
        &self,
        nodes: NodeSet,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<Option<(Session, Option<usize>)>, EditError> {
        let mut world = self.world.clone();
        let cycles_before = world.scheduler().cycles();
        Edit::Lose(nodes).apply(&mut world)?;
        let mut session = Session::new(world);
        self.memory.into_iter().for_each(|bytes| session.set_history_memory(bytes));
        session.only_forward();
        let mut stopped = false;
        let ran = session.run_until_idle(self.limit, |record| {
            stopped = !go_on(record.cycle - cycles_before);
            stopped
        });
        if stopped || !go_on(session.world().scheduler().cycles() - cycles_before) {
            return Ok(None);
        }
        let cut = session.is_cut(ran, self.limit).then_some(self.limit);
        Ok(Some((session, cut)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::tests::world;

    const CLUSTER: &str = "{kind: Node, metadata: {name: b, labels: {topology.kubernetes.io/zone: z2, rack: r}}}\n\
        ---\n{kind: Node, metadata: {name: a, labels: {topology.kubernetes.io/zone: z1}}}\n";

    fn words(cluster: &str, text: &str) -> String {
        match Losses::parse(&world(cluster), text) {
            Ok(losses) => {
                let each: Vec<String> = losses
                    .each
                    .iter()
                    .map(|loss| Losses::describe(losses.key, loss.value))
                    .collect();
                format!("{losses}: {}", each.join(", "))
            }
            Err(EditError(text)) => text,
        }
    }

    #[test]
    fn losses_are_named_by_label_by_value_or_by_node() {
        let zones = "any one zone: topology.kubernetes.io/zone=z1, topology.kubernetes.io/zone=z2";
        let cases = [
            ("", zones),
            ("zone", zones),
            ("topology.kubernetes.io/zone", zones),
            ("zone=z1", "zone=z1: topology.kubernetes.io/zone=z1"),
            ("rack", "rack=r: rack=r"),
            ("node", "any one node: node a, node b"),
            ("node b", "node b: node b"),
        ];
        for (text, expected) in cases {
            assert_eq!(words(CLUSTER, text), expected, "{text}");
        }
        assert_eq!(Losses::parse(&world(CLUSTER), "rack").unwrap().outside, 1);
        // One zone cannot be lost without all nodes.
        assert_eq!(words(&CLUSTER.replace("z2", "z1"), ""), "any one node: node a, node b");
    }

    #[test]
    fn what_does_not_exist_is_said() {
        assert_eq!(words("", ""), "the cluster has no nodes");
        let cases = [
            ("rak", "no node has a label rak, did you mean \"rack\"?"),
            ("zone=z9", "no node has the label topology.kubernetes.io/zone=z9; there is z1, z2"),
        ];
        for (text, expected) in cases {
            assert_eq!(words(CLUSTER, text), expected, "{text}");
        }
        assert!(
            words(CLUSTER, "node c").starts_with("there is no "),
            "{}",
            words(CLUSTER, "node c")
        );
        assert!(Losses::parse(&world(CLUSTER), "node b c").is_err());
    }
}
