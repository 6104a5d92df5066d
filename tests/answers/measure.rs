//! The four measures of an answer: whether the causes are right, a fix was found, all fixes work,
//! and the first one is the smallest.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::apply::{apply, patch, position};
use crate::brute::Brute;
use crate::change::{Change, Proposal, Target, What, proposals};
use crate::cluster::{Case, key_of};
use crate::controllers::{IMMUTABLE, owner};
use crate::program::{self, End, Input};
use crate::quantity;
use crate::size;
use crate::truth::all;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Measure {
    /// The causes and figures are the planted ones, and no others.
    Cause,
    /// A fix was found where one exists.
    Found,
    /// All fixes have the stated effect.
    Works,
    /// No single change is smaller than the first fix.
    Smallest,
}

impl Measure {
    pub const ALL: [Measure; 4] =
        [Measure::Cause, Measure::Found, Measure::Works, Measure::Smallest];
}

/// The faults of an answer, by measure.
pub type Faults = Vec<(Measure, String)>;

/// A cluster with its documents.
pub struct Examined<'a> {
    case: &'a Case,
    documents: Vec<Value>,
}

impl<'a> Examined<'a> {
    pub fn new(case: &'a Case) -> Examined<'a> {
        Examined { case, documents: case.documents() }
    }

    pub fn input<'b>(&'b self, documents: &'b [Value]) -> Input<'b> {
        Input { documents, config: self.case.config.as_deref(), gates: self.case.gates }
    }

    pub fn documents(&self) -> &[Value] {
        &self.documents
    }

    /// The answer of the program.
    pub fn explained(&self) -> Result<Value, String> {
        program::explain(self.input(&self.documents), &self.case.asked())
    }

    /// All faults of an answer.
    pub fn faults(&self, explained: &Value) -> Faults {
        let causes = self.case.truth.compare(explained).into_iter();
        let mut faults: Faults = causes.map(|text| (Measure::Cause, text)).collect();
        let proposals = match proposals(explained) {
            Ok(proposals) => proposals,
            Err(error) => {
                faults.push((Measure::Works, error));
                return faults;
            }
        };
        let done = |what: &What| proposals.iter().flat_map(|p| &p.changes).any(|c| c.what == *what);
        let missing = self.case.truth.offered.iter().filter(|what| !done(what));
        faults.extend(missing.map(|what| (Measure::Found, format!("no proposal does {what:?}"))));
        let broken = proposals.iter().filter_map(|proposal| {
            let fault = self.fault(proposal)?;
            Some((Measure::Works, format!("{}: {fault}", proposal.lines.join(", and "))))
        });
        faults.extend(broken);
        faults.extend(self.smaller(&proposals));
        let too_much = proposals.iter().filter_map(|proposal| self.asks_for_too_little(proposal));
        faults.extend(too_much.map(|text| (Measure::Smallest, text)));
        faults
    }

    /// The fault of a proposal, if any.
    fn fault(&self, proposal: &Proposal) -> Option<String> {
        let changed = match apply(&self.documents, &proposal.changes, &self.case.asked()) {
            Ok(changed) => changed,
            Err(error) => return Some(error),
        };
        if let Some(unsaid) = proposal.changes.iter().find_map(|c| self.unsaid(c, proposal)) {
            return Some(unsaid);
        }
        self.differs(proposal, changed).or_else(|| self.fault_of_fields(proposal))
    }

    /// The fault of a proposal's field changes, if any.
    fn fault_of_fields(&self, proposal: &Proposal) -> Option<String> {
        let copies = |change: &Change| matches!(change.what, What::Copy(_));
        if proposal.changes.iter().any(copies) {
            // What drivers publish for a new node is not part of the proposal.
            return None;
        }
        let changed = patch(&self.documents, &proposal.fields, &self.case.asked());
        let fault = match changed {
            Ok(changed) => self.differs(proposal, changed),
            Err(error) => Some(error),
        };
        fault.map(|fault| format!("field by field: {fault}"))
    }

    /// How the result in the changed cluster differs from the proposal's statement.
    fn differs(&self, proposal: &Proposal, changed: Vec<Value>) -> Option<String> {
        let changed = if proposal.is_contended { self.alone(changed) } else { changed };
        let end = match program::run(self.input(&changed), &self.case.asked()) {
            Ok(end) => end,
            Err(error) => return Some(error),
        };
        if !end.is_placed() {
            return Some("the pod stays pending".into());
        }
        if end.waits != proposal.waits {
            return Some(format!("waits: {} instead of {}", end.waits, proposal.waits));
        }
        self.other_victims(proposal, &end)
    }

    /// The difference if it evicts other pods than stated.
    fn other_victims(&self, proposal: &Proposal, end: &End) -> Option<String> {
        let is_there = end.node.as_ref() == Some(&proposal.node) && !proposal.is_contended;
        let said: BTreeSet<String> = proposal.evicted.iter().cloned().collect();
        let differ = is_there && end.evicted != said;
        differ.then(|| format!("evicts {:?} and says {said:?}", end.evicted))
    }

    /// A side effect of a change that is missing in the notes.
    fn unsaid(&self, change: &Change, proposal: &Proposal) -> Option<String> {
        let at = position(&self.documents, &change.target)?;
        let object = &self.documents[at];
        let notes = proposal.notes.join("\n");
        let kind = object["kind"].as_str().unwrap_or_default();
        let changes_spec = matches!(&change.what, What::Set(path, _) if path.starts_with("/spec/"));
        let says_so =
            ["recreate", "immutable", "cannot be changed"].iter().any(|w| notes.contains(w));
        if IMMUTABLE.contains(&kind) && changes_spec && !says_so {
            return Some(format!("the specification of a {kind} is immutable, which is not said"));
        }
        let by = owner(object).filter(|_| kind == "Pod")?;
        (!notes.contains(by)).then(|| format!("the pod is of a {by}, which is not said"))
    }

    /// The documents without the other pending pods.
    fn alone(&self, mut documents: Vec<Value>) -> Vec<Value> {
        let asked = Target::new("Pod", &self.case.asked());
        let asked = position(&documents, &asked).map(|at| documents[at].clone());
        documents.retain(|object| {
            let waits = object["kind"] == "Pod" && object["spec"]["nodeName"].is_null();
            !waits || Some(object) == asked.as_ref() || !object["spec"]["schedulingGroup"].is_null()
        });
        documents
    }

    /// A single change that works and is smaller than the first proposal, or that no proposal
    /// contains.
    fn smaller(&self, proposals: &[Proposal]) -> Option<(Measure, String)> {
        let first = proposals.first();
        let size =
            first.map_or(u32::MAX, |p| size::of(&self.documents, &p.changes, p.evicted.len()));
        let (change, own) = self.single_below(size)?;
        Some(match first {
            None => (Measure::Found, format!("nothing, where this does: {change:?}")),
            Some(first) => {
                let first = first.lines.join(", and ");
                (Measure::Smallest, format!("{size} {first}, but {own} does: {change:?}"))
            }
        })
    }

    /// The smallest single change below a size with which the pod gets a node.
    fn single_below(&self, limit: u32) -> Option<(Change, u32)> {
        let size = |change: &Change| size::of(&self.documents, std::slice::from_ref(change), 0);
        let changes =
            self.brute().single_changes().into_iter().map(|change| (size(&change), change));
        let mut changes: Vec<(u32, Change)> = changes.filter(|(size, _)| *size < limit).collect();
        changes.sort_by_key(|(size, _)| *size);
        let mut limit = limit;
        let mut best = None;
        for (size, change) in changes {
            if size >= limit {
                break;
            }
            let Some(end) = self.end_after(&change) else { continue };
            let whole = size + size::REPLACED * end.evicted.len() as u32;
            if end.is_placed() && whole < limit {
                (limit, best) = (whole, Some((change, whole)));
            }
        }
        best
    }

    fn end_after(&self, change: &Change) -> Option<End> {
        let changes = std::slice::from_ref(change);
        let changed = apply(&self.documents, changes, &self.case.asked()).ok()?;
        let mut end = program::run(self.input(&changed), &self.case.asked()).ok()?;
        // Pods that the change itself deletes are not evicted.
        end.evicted.retain(|pod| changed.iter().any(|object| key_of(object) == *pod));
        Some(end)
    }

    /// The fault that a single lowered request is lower than necessary.
    fn asks_for_too_little(&self, proposal: &Proposal) -> Option<String> {
        let [Change { target, what: What::Total(resource, amount) }] = proposal.changes.as_slice()
        else {
            return None;
        };
        if *target != Target::new("Pod", &self.case.asked()) {
            return None;
        }
        let old = requested(&self.case.pod, resource)?;
        let new = quantity::parse(resource, amount)?;
        let more = new + (old - new) / 4;
        let amount = quantity::write(resource, more);
        let what = What::Total(resource.clone(), amount.clone());
        let change = Change { target: target.clone(), what };
        let does = more > new && self.end_after(&change)?.is_placed();
        does.then(|| format!("{}, but {amount} does", proposal.lines.join(", and ")))
    }

    fn brute(&self) -> Brute<'_> {
        let settings = self.case.config.as_deref().unwrap_or_default();
        let names = settings.lines().filter_map(|line| line.split("schedulerName:").nth(1));
        let mut profiles: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
        profiles.push("default-scheduler".into());
        Brute { documents: &self.documents, pod: &self.case.pod, profiles }
    }
}

/// The request of a pod: pod-level, otherwise the sum of containers and sidecars, or that of an
/// init container that requests more.
pub fn requested(pod: &Value, resource: &str) -> Option<i64> {
    let spec = &pod["spec"];
    let request = |part: &Value| {
        let text = part["resources"]["requests"][resource].as_str()?;
        quantity::parse(resource, text)
    };
    let is_sidecar = |one: &&Value| one["restartPolicy"] == "Always";
    let beside = all(&spec["initContainers"]).filter(is_sidecar);
    let sum: i64 = all(&spec["containers"]).chain(beside).filter_map(request).sum();
    let most = all(&spec["initContainers"]).filter_map(request).max().unwrap_or(0);
    request(spec).or(Some(sum.max(most)))
}
