//! Parses edits from text, as people type them: `cordon node a`.
//!
//! All have the same form: a verb, a kind, a name, and the arguments of the verb. Namespaced names
//! are `NAMESPACE/NAME`; without a namespace it is `default`.

use std::str::FromStr;

use serde::de::DeserializeOwned;

use crate::edit::{
    Edit, EditError, HostPort, NodeEdit, PodEdit, new_class, new_pod, parse_scheduler, replaced,
    rollout,
};
use kubestep_api::intern::Symbol;
use kubestep_api::yaml;
use kubestep_api::{
    Kind, Name, Object, ObjectKey, Protocol, Quantity, Taint, TaintEffect, Toleration,
    TolerationOperator,
};
use kubestep_config::suggest;
use kubestep_framework::pod::NamespacedName;

/// The form of an edit.
#[derive(Clone, Copy, Debug)]
pub struct EditForm {
    /// The words, with placeholders in capitals.
    pub usage: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
}

macro_rules! forms {
    ($($usage:literal: $about:literal,)*) => {
        /// All edits. Help, completion and the manual are generated from this.
        pub const FORMS: &[EditForm] = &[$(EditForm { usage: $usage, about: $about }),*];
    };
}

forms! {
    "cordon node NAME": "make a node unschedulable for new pods",
    "uncordon node NAME": "make it schedulable again",
    "taint node NAME KEY[=VALUE]:EFFECT": "add a taint",
    "untaint node NAME KEY[:EFFECT]": "remove a taint",
    "label KIND NAME KEY=VALUE": "set a label of a node or pod",
    "unlabel KIND NAME KEY": "remove a label of a node or pod",
    "resize node NAME RESOURCE=AMOUNT": "set how much of a resource a node offers",
    "resize pod NAME [CONTAINER] RESOURCE=AMOUNT": "set what a pod, or one container, requests",
    "add N nodes like NAME": "add copies of a node",
    "add N nodes of TEMPLATE": "add nodes of a pool or node group, named as --new-node does",
    "tolerate pod NAME KEY[=VALUE][:EFFECT]|all": "add a toleration",
    "untolerate pod NAME KEY[=VALUE][:EFFECT]|all": "remove a toleration",
    "select pod NAME KEY=VALUE": "require a label of the node (nodeSelector)",
    "unselect pod NAME KEY": "no longer require that label",
    "affinity pod NAME YAML|none": "set the whole affinity",
    "relax pod NAME TERM": "drop one term of the affinity, such as nodeAffinity.required[0]",
    "spread pod NAME YAML": "add or replace a topology spread constraint",
    "unspread pod NAME TOPOLOGYKEY": "drop the spread constraints on a topology key",
    "port pod NAME PORT[/PROTOCOL][@IP]": "request a host port",
    "unport pod NAME PORT[/PROTOCOL][@IP]": "drop a host port",
    "gate pod NAME GATE": "add a scheduling gate",
    "ungate pod NAME GATE": "remove a scheduling gate",
    "priority pod NAME NUMBER|CLASS": "set the priority, or the PriorityClass",
    "put YAML": "create or replace an object",
    "put priorityclass NAME with value NUMBER": "create a PriorityClass",
    "put pod NAME with KEY=VALUE[,…] on NODE": "create a pod on a node, with these labels and no requests",
    "delete KIND NAME": "delete an object",
    "set KIND NAME PATH=YAML": "set any field of an object",
    "unset KIND NAME PATH": "remove any field of an object",
    "weight PLUGIN=NUMBER [in PROFILE]": "set a score plugin's weight",
    "disable PLUGIN [at POINT] [in PROFILE]": "disable a plugin",
    "enable PLUGIN [at POINT] [in PROFILE]": "enable a plugin",
    "feature GATE=BOOL": "turn a feature gate on or off",
    "kube-version VERSION": "decide as another version of kube-scheduler",
    "config YAML": "load another scheduler configuration",
    "choose node NAME for pod NAME": "choose this node if it shares the best score",
    "force node NAME for pod NAME": "choose this node in the pod's next cycle",
    "veto node NAME for pod NAME": "exclude this node in the pod's next cycle",
    "activate pod NAME": "move a waiting pod into the active queue",
    "requeue pod NAME": "requeue a pod, as a matching event would",
    "hold SELECTOR [for TIME]": "hold pods at Permit: labels, NAMESPACE/NAME or a pattern",
    "release [SELECTOR]": "stop holding these pods, or all; those that wait continue",
    "fail bind [for pod NAME] [always]": "make the API server reject a binding",
    "fail plugin PLUGIN at POINT [for pod NAME] [always]": "make a plugin return an error",
    "fail extender URL": "take an extender down until healed",
    "heal": "cancel all pending decisions and injected faults",
    "drain node NAME [force]": "cordon a node and evict its pods, as kubectl drain does",
    "drain KEY=VALUE [force]": "drain all nodes with a label, one after another",
    "lose node NAME": "delete a node with its pods; controllers recreate them",
    "lose KEY=VALUE": "the same for all nodes with a label, such as zone=a",
    "rollout WORKLOAD NAME [CONTAINER] [image=IMAGE] [RESOURCE=AMOUNT]": "replace the pods of a deployment, statefulset or daemonset",
}

