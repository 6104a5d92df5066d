//! The smallest change that would make a pod fit, found by search over the real engine.
//!
//! What [`super::why`] finds in the way of the pod on each node suggests remedies, one file a
//! kind of cause in `remedy`. `plan` combines them node by node into plans that lift all that
//! is in the way there. Plans are tried in the order of their size, each by applying its edits
//! to a copy of the cluster and running the pod's cycles there (`trial`): what is proposed
//! has been seen to work. A plan of which a part does is cut down to that part.

mod covered;
mod plan;
mod remedy;
mod replacement;
mod size;
mod trial;

use crate::edit::{Edit, FieldChange};
use crate::trace::History;
use crate::why;
use crate::why::{NodeWhy, Why};
use hashbrown::HashMap;
use indexmap::IndexSet;

use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use plan::Plan;
use serde::{Serialize, Serializer};
use std::iter;
use trial::Trial;

/// Plans of one kind that are tried, so that some are left for others.
const OF_A_KIND: usize = 50;

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Proposals that are different in kind.
    pub fixes: usize,
    /// Plans that are tried.
    pub trials: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { fixes: 6, trials: 200 }
    }
}

/// Changes that make the pod fit.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fix {
    /// What to do, in this order.
    #[serde(serialize_with = "lines")]
    pub edits: Vec<Edit>,
    /// The same field by field.
    pub changes: Vec<FieldChange>,
    /// How large the change is: about one for each thing that is changed.
    pub size: f64,
    /// The node that the pod gets.
    pub node: Symbol,
    /// Whether a plugin then holds the pod at Permit or in PreBind.
    pub waits: bool,
    /// The pods that are evicted to make room, beside those that the edits delete.
    pub evicted: Vec<NamespacedName>,
    /// Whether the pod stays pending if pods are tried in the order of the queue, as
    /// `kubestep run --edit` does.
    pub contended: bool,
    /// The pods that get nodes instead.
    pub taken_by: Vec<NamespacedName>,
    /// Whether no event requeues the pod, so that only the flush of pods that have long been
    /// unschedulable does.
    pub flush_only: bool,
    /// What the edits do beyond their words.
    pub notes: Vec<String>,
    /// Other changes of the same kind that work as well, as far as they were tried.
    #[serde(serialize_with = "lists_of_lines")]
    pub similar: Vec<Vec<Edit>>,
}

/// Writes edits as lines that can be read back.
fn lines<S: Serializer>(edits: &[Edit], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(edits.iter().map(Edit::line))
}

fn lists_of_lines<S: Serializer>(lists: &[Vec<Edit>], serializer: S) -> Result<S::Ok, S::Error> {
    let lines = |edits: &Vec<Edit>| edits.iter().map(Edit::line).collect::<Vec<String>>();
    serializer.collect_seq(lists.iter().map(lines))
}

/// What the search found.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fixes {
    /// The smallest change first.
    pub found: Vec<Fix>,
    /// Whether the pod needs no change: it has its node, or gets one as soon as it is tried.
    pub none_needed: bool,
    /// How many plans were tried.
    pub tried: usize,
    /// Whether more plans were left when the search ended.
    pub more: bool,
    /// Where nothing was found: what is wrong and cannot be changed, and why.
    pub unchangeable: Vec<String>,
}

/// Looks for the smallest changes. `start` is the cluster that they are for, before its pods were
/// tried: in the order of the queue from there, pods ahead may get what a change offers. `go_on`
/// is told how many plans were tried and of how many, and may end the search.
pub fn fixes(
    world: &World,
    start: &World,
    pod: NamespacedName,
    limits: Limits,
    go_on: &mut dyn FnMut(usize, usize) -> bool,
) -> Fixes {
    let Some(why) = why::why(world, &History::default(), pod) else { return Fixes::default() };
    if needs_nothing(world, &why) {
        return Fixes { none_needed: true, ..Fixes::default() };
    }
    let plans = plan::plans(world, &why);
    let trial = Trial::new(world, pod);
    let mut search = Search { trial, limits, found: Vec::new(), tried: 0, kinds: HashMap::new() };
    let more = search.run(&plans, go_on);
    let Search { trial, mut found, tried, .. } = search;
    let most = plans.len().min(limits.trials);
    found.retain_mut(|fix| trial.complete(fix, start, &mut || go_on(tried, most)));
    found.sort_by(|a, b| (a.contended.cmp(&b.contended)).then(a.size.total_cmp(&b.size)));
    let unchangeable = if found.is_empty() { unchangeable(&why) } else { Vec::new() };
    Fixes { found, none_needed: false, tried, more, unchangeable }
}

/// Whether the pod has its node or gets it by itself, as it is.
fn needs_nothing(world: &World, why: &Why) -> bool {
    match &why.place {
        why::Place::Bound { node } => world.api().node(*node).is_some(),
        why::Place::Ended { .. } | why::Place::Waiting { .. } => true,
        _ => Trial::new(world, why.pod).run(&[]).is_some(),
    }
}

/// What is wrong on nodes and cannot be changed, each once.
fn unchangeable(why: &Why) -> Vec<String> {
    let causes = why.nodes.iter().flat_map(NodeWhy::causes).map(|(_, cause)| cause);
    let texts: IndexSet<String> =
        causes.filter_map(|cause| remedy::unchangeable(&cause.detail)).collect();
    texts.into_iter().collect()
}

struct Search<'a> {
    trial: Trial<'a>,
    limits: Limits,
    found: Vec<Fix>,
    tried: usize,
    /// How many plans of each kind were tried.
    kinds: HashMap<Vec<String>, usize>,
}

impl Search<'_> {
    /// Tries plans in their order. Gives whether some were left.
    fn run(&mut self, plans: &[Plan], go_on: &mut dyn FnMut(usize, usize) -> bool) -> bool {
        let most = plans.len().min(self.limits.trials);
        let mut left_out = false;
        for plan in plans {
            if self.found.len() >= self.limits.fixes || self.tried >= most {
                return true;
            }
            if self.contains_known(plan) {
                continue;
            }
            let of_kind = self.kinds.entry(size::kind(&plan.edits)).or_default();
            if *of_kind >= OF_A_KIND {
                left_out = true;
                continue;
            }
            if !go_on(self.tried, most) {
                return true;
            }
            *of_kind += 1;
            self.tried += 1;
            if let Some(fix) = self.trial.run(&plan.edits) {
                let fix = self.cut_down(fix);
                self.take(fix);
            }
        }
        left_out
    }

    /// Whether the plan does what is known to work, and more.
    fn contains_known(&self, plan: &Plan) -> bool {
        let known = self.found.iter().flat_map(|fix| iter::once(&fix.edits).chain(&fix.similar));
        let world = self.trial.world();
        known.into_iter().any(|known| covered::covers(&plan.edits, known, world))
    }

    /// Leaves out every edit without which it works as well.
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

    /// Of changes of the same kind the smallest stays; the others are similar to it.
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
