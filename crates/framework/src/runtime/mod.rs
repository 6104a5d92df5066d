//! A profile at run time: its plugins by extension point, and the rules for running them.
//!
//! This file builds the profile and runs PreFilter and PostFilter; [`filter`], [`scoring`] and
//! [`binding`] run the other points, [`crate::stopwatch`] measures plugins. Upstream:
//! `pkg/scheduler/framework/runtime/framework.go`.

pub mod binding;
pub mod filter;
mod placement;
pub mod scoring;
#[cfg(test)]
mod tests;

use std::mem::take;
use std::sync::Arc;

use crate::cycle_state::CycleState;
use crate::effects::Effects;
use crate::host::Host;
use crate::opaque::{self, OpaquePlugins};
use crate::plugin::{CycleContext, Plugin, PostFilterAnswer, PostFilterContext};
use crate::preemption::kept::KeptDryRuns;
use crate::record::PluginStatus;
use crate::registry::{Registry, RegistryError};
use crate::status::node_statuses::{NodeStatuses, add_once};
use crate::status::{Code, Status};
use crate::stopwatch::Timer;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::types::Extender;
use kubestep_config::{ExtensionPoint, FeatureGates, PluginDescriptor, ResolvedProfile};

/// A profile with its plugins.
#[derive(Clone)]
pub struct Framework {
    profile: ResolvedProfile,
    points: [Vec<Arc<dyn Plugin>>; ExtensionPoint::COUNT],
    instances: Vec<Arc<dyn Plugin>>,
    descriptors: Vec<PluginDescriptor>,
    extenders: Arc<[Extender]>,
    opaque: Option<Arc<OpaquePlugins>>,
}

/// The combined result of all PreFilter plugins.
#[derive(Default, Debug)]
pub struct PreFilterOutcome {
    /// Success or the failure that ends the cycle.
    pub status: Status,
    /// The only nodes that can fit, sorted; `None` for all.
    pub nodes: Option<Vec<Name>>,
    /// The plugins that narrowed the nodes.
    pub narrowed_by: Vec<Symbol>,
    /// The answer of each plugin that ran, in order.
    pub answers: Vec<PluginStatus>,
}

impl PreFilterOutcome {
    /// The result of a failed run: only the status and the answers so far count.
    fn failed(self, status: Status) -> PreFilterOutcome {
        PreFilterOutcome { status, answers: self.answers, ..PreFilterOutcome::default() }
    }
}

/// The combined result of all PostFilter plugins.
#[derive(Default, Debug)]
pub struct PostFilterOutcome {
    /// Success or Unschedulable; of one plugin, if it ended the run.
    pub status: Status,
    /// The answer that counts.
    pub answer: PostFilterAnswer,
    /// The answer of each plugin that ran, in order.
    pub answers: Vec<PluginStatus>,
    /// What the plugins that ran request.
    pub effects: Effects,
}

impl PostFilterOutcome {
    /// Keeps what a plugin found that rejected the pod: the last nomination counts, and the last
    /// dry run.
    fn keep(&mut self, answer: PostFilterAnswer) {
        if answer.nominate.is_some() {
            self.answer = answer;
        } else if answer.dry_run.is_some() {
            self.answer.candidates = answer.candidates;
            self.answer.dry_run = answer.dry_run;
            self.answer.victim_rule = answer.victim_rule;
        }
    }

    /// The result when a plugin failed: of its answer, only what it found counts.
    fn failed(self, plugin: Symbol, answer: PostFilterAnswer) -> PostFilterOutcome {
        let status = Status::error(answer.status.message()).by(plugin);
        let PostFilterAnswer { candidates, dry_run, victim_rule, .. } = answer;
        let answer =
            PostFilterAnswer { candidates, dry_run, victim_rule, ..PostFilterAnswer::default() };
        PostFilterOutcome { status, answer, ..self }
    }
}

/// Why a profile cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("initializing plugin {plugin:?}: {source}")]
pub struct ProfileError {
    /// The plugin that cannot be built.
    pub plugin: Symbol,
    /// What is wrong with it.
    pub source: RegistryError,
}

