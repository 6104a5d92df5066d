//! The plugin Turns: each node takes `most` pods in its life, and nodes that took fewer score
//! higher.

use std::collections::BTreeMap;

use kubestep_framework::prelude::*;

arguments! {
    /// How long a node takes pods.
    pub struct TurnsArgs for "Turns" {
        most: i64 = 1, put "most", "1 to 100", "How many pods a node takes in its life.";
    }
}

impl Arguments for TurnsArgs {
    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        if !(1..=100).contains(&self.most) {
            found.invalid(&path.field("most"), self.most, "not in valid range [1, 100]");
        }
    }
}

/// What configurations know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    args: Some(ArgsType::of::<TurnsArgs>()),
    signs: false,
    ..PluginDescriptor::new("Turns", &[Filter, Score, Reserve])
};

/// How many pods each node took. It is not in the plugin, so that a session can go back in time.
#[derive(Clone, Default, PartialEq, Debug)]
struct Taken(BTreeMap<Name, i64>);

impl PluginState for Taken {}

impl TurnsArgs {
    fn left(&self, shared: &PluginStore, node: Name) -> i64 {
        let taken = shared.plugins.get::<Taken>().and_then(|taken| taken.0.get(&node));
        self.most - taken.copied().unwrap_or(0)
    }
}

impl Plugin for TurnsArgs {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }
    fn events(&self) -> Option<Vec<Registration>> {
        let own = self.clone();
        Some(vec![Registration::hinted(EventResource::Node, Action::ADD, move |cx, _, objects| {
            let (_, added) = objects.nodes()?;
            let has_turns = |node: &Node| own.left(cx.shared, node.metadata.name) > 0;
            Ok(QueueingHint::queue_if(added.is_some_and(has_turns)))
        })])
    }
    fn filter(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Status {
        match self.left(cx.shared, node.name) > 0 {
            true => Status::SUCCESS,
            false => Status::unschedulable("node(s) had their turns"),
        }
    }
    fn score(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Result<i64, Status> {
        Ok(100 * self.left(cx.shared, node.name) / self.most)
    }
    fn reserve(&self, cx: &mut BindContext<'_>, _: &mut CycleState) -> Status {
        let node = cx.node;
        cx.shared.plugins.update(|taken: &mut Taken| *taken.0.entry(node).or_default() += 1);
        Status::SUCCESS
    }
    fn unreserve(&self, cx: &mut BindContext<'_>, _: &mut CycleState) {
        let node = cx.node;
        cx.shared.plugins.update(|taken: &mut Taken| *taken.0.entry(node).or_default() -= 1);
    }
}
