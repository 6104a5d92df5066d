//! What arguments complete to, brought up to date while a command is typed.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::sync::Arc;

use super::{Action, Preset};
use crate::tui::app::App;
use crate::tui::model::Model;
use crate::tui::prompt::Purpose;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::NodeNames;

/// What `break` also takes, besides locations.
const WORDS: [&str; 8] = ["list", "save", "load", "clear", "remove", "delete", "on", "off"];

/// The values that arguments can have.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    themes: Vec<String>,
    /// Numbers of the cycles, and the pods that they were of.
    cycles: Vec<u64>,
    pods: BTreeSet<NamespacedName>,
    nodes: Arc<NodeNames>,
    plugins: Vec<String>,
    places: Vec<String>,
    /// The model's revision that they are of.
    as_of: Option<u64>,
}

impl Completion {
    /// With these themes and nothing else.
    #[cfg(test)]
    pub fn with_themes(themes: &[&str]) -> Completion {
        let themes = themes.iter().map(|name| (*name).to_owned()).collect();
        Completion { themes, ..Completion::default() }
    }

    /// The possible values for the argument of `action` that begin with `typed`, best first.
    pub fn values(&self, action: &Action, typed: &str) -> Vec<String> {
        let fitting = |values: &mut dyn Iterator<Item = String>| -> Vec<String> {
            values.filter(|value| value.starts_with(typed)).collect()
        };
        match action.name {
            "theme" => fitting(&mut self.themes.iter().cloned()),
            "keys" => fitting(&mut Preset::names().map(str::to_owned)),
            "cycle" => fitting(&mut self.cycles.iter().rev().map(u64::to_string)),
            "allow" => fitting(&mut self.plugins.iter().cloned()),
            "break" => fitting(&mut self.places.iter().cloned()),
            "watch" => subjects(&self.nodes, &self.pods, typed),
            _ => Vec::new(),
        }
    }

    /// Brings the values up to date if a command is typed.
    pub fn refresh(&mut self, app: &App, model: &Model) {
        let types = app.prompt().is_some_and(|prompt| prompt.purpose == Purpose::Command);
        if !types || self.as_of == Some(model.revision) {
            return;
        }
        self.as_of = Some(model.revision);
        self.themes = app.themes();
        self.places = places(model);
        self.nodes = model.cycles.last().map(|cycle| cycle.nodes.clone()).unwrap_or_default();
        self.refresh_cycles(model);
        self.plugins.clear();
        for (plugin, _) in model.waiting.iter().flat_map(|w| &w.plugins) {
            if !self.plugins.iter().any(|p| p == plugin.as_str()) {
                self.plugins.push(plugin.to_string());
            }
        }
    }

    /// Adds the new cycles: there can be tens of thousands.
    fn refresh_cycles(&mut self, model: &Model) {
        let known = self.cycles.last().zip(self.cycles.len().checked_sub(1));
        if known.is_some_and(|(last, at)| model.cycles.get(at).is_none_or(|c| c.cycle != *last)) {
            // Some were forgotten, or another branch is shown.
            self.cycles.clear();
            self.pods.clear();
        }
        let new = model.cycles.get(self.cycles.len()..).unwrap_or_default();
        self.cycles.extend(new.iter().map(|cycle| cycle.cycle));
        self.pods.extend(new.iter().map(|cycle| cycle.pod));
    }
}

/// What `:break` completes to: other words, points, plugins, outcomes, queues.
fn places(model: &Model) -> Vec<String> {
    use kubestep_debug::breakpoint::{Event, location};
    let points = location::POINTS.iter().map(|point| point.name().to_owned());
    let plugins = model.cycles.last().into_iter().flat_map(|cycle| {
        let filters = cycle.filter.plugins.iter().map(|column| column.plugin);
        filters.chain(cycle.score.plugins.iter().map(|column| column.plugin))
    });
    let mut plugins: Vec<String> = plugins.map(|plugin| plugin.to_string()).collect();
    plugins.sort_unstable();
    plugins.dedup();
    let outcomes = Event::ALL.iter().map(|(_, name)| format!("on:{name}"));
    let queues = location::QUEUES.iter().map(|(_, name)| format!("queue:{name}"));
    let words = WORDS.iter().map(|word| (*word).to_owned());
    points.chain(plugins).chain(outcomes).chain(queues).chain(words).collect()
}

/// What `:watch` completes to, of what begins with `typed`: queues, nodes and the pods there are
/// cycles of. There can be tens of thousands, of which few are meant.
fn subjects(nodes: &NodeNames, pods: &BTreeSet<NamespacedName>, typed: &str) -> Vec<String> {
    use kubestep_debug::breakpoint::location;
    let (mut found, mut text) = (Vec::new(), String::new());
    let mut add = |kind: &str, name: &dyn Display| {
        text.clear();
        // Writing into a text cannot fail.
        let _ = write!(text, "{kind}:{name}");
        if text.starts_with(typed) {
            found.push(text.clone());
        }
    };
    let queues = location::QUEUES.iter().filter(|(_, name)| *name != "none");
    queues.for_each(|(_, name)| add("queue", name));
    nodes.order.iter().for_each(|node| add("node", &nodes.name(*node)));
    pods.iter().for_each(|pod| add("pod", pod));
    found
}
