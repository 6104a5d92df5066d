//! The smallest change that would make a pod fit, found by search over the real engine.
//!
//! What [`super::why`] finds in the way of the pod on each node suggests remedies, one file a
//! kind of cause in `remedy`. `plan` combines them node by node into plans that lift all that
//! is in the way there. Plans are tried in the order of their size, each by applying its edits
//! to a copy of the cluster and running the pod's cycles there (`trial`): what is proposed
//! has been seen to work. A plan of which a part does is cut down to that part.

mod plan;
mod remedy;
mod replacement;
mod size;
mod trial;

use serde::{Serialize, Serializer};

use crate::debug::edit::Edit;
use crate::debug::why::{self, Why};
use crate::engine::pod::NamespacedName;
use crate::intern::Symbol;
use crate::sim::World;
use crate::trace::History;

use plan::Plan;
use trial::Trial;

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
    /// How large the change is: about one for each thing that is changed.
    pub size: f64,
    /// The node that the pod gets.
    pub node: Symbol,
    /// Whether a plugin then holds the pod at Permit or in PreBind.
    pub waits: bool,
    /// The pods that are evicted to make room, beside those that the edits delete.
    pub evicted: Vec<NamespacedName>,
    /// Whether pods ahead in the queue take the place first, if nobody brings this one forward.
    pub contended: bool,
    /// What the edits do beyond their words.
    pub notes: Vec<String>,
    /// How many more changes of the same kind, on other nodes, would do as well, as far as
    /// they were tried.
    pub alike: usize,
}

/// Writes edits as lines that can be read back.
fn lines<S: Serializer>(edits: &[Edit], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(edits.iter().map(Edit::line))
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
}

/// Looks for the smallest changes. `go_on` is told how many plans were tried and of how many,
/// and may end the search.
pub fn fixes(
    world: &World,
    pod: NamespacedName,
    limits: Limits,
    go_on: &mut dyn FnMut(usize, usize) -> bool,
) -> Fixes {
    let Some(why) = why::why(world, &History::default(), pod) else { return Fixes::default() };
    if needs_nothing(world, &why) {
        return Fixes { none_needed: true, ..Fixes::default() };
    }
    let plans = plan::plans(world, &why);
    let mut search = Search { trial: Trial::new(world, pod), limits, found: Vec::new(), tried: 0 };
    let more = search.run(&plans, go_on);
    let Search { trial, mut found, tried, .. } = search;
    found.iter_mut().for_each(|fix| trial.look_at_others(fix));
    found.sort_by(|a, b| (a.contended.cmp(&b.contended)).then(a.size.total_cmp(&b.size)));
    Fixes { found, none_needed: false, tried, more }
}

/// Whether the pod has its node or gets it by itself, as it is.
fn needs_nothing(world: &World, why: &Why) -> bool {
    match &why.place {
        why::Place::Bound { node } => world.api().node(*node).is_some(),
        why::Place::Ended { .. } | why::Place::Waiting { .. } => true,
        _ => Trial::new(world, why.pod).run(&[]).is_some(),
    }
}

struct Search<'a> {
    trial: Trial<'a>,
    limits: Limits,
    found: Vec<Fix>,
    tried: usize,
}

impl Search<'_> {
    /// Tries plans in their order. Gives whether some were left.
    fn run(&mut self, plans: &[Plan], go_on: &mut dyn FnMut(usize, usize) -> bool) -> bool {
        let most = plans.len().min(self.limits.trials);
        for plan in plans {
            if self.found.len() >= self.limits.fixes || self.tried >= most {
                return true;
            }
            if self.contains_known(plan) {
                continue;
            }
            if !go_on(self.tried, most) {
                return true;
            }
            self.tried += 1;
            if let Some(fix) = self.trial.run(&plan.edits) {
                let fix = self.cut_down(fix);
                self.take(fix);
            }
        }
        false
    }

    /// Whether a part of the plan is known to do.
    fn contains_known(&self, plan: &Plan) -> bool {
        let part = |fix: &Fix| fix.edits.iter().all(|edit| plan.edits.contains(edit));
        self.found.iter().any(part)
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

    /// Of changes of the same kind the smallest stays; the others are counted.
    fn take(&mut self, mut fix: Fix) {
        let kind = size::kind(&fix.edits);
        match self.found.iter_mut().find(|other| size::kind(&other.edits) == kind) {
            Some(other) if other.edits == fix.edits => {}
            Some(other) => {
                fix.alike = other.alike + 1;
                match fix.size < other.size {
                    true => *other = fix,
                    false => other.alike = fix.alike,
                }
            }
            None => self.found.push(fix),
        }
    }
}

#[cfg(test)]
mod tests;
