//! The smallest change that makes a pod fit, found by a search that uses the real engine.
//!
//! The causes that [`super::why`] finds on each node suggest remedies (module `remedy`, one file
//! per kind of cause). `plan` combines them node by node into plans that remove all causes on that
//! node. Plans are tried smallest first: each one's edits are applied to a copy of the cluster, and
//! the pod's cycles run there (`trial`), so that every proposal is known to work. If a part of a
//! plan is enough, the plan is reduced to it.

mod covered;
mod plan;
mod remedy;
mod replacement;
mod size;
mod trial;

use std::iter;

use crate::edit::{self, Edit, FieldChange};
use crate::why;
use crate::why::group::after_rejection;
use crate::why::{NodeWhy, ProblemKind, Why};
use hashbrown::HashMap;
use indexmap::IndexSet;
use kubestep_api::Name;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use plan::Plan;
use serde::{Serialize, Serializer};
use trial::EditTrial;

/// Plans of one kind that are tried, so that other kinds get a turn.
const OF_A_KIND: usize = 50;
/// Proposals that are searched unless another number is asked for.
pub const FIXES: usize = 6;
/// Plans that are tried for each proposal that is asked for.
const TRIALS: usize = 35;

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// Number of proposals of different kinds.
    pub fixes: usize,
    /// Number of plans that are tried.
    pub trials: usize,
}

impl SearchLimits {
    /// The limits for that many proposals. Few proposals may be as hard to find as many.
    pub fn of_fixes(fixes: usize) -> SearchLimits {
        SearchLimits { fixes, trials: fixes.max(FIXES).saturating_mul(TRIALS) }
    }
}

impl Default for SearchLimits {
    fn default() -> SearchLimits {
        SearchLimits::of_fixes(FIXES)
    }
}

/// Changes that make the pod fit.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fix {
    /// The edits, in this order.
    #[serde(serialize_with = "lines")]
    pub edits: Vec<Edit>,
    /// The edits field by field.
    pub changes: Vec<FieldChange>,
    /// The size of the change, by which changes are ordered: 1 for a change in place, more for what
    /// affects other pods, interrupts work or needs hardware.
    pub size: f64,
    /// The node that the pod gets.
    pub node: Name,
    /// Whether a plugin then makes the pod wait at Permit or in PreBind.
    pub waits: bool,
    /// The pods that are preempted, besides those that the edits delete.
    pub evicted: Vec<NamespacedName>,
    /// Whether the pod stays pending if pods are scheduled in queue order, as by `kubestep run
    /// --edit`.
    pub contended: bool,
    /// The pods that get nodes in its place.
    pub taken_by: Vec<NamespacedName>,
    /// Whether no event requeues the pod, so that only the periodic flush of unschedulable pods
    /// does.
    pub flush_only: bool,
    /// Side effects of the edits.
    pub notes: Vec<String>,
    /// Similar changes that also work, as far as they were tried.
    #[serde(serialize_with = "lists_of_lines")]
    pub similar: Vec<Vec<Edit>>,
}

/// Serializes edits as lines that parse back to the same edits.
fn lines<S: Serializer>(edits: &[Edit], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(edits.iter().map(Edit::line))
}

fn lists_of_lines<S: Serializer>(lists: &[Vec<Edit>], serializer: S) -> Result<S::Ok, S::Error> {
    let lines = |edits: &Vec<Edit>| edits.iter().map(Edit::line).collect::<Vec<String>>();
    serializer.collect_seq(lists.iter().map(lines))
}

/// The result of the search.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fixes {
    /// The smallest change first.
    pub found: Vec<Fix>,
    /// Whether the pod needs no change: it has a node, or gets one at its next attempt.
    pub none_needed: bool,
    /// What holds the pod at Permit or in PreBind, and until when; `None` unless it waits there.
    #[serde(skip)]
    pub held: Option<String>,
    /// The number of plans that were tried.
    pub tried: usize,
    /// Whether untried plans were left when the search ended.
    pub more: bool,
    /// The number of plans left when a limit ended the search.
    pub untried: usize,
    /// The number of proposals that were asked for.
    #[serde(skip)]
    pub asked: usize,
    /// If no fix was found: the causes that cannot be changed, and why.
    pub unchangeable: Vec<String>,
    /// The texts of the edits that replace a value, with that value.
    #[serde(skip)]
    replacing: HashMap<String, String>,
}

impl Fixes {
    /// The edit as text, followed by the value that it replaces, if there is one.
    pub fn edit_text(&self, edit: &Edit) -> String {
        let text = edit.to_string();
        self.replacing.get(&text).cloned().unwrap_or(text)
    }
}

/// Searches for the smallest changes. `start` is the cluster before its pods had an attempt: in
/// queue order from there, pods ahead of this one may take what a change frees. `go_on` is called
/// with the number of plans tried and their total; returning `false` ends the search.
pub fn fixes(
    world: &World,
    start: &World,
    pod: NamespacedName,
    limits: SearchLimits,
    go_on: &mut dyn FnMut(usize, usize) -> bool,
) -> Fixes {
    let object = world.api().objects().pod(pod);
    let later = object.and_then(|object| after_rejection(world, object));
    let tried_in = later.as_ref().unwrap_or(world);
    let Some(why) = why::why(tried_in, pod) else { return Fixes::default() };
    if needs_nothing(world, &why) {
        return Fixes { none_needed: true, held: held(&why), ..Fixes::default() };
    }
    let plans = plan::plans(tried_in, &why);
    let trial = EditTrial::new(world, tried_in, pod);
    let mut search =
        FixSearch { trial, limits, found: Vec::new(), tried: 0, untried: 0, kinds: HashMap::new() };
    let more = search.run(&plans, go_on);
    let FixSearch { trial, mut found, tried, untried, .. } = search;
    let most = plans.len().min(limits.trials);
    found.retain_mut(|fix| trial.complete(fix, start, &mut || go_on(tried, most)));
    found.sort_by(|a, b| (a.contended.cmp(&b.contended)).then(a.size.total_cmp(&b.size)));
    let unchangeable = if found.is_empty() { unchangeable(&why) } else { Vec::new() };
    let replacing = replacing(&found, tried_in);
    let asked = limits.fixes;
    Fixes { found, tried, more, untried, asked, unchangeable, replacing, ..Fixes::default() }
}

