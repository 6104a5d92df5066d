//! The verdicts on nodes with the pods nominated to them counted in, kept from cycle to cycle.
//!
//! Such a verdict depends on the node, on the pods nominated to it, and on what the filter plugins
//! look at in the pod: it is computed again where one of these changed.
//!
//! Upstream: `RunFilterPluginsWithNominatedPods` in `pkg/scheduler/framework/runtime/framework.go`.

use super::PluginAnswers;
use super::cache::{AnswerKey, CachedColumn, FilterAnswers};
use super::matrix::FilterCycle;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::pod::nominated::{NominatedPods, NominatedToNode};
use kubestep_framework::record::VerdictId;

/// The verdicts for one class of pods.
#[derive(Clone, Debug, Default)]
pub(crate) struct NominatedVerdicts {
    /// The nominations that they reflect.
    nominated: NominatedPods,
    /// By slot; a node without nominated pods passes.
    pub answers: FilterAnswers,
}

impl NominatedVerdicts {
    /// About how many bytes it takes; other classes may share the nominations.
    pub fn bytes(&self) -> usize {
        let list = size_of::<(u64, Symbol, NominatedToNode)>();
        self.answers.column.len() * size_of::<VerdictId>() + self.nominated.node_count() * list
    }
}

impl PluginAnswers {
    /// The verdicts with nominated pods on the nodes that have some, for pods of a class.
    pub(crate) fn nominated_verdicts(
        &mut self,
        cycle: FilterCycle<'_>,
        class: &str,
    ) -> FilterAnswers {
        let FilterCycle { framework, cx, .. } = cycle;
        let (profile, point) = (framework.name(), ExtensionPoint::Filter);
        let key = AnswerKey { profile, plugin: Symbol::EMPTY, point, pod: class.into() };
        let (mut kept, mut stale) = match self.cache.take(&key) {
            Some((CachedColumn::WithNominated(kept), stale)) => (*kept, stale),
            _ => Default::default(),
        };
        kept.answers.column.grow(VerdictId::PASS, cx.snapshot.slots());
        let renominated = cx.nominated.changed_since(&kept.nominated);
        let nodes = renominated.into_iter().filter_map(|name| cx.snapshot.by_name(name));
        stale.extend(nodes.map(|node| node.id));
        kept.nominated = cx.nominated.clone();
        for id in stale {
            kept.answers.set(id, self.verdict_with_nominated(cycle, id, VerdictId::PASS));
        }
        debug_assert!(self.are_as_computed_again(cycle, &kept));
        let answers = kept.answers.clone();
        self.cache.put(key, CachedColumn::WithNominated(Box::new(kept)));
        answers
    }

    /// Whether the verdicts are those that are computed now.
    fn are_as_computed_again(&self, cycle: FilterCycle<'_>, kept: &NominatedVerdicts) -> bool {
        let mut again = PluginAnswers { verdicts: self.verdicts.clone(), ..Default::default() };
        let mut nodes = cycle.cx.snapshot.order().iter();
        nodes.all(|id| {
            let verdict = again.verdict_with_nominated(cycle, *id, VerdictId::PASS);
            kept.answers.column.get(*id) == Some(verdict)
        })
    }
}
