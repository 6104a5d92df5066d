//! The location of a breakpoint: any combination of extension point, plugin, pods, node, queue and
//! outcome.

use std::fmt;

use crate::breakpoint::BreakpointError;
use crate::breakpoint::outcome::CycleEvent;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::Selector;
use kubestep_config::{ExtensionPoint, suggest};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;

/// A name with the wildcards `*` and `?`; for pods with the namespace in front.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(pub String);

impl Pattern {
    /// Whether it matches a name without a namespace.
    pub fn matches(&self, name: Name) -> bool {
        kubestep_api::glob::glob(&self.0, &name.text())
    }

    /// Whether it matches a pod. A pattern without `/` matches the name in any namespace.
    pub(crate) fn matches_pod(&self, pod: NamespacedName) -> bool {
        match self.0.split_once('/') {
            Some((namespace, name)) => {
                kubestep_api::glob::glob(namespace, &pod.namespace)
                    && kubestep_api::glob::glob(name, &pod.name.text())
            }
            None => kubestep_api::glob::glob(&self.0, &pod.name.text()),
        }
    }
}

/// A label selector with its source text.
#[derive(Clone, PartialEq, Debug)]
pub struct Labels {
    /// The selector as it was typed after `-l`.
    pub text: String,
    /// The selector that pods have to match.
    pub selector: Selector,
}

/// The location of a breakpoint. An absent part matches anything.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Location {
    /// The extension point; the word `Filter` in `break Filter`.
    pub point: Option<ExtensionPoint>,
    /// Name of the plugin, at any of its extension points if `point` is absent.
    pub plugin: Option<Symbol>,
    /// The pods, by name.
    pub pod: Option<Pattern>,
    /// The pods, by label.
    pub labels: Option<Labels>,
    /// The nodes, by name, in Filter and Score.
    pub node: Option<Pattern>,
    /// The queue that the pod moves to.
    pub queue: Option<QueueName>,
    /// The outcome of the cycle.
    pub event: Option<CycleEvent>,
}

/// The queues by their names in a location.
pub const QUEUES: [(QueueName, &str); 6] = [
    (QueueName::Active, "active"),
    (QueueName::Backoff, "backoff"),
    (QueueName::Unschedulable, "unschedulable"),
    (QueueName::Gated, "gated"),
    (QueueName::InFlight, "in-flight"),
    (QueueName::None, "none"),
];

/// The extension points at which a cycle runs plugins.
pub const POINTS: [ExtensionPoint; 9] = [
    ExtensionPoint::PreFilter,
    ExtensionPoint::Filter,
    ExtensionPoint::PostFilter,
    ExtensionPoint::PreScore,
    ExtensionPoint::Score,
    ExtensionPoint::Reserve,
    ExtensionPoint::Permit,
    ExtensionPoint::PreBind,
    ExtensionPoint::Bind,
];

impl Location {
    /// Adds one word of a location. `known` are the plugins that exist.
    ///
    /// # Errors
    /// The word is unknown, or its part is set already.
    pub fn add(&mut self, word: &str, known: &[Symbol]) -> Result<(), BreakpointError> {
        match word.split_once(':') {
            Some(("pod", name)) => set(&mut self.pod, pattern(name, "a pod")?, "pod:"),
            Some(("node", name)) => set(&mut self.node, pattern(name, "a node")?, "node:"),
            Some(("queue", name)) => set(&mut self.queue, queue(name)?, "queue:"),
            Some(("on", name)) => set(&mut self.event, event(name)?, "on:"),
            Some((key, _)) => {
                let there = "; there are pod:, node:, queue: and on:";
                Err(unknown(key, "not part of a breakpoint", there))
            }
            None => self.add_name(word, known),
        }
    }

    /// Adds `Filter`, `NodeResourcesFit` or `Filter/NodeResourcesFit`.
    fn add_name(&mut self, word: &str, known: &[Symbol]) -> Result<(), BreakpointError> {
        if let Some((point_name, plugin_name)) = word.split_once('/') {
            set(
                &mut self.point,
                point(point_name).ok_or_else(|| no_point(point_name))?,
                "a point",
            )?;
            return set(&mut self.plugin, plugin(plugin_name, known)?, "a plugin");
        }
        match point(word) {
            Some(point) => set(&mut self.point, point, "a point"),
            None => set(&mut self.plugin, plugin(word, known)?, "a plugin"),
        }
    }

    /// Adds a label selector.
    ///
    /// # Errors
    /// It is not a label selector.
    pub(crate) fn add_labels(&mut self, text: &str) -> Result<(), BreakpointError> {
        let selector =
            Selector::parse(text).map_err(|error| BreakpointError::Labels(error.to_string()))?;
        set(&mut self.labels, Labels { text: text.to_owned(), selector }, "-l")
    }