/// The texts of all edits that replace a value, with that value.
fn replacing(found: &[Fix], world: &World) -> HashMap<String, String> {
    let edits = found.iter().flat_map(|fix| iter::once(&fix.edits).chain(&fix.similar)).flatten();
    let texts = edits.map(|edit| (edit.to_string(), edit::with_replaced(edit, world)));
    texts.filter(|(text, with_value)| text != with_value).collect()
}

/// Whether the pod has a node or gets one without a change.
fn needs_nothing(world: &World, why: &Why) -> bool {
    match &why.place {
        why::PodLocation::Bound { node } => world.api().node(*node).is_some(),
        why::PodLocation::Ended { .. } | why::PodLocation::Waiting { .. } => true,
        _ => EditTrial::new(world, world, why.pod).run(&[]).is_some(),
    }
}

/// What holds a waiting pod, and until when.
fn held(why: &Why) -> Option<String> {
    let mut problems = why.problems.iter();
    let problem = problems.find(|problem| problem.kind == ProblemKind::Held)?;
    Some(format!("{}; {}", problem.text, problem.advice))
}

/// The causes on nodes that cannot be changed, each once.
fn unchangeable(why: &Why) -> Vec<String> {
    let causes = why.nodes.iter().flat_map(NodeWhy::causes).map(|(_, cause)| cause);
    let texts: IndexSet<String> =
        causes.filter_map(|cause| remedy::unchangeable(&cause.detail)).collect();
    texts.into_iter().collect()
}

struct FixSearch<'a> {
    trial: EditTrial<'a>,
    limits: SearchLimits,
    found: Vec<Fix>,
    tried: usize,
    /// The number of plans left when a limit ended the search.
    untried: usize,
    /// The number of plans tried, by kind.
    kinds: HashMap<Vec<String>, usize>,
}

impl FixSearch<'_> {
    /// Whether plans of its kind are still tried.
    fn has_turn(&self, plan: &Plan) -> bool {
        let tried = self.kinds.get(&size::kind(&plan.edits));
        tried.is_none_or(|tried| *tried < OF_A_KIND)
    }

    /// Tries plans in their order. Returns whether some were left.
    fn run(&mut self, plans: &[Plan], go_on: &mut dyn FnMut(usize, usize) -> bool) -> bool {
        let most = plans.len().min(self.limits.trials);
        let mut left_out = false;
        for (at, plan) in plans.iter().enumerate() {
            if self.found.len() >= self.limits.fixes || self.tried >= most {
                let left = plans.iter().skip(at).filter(|plan| !self.contains_known(plan));
                let left: Vec<&Plan> = left.collect();
                self.untried = left.iter().filter(|plan| self.has_turn(plan)).count();
                return left_out || !left.is_empty();
            }
            if self.contains_known(plan) {
                continue;
            }
            if !self.has_turn(plan) {
                left_out = true;
                continue;
            }
            if !go_on(self.tried, most) {
                return true;
            }
            *self.kinds.entry(size::kind(&plan.edits)).or_default() += 1;
            self.tried += 1;
            if let Some(fix) = self.trial.run(&plan.edits) {
                let fix = self.cut_down(fix);
                self.take(fix);
            }
        }
        left_out
    }

    /// Whether the plan contains a change that is known to work.
    fn contains_known(&self, plan: &Plan) -> bool {
        let known = self.found.iter().flat_map(|fix| iter::once(&fix.edits).chain(&fix.similar));
        let world = self.trial.world();
        known.into_iter().any(|known| covered::covers(&plan.edits, known, world))
    }

    /// Removes every edit that the fix also works without.
    fn cut_down(&self, mut fix: Fix) -> Fix {
        let mut at = 0;
        while fix.edits.len() > 1 && at < fix.edits.len() {
            let mut fewer = fix.edits.clone();
            fewer.remove(at);
            match self.trial.run(&fewer) {
                Some(smaller) => fix = smaller,
                None => at += 1,
            }
        }
        fix
    }

    /// Adds a fix. The smallest of one kind is kept; the others become its similar changes.
    fn take(&mut self, fix: Fix) {
        let kind = size::kind(&fix.edits);
        let Some(other) = self.found.iter_mut().find(|other| size::kind(&other.edits) == kind)
        else {
            return self.found.push(fix);
        };
        if other.edits == fix.edits || other.similar.contains(&fix.edits) {
            return;
        }
        if fix.size < other.size {
            let replaced = std::mem::replace(other, fix);
            other.similar = replaced.similar;
            other.similar.insert(0, replaced.edits);
        } else {
            other.similar.push(fix.edits);
        }
    }
}

#[cfg(test)]
mod tests;
