//! Parses the edits of the scheduler itself: its configuration, manual decisions, and faults.

use crate::edit::parse::{ParseResult, WordsLeft, assignment, key};
use crate::edit::{Edit, Fault, FaultKind, NodeSet, PolicyEdit};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name};
use kubestep_config::{ExtensionPoint, KubeVersion, Overlay, Switch};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::intervention::{FAILING_POINTS, Intervention};
use kubestep_scheduler::what_if::{HoldRule, ParseHoldError, PodSelection};

pub(super) fn parse(verb: &str, words: &mut WordsLeft<'_>) -> ParseResult<Edit> {
    match verb {
        "heal" => Ok(Edit::Heal),
        "hold" => held(HoldRule::parse(words.rest("the pods")?)).map(Edit::Hold),
        "release" => match words.rest("") {
            Ok(pods) => held(PodSelection::parse(pods)).map(|pods| Edit::Release(Some(pods))),
            Err(_) => Ok(Edit::Release(None)),
        },
        "lose" => NodeSet::parse(words).map(Edit::Lose),
        "drain" => {
            let nodes = NodeSet::parse(words)?;
            Ok(Edit::Drain { nodes, force: words.is_next("force") })
        }
        "activate" => Ok(Edit::Activate(pod(words)?)),
        "requeue" => Ok(Edit::Requeue(pod(words)?)),
        "fail" => fail(words).map(Edit::Fail),
        "choose" | "force" | "veto" => decide(verb, words),
        _ => policy(verb, words).map(Edit::Policy),
    }
}

fn held<T>(parsed: Result<T, ParseHoldError>) -> ParseResult<T> {
    parsed.map_err(|err| err.to_string())
}

fn policy(verb: &str, words: &mut WordsLeft<'_>) -> ParseResult<PolicyEdit> {
    match verb {
        "config" => {
            let text = words.rest("the configuration")?.to_owned();
            Ok(PolicyEdit::Load(text.into()))
        }
        "feature" => {
            let (name, value) = assignment(words.need("GATE=true or GATE=false")?)?;
            let on = value.parse().map_err(|_| format!("{value:?} is neither true nor false"))?;
            Ok(PolicyEdit::Feature(name.into(), on))
        }
        "kube-version" => {
            let served = KubeVersion::nearest(words.need("the version")?);
            served.map(PolicyEdit::Version).map_err(|error| error.to_string())
        }
        "weight" => {
            let (name, weight) = assignment(words.need("PLUGIN=NUMBER")?)?;
            let number = weight.parse().map_err(|_| format!("{weight:?} is not a weight"))?;
            overlay(name.into(), Switch::Weight(number), words)
        }
        verb => {
            let plugin = words.need("the plugin")?.into();
            let mut point = None;
            if words.peek() == Some("at") {
                words.next();
                point = Some(extension_point(words.need("the extension point")?)?);
            }
            let switch = if verb == "enable" { Switch::On(point) } else { Switch::Off(point) };
            overlay(plugin, switch, words)
        }
    }
}

fn overlay(plugin: Symbol, switch: Switch, words: &mut WordsLeft<'_>) -> ParseResult<PolicyEdit> {
    let mut profile = None;
    if words.peek() == Some("in") {
        words.next();
        profile = Some(words.need("the profile's scheduler name")?.into());
    }
    Ok(PolicyEdit::Overlay(Overlay { plugin, switch, profile }))
}

fn extension_point(text: &str) -> ParseResult<ExtensionPoint> {
    let named = |point: &ExtensionPoint| point.name().eq_ignore_ascii_case(text);
    ExtensionPoint::ALL
        .into_iter()
        .find(named)
        .ok_or_else(|| format!("{text:?} is not an extension point"))
}

fn decide(verb: &str, words: &mut WordsLeft<'_>) -> ParseResult<Edit> {
    let node = node(words)?;
    word(words, "for")?;
    let what = match verb {
        "choose" => Intervention::Choose(node),
        "force" => Intervention::Force(node),
        _ => Intervention::Veto(node),
    };
    Ok(Edit::Decide(pod(words)?, what))
}

fn fail(words: &mut WordsLeft<'_>) -> ParseResult<Fault> {
    let what = match words.need("bind, plugin or extender")? {
        "bind" => FaultKind::Bind,
        "extender" => {
            let url = words.need("the extender's URL")?.into();
            words.always();
            return Ok(Fault { what: FaultKind::Extender(url), pod: None, lasting: true });
        }
        "plugin" => {
            let plugin = words.need("the plugin")?.into();
            word(words, "at")?;
            let point = extension_point(words.need("the extension point")?)?;
            if !FAILING_POINTS.contains(&point) {
                return Err(format!("no fault can be injected at {point}"));
            }
            FaultKind::Plugin(plugin, point)
        }
        other => return Err(format!("fail takes bind, plugin or extender, not {other:?}")),
    };
    let mut concerned = None;
    if words.peek() == Some("for") {
        words.next();
        concerned = Some(pod(words)?);
    }
    Ok(Fault { what, pod: concerned, lasting: words.always() })
}

fn word(words: &mut WordsLeft<'_>, expected: &str) -> ParseResult<()> {
    let missing = || format!("the word {expected} is missing");
    words.next().filter(|word| *word == expected).map(|_| ()).ok_or_else(missing)
}

fn node(words: &mut WordsLeft<'_>) -> ParseResult<Name> {
    let key = key(words)?;
    if key.kind == Kind::Node { Ok(key.name) } else { Err("this is for nodes".into()) }
}

fn pod(words: &mut WordsLeft<'_>) -> ParseResult<NamespacedName> {
    let key = key(words)?;
    match key.kind {
        Kind::Pod => Ok(NamespacedName::new(key.namespace, key.name)),
        _ => Err("this is for pods".into()),
    }
}

impl<'a> WordsLeft<'a> {
    /// The next word, without consuming it.
    pub(super) fn peek(&self) -> Option<&'a str> {
        WordsLeft(self.0).next()
    }

    /// Consumes the word `always`, if it is next.
    fn always(&mut self) -> bool {
        self.is_next("always")
    }

    /// Consumes that word, if it is next.
    fn is_next(&mut self, word: &str) -> bool {
        let there = self.peek() == Some(word);
        if there {
            self.next();
        }
        there
    }
}