impl Framework {
    /// Builds every plugin of `profile` except opaque ones. Where only opaque plugins order the
    /// queue or bind pods, the first plugin of the registry that can does.
    ///
    /// # Errors
    /// A plugin is not in the registry or rejects its arguments.
    pub fn new(
        profile: ResolvedProfile,
        registry: &Registry,
        features: &FeatureGates,
    ) -> Result<Framework, ProfileError> {
        let mut instances = Vec::new();
        let filters = profile.at(ExtensionPoint::Filter);
        let others =
            profile.instances.iter().filter(|name| filters.iter().all(|p| p.name != **name));
        let mut args = profile.args.clone();
        args.without_filter = others.copied().collect();
        let stand_ins = opaque::stand_ins(&profile, registry);
        let known = profile.instances.iter().copied().filter(|name| !profile.is_opaque(*name));
        let more = stand_ins.iter().map(|(_, name)| *name);
        let more = more.filter(|name| !profile.instances.contains(name));
        for name in known.chain(more) {
            let plugin = registry.build(name, &args, features);
            instances.push(plugin.map_err(|source| ProfileError { plugin: name, source })?);
        }
        let find = |name: Symbol| instances.iter().find(|plugin| plugin.name() == name).cloned();
        let points: [Vec<Arc<dyn Plugin>>; ExtensionPoint::COUNT] =
            ExtensionPoint::ALL.map(|point| {
                let stand_in = stand_ins.iter().filter(|(at, _)| *at == point);
                let names = profile.at(point).iter().map(|plugin| plugin.name);
                names.chain(stand_in.map(|(_, name)| *name)).filter_map(find).collect()
            });
        let (descriptors, extenders) = (registry.descriptors(), Arc::new([]) as Arc<[Extender]>);
        let scorers = points[ExtensionPoint::Score.index()].iter();
        let bases = scorers.map(|plugin| (plugin.name(), plugin.score_basis())).collect();
        let opaque = OpaquePlugins::of(&profile, bases).map(Arc::new);
        Ok(Framework { profile, points, instances, descriptors, extenders, opaque })
    }

    /// The same profile with these extenders, in their effective order: ignorable ones last.
    pub fn with_extenders(self, extenders: Arc<[Extender]>) -> Framework {
        Framework { extenders, ..self }
    }

    /// The extenders, in their effective order, by whose index [`Host::call_extender`] identifies
    /// them.
    pub fn extenders(&self) -> &Arc<[Extender]> {
        &self.extenders
    }

    /// The scheduler name, by which pods choose the profile.
    pub fn name(&self) -> Symbol {
        self.profile.scheduler_name
    }

    /// The profile as resolved from the configuration.
    pub fn profile(&self) -> &ResolvedProfile {
        &self.profile
    }

    /// The opaque plugins of the profile, if it has some.
    pub fn opaque(&self) -> Option<&Arc<OpaquePlugins>> {
        self.opaque.as_ref()
    }

    /// Whether the profile runs a plugin at a point, be it an opaque one.
    pub fn runs_any_at(&self, point: ExtensionPoint) -> bool {
        !self.profile.at(point).is_empty()
    }

    /// The plugins at a point, in order; without opaque ones.
    pub fn at(&self, point: ExtensionPoint) -> &[Arc<dyn Plugin>] {
        &self.points[point.index()]
    }

    /// Every plugin that was built.
    pub fn instances(&self) -> &[Arc<dyn Plugin>] {
        &self.instances
    }

    /// What a plugin that was built implements.
    pub fn descriptor(&self, plugin: Symbol) -> Option<&PluginDescriptor> {
        self.descriptors.iter().find(|descriptor| plugin == descriptor.name)
    }

    /// The weight of a score plugin; at least 1.
    pub fn score_weight(&self, plugin: Symbol) -> i64 {
        let entries = self.profile.at(ExtensionPoint::Score);
        entries.iter().find(|entry| entry.name == plugin).map_or(1, |entry| i64::from(entry.weight))
    }

    /// Runs PreFilter and intersects the nodes that plugins narrow down to.
    pub fn run_pre_filter(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
    ) -> PreFilterOutcome {
        let mut outcome = PreFilterOutcome::default();
        let mut rejected = Status::SUCCESS;
        let point = ExtensionPoint::PreFilter;
        for plugin in self.at(point) {
            let name = plugin.name();
            let (fault, timer) = (state.fault(point, name), &cx.shared.timer);
            let answer = run_plugin((point, name), fault, timer, || plugin.pre_filter(cx, state));
            let status = answer.status.by(name);
            let recorded = PluginStatus::new(name, status.clone());
            outcome.answers.push(PluginStatus { nodes: answer.nodes.clone(), ..recorded });
            match status.code() {
                Code::Skip => state.skip_filter.push(name), // Filter is skipped too
                Code::Success => {
                    let Some(nodes) = answer.nodes else { continue };
                    narrow(&mut outcome, name, nodes);
                    if let Some(empty) = empty_intersection(&outcome) {
                        outcome.status = empty;
                        return outcome;
                    }
                }
                Code::UnschedulableAndUnresolvable => {
                    return outcome.failed(status); // other plugins do not run
                }
                Code::Unschedulable => rejected = status, // other plugins still run
                _ => {
                    let status = wrap(&format!("running PreFilter plugin {name:?}"), &status, name);
                    return outcome.failed(status);
                }
            }
        }
        outcome.status = rejected;
        outcome
    }

