//! `run --survive` and `:survive`: what becomes of the pods when each failure domain is lost in
//! turn. One type, and one file per output format.

pub mod json;
pub mod junit;
pub mod text;

use crate::report::cut::ended_after;
use crate::report::disruption::{DisruptionReport, ReplacementState};
use crate::report::outcome::{self, Pending};
use crate::report::pending::{self, NodeAllowance, PendingGroup};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_cluster::World;
use kubestep_cluster::disruption::{RemovedPod, Replacement};
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_debug::edit::EditError;
use kubestep_debug::survive::{Loss, LossTrial, Losses};
use kubestep_framework::pod::NamespacedName;

/// The loss of every domain, one at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct SurviveReport {
    /// The label key whose values are the domains; `node` if nodes are lost by name.
    pub key: Symbol,
    /// The domains that were tried, by the label's value.
    pub domains: Vec<LostDomain>,
    /// How many domains there are.
    pub of: usize,
    /// The limit of scheduling cycles, if it ended the run before the first loss.
    pub cut_before: Option<usize>,
    /// The pods that have no node with all domains there.
    pub pending_before: Vec<Pending>,
    /// The version and the feature gates that decided.
    pub gates: FeatureGates,
    /// Notices about the input, one sentence each.
    pub notices: Vec<String>,
}

/// The loss of one domain.
#[derive(Clone, PartialEq, Debug)]
pub struct LostDomain {
    /// The value that the lost nodes have, or the name of the node.
    pub value: Name,
    /// How many nodes have it.
    pub nodes: usize,
    /// What became of the pods.
    pub disruption: DisruptionReport,
    /// The pods that have no node because of the loss.
    pub unplaced: Vec<UnplacedPod>,
    /// The same in groups of equal pods, with causes as far as the limit of the search allows; empty if
    /// they are not asked for.
    pub groups: Vec<PendingGroup>,
    /// The number of scheduling cycles.
    pub cycles: u64,
    /// The limit of scheduling cycles, if it ended the run: what becomes of pods that were not
    /// tried is not known.
    pub cut: Option<usize>,
}

/// A pod that has no node after the loss.
#[derive(Clone, PartialEq, Debug)]
pub struct UnplacedPod {
    /// The pod, and why it is pending.
    pub pending: Pending,
    /// The pod that it replaces, with its node and why it left; `None` if the pod itself was
    /// created by nobody that is known.
    pub replaces: Option<RemovedPod>,
}

/// That some nodes are in no domain.
fn outside(losses: &Losses) -> Option<String> {
    let (outside, key) = (losses.outside, losses.key);
    let have = if outside == 1 { "has" } else { "have" };
    (outside > 0).then(|| format!("{} {have} no label {key}", count(outside, "node")))
}

impl LostDomain {
    /// The report of a session in which the domain was lost. What there was before does not count:
    /// disruptions of `start`, and `before`, the pods that were pending, sorted by name.
    pub fn new(loss: &Loss, session: &Session, start: &World, before: &[Pending]) -> LostDomain {
        let mut disruption = DisruptionReport::new(session).unwrap_or_default();
        if let Some(earlier) = start.disruptions() {
            disruption.left.drain(..earlier.removed().len());
            let violations = earlier.violations();
            disruption.violations.retain(|violation| !violations.contains(violation));
        }
        let was_pending =
            |pod: NamespacedName| before.binary_search_by_key(&pod, |pending| pending.pod).is_ok();
        let disruptions = session.world().disruptions();
        let origins = disruptions.map(|all| all.origins()).unwrap_or_default();
        let mut pending = outcome::pending(session);
        pending.retain(|pending| !was_pending(pending.pod));
        let unplaced = pending.into_iter().map(|pending| UnplacedPod {
            replaces: origins.get(&pending.pod).map(|removed| (*removed).clone()),
            pending,
        });
        LostDomain {
            value: loss.value,
            nodes: loss.nodes,
            unplaced: unplaced.collect(),
            groups: Vec::new(),
            cycles: session.world().scheduler().cycles() - start.scheduler().cycles(),
            disruption,
            cut: None,
        }
    }

    /// Groups equal pods, with the causes of the largest groups.
    fn explain(&mut self, session: &mut Session, nodes: &mut NodeAllowance) {
        let pending: Vec<Pending> =
            self.unplaced.iter().map(|unplaced| unplaced.pending.clone()).collect();
        self.groups = pending::groups(session, &pending);
        pending::explain(session, &pending, &mut self.groups, nodes);
    }

