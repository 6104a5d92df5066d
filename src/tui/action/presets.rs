//! Presets of keys: other keys for the same actions, for hands that are used to them. What a preset does
//! not name keeps the table's keys; a person's own keys win over both.

/// A named set of keys, such as those of k9s.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name in `config.yaml` and after `:keys`.
    pub name: &'static str,
    /// Who it is for.
    pub about: &'static str,
    /// Actions by name, each with all of its keys.
    pub keys: &'static [(&'static str, &'static [&'static str])],
}

/// All of them, the default first.
pub const PRESETS: [Preset; 4] = [
    Preset { name: "vi", about: "as the table says: j k h l, g g, G, Ctrl-d", keys: &[] },
    Preset {
        name: "vim",
        about: "as vi, and digits are counts: 5j, 3n; g 0 to g 9 show the views",
        keys: VIM,
    },
    Preset {
        name: "emacs",
        about: "Ctrl-n Ctrl-p, Ctrl-s, Alt-x, Ctrl-g, Ctrl-x Ctrl-c",
        keys: EMACS,
    },
    Preset { name: "plain", about: "arrows and function keys; no letter moves", keys: PLAIN },
];

#[rustfmt::skip]
const VIM: &[(&str, &[&str])] = &[
    ("overview", &["g 0"]),
    ("timeline", &["g 1"]),
    ("queues", &["g 2"]),
    ("filters", &["g 3"]),
    ("scores", &["g 4"]),
    ("nodes", &["g 5"]),
    ("pods", &["g 6"]),
    ("waiting", &["g 7"]),
    ("preemption", &["g 8"]),
    ("events", &["g 9"]),
];

#[rustfmt::skip]
const EMACS: &[(&str, &[&str])] = &[
    ("down", &["ctrl-n", "down"]),
    ("up", &["ctrl-p", "up"]),
    ("left", &["ctrl-b", "left", "<", "shift-left"]),
    ("right", &["ctrl-f", "right", ">", "shift-right"]),
    ("top", &["alt-<", "home"]),
    ("bottom", &["alt->", "end"]),
    ("half-down", &["alt-n"]),
    ("half-up", &["alt-p"]),
    ("page-down", &["ctrl-v", "pagedown"]),
    ("page-up", &["alt-v", "pageup"]),
    ("next-pane", &["ctrl-x o", "tab", "backtab"]),
    ("filter", &["ctrl-s", "/"]),
    ("command", &["alt-x", ":"]),
    ("palette", &["ctrl-x p"]),
    ("escape", &["ctrl-g", "esc"]),
    ("breadcrumbs", &["ctrl-x g"]),
    ("wide", &["ctrl-x w"]),
    ("save", &["ctrl-x ctrl-s"]),
    ("quit", &["ctrl-x ctrl-c", "q"]),
    ("last-view", &["ctrl-x b", "-"]),
    ("copy", &["alt-w", "y"]),
    ("mark", &["ctrl-space", "v", "insert"]),
    ("undo", &["ctrl-x u", "u"]),
];

#[rustfmt::skip]
const PLAIN: &[(&str, &[&str])] = &[
    ("down", &["down"]),
    ("up", &["up"]),
    ("left", &["left", "shift-left"]),
    ("right", &["right", "shift-right"]),
    ("top", &["home"]),
    ("bottom", &["end"]),
    ("half-down", &["shift-down"]),
    ("half-up", &["shift-up"]),
    ("page-down", &["pagedown"]),
    ("page-up", &["pageup"]),
    ("palette", &["f2", "ctrl-p"]),
    ("filter", &["f3", "ctrl-f", "/"]),
    ("sort", &["f4", "o"]),
    ("next-pane", &["f6", "tab", "backtab"]),
    ("failures", &["f7", "z"]),
    ("messages", &["f12", "M"]),
    ("quit", &["ctrl-q", "q"]),
    ("last-view", &["backspace", "-"]),
];

impl Preset {
    /// The preset called so.
    pub fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The keys of an action; `None` for those of the table.
    pub fn keys_of(&self, action: &str) -> Option<&'static [&'static str]> {
        self.keys.iter().find(|(name, _)| *name == action).map(|(_, keys)| *keys)
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|preset| preset.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action::{self, Keymap};
    use std::collections::BTreeMap;

    #[test]
    fn every_preset_names_actions_and_no_key_means_two_things() {
        for preset in &PRESETS {
            for (name, keys) in preset.keys {
                assert!(action::all().any(|spec| spec.name == *name), "{}: {name}", preset.name);
                assert!(!keys.is_empty(), "{}: {name}", preset.name);
            }
            let (keymap, warnings) = Keymap::with_preset(preset, &BTreeMap::new());
            assert_eq!(warnings, Vec::<String>::new(), "{}", preset.name);
            // A user who changes keys must find the way out and the list of them.
            for spec in action::all().filter(|spec| ["help", "quit", "escape"].contains(&spec.name))
            {
                assert!(keymap.keys_of(spec).count() > 0, "{}: {}", preset.name, spec.name);
            }
        }
    }

    #[test]
    fn own_keys_win_over_the_presets() {
        let own = BTreeMap::from([("quit".to_owned(), vec!["ctrl-n".to_owned()])]);
        let emacs = Preset::find("emacs").unwrap();
        let (keymap, warnings) = Keymap::with_preset(emacs, &own);
        let quit = action::find("quit").unwrap();
        assert_eq!(keymap.keys_of(quit).collect::<Vec<_>>(), ["Ctrl-n"]);
        assert_eq!(warnings, ["keys: Ctrl-n belongs to quit, so down loses it"]);
    }
}
