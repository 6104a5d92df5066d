//! One term of a pod's affinity, by its path: `nodeAffinity.required[0]`, or one expression
//! of it: `nodeAffinity.required[0][1]`.

use std::fmt;
use std::str::FromStr;

use super::{Edit, PodEdit, object};
use crate::why::cause::notation;
use kubestep_api::{Affinity, NodeSelector, NodeSelectorRequirement};
use kubestep_cluster::World;

/// A list of terms in a pod's affinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TermList {
    /// `nodeAffinity.required…`: one of the terms must match the node.
    NodeRequired,
    /// `nodeAffinity.preferred…`: a matching term adds its weight to the score.
    NodePreferred,
    /// `podAffinity.required…`: every term must match a pod in the domain.
    PodRequired,
    /// `podAffinity.preferred…`: pods that match add the weight to the score.
    PodPreferred,
    /// `podAntiAffinity.required…`: no term may match a pod in the domain.
    AntiRequired,
    /// `podAntiAffinity.preferred…`: pods that match subtract the weight.
    AntiPreferred,
}

/// The lists and the short form of their paths.
const LISTS: [(TermList, &str); 6] = [
    (TermList::NodeRequired, "nodeAffinity.required"),
    (TermList::NodePreferred, "nodeAffinity.preferred"),
    (TermList::PodRequired, "podAffinity.required"),
    (TermList::PodPreferred, "podAffinity.preferred"),
    (TermList::AntiRequired, "podAntiAffinity.required"),
    (TermList::AntiPreferred, "podAntiAffinity.preferred"),
];

/// A term, or one expression of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TermRef {
    /// The list it is in.
    pub list: TermList,
    /// Its index in the list, from 0.
    pub index: usize,
    /// Only this expression of a required node affinity term, from 0: `matchExpressions` first,
    /// then `matchFields`.
    pub expression: Option<usize>,
}

impl TermRef {
    /// Removes the term from the affinity. Empty parts are removed too: an empty list of required
    /// terms, which no node would match, and an empty affinity (`None`).
    ///
    /// Returns `false` if there is no such term.
    pub(super) fn remove_from(self, affinity: &mut Option<Affinity>) -> bool {
        let Some(found) = affinity else { return false };
        let removed = self.take(found);
        tidy(found);
        if *found == Affinity::default() {
            *affinity = None;
        }
        removed
    }

    fn take(self, affinity: &mut Affinity) -> bool {
        let (node, pod) = (&mut affinity.node_affinity, &mut affinity.pod_affinity);
        let anti = &mut affinity.pod_anti_affinity;
        if self.expression.is_some() && self.list != TermList::NodeRequired {
            return false;
        }
        macro_rules! take {
            ($affinity:expr, $list:ident) => {
                $affinity.as_mut().is_some_and(|affinity| remove(&mut affinity.$list, self.index))
            };
        }
        match self.list {
            TermList::NodeRequired => node.as_mut().is_some_and(|node| {
                self.take_required(&mut node.required_during_scheduling_ignored_during_execution)
            }),
            TermList::NodePreferred => {
                take!(node, preferred_during_scheduling_ignored_during_execution)
            }
            TermList::PodRequired => {
                take!(pod, required_during_scheduling_ignored_during_execution)
            }
            TermList::PodPreferred => {
                take!(pod, preferred_during_scheduling_ignored_during_execution)
            }
            TermList::AntiRequired => {
                take!(anti, required_during_scheduling_ignored_during_execution)
            }
            TermList::AntiPreferred => {
                take!(anti, preferred_during_scheduling_ignored_during_execution)
            }
        }
    }

    /// Terms are ORed: a term without expressions left requires nothing, so all terms are removed.
    fn take_required(self, required: &mut Option<NodeSelector>) -> bool {
        let Some(selector) = required else { return false };
        let terms = &mut selector.node_selector_terms;
        let Some(at) = self.expression else {
            let removed = remove(terms, self.index);
            if terms.is_empty() {
                *required = None;
            }
            return removed;
        };
        let Some(term) = terms.get_mut(self.index) else { return false };
        let expressions = term.match_expressions.len();
        let removed = match at.checked_sub(expressions) {
            None => remove(&mut term.match_expressions, at),
            Some(field) => remove(&mut term.match_fields, field),
        };
        if term.match_expressions.is_empty() && term.match_fields.is_empty() {
            *required = None;
        }
        removed
    }
}