    /// Whether the run came to its end and left pods without a node.
    pub fn fails(&self) -> bool {
        self.cut.is_none() && !self.unplaced.is_empty()
    }

    /// How many pods nothing recreates: they have no controller, had ended, are static, or belong to a
    /// DaemonSet that runs one on each node.
    pub fn not_recreated(&self) -> usize {
        let left = self.disruption.left.iter();
        left.filter(|left| matches!(left.removed.replacement, Replacement::Nothing(_))).count()
    }

    /// How many replacements have a node.
    pub fn placed(&self) -> usize {
        let left = self.disruption.left.iter();
        left.filter(|left| matches!(left.end, ReplacementState::On(_))).count()
    }
}

/// How far the losses are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossProgress {
    /// Domains that were lost.
    pub done: usize,
    /// All domains.
    pub of: usize,
    /// Scheduling cycles of the one under way.
    pub cycles: u64,
}

impl SurviveReport {
    /// Schedules the queue, then loses each domain, on a copy, with at most `limit` cycles each. If
    /// `go_on` returns false, the report has the domains that were tried until then. `explained`: the
    /// nodes that may be looked at for causes; none are searched without it.
    ///
    /// # Errors
    /// The nodes cannot be lost.
    pub fn new(
        session: &mut Session,
        losses: &Losses,
        limit: usize,
        mut explained: Option<NodeAllowance>,
        go_on: &dyn Fn(LossProgress) -> bool,
    ) -> Result<SurviveReport, EditError> {
        let of = losses.each.len();
        let progress = |done, cycles| LossProgress { done, of, cycles };
        let first = session.world().scheduler().cycles();
        let mut stopped = false;
        let ran = session.run_to_end(limit, |record| {
            stopped = !go_on(progress(0, record.cycle.saturating_sub(first)));
            stopped
        });
        let cut_before = session.is_cut(ran, limit).then_some(limit);
        // A run that was stopped does not say which pods stay pending.
        let before = if stopped { Vec::new() } else { outcome::pending(session) };
        let mut report = SurviveReport {
            key: losses.key,
            domains: Vec::new(),
            of,
            cut_before,
            gates: *session.world().scheduler().features(),
            notices: outside(losses).into_iter().collect(),
            pending_before: before,
        };
        let (world, memory) = (session.world(), session.history_memory());
        let trial = LossTrial { world, limit, memory };
        for (done, loss) in losses.each.iter().enumerate().filter(|_| cut_before.is_none()) {
            let go_on = |cycles| go_on(progress(done, cycles));
            let lost = if go_on(0) { trial.lose(loss.set, &go_on)? } else { None };
            let Some((mut session, cut)) = lost else { break };
            let domain = LostDomain::new(loss, &session, world, &report.pending_before);
            let mut domain = LostDomain { cut, ..domain };
            if let Some(nodes) = explained.as_mut().filter(|_| domain.fails()) {
                domain.explain(&mut session, nodes);
            }
            report.domains.push(domain);
        }
        Ok(report)
    }

    /// A domain in words: `topology.kubernetes.io/zone=a`, `node a-0`.
    pub fn describe(&self, domain: &LostDomain) -> String {
        Losses::describe(self.key, domain.value)
    }

    /// Whether every pod has a node, whichever domain is lost.
    pub fn survives(&self) -> bool {
        self.is_complete() && !self.fails()
    }

    /// Whether the loss of some domain leaves pods without a node.
    pub fn fails(&self) -> bool {
        self.domains.iter().any(LostDomain::fails)
    }

    /// Whether every domain was lost and each run came to its end.
    pub fn is_complete(&self) -> bool {
        self.domains.len() == self.of && self.domains.iter().all(|domain| domain.cut.is_none())
    }

    /// Why some domains were not lost; `None` if all were.
    pub fn not_lost(&self) -> Option<String> {
        let tried = self.domains.len();
        match self.cut_before {
            Some(limit) => Some(format!("{} before the first loss", ended_after(limit))),
            None if tried < self.of => {
                Some(format!("stopped after {tried} of {}", count(self.of, "domain")))
            }
            None => None,
        }
    }
}
