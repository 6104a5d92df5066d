//! The table of everything a person can make the interface do.
//!
//! A row has a name, default keys, the views where it is valid, a line of help, and what it does; key lookup,
//! the hint line, help, the palette, `:` completion, key overrides and the reference are made from these rows.
//! A group of actions is a file with its rows and what they do.

mod breakpoints;
mod command_line;
mod completion;
mod execution;
mod general;
mod input;
mod inspect;
mod keymap;
mod live;
mod marks;
mod navigation;
pub mod presets;
mod shapes;
mod views;
mod waiting;
mod whatif;

pub use general::INTERRUPTED;
pub use input::{KeyInput, Suggestions};
pub use keymap::Keymap;
pub use presets::Preset;
pub use whatif::subject;

use std::fmt;

use super::app::{App, Effect};
use super::key;
use super::model::Model;
use super::view::ViewId;
use crate::tui::action_error::ActionError;

/// An action with what was typed after its name; empty from a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The row of the table that is carried out.
    pub action: &'static Action,
    /// What was typed after its name.
    pub argument: String,
}

/// What may follow an action's name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Without an argument.
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

    /// The word for it; empty if there is none.
    pub fn name(self) -> &'static str {
        match self {
            Argument::None => "",
            Argument::Optional(name) | Argument::Required(name) => name,
        }
    }
}

/// Changes the interface's state, and nothing else.
fn change(app: &mut App, change: impl FnOnce(&mut App)) -> Result<Effect, ActionError> {
    change(app);
    Ok(Effect::None)
}

/// The argument of actions that a count before their key repeats.
const COUNT: Argument = Argument::Optional("COUNT");

/// `""` is one; anything else a positive number.
fn count(argument: &str) -> Result<u32, ActionError> {
    match argument.trim() {
        "" => Ok(1),
        text => {
            let number = text.parse().ok().filter(|n| *n > 0);
            Ok(number.ok_or_else(|| format!("{text:?} is not a count; write a number like 5"))?)
        }
    }
}

/// A set of views: where an action is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewSet(u32);

impl ViewSet {
    /// For actions that work in every view.
    pub const ALL: ViewSet = ViewSet(u32::MAX);

    /// For actions that work only in these views.
    pub const fn of(views: &[ViewId]) -> ViewSet {
        let (mut set, mut i) = (0, 0);
        while i < views.len() {
            set |= 1 << views[i] as u16;
            i += 1;
        }
        ViewSet(set)
    }

    /// Whether `view` is one of them.
    pub const fn has(self, view: ViewId) -> bool {
        self.0 & (1 << view as u16) != 0
    }

    /// Whether some view is in both.
    pub const fn overlaps(self, other: ViewSet) -> bool {
        self.0 & other.0 != 0
    }
}

/// What an action does to a clock that plays and to a long run. Typed as a command it stops neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Looks around: both go on.
    Look,
    /// Changes the speed: the clock goes on, a run stops.
    Pace,
    /// Moves the debugger: both stop.
    Move,
    /// Edits in a branch: the clock stops.
    Edit,
    /// Anything else: the clock stops, but not a live scheduler.
    Other,
}

/// What an action does with its argument; the error is for people.
pub type ActionFn = fn(&mut App, &Model, &str) -> Result<Effect, ActionError>;

/// What happens when an action is invoked.
#[derive(Clone, Copy, Debug)]
enum ActionBody {
    Show(ViewId),
    /// Calls a function with the argument.
    Call(ActionFn),
}

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Action {
    /// Its name, on the command line and in key overrides.
    pub name: &'static str,
    /// Other names on the command line.
    pub aliases: &'static [&'static str],
    /// Default keys, the one to show first. Several keys in a row are separated by spaces.
    pub keys: &'static [&'static str],
    /// What may follow the name.
    pub argument: Argument,
    /// Where it is valid.
    pub views: ViewSet,
    /// A few words for the hint line; empty keeps it out of there.
    pub hint: &'static str,
    /// One line of help, a sentence without its full stop.
    pub help: &'static str,
    /// Other words that people look for it with.
    pub search: &'static str,
    /// What it does to a clock that plays.
    pub kind: ActionKind,
    does: ActionBody,
}