impl EditForm {
    /// The first word of the usage, by which an edit is recognized.
    pub fn verb(&self) -> &'static str {
        self.usage.split(' ').next().unwrap_or_default()
    }
}

/// The error is the problem, before the usage of the verb is appended.
pub(super) type ParseResult<T> = Result<T, String>;

impl FromStr for Edit {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Edit, EditError> {
        let mut words = WordsLeft(replaced::without_replaced(text.trim()));
        let verb = words.next().unwrap_or_default();
        let forms: Vec<&EditForm> = FORMS.iter().filter(|form| form.verb() == verb).collect();
        if forms.is_empty() {
            return Err(unknown_verb(verb));
        }
        parse(verb, &mut words).and_then(|edit| words.end().map(|()| edit)).map_err(|error| {
            // The error about an object has several lines and its own advice.
            if error.contains('\n') {
                return EditError(format!("{verb}: {error}"));
            }
            let usage: Vec<&str> = forms.iter().map(|form| form.usage).collect();
            EditError(format!("{verb}: {error}; write {}", usage.join(" or ")))
        })
    }
}

fn unknown_verb(verb: &str) -> EditError {
    let near = suggest::closest(verb, FORMS.iter().map(EditForm::verb));
    if let Some(near) = near {
        return EditError(format!("{verb:?} is not an edit, did you mean {near:?}?"));
    }
    let mut verbs: Vec<&str> = FORMS.iter().map(EditForm::verb).collect();
    verbs.dedup();
    EditError(format!("{verb:?} is not an edit; edits begin with {}", verbs.join(", ")))
}

/// The words of an edit that are not read yet.
pub(super) struct WordsLeft<'a>(pub(super) &'a str);

impl<'a> WordsLeft<'a> {
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let (word, rest) = self.0.split_once(char::is_whitespace).unwrap_or((self.0, ""));
        self.0 = rest.trim_start();
        (!word.is_empty()).then_some(word)
    }

    pub(super) fn need(&mut self, what: &str) -> ParseResult<&'a str> {
        self.next().ok_or_else(|| format!("{what} is missing"))
    }

    /// Everything that is left, spaces included; an error if that is nothing.
    pub(super) fn rest(&mut self, what: &str) -> ParseResult<&'a str> {
        let rest = std::mem::take(&mut self.0);
        if rest.is_empty() { Err(format!("{what} is missing")) } else { Ok(rest) }
    }

    fn end(&self) -> ParseResult<()> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("unexpected {:?}", self.0)) }
    }
}

