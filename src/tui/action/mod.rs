//! The table of everything a person can make the interface do.
//!
//! Each row has an id, default keys, the places where it is valid, and a line of help; key lookup, the hint
//! line, help, the palette, `:` completion, key overrides and the manual's key table are all made from
//! these rows. A group of actions is a file: its enum, its rows, and what its actions do.

pub mod breakpoints;
pub mod execution;
pub mod general;
pub mod inspect;
pub mod key;
pub mod keymap;
pub mod live;
pub mod marks;
pub mod navigation;
pub mod presets;
pub mod shapes;
pub mod views;
pub mod waiting;
pub mod whatif;

pub use breakpoints::Breakpoints;
pub use execution::Execution;
pub use general::General;
pub use inspect::Inspect;
pub use key::{Key, NotAKey};
pub use keymap::Keymap;
pub use live::Live;
pub use marks::Marks;
pub use navigation::Navigation;
pub use presets::Preset;
pub use shapes::Shapes;
pub use views::Views;
pub use waiting::Waiting;
pub use whatif::WhatIf;

use super::view::ViewId;

/// What to do, without its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Leave, ask, help.
    General(General),
    /// Move within a view.
    Navigation(Navigation),
    /// Choose a view.
    Views(Views),
    /// Fold and group its rows, or draw them as a map.
    Shapes(Shapes),
    /// Move the debugger.
    Execution(Execution),
    /// Look closer.
    Inspect(Inspect),
    /// Decide about waiting pods.
    Waiting(Waiting),
    /// Follow a live cluster.
    Live(Live),
    /// Where the debugger stops.
    Breakpoints(Breakpoints),
    /// Change something, in a branch.
    WhatIf(WhatIf),
    /// Mark rows.
    Marks(Marks),
}

/// An action with what was typed after its name; empty from a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// What to do.
    pub action: Action,
    /// With what.
    pub argument: String,
}

impl From<Action> for Invocation {
    fn from(action: Action) -> Invocation {
        Invocation { action, argument: String::new() }
    }
}

/// What may follow an action's name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    None,
    /// Something, or nothing; shown in help as `[NAME]`.
    Optional(&'static str),
    /// Something; invoked by a key, the action asks for it. Shown as `NAME`.
    Required(&'static str),
}

impl Argument {
    /// As it is written after a command's name, with a space before it.
    pub fn usage(self) -> String {
        match self {
            Argument::None => String::new(),
            Argument::Optional(name) => format!(" [{name}]"),
            Argument::Required(name) => format!(" {name}"),
        }
    }
}

/// Where an action is valid: a set of views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// Every view.
    pub const ANY: Place = Place(u32::MAX);

    /// The given views.
    pub const fn views(views: &[ViewId]) -> Place {
        let (mut set, mut i) = (0, 0);
        while i < views.len() {
            set |= 1 << views[i] as u16;
            i += 1;
        }
        Place(set)
    }

    /// Whether `view` is one of them.
    pub const fn holds(self, view: ViewId) -> bool {
        self.0 & (1 << view as u16) != 0
    }

    /// Whether some view is in both.
    pub const fn overlaps(self, other: Place) -> bool {
        self.0 & other.0 != 0
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// What it does.
    pub action: Action,
    /// Its name, also on the command line and in key overrides.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// Default keys, the one to show first. Several keys in a row are separated by spaces.
    pub keys: &'static [&'static str],
    /// What may follow the name.
    pub argument: Argument,
    /// Where it is valid.
    pub place: Place,
    /// A few words for the hint line; empty keeps it out of there.
    pub hint: &'static str,
    /// One line of help, a sentence without its full stop.
    pub help: &'static str,
}

impl Spec {
    /// An action that is valid everywhere, takes no argument and is not among the hints.
    const fn new(
        action: Action,
        name: &'static str,
        keys: &'static [&'static str],
        help: &'static str,
    ) -> Spec {
        Spec {
            action,
            name,
            aliases: &[],
            keys,
            argument: Argument::None,
            place: Place::ANY,
            hint: "",
            help,
        }
    }
}