impl Action {
    /// An action that is valid everywhere, takes no argument and is not among the hints.
    const fn new(
        name: &'static str,
        keys: &'static [&'static str],
        help: &'static str,
        run: ActionFn,
    ) -> Action {
        Action {
            name,
            aliases: &[],
            keys,
            argument: Argument::None,
            views: ViewSet::ALL,
            hint: "",
            help,
            search: "",
            kind: ActionKind::Other,
            does: ActionBody::Call(run),
        }
    }

    const fn kind(self, kind: ActionKind) -> Action {
        Action { kind, ..self }
    }

    const fn hint(self, hint: &'static str) -> Action {
        Action { hint, ..self }
    }

    const fn takes(self, argument: Argument) -> Action {
        Action { argument, ..self }
    }

    const fn within(self, views: ViewSet) -> Action {
        Action { views, ..self }
    }

    /// Also found by these words.
    const fn search(self, search: &'static str) -> Action {
        Action { search, ..self }
    }

    /// Does it; the error is for people.
    fn run(&self, app: &mut App, model: &Model, argument: &str) -> Result<Effect, ActionError> {
        match self.does {
            ActionBody::Show(view) => Ok(views::show(view, app, model)),
            ActionBody::Call(run) => run(app, model, argument),
        }
    }

    /// The names of the views where it is valid, each with its key.
    pub fn views_text(&self) -> String {
        let views = ViewId::all().filter(|view| self.views.has(*view));
        let names: Vec<String> = views.map(|v| format!("{} ({})", v.title(), v.key())).collect();
        names.join(", ")
    }
}

impl PartialEq for Action {
    fn eq(&self, other: &Action) -> bool {
        self.name == other.name
    }
}

impl Eq for Action {}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A group of actions, in the order of the help.
#[derive(Clone, Copy, Debug)]
pub struct ActionGroup {
    /// The heading in help and reference.
    pub title: &'static str,
    /// The rows in the order of help and reference.
    pub actions: &'static [Action],
}

/// The table of all actions, from which keys, help, palette and reference come.
pub const GROUPS: [ActionGroup; 11] = [
    ActionGroup { title: "Debugger", actions: execution::ACTIONS },
    ActionGroup { title: "Breakpoints and watches", actions: breakpoints::ACTIONS },
    ActionGroup { title: "Look closer", actions: inspect::ACTIONS },
    ActionGroup { title: "Marks", actions: marks::ACTIONS },
    ActionGroup { title: "Waiting pods", actions: waiting::ACTIONS },
    ActionGroup { title: "Live cluster", actions: live::ACTIONS },
    ActionGroup { title: "What if", actions: whatif::ACTIONS },
    ActionGroup { title: "Views", actions: views::ACTIONS },
    ActionGroup { title: "Fold, group, map", actions: shapes::ACTIONS },
    ActionGroup { title: "Move", actions: navigation::ACTIONS },
    ActionGroup { title: "General", actions: general::ACTIONS },
];

/// The rows of all groups.
pub fn all() -> impl Iterator<Item = &'static Action> {
    GROUPS.iter().flat_map(|group| group.actions)
}

/// The row with that name.
pub fn find(name: &str) -> Option<&'static Action> {
    all().find(|action| action.name == name)
}

/// The key tables of the documents, as Markdown.
pub fn manual() -> String {
    let mut out = String::new();
    for group in GROUPS {
        out.push_str(&format!(
            "\n**{}**\n\n| key | command | what it does |\n|---|---|---|\n",
            group.title
        ));
        for action in group.actions {
            let keys: Vec<String> = action.keys.iter().map(|k| markdown_key(k)).collect();
            // A bar would end the table's cell.
            let (name, usage) = (action.name, action.argument.usage().replace('|', "\\|"));
            out.push_str(&format!("| {} | `:{name}{usage}` | {} |\n", keys.join(" "), action.help));
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
        for action in all() {
            for name in action.aliases.iter().chain([&action.name]) {
                assert!(seen.insert(*name), "{name}");
                let plain = |c: char| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit();
                assert!(name.chars().all(plain), "{name}");
            }
        }
    }

    #[test]
    fn no_key_means_two_things_in_one_place() {
        let rows: Vec<_> = all().collect();
        for (i, a) in rows.iter().enumerate() {
            for b in rows[i + 1..].iter().filter(|b| a.views.overlaps(b.views)) {
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
        for action in all() {
            assert!((8..=76).contains(&action.help.len()), "{}: {}", action.name, action.help);
            assert!(!action.help.ends_with('.') && !action.help.contains('\n'), "{}", action.name);
            assert!(action.hint.len() <= 12, "{}", action.name);
        }
    }

    #[test]
    fn counts_are_positive_numbers() {
        assert_eq!(count(""), Ok(1));
        assert_eq!(count(" 5 "), Ok(5));
        assert!(count("0").is_err() && count("-1").is_err() && count("x").is_err());
    }

    #[test]
    fn the_manual_names_every_action() {
        let manual = manual();
        for action in all() {
            assert!(manual.contains(&format!("`:{}", action.name)), "{}", action.name);
        }
        assert!(manual.contains("| `g g` `Home` | `:top` |"));
    }
}