fn parse(verb: &str, words: &mut WordsLeft<'_>) -> ParseResult<Edit> {
    match verb {
        "put" => put(words.rest("the object")?),
        "add" => add(words),
        "rollout" => rollout::parse(words).map(|(workload, edit)| Edit::Rollout(workload, edit)),
        "delete" => Ok(Edit::Delete(key(words)?)),
        "set" => {
            let object = key(words)?;
            let (path, value) = assignment(words.rest("PATH=YAML")?)?;
            Ok(Edit::Set { object, path: path.into(), value: Some(from_yaml(value)?) })
        }
        "unset" => {
            let object = key(words)?;
            Ok(Edit::Set { object, path: words.need("the field's path")?.into(), value: None })
        }
        "weight" | "disable" | "enable" | "feature" | "kube-version" | "config" | "choose"
        | "force" | "veto" | "activate" | "requeue" | "fail" | "heal" | "lose" | "drain"
        | "hold" | "release" => parse_scheduler::parse(verb, words),
        verb => {
            let key = match verb {
                "cordon" | "uncordon" => node_key(words)?,
                _ => key(words)?,
            };
            match key.kind {
                Kind::Node => Ok(Edit::Node(key.name, node(verb, words)?)),
                Kind::Pod => {
                    let name = NamespacedName::new(key.namespace, key.name);
                    Ok(Edit::Pod(name, pod(verb, words)?))
                }
                kind => Err(format!("only nodes and pods have this edit, not a {kind}")),
            }
        }
    }
}

fn node(verb: &str, words: &mut WordsLeft<'_>) -> ParseResult<NodeEdit> {
    Ok(match verb {
        "cordon" => NodeEdit::Cordon,
        "uncordon" => NodeEdit::Uncordon,
        "taint" => NodeEdit::Taint(taint(words.need("the taint")?)?),
        "untaint" => {
            // kubectl marks the removal with a trailing dash.
            let text = words.need("the taint's key")?.trim_end_matches('-');
            let (key, effect) = effect_of(text)?;
            let key = key.split('=').next().unwrap_or_default();
            NodeEdit::Untaint(key.into(), effect)
        }
        "label" => label(words).map(|(key, value)| NodeEdit::Label(key, value))?,
        "unlabel" => NodeEdit::Unlabel(label_key(words)?),
        "resize" => {
            let (resource, amount) = quantity(words.need("RESOURCE=AMOUNT")?)?;
            NodeEdit::Resize(resource, amount)
        }
        _ => return Err("this edit is for pods".into()),
    })
}

fn pod(verb: &str, words: &mut WordsLeft<'_>) -> ParseResult<PodEdit> {
    Ok(match verb {
        "label" => label(words).map(|(key, value)| PodEdit::Label(key, value))?,
        "unlabel" => PodEdit::Unlabel(label_key(words)?),
        "resize" => {
            let first = words.need("RESOURCE=AMOUNT")?;
            let (container, text) = match words.next() {
                Some(text) => (Some(first.into()), text),
                None => (None, first),
            };
            let (resource, amount) = quantity(text)?;
            PodEdit::Resize { container, resource, amount }
        }
        "tolerate" => PodEdit::Tolerate(toleration(words.rest("the toleration")?)?),
        "untolerate" => PodEdit::Untolerate(toleration(words.rest("the toleration")?)?),
        "select" => label(words).map(|(key, value)| PodEdit::Select(key, value))?,
        "unselect" => PodEdit::Unselect(label_key(words)?),
        "affinity" => match words.rest("the affinity")? {
            "none" => PodEdit::Affinity(None),
            text => PodEdit::Affinity(Some(Box::new(from_yaml(text)?))),
        },
        "relax" => PodEdit::Relax(words.need("the term")?.parse()?),
        "spread" => PodEdit::Spread(Box::new(from_yaml(words.rest("the constraint")?)?)),
        "unspread" => PodEdit::Unspread(words.need("the topology key")?.into()),
        "port" => PodEdit::Port(words.need("the port")?.parse()?),
        "unport" => PodEdit::Unport(words.need("the port")?.parse()?),
        "gate" => PodEdit::Gate(words.need("the gate's name")?.into()),
        "ungate" => PodEdit::Ungate(words.need("the gate's name")?.into()),
        "priority" => {
            let text = words.need("the number or the PriorityClass")?;
            let class = PodEdit::PriorityClass(text.into());
            let is_number = text.chars().all(|c| c.is_ascii_digit() || "+-.".contains(c));
            match text.parse() {
                Ok(number) => PodEdit::Priority(number),
                Err(_) if is_number => return Err(format!("{text:?} is not a whole number")),
                Err(_) => class,
            }
        }
        _ => return Err("this edit is for nodes".into()),
    })
}