/// What an edit of a node affinity expression does, in kubectl's notation: its path does not show
/// it. `None` for any other edit.
pub(crate) fn affinity_change(edit: &Edit, world: &World) -> Option<String> {
    match edit {
        Edit::Pod(
            key,
            PodEdit::Relax(TermRef { list: TermList::NodeRequired, index, expression }),
        ) => {
            let pod = world.api().objects().pod(*key)?;
            let node = pod.spec.affinity.as_ref()?.node_affinity.as_ref()?;
            let required = node.required_during_scheduling_ignored_during_execution.as_ref()?;
            let term = required.node_selector_terms.get(*index)?;
            let written = term.match_expressions.iter().chain(&term.match_fields);
            let dropped = written.enumerate().filter(|(at, _)| expression.is_none_or(|e| e == *at));
            let dropped: Vec<String> = dropped.map(|(_, written)| notation(written)).collect();
            Some(format!("node affinity: drops {}", dropped.join(", ")))
        }
        Edit::Set { object, path, value: Some(new) } => {
            let path = path.strip_suffix(".values").filter(|path| path.contains(".affinity."))?;
            let mut written = object::value(world, *object, path)?;
            let read = |value| serde_json::from_value::<NodeSelectorRequirement>(value).ok();
            let old = read(written.clone())?;
            *written.get_mut("values")? = new.clone();
            Some(format!("node affinity: {} → {}", notation(&old), notation(&read(written)?)))
        }
        _ => None,
    }
}

fn remove<T>(list: &mut Vec<T>, at: usize) -> bool {
    let there = at < list.len();
    if there {
        list.remove(at);
    }
    there
}

fn tidy(affinity: &mut Affinity) {
    affinity.node_affinity.take_if(|node| *node == Default::default());
    affinity.pod_affinity.take_if(|pod| *pod == Default::default());
    affinity.pod_anti_affinity.take_if(|anti| *anti == Default::default());
}

impl fmt::Display for TermRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = LISTS.iter().find(|(list, _)| *list == self.list).map_or("", |(_, path)| path);
        write!(f, "{path}[{}]", self.index)?;
        self.expression.map_or(Ok(()), |expression| write!(f, "[{expression}]"))
    }
}

impl FromStr for TermRef {
    type Err = String;

    fn from_str(text: &str) -> Result<TermRef, String> {
        let read = || {
            let (path, places) = text.split_once('[')?;
            let list = LISTS.iter().find(|(_, name)| *name == path)?.0;
            let places = places.strip_suffix(']')?;
            let (index, expression) = match places.split_once("][") {
                Some((index, expression)) => (index, Some(expression.parse().ok()?)),
                None => (places, None),
            };
            Some(TermRef { list, index: index.parse().ok()?, expression })
        };
        read().ok_or_else(|| {
            let paths: Vec<&str> = LISTS.iter().map(|(_, path)| *path).collect();
            format!(
                "{text:?} is not a term of an affinity: write one of {} with its index, as in \
                 nodeAffinity.required[0]",
                paths.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relaxed(affinity: &str, term: &str) -> Option<String> {
        let mut affinity: Option<Affinity> = kubestep_api::yaml::from_str(affinity).unwrap();
        let removed = term.parse::<TermRef>().unwrap().remove_from(&mut affinity);
        removed.then(|| serde_json::to_string(&affinity).unwrap())
    }

    const TWO_TERMS: &str = "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
        {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}], matchFields: \
        [{key: metadata.name, operator: In, values: [n]}]}, {matchExpressions: [{key: b, \
        operator: Exists}]}]}}}";

    #[test]
    fn terms_and_expressions_are_taken_out() {
        let without_first = relaxed(TWO_TERMS, "nodeAffinity.required[0]").unwrap();
        assert!(!without_first.contains("\"a\"") && without_first.contains("\"b\""));
        let without_name = relaxed(TWO_TERMS, "nodeAffinity.required[0][1]").unwrap();
        assert!(!without_name.contains("matchFields") && without_name.contains("\"a\""));
        // The second term requires nothing any more, so every node matches.
        assert_eq!(relaxed(TWO_TERMS, "nodeAffinity.required[1][0]").unwrap(), "null");
        for missing in ["nodeAffinity.required[2]", "podAffinity.required[0]"] {
            assert_eq!(relaxed(TWO_TERMS, missing), None);
        }
    }

    #[test]
    fn the_last_term_takes_the_affinity_with_it() {
        let anti = "{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                    [{topologyKey: h}]}}";
        assert_eq!(relaxed(anti, "podAntiAffinity.required[0]").unwrap(), "null");
        assert_eq!(relaxed(anti, "podAntiAffinity.required[0][0]"), None);
    }

    #[test]
    fn paths_are_read_as_they_are_written() {
        for (_, path) in LISTS {
            for text in [format!("{path}[3]"), format!("{path}[3][1]")] {
                assert_eq!(text.parse::<TermRef>().unwrap().to_string(), text);
            }
        }
        for text in ["nodeAffinity.required", "nodeAffinity[0]", "podAffinity.required[x]"] {
            assert!(text.parse::<TermRef>().unwrap_err().contains("nodeAffinity.required[0]"));
        }
    }
}