    /// Rejects combinations that can never be hit.
    ///
    /// # Errors
    /// Names the combination.
    pub fn check(&self) -> Result<(), BreakpointError> {
        let in_cycle = self.point.is_some() || self.node.is_some() || self.event.is_some();
        if self.queue.is_some() && in_cycle {
            return Err(BreakpointError::Combination(
                "a pod enters a queue between the cycles: queue: goes with a plugin, pods and a \
                 condition only",
            ));
        }
        if let Some(event @ (CycleEvent::Unschedulable | CycleEvent::Error)) = self.event
            && self.node.is_some()
        {
            return Err(BreakpointError::OutcomeOfNode(event));
        }
        let per_node = self.point.is_none_or(is_per_node);
        if self.node.is_some() && self.event.is_none() && !per_node {
            return Err(BreakpointError::Combination(
                "only Filter and Score evaluate single nodes",
            ));
        }
        Ok(())
    }

    /// Whether no part is set.
    pub(crate) fn is_anything(&self) -> bool {
        *self == Location::default()
    }
}

/// Whether plugins run once per node at that extension point.
pub(crate) fn is_per_node(point: ExtensionPoint) -> bool {
    matches!(point, ExtensionPoint::Filter | ExtensionPoint::Score)
}

fn set<T>(slot: &mut Option<T>, value: T, what: &'static str) -> Result<(), BreakpointError> {
    if slot.is_some() {
        return Err(BreakpointError::Repeated(what));
    }
    *slot = Some(value);
    Ok(())
}

fn pattern(text: &str, what: &'static str) -> Result<Pattern, BreakpointError> {
    match text.is_empty() {
        true => Err(BreakpointError::NameMissing(what)),
        false => Ok(Pattern(text.to_owned())),
    }
}

/// The extension point of that name, case-insensitive.
pub fn point(name: &str) -> Option<ExtensionPoint> {
    POINTS.into_iter().find(|point| point.name().eq_ignore_ascii_case(name))
}

fn unknown(name: &str, what: &'static str, hint: impl Into<String>) -> BreakpointError {
    BreakpointError::UnknownName { name: name.to_owned(), what, hint: hint.into() }
}

/// An error that lists all the names there are.
fn none_of(name: &str, what: &'static str, names: &[&str]) -> BreakpointError {
    unknown(name, what, format!("; there are {}", names.join(", ")))
}

fn no_point(name: &str) -> BreakpointError {
    none_of(name, "not an extension point of a cycle", &POINTS.map(ExtensionPoint::name))
}

fn plugin(name: &str, known: &[Symbol]) -> Result<Symbol, BreakpointError> {
    let found = known.iter().find(|plugin| plugin.eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let points = POINTS.map(ExtensionPoint::name).into_iter();
        let near = suggest::closest(name, known.iter().map(|plugin| plugin.as_str()).chain(points));
        let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        unknown(name, "neither an extension point nor a plugin of a profile", near)
    })
}

/// The queue of that name.
///
/// # Errors
/// The name is unknown.
pub fn queue(name: &str) -> Result<QueueName, BreakpointError> {
    let found = QUEUES.iter().find(|(_, known)| *known == name).map(|(queue, _)| *queue);
    found.ok_or_else(|| none_of(name, "not a queue", &QUEUES.map(|(_, name)| name)))
}

fn event(name: &str) -> Result<CycleEvent, BreakpointError> {
    let found = CycleEvent::ALL.iter().find(|(_, known)| *known == name).map(|(event, _)| *event);
    found.ok_or_else(|| none_of(name, "not an outcome", &CycleEvent::ALL.map(|(_, name)| name)))
}

/// A queue's name in a location.
pub fn queue_name(queue: QueueName) -> &'static str {
    QUEUES.iter().find(|(known, _)| *known == queue).map_or("none", |(_, name)| name)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match (self.point, self.plugin) {
            (Some(point), Some(plugin)) => Some(format!("{}/{plugin}", point.name())),
            (Some(point), None) => Some(point.name().to_owned()),
            (None, plugin) => plugin.map(|plugin| plugin.to_string()),
        };
        let words = [
            place,
            self.pod.as_ref().map(|pod| format!("pod:{}", pod.0)),
            self.labels.as_ref().map(|labels| format!("-l {}", labels.text)),
            self.node.as_ref().map(|node| format!("node:{}", node.0)),
            self.queue.map(|queue| format!("queue:{}", queue_name(queue))),
            self.event.map(|event| format!("on:{event}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(&words.join(" "))
    }
}