/// An object, or what determines a PriorityClass or a pod.
fn put(text: &str) -> ParseResult<Edit> {
    match *text.split_whitespace().collect::<Vec<_>>() {
        ["priorityclass", name, "with", "value", value] => {
            let value = value.parse().map_err(|_| format!("{value:?} is not a whole number"))?;
            return Ok(Edit::Put(Object::from(new_class(name.into(), value))));
        }
        ["pod", name, "with", labels, "on", node] => {
            let key = key(&mut WordsLeft(&format!("pod {name}")))?;
            let labels: ParseResult<Vec<(&str, &str)>> =
                labels.split(',').map(assignment).collect();
            let labels = labels?.into_iter().map(|(key, value)| (key.into(), value.into()));
            let name = NamespacedName::new(key.namespace, key.name);
            return Ok(Edit::Put(Object::from(new_pod(name, labels.collect(), node.into()))));
        }
        _ => {}
    }
    let mut edits = Edit::put_all("", text).map_err(|error| error.to_string())?;
    match (edits.pop(), edits.len()) {
        (Some(edit), 0) => Ok(edit),
        (None, _) => Err("the text holds no object that a scheduler reads".into()),
        _ => Err("the text holds several objects".into()),
    }
}

fn add(words: &mut WordsLeft<'_>) -> ParseResult<Edit> {
    let text = words.need("the number of nodes")?;
    let count = text.parse().map_err(|_| format!("{text:?} is not a number of nodes"))?;
    if !["node", "nodes"].contains(&words.need("the word nodes")?) {
        return Err("only nodes can be added like this".into());
    }
    match words.need("the word like or of")? {
        "like" => {}
        "of" => {
            let template = words.need("the template")?.into();
            return Ok(Edit::AddNew { count, template });
        }
        _ => return Err("the word like or of is missing".into()),
    }
    let name = words.need("the node's name")?;
    let like = if name == "node" { words.next().unwrap_or(name) } else { name };
    Ok(Edit::AddNodes { count, like: like.into() })
}

/// A node: `node NAME`, or as in kubectl the name alone, if at most `force` follows.
pub(super) fn node_key(words: &mut WordsLeft<'_>) -> ParseResult<ObjectKey> {
    let (word, rest) = words.0.split_once(char::is_whitespace).unwrap_or((words.0, ""));
    let is_alone = matches!(rest.trim(), "" | "force");
    if word.is_empty() || !is_alone || Kind::by_name(word).is_some() {
        return key(words);
    }
    words.next();
    Ok(ObjectKey { kind: Kind::Node, namespace: Symbol::EMPTY, name: word.into() })
}

/// The kind and name of an object.
pub(super) fn key(words: &mut WordsLeft<'_>) -> ParseResult<ObjectKey> {
    let word = words.need("the kind")?;
    let kind = Kind::by_name(word)
        .ok_or_else(|| format!("{word:?} is not a kind of object that a scheduler reads"))?;
    let text = words.need("the name")?;
    let (namespace, name) = match (kind.is_namespaced(), text.split_once('/')) {
        (true, Some((namespace, name))) => (namespace, name),
        (true, None) => ("default", text),
        (false, _) => ("", text),
    };
    Ok(ObjectKey { kind, namespace: namespace.into(), name: name.into() })
}

