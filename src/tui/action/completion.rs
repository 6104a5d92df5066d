//! What arguments complete to, brought up to date while a command is typed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Action, Preset};
use crate::tui::app::App;
use crate::tui::edit_forms::{fits, is_literal};
use crate::tui::model::{ArgumentNames, Model};
use crate::tui::view::LABEL_NAMES;
use kubestep_config::KubeVersion;
use kubestep_debug::breakpoint::location::QUEUES;
use kubestep_debug::edit::FORMS;

/// What `break` also takes, besides locations.
const WORDS: [&str; 8] = ["list", "save", "load", "clear", "remove", "delete", "on", "off"];

/// The most candidates of one kind that are listed: a page shows some ten, and every frame lists
/// them.
pub const CANDIDATES: usize = 1_000;

/// The values that arguments can have.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    themes: Vec<String>,
    /// The heat maps of the view on screen.
    maps: &'static [&'static str],
    /// Numbers of the cycles.
    cycles: Vec<u64>,
    /// The names of the cluster's objects, and of the branches.
    names: Arc<ArgumentNames>,
    plugins: Vec<String>,
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
            values.filter(|value| value.starts_with(typed)).take(CANDIDATES).collect()
        };
        match action.name {
            "theme" => fitting(&mut self.themes.iter().cloned()),
            "map" => fitting(&mut self.maps.iter().copied().chain(["none"]).map(str::to_owned)),
            "group-by" => {
                let labels = LABEL_NAMES.iter().map(|(name, _)| *name);
                fitting(&mut labels.chain(["none"]).map(str::to_owned))
            }
            "keys" => fitting(&mut Preset::names().map(str::to_owned)),
            "cycle" => fitting(&mut self.cycles.iter().rev().map(u64::to_string)),
            "allow" => fitting(&mut self.plugins.iter().cloned()),
            "break" => fitting(&mut places(&self.names.plugins)),
            "watch" => self.subjects(typed),
            "what-if" => self.edits(typed),
            "edit" => self.objects(typed),
            "why" | "fix" | "new-nodes" => self.names_of("pod", typed),
            "versions" | "upgrade" => versions(typed),
            "survive" => self.losses(typed),
            "branch" | "differences" => fitting(&mut self.names.branches.iter().cloned()),
            _ => Vec::new(),
        }
    }

    /// Edits that begin with `typed`: their verbs, and the names, taints, labels,
    /// resources and plugins that follow.
    pub fn edits(&self, typed: &str) -> Vec<String> {
        let before = typed.rfind(' ').map_or("", |at| &typed[..=at]);
        let (last, index) = (&typed[before.len()..], before.split_whitespace().count());
        let mut found = Vec::new();
        for form in FORMS.iter().filter(|form| fits(form.usage, before)) {
            let kind = before.split_whitespace().last().unwrap_or_default();
            // What follows an optional word can stand in its place.
            for word in form.usage.split_whitespace().skip(index) {
                match word {
                    "NAME" => {
                        found.extend(self.names_of(if index < 2 { "node" } else { kind }, last));
                    }
                    literal if is_literal(literal) => found.push(literal.to_owned()),
                    word => found.extend(self.values_of(word, last)),
                }
                if !word.starts_with('[') {
                    break;
                }
            }
        }
        found.retain(|word| word.starts_with(last));
        let mut seen = BTreeSet::new();
        found.retain(|word| seen.insert(word.clone()));
        found.into_iter().map(|word| format!("{before}{word}")).collect()
    }

    /// The values for a placeholder of an edit's form that begin with `typed`, as nodes and plugins
    /// have them: there can be as many as nodes.
    fn values_of(&self, word: &str, typed: &str) -> Vec<String> {
        let ArgumentNames { taints, labels, resources, plugins, .. } = &*self.names;
        let fitting = |values: &mut dyn Iterator<Item = String>| -> Vec<String> {
            values.filter(|value| value.starts_with(typed)).take(CANDIDATES).collect()
        };
        // `key=value:Effect` without the value.
        let without_value = |taint: &String| match taint.split_once('=') {
            Some((key, rest)) => format!("{key}:{}", rest.rsplit(':').next().unwrap_or_default()),
            None => taint.clone(),
        };
        let key = |label: &String| label.split('=').next().unwrap_or_default().to_owned();
        match word {
            "VERSION" => fitting(&mut KubeVersion::all().map(|version| version.to_string())),
            "KIND" => fitting(&mut ["node", "pod"].map(str::to_owned).into_iter()),
            "KEY[=VALUE]:EFFECT" => fitting(&mut taints.iter().cloned()),
            "KEY[=VALUE][:EFFECT]|all" => {
                fitting(&mut taints.iter().cloned().chain(["all".to_owned()]))
            }
            "KEY[:EFFECT]" => fitting(&mut taints.iter().map(without_value)),
            "KEY=VALUE" => fitting(&mut labels.iter().cloned()),
            "KEY" => fitting(&mut labels.iter().map(key)),
            "RESOURCE=AMOUNT" => fitting(&mut resources.iter().map(|name| format!("{name}="))),
            "PLUGIN" => fitting(&mut plugins.iter().cloned()),
            "PLUGIN=NUMBER" => fitting(&mut plugins.iter().map(|plugin| format!("{plugin}="))),
            _ => Vec::new(),
        }
    }

    /// What `survive` takes: `node`, a node, a label key or a key with its value; of well-known
    /// keys also the part after the slash.
    fn losses(&self, typed: &str) -> Vec<String> {
        if let Some(name) = typed.strip_prefix("node ") {
            let names = self.names_of("node", name).into_iter();
            return names.map(|name| format!("node {name}")).collect();
        }
        let short = |label: &str| label.rsplit_once('/').map(|(_, name)| name.to_owned());
        let key = |label: &str| label.split('=').next().unwrap_or_default().to_owned();
        let labels = &self.names.labels;
        let keys: BTreeSet<String> = labels.iter().map(|label| key(label)).collect();
        let all = std::iter::once("node".to_owned())
            .chain(keys.iter().filter_map(|key| short(key)))
            .chain(keys.iter().cloned())
            .chain(labels.iter().filter_map(|label| short(label)))
            .chain(labels.iter().cloned());
        let mut seen = BTreeSet::new();
        all.filter(|word| word.starts_with(typed) && seen.insert(word.clone()))
            .take(CANDIDATES)
            .collect()
    }

    /// `node NAME` and `pod NAME`, or pods by their names alone.
    fn objects(&self, typed: &str) -> Vec<String> {
        match typed.split_once(' ') {
            Some((kind, name)) => {
                let names = self.names_of(kind, name).into_iter();
                names.map(|name| format!("{kind} {name}")).collect()
            }
            None => {
                let kinds = ["node", "pod"].into_iter().filter(|kind| kind.starts_with(typed));
                kinds.map(str::to_owned).chain(self.names_of("pod", typed)).collect()
            }
        }
    }

    /// What `watch` takes: a kind, then one of it.
    fn subjects(&self, typed: &str) -> Vec<String> {
        let Some((kind, name)) = typed.split_once(':') else {
            let kinds = ["queue:", "node:", "pod:"].into_iter();
            return kinds.filter(|kind| kind.starts_with(typed)).map(str::to_owned).collect();
        };
        let names = match kind {
            "queue" => QUEUES.iter().map(|(_, name)| (*name).to_owned()).collect(),
            _ => self.names_of(kind, name),
        };
        let fitting = names.iter().filter(|known| *known != "none" && known.starts_with(name));
        fitting.map(|name| format!("{kind}:{name}")).collect()
    }

    /// The names of nodes or pods that begin with `typed`; there can be tens of thousands.
    fn names_of(&self, kind: &str, typed: &str) -> Vec<String> {
        let ArgumentNames { nodes, pods, .. } = &*self.names;
        let nodes = nodes.iter().filter(|name| name.text().starts_with(typed));
        let pods = pods.iter().filter(|pod| pod.begins_with(typed));
        match kind {
            "node" => nodes.take(CANDIDATES).map(ToString::to_string).collect(),
            "pod" => pods.take(CANDIDATES).map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    /// Brings the values up to date if something is typed that they complete.
    pub fn refresh(&mut self, app: &App, model: &Model) {
        self.names = model.names.clone();
        self.maps = app.view().maps();
        if !app.completes() || self.as_of == Some(model.revision) {
            return;
        }
        self.as_of = Some(model.revision);
        self.themes = app.themes();
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
        }
        let new = model.cycles.get(self.cycles.len()..).unwrap_or_default();
        self.cycles.extend(new.iter().map(|cycle| cycle.cycle));
    }
}

