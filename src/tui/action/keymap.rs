//! From keys to actions: the table's defaults with the user's overrides, key sequences included.

use std::collections::BTreeMap;

use super::presets::{PRESETS, Preset};
use super::{Action, all};
use crate::tui::key::{self, KeyPress};
use crate::tui::view::ViewId;
use kubestep_config::suggest;

/// What a sequence of keys means so far.
#[derive(Debug, PartialEq, Eq)]
pub enum KeyMatch {
    /// The key, or sequence of keys, is complete.
    Action(&'static Action),
    /// More keys are needed: each possible next key with its action, in table order.
    Pending(Vec<(KeyPress, &'static Action)>),
    /// Nothing begins like this.
    None,
}

struct Binding {
    keys: Vec<KeyPress>,
    action: &'static Action,
}

/// Keys of all actions.
pub struct Keymap {
    bindings: Vec<Binding>,
    overridden: Vec<&'static Action>,
    preset: &'static Preset,
    own: BTreeMap<String, Vec<String>>,
}

impl Default for Keymap {
    fn default() -> Keymap {
        Keymap::with_preset(&PRESETS[0], &BTreeMap::new()).0
    }
}

impl Keymap {
    /// The keys of a preset, with `overrides` (action name → its keys, replacing the preset's). Whatever
    /// cannot be used is left out and named in the warnings.
    pub fn with_preset(
        preset: &'static Preset,
        overrides: &BTreeMap<String, Vec<String>>,
    ) -> (Keymap, Vec<String>) {
        let own = overrides.clone();
        let mut keymap = Keymap { bindings: Vec::new(), overridden: Vec::new(), preset, own };
        let mut warnings = unknown_names(overrides);
        for action in all() {
            match overrides.get(action.name) {
                Some(own) => {
                    keymap.overridden.push(action);
                    keymap.bind(action, own.iter().map(String::as_str), &mut warnings);
                }
                None => {
                    let keys = preset.keys_of(action.name).unwrap_or(action.keys);
                    keymap.bind(action, keys.iter().copied(), &mut warnings);
                }
            }
        }
        keymap.drop_clashes(&mut warnings);
        (keymap, warnings)
    }

    fn bind<'a>(
        &mut self,
        action: &'static Action,
        keys: impl Iterator<Item = &'a str>,
        warnings: &mut Vec<String>,
    ) {
        for text in keys {
            match key::parse_sequence(text) {
                Ok(keys) if !keys.is_empty() => {
                    self.bindings.push(Binding { keys, action });
                }
                Ok(_) => {}
                Err(problem) => warnings.push(format!("keys: {}: {problem}", action.name)),
            }
        }
    }

    /// A key that a user gave to one action is taken from the others; between two of the user's own, the
    /// first keeps it.
    fn drop_clashes(&mut self, warnings: &mut Vec<String>) {
        let own = |b: &Binding, list: &[&'static Action]| list.contains(&b.action);
        let overridden = self.overridden.clone();
        let mut kept: Vec<Binding> = Vec::new();
        let (first, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.bindings).into_iter().partition(|b| own(b, &overridden));
        for binding in first.into_iter().chain(rest) {
            match kept.iter().find(|k| clash(k, &binding)) {
                None => kept.push(binding),
                Some(winner) => warnings.push(format!(
                    "keys: {} belongs to {}, so {} loses it",
                    key::show_sequence(&binding.keys),
                    winner.action.name,
                    binding.action.name,
                )),
            }
        }
        self.bindings = kept;
    }

    /// What `keys` mean in `view`.
    pub fn find(&self, keys: &[KeyPress], view: ViewId) -> KeyMatch {
        let valid = self.bindings.iter().filter(|b| b.action.views.has(view));
        let mut next = Vec::new();
        for binding in valid.filter(|b| b.keys.starts_with(keys)) {
            match binding.keys.get(keys.len()) {
                None => return KeyMatch::Action(binding.action),
                Some(key) => next.push((*key, binding.action)),
            }
        }
        if next.is_empty() { KeyMatch::None } else { KeyMatch::Pending(next) }
    }

    /// The same own keys over another preset.
    pub fn switched(&self, preset: &'static Preset) -> (Keymap, Vec<String>) {
        Keymap::with_preset(preset, &self.own)
    }

    /// The preset in use.
    pub fn preset(&self) -> &'static Preset {
        self.preset
    }

    /// The actions that `keys` stand for in other views.
    pub fn in_other_views(&self, keys: &[KeyPress]) -> impl Iterator<Item = &'static Action> {
        self.bindings.iter().filter(move |binding| binding.keys == keys).map(|b| b.action)
    }

    /// The key sequences of `action`, the one to show first.
    pub fn keys_of<'a>(&'a self, action: &'a Action) -> impl Iterator<Item = String> + 'a {
        let bound = self.bindings.iter().filter(move |b| *b.action == *action);
        bound.map(|b| key::show_sequence(&b.keys))
    }

    /// Whether the user replaced this action's keys.
    pub fn is_overridden(&self, action: &Action) -> bool {
        self.overridden.contains(&action)
    }
}

/// Whether the two cannot be distinguished: one begins with the other where both are valid.
fn clash(a: &Binding, b: &Binding) -> bool {
    let prefix = a.keys.starts_with(&b.keys) || b.keys.starts_with(&a.keys);
    prefix && a.action.views.overlaps(b.action.views)
}

fn unknown_names(overrides: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let unknown = overrides.keys().filter(|name| !all().any(|s| s.name == name.as_str()));
    unknown
        .map(|name| match suggest::closest(name, all().map(|s| s.name)) {
            Some(near) => format!("keys: unknown action {name:?}, did you mean {near:?}?"),
            None => format!("keys: unknown action {name:?}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action::find as action;

    fn keys(text: &str) -> Vec<KeyPress> {
        key::parse_sequence(text).unwrap()
    }

    fn overrides(pairs: &[(&str, &[&str])]) -> (Keymap, Vec<String>) {
        let own = |keys: &[&str]| keys.iter().map(|k| (*k).to_owned()).collect();
        Keymap::with_preset(
            &PRESETS[0],
            &pairs.iter().map(|(n, k)| ((*n).to_owned(), own(k))).collect(),
        )
    }

    #[test]
    fn the_table_itself_raises_no_warning() {
        assert_eq!(overrides(&[]).1, Vec::<String>::new());
    }

    #[test]
    fn letters_step_forward_and_capitals_back() {
        let keymap = Keymap::default();
        let find = |k| keymap.find(&keys(k), ViewId::Filter);
        assert_eq!(find("s"), KeyMatch::Action(action("step").unwrap()));
        assert_eq!(find("S"), KeyMatch::Action(action("step-back").unwrap()));
        assert_eq!(find("F10"), KeyMatch::Action(action("next").unwrap()));
        assert_eq!(find("ctrl-k"), KeyMatch::None);
    }

    #[test]
    fn a_sequence_waits_for_its_end() {
        let keymap = Keymap::default();
        let top = action("top").unwrap();
        let KeyMatch::Pending(next) = keymap.find(&keys("g"), ViewId::Pods) else { panic!() };
        assert!(next.contains(&(KeyPress::char('g'), top)), "{next:?}");
        assert_eq!(keymap.find(&keys("g g"), ViewId::Pods), KeyMatch::Action(top));
        assert_eq!(keymap.find(&keys("g x"), ViewId::Pods), KeyMatch::None);
    }

    #[test]
    fn an_action_is_found_only_in_its_place() {
        let keymap = Keymap::default();
        let allow = KeyMatch::Action(action("allow").unwrap());
        assert_eq!(keymap.find(&keys("a"), ViewId::Waiting), allow);
        assert_eq!(keymap.find(&keys("a"), ViewId::Filter), KeyMatch::None);
    }

    #[test]
    fn overrides_replace_the_keys_and_take_them_from_others() {
        let (keymap, warnings) = overrides(&[("step", &["n", "ctrl-n"])]);
        let step = action("step").unwrap();
        assert_eq!(keymap.find(&keys("n"), ViewId::Pods), KeyMatch::Action(step));
        assert_eq!(keymap.find(&keys("s"), ViewId::Pods), KeyMatch::None);
        assert_eq!(keymap.keys_of(step).collect::<Vec<_>>(), ["n", "Ctrl-n"]);
        assert!(keymap.is_overridden(step));
        assert_eq!(warnings, ["keys: n belongs to step, so next loses it"]);
    }

    #[test]
    fn mistakes_in_overrides_are_warnings() {
        let (keymap, warnings) = overrides(&[("quti", &["x"]), ("help", &["ctrl-"])]);
        assert_eq!(
            warnings,
            [
                "keys: unknown action \"quti\", did you mean \"quit\"?",
                "keys: help: \"ctrl-\" is not a key; keys are single characters or names like ctrl-d, \
                 esc, f5, shift-left",
            ]
        );
        assert_eq!(keymap.keys_of(action("help").unwrap()).count(), 0);
    }
}