/// `KEY=VALUE`; an equals sign in brackets is part of the key.
pub(super) fn assignment(text: &str) -> ParseResult<(&str, &str)> {
    let mut depth = 0;
    let at = text.find(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == '=' && depth == 0
    });
    let at = at.ok_or_else(|| format!("{text:?} has no equals sign"))?;
    match (text[..at].trim(), text[at + 1..].trim()) {
        ("", _) => Err(format!("{text:?} has nothing before the equals sign")),
        parts => Ok(parts),
    }
}

fn label(words: &mut WordsLeft<'_>) -> ParseResult<(Symbol, Name)> {
    let (key, value) = assignment(words.need("KEY=VALUE")?)?;
    Ok((key.into(), value.into()))
}

fn label_key(words: &mut WordsLeft<'_>) -> ParseResult<Symbol> {
    Ok(words.need("the label's key")?.trim_end_matches('-').into())
}

pub(super) fn quantity(text: &str) -> ParseResult<(Symbol, Quantity)> {
    let (resource, amount) = assignment(text)?;
    let amount = Quantity::parse(amount).map_err(|_| {
        format!("{amount:?} is not a quantity: write an amount such as 500m, 2 or 1Gi")
    })?;
    Ok((resource.into(), amount))
}

/// The part before an effect, and the effect.
fn effect_of(text: &str) -> ParseResult<(&str, Option<TaintEffect>)> {
    let Some((before, effect)) = text.rsplit_once(':') else { return Ok((text, None)) };
    match TaintEffect::from(effect) {
        TaintEffect::Other(_) => {
            let effects = "NoSchedule, PreferNoSchedule or NoExecute";
            Err(format!("{effect:?} is not a taint effect: write {effects}"))
        }
        effect => Ok((before, Some(effect))),
    }
}

fn taint(text: &str) -> ParseResult<Taint> {
    let (rest, effect) = effect_of(text)?;
    let effect = effect.ok_or_else(|| format!("{text:?} names no effect"))?;
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Ok(Taint { key: key.into(), value: value.into(), effect, time_added: None })
}

fn toleration(text: &str) -> ParseResult<Toleration> {
    if text.starts_with('{') {
        return from_yaml(text);
    }
    let (rest, effect) = effect_of(text)?;
    let mut toleration = Toleration { effect: effect.unwrap_or_default(), ..Toleration::default() };
    let operators = [
        ('=', TolerationOperator::Equal),
        ('<', TolerationOperator::Lt),
        ('>', TolerationOperator::Gt),
    ];
    let split = |(sign, operator)| Some((rest.split_once(sign)?, operator));
    match operators.into_iter().find_map(split) {
        Some(((key, value), operator)) => {
            (toleration.key, toleration.value) = (key.into(), value.into());
            toleration.operator = operator;
        }
        None => {
            toleration.operator = TolerationOperator::Exists;
            toleration.key = if rest == "all" { Symbol::EMPTY } else { rest.into() };
        }
    }
    Ok(toleration)
}

fn from_yaml<T: DeserializeOwned>(text: &str) -> ParseResult<T> {
    let read = yaml::documents(text).map_err(|error| error.to_string())?;
    serde_path_to_error::deserialize(read).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { format!("{path}: ") };
        format!("{at}{}", error.inner())
    })
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<HostPort, String> {
        let (port, ip) = text.split_once('@').unwrap_or((text, ""));
        let (port, protocol) = port.split_once('/').unwrap_or((port, "TCP"));
        let number = port.parse().ok().filter(|port| (1..=65535).contains(port));
        let port = number.ok_or_else(|| format!("{port:?} is not a port from 1 to 65535"))?;
        match Protocol::from(protocol.to_uppercase().as_str()) {
            Protocol::Other(_) => {
                Err(format!("{protocol:?} is not a protocol: write TCP, UDP or SCTP"))
            }
            protocol => Ok(HostPort { port, protocol, ip: ip.into() }),
        }
    }
}