/// A group's title and rows, in the order of the help.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its heading.
    pub title: &'static str,
    /// Its actions.
    pub specs: &'static [Spec],
}

/// The table.
pub const GROUPS: [Group; 11] = [
    Group { title: "Debugger", specs: execution::SPECS },
    Group { title: "Breakpoints and watches", specs: breakpoints::SPECS },
    Group { title: "Look closer", specs: inspect::SPECS },
    Group { title: "Marks", specs: marks::SPECS },
    Group { title: "Waiting pods", specs: waiting::SPECS },
    Group { title: "Live cluster", specs: live::SPECS },
    Group { title: "What if", specs: whatif::SPECS },
    Group { title: "Views", specs: views::SPECS },
    Group { title: "Fold, group, map", specs: shapes::SPECS },
    Group { title: "Move", specs: navigation::SPECS },
    Group { title: "General", specs: general::SPECS },
];

/// Every row.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    GROUPS.iter().flat_map(|group| group.specs)
}

/// The row of `action`.
pub fn spec(action: Action) -> &'static Spec {
    // Every variant has a row (tested); the first row keeps this total without a panic.
    all().find(|s| s.action == action).unwrap_or(&GROUPS[0].specs[0])
}

/// The key tables of the documents, as Markdown.
pub fn manual() -> String {
    let mut out = String::new();
    for group in GROUPS {
        out.push_str(&format!(
            "\n**{}**\n\n| key | command | what it does |\n|---|---|---|\n",
            group.title
        ));
        for spec in group.specs {
            let keys: Vec<String> = spec.keys.iter().map(|k| markdown_key(k)).collect();
            // A bar would end the table's cell.
            let (name, usage) = (spec.name, spec.argument.usage().replace('|', "\\|"));
            out.push_str(&format!("| {} | `:{name}{usage}` | {} |\n", keys.join(" "), spec.help));
        }
    }
    out
}

fn markdown_key(sequence: &str) -> String {
    let shown = key::parse_sequence(sequence).map(|k| key::show_sequence(&k));
    // A backslash is literal inside code, but a bar would end the table's cell.
    format!("`{}`", shown.unwrap_or_default().replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut seen = BTreeSet::new();
        for spec in all() {
            for name in spec.aliases.iter().chain([&spec.name]) {
                assert!(seen.insert(*name), "{name}");
                let plain = |c: char| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit();
                assert!(name.chars().all(plain), "{name}");
            }
        }
    }

    #[test]
    fn each_action_has_one_row() {
        let actions: std::collections::HashSet<_> = all().map(|s| s.action).collect();
        assert_eq!(actions.len(), all().count());
    }

    #[test]
    fn no_key_means_two_things_in_one_place() {
        let rows: Vec<_> = all().collect();
        for (i, a) in rows.iter().enumerate() {
            for b in rows[i + 1..].iter().filter(|b| a.place.overlaps(b.place)) {
                for key in a.keys {
                    assert!(!b.keys.contains(key), "{key}: {} and {}", a.name, b.name);
                }
            }
        }
    }

    #[test]
    fn no_key_hides_behind_the_beginning_of_another() {
        let sequences: Vec<_> =
            all().flat_map(|s| s.keys).map(|k| key::parse_sequence(k).unwrap()).collect();
        for a in &sequences {
            assert!(!a.is_empty());
            let longer = sequences.iter().filter(|b| b.len() > a.len());
            assert_eq!(longer.filter(|b| b.starts_with(a)).count(), 0, "{a:?}");
        }
    }

    #[test]
    fn help_is_one_line_and_says_something() {
        for spec in all() {
            assert!((8..=76).contains(&spec.help.len()), "{}: {}", spec.name, spec.help);
            assert!(!spec.help.ends_with('.') && !spec.help.contains('\n'), "{}", spec.name);
            assert!(spec.hint.len() <= 12, "{}", spec.name);
        }
    }

    #[test]
    fn the_manual_names_every_action() {
        let manual = manual();
        for spec in all() {
            assert!(manual.contains(&format!("`:{}", spec.name)), "{}", spec.name);
        }
        assert!(manual.contains("| `g g` `Home` | `:top` |"));
    }
}