    /// Runs PostFilter until a plugin succeeds, fails, or reports that preemption cannot help. What
    /// dry runs find is taken from and added to what is `kept`.
    pub fn run_post_filter(
        &self,
        cycle: CycleContext<'_>,
        state: &CycleState,
        statuses: &NodeStatuses,
        host: &mut dyn Host,
        mut kept: Option<&mut KeptDryRuns>,
    ) -> PostFilterOutcome {
        let mut outcome = PostFilterOutcome::default();
        if state.skip_post_filters {
            outcome.status = Status::unschedulable("All PostFilter plugins are skipped");
            return outcome;
        }
        let (mut reasons, mut rejector) = (Vec::new(), Symbol::EMPTY);
        let (point, timer) = (ExtensionPoint::PostFilter, &cycle.shared.timer);
        for plugin in self.at(point) {
            let name = plugin.name();
            let (host, kept) = (&mut *host, kept.as_deref_mut());
            let mut cx = PostFilterContext { cycle, framework: self, statuses, host, kept };
            let turn = || plugin.post_filter(&mut cx, state);
            let mut answer = run_plugin((point, name), state.fault(point, name), timer, turn);
            outcome.effects.append(take(&mut answer.effects));
            let status = answer.status.clone().by(name);
            let nominated = answer.nominate.filter(|node| !node.is_empty());
            let recorded = PluginStatus::new(name, status.clone());
            outcome.answers.push(PluginStatus { nominated, ..recorded });
            match status.code() {
                Code::Success | Code::UnschedulableAndUnresolvable => {
                    return PostFilterOutcome { status, answer, ..outcome };
                }
                Code::Unschedulable | Code::Pending => {
                    outcome.keep(answer);
                    reasons.extend_from_slice(status.reasons());
                    rejector = if rejector.is_empty() { name } else { rejector };
                }
                _ => return outcome.failed(name, answer),
            }
        }
        outcome.status = Status::with_reasons(Code::Unschedulable, reasons).by(rejector);
        outcome
    }
}

/// Runs a plugin at an extension point and measures it; a fault that is injected there is its
/// answer instead.
fn run_plugin<T: From<Status>>(
    (point, plugin): (ExtensionPoint, Symbol),
    fault: Option<Status>,
    timer: &Timer,
    turn: impl FnOnce() -> T,
) -> T {
    fault.map_or_else(|| timer.time(point, plugin, turn), T::from)
}

/// An error status; `doing`, the failed operation, is prefixed to the message.
pub(super) fn wrap(doing: &str, status: &Status, plugin: Symbol) -> Status {
    Status::error(format!("{doing}: {}", status.message())).by(plugin)
}

/// Intersects the nodes so far with `nodes`.
fn narrow(outcome: &mut PreFilterOutcome, plugin: Symbol, nodes: Vec<Name>) {
    add_once(&mut outcome.narrowed_by, plugin);
    outcome.nodes = Some(match outcome.nodes.take() {
        Some(so_far) => so_far.into_iter().filter(|name| nodes.contains(name)).collect(),
        None => nodes,
    });
}

/// The rejection when the intersection of the plugins' nodes is empty.
fn empty_intersection(outcome: &PreFilterOutcome) -> Option<Status> {
    if !outcome.nodes.as_ref()?.is_empty() {
        return None;
    }
    let mut names: Vec<&str> = outcome.narrowed_by.iter().map(|name| name.as_str()).collect();
    names.sort_unstable();
    Some(Status::unresolvable(&match names.as_slice() {
        [one] => format!("node(s) didn't satisfy plugin {one}"),
        _ => format!("node(s) didn't satisfy plugin(s) [{}] simultaneously", names.join(" ")),
    }))
}