/// One version or two.
fn versions(typed: &str) -> Vec<String> {
    let before = typed.rfind(' ').map_or("", |at| &typed[..=at]);
    let all = KubeVersion::all().map(|version| format!("{before}{version}"));
    all.filter(|line| line.starts_with(typed)).collect()
}

/// What `:break` completes to: points, plugins, outcomes, queues, other words.
fn places(plugins: &[String]) -> impl Iterator<Item = String> {
    use kubestep_debug::breakpoint::{CycleEvent, location};
    let points = location::POINTS.iter().map(|point| point.name().to_owned());
    let outcomes = CycleEvent::ALL.iter().map(|(_, name)| format!("on:{name}"));
    let queues = location::QUEUES.iter().map(|(_, name)| format!("queue:{name}"));
    let words = WORDS.iter().map(|word| (*word).to_owned());
    points.chain(plugins.iter().cloned()).chain(outcomes).chain(queues).chain(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action::find;
    use crate::tui::view::ViewId;
    use kubestep_framework::pod::NamespacedName;

    #[test]
    fn edits_complete_word_by_word_with_the_names_of_objects() {
        let names = ArgumentNames {
            nodes: vec!["a-0".into(), "b-0".into()],
            pods: vec![NamespacedName::new("shop".into(), "web".into())],
            taints: ["gpu=yes:NoSchedule".into(), "spot:NoExecute".into()].into(),
            labels: ["disk=hdd".into(), "disk=ssd".into()].into(),
            resources: ["cpu".into(), "memory".into()].into(),
            ..ArgumentNames::default()
        };
        let values = Completion { names: Arc::new(names), ..Completion::default() };
        assert_eq!(values.edits("uncor"), ["uncordon"]);
        assert_eq!(values.edits("cordon n"), ["cordon node"]);
        assert_eq!(values.edits("cordon node b"), ["cordon node b-0"]);
        assert_eq!(values.edits("label po"), ["label pod"]);
        assert_eq!(values.edits("label pod "), ["label pod shop/web"]);
        assert_eq!(values.edits("resize "), ["resize node", "resize pod"]);
        assert_eq!(values.edits("kube-version 1.36"), ["kube-version 1.36"]);
        assert_eq!(values.edits("nonsense x"), Vec::<String>::new());
        let of = |name, typed| values.values(find(name).unwrap(), typed);
        assert_eq!(of("survive", ""), ["node", "disk", "disk=hdd", "disk=ssd"]);
        assert_eq!(of("survive", "node b"), ["node b-0"]);
        assert_eq!(of("survive", "disk=s"), ["disk=ssd"]);
        assert_eq!(of("upgrade", "1.36"), ["1.36"]);
        assert_eq!(of("upgrade", "1.33 1.36"), ["1.33 1.36"]);
        let last = |typed: &str| {
            let values = values.edits(typed).into_iter();
            values.map(|line| line[typed.len()..].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(last("tolerate pod shop/web "), ["gpu=yes:NoSchedule", "spot:NoExecute", "all"]);
        assert_eq!(last("untaint node a-0 "), ["gpu:NoSchedule", "spot:NoExecute"]);
        assert_eq!(last("select pod shop/web d"), ["isk=hdd", "isk=ssd"]);
        assert_eq!(last("unselect pod shop/web "), ["disk"]);
        assert_eq!(last("resize pod shop/web "), ["cpu=", "memory="]);
        assert_eq!(values.objects("node "), ["node a-0", "node b-0"]);
        let watched = |typed| values.values(find("watch").unwrap(), typed);
        assert_eq!(watched("pod:s"), ["pod:shop/web"]);
        assert_eq!(watched("node:"), ["node:a-0", "node:b-0"]);
        assert_eq!(watched("queue:a"), ["queue:active"]);
        assert_eq!(watched(""), ["queue:", "node:", "pod:"]);
        assert_eq!(watched("queue:n"), Vec::<String>::new());
    }

    #[test]
    fn candidates_are_few_and_those_of_maps_are_the_views() {
        let values = Completion {
            cycles: (1..=20_000).collect(),
            maps: ViewId::Nodes.maps(),
            ..Completion::default()
        };
        let of = |name, typed| values.values(find(name).unwrap(), typed);
        assert_eq!(of("cycle", "").len(), CANDIDATES);
        assert_eq!(of("cycle", "").first().map(String::as_str), Some("20000"));
        assert_eq!(
            of("cycle", "1999"),
            [
                "19999", "19998", "19997", "19996", "19995", "19994", "19993", "19992", "19991",
                "19990", "1999"
            ]
        );
        assert_eq!(of("map", ""), ["cpu", "memory", "pods", "none"]);
        assert_eq!(of("group-by", "r"), ["region"]);
    }
}
