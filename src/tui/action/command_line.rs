//! The `:` line: names with unique prefixes, arguments, completion.

use super::completion::Completion;
use super::{Action, Argument, Invocation, all};
use crate::tui::edit_forms;
use crate::tui::key;
use crate::tui::model::NeededNames;
use crate::tui::view::ViewId;
use kubestep_config::suggest;
use kubestep_debug::edit::{EditForm, FORMS};

/// Why a command line was not understood; the message is for people.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Nothing begins like this.
    #[error("there is no command {name:?}{}", near.map(|n| format!("; did you mean {n:?}?")).unwrap_or_default())]
    Unknown {
        name: String,
        /// The name with the smallest edit distance, if one is near.
        near: Option<&'static str>,
    },
    /// Several names begin like this.
    #[error("{name:?} could be {}", candidates.join(", "))]
    Ambiguous {
        name: String,
        /// The actions that begin with it.
        candidates: Vec<&'static str>,
    },
    /// The command takes no argument.
    #[error("{0} takes nothing after its name")]
    NoArgument(&'static str),
    /// The command needs an argument.
    #[error("{0} needs {1}")]
    Missing(&'static str, &'static str),
    /// The command belongs to other views.
    #[error("{0} works in: {1}")]
    NotHere(&'static str, String),
}

/// Understands a command line typed in `view`. An empty line is `None`.
pub fn parse(line: &str, view: ViewId) -> Result<Option<Invocation>, CommandError> {
    // The prompt has a colon; who types another one means the same.
    let line = line.trim().trim_start_matches(':').trim_start();
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // `:q!` as in vi: nothing has to be forced here.
    let name = name.strip_suffix('!').unwrap_or(name);
    if name.is_empty() {
        return Ok(None);
    }
    let (action, argument) = match find(name) {
        Ok(action) => (action, argument.trim()),
        // An edit needs no `what-if` before it.
        Err(_) if edit_forms::is_verb(name) => (find("what-if")?, line),
        Err(error) => return Err(error),
    };
    match action.argument {
        Argument::None if !argument.is_empty() => {
            return Err(CommandError::NoArgument(action.name));
        }
        Argument::Required(what) if argument.is_empty() => {
            return Err(CommandError::Missing(action.name, what));
        }
        _ => {}
    }
    if !action.views.has(view) {
        return Err(CommandError::NotHere(action.name, action.views_text()));
    }
    Ok(Some(Invocation { action, argument: argument.to_owned() }))
}

/// The row called `name`, or the only one that begins so.
fn find(name: &str) -> Result<&'static Action, CommandError> {
    let lower = name.to_lowercase();
    let names = |action: &'static Action| action.aliases.iter().chain([&action.name]).copied();
    if let Some(exact) = all().find(|s| names(s).any(|n| n == lower)) {
        return Ok(exact);
    }
    let found: Vec<_> = all().filter(|s| names(s).any(|n| n.starts_with(&lower))).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => Err(CommandError::Unknown {
            name: name.to_owned(),
            near: suggest::closest(&lower, all().flat_map(names)),
        }),
        several => Err(CommandError::Ambiguous {
            name: name.to_owned(),
            candidates: several.iter().map(|s| s.name).collect(),
        }),
    }
}

/// Whole lines that `line` can be completed to, in table order: commands, edits, or arguments.
pub fn completions(line: &str, values: &Completion) -> Vec<String> {
    let start = line.trim_start();
    match start.split_once(char::is_whitespace) {
        None => {
            let typed = start.to_lowercase();
            let names = all().map(|action| action.name).filter(|name| name.starts_with(&typed));
            let edits = FORMS
                .iter()
                .map(EditForm::verb)
                .filter(|verb| !typed.is_empty() && verb.starts_with(&typed));
            let mut lines: Vec<String> = names.chain(edits).map(str::to_owned).collect();
            lines.dedup();
            lines
        }
        Some((name, _)) if find(name).is_err() && edit_forms::is_verb(name) => values.edits(start),
        Some((name, typed)) => {
            let Ok(action) = find(name) else { return Vec::new() };
            let values = values.values(action, typed.trim_start()).into_iter();
            values.map(|value| format!("{} {value}", action.name)).collect()
        }
    }
}

/// Whether another word can follow the last one of a line: an argument, or the next word of an edit.
pub fn goes_on(line: &str) -> bool {
    let line = line.trim();
    let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
    match find(name) {
        Ok(action) if action.name == "what-if" && !argument.is_empty() => {
            edit_forms::goes_on(argument)
        }
        Ok(action) if action.name == "edit" => {
            argument == "node" || argument == "pod" || argument.is_empty()
        }
        Ok(action) => argument.is_empty() && action.argument != Argument::None,
        Err(_) => edit_forms::goes_on(line),
    }
}

/// The names that the argument of a line completes to; `None` if it names nothing of the session.
pub fn needed_names(line: &str) -> Option<NeededNames> {
    let (name, argument) = line.trim_start().split_once(char::is_whitespace)?;
    let is_pod = |word: &str| word == "pod" || word.starts_with("pod:");
    let by_kind = || match argument.split_whitespace().any(is_pod) {
        true => NeededNames::WithPods,
        false => NeededNames::Few,
    };
    match find(name) {
        Ok(action) => match action.name {
            "branch" | "differences" | "break" | "survive" => Some(NeededNames::Few),
            // A pod is named without its kind.
            "edit" | "why" | "fix" | "new-nodes" => Some(NeededNames::WithPods),
            "what-if" | "watch" => Some(by_kind()),
            _ => None,
        },
        Err(_) => edit_forms::is_verb(name).then(by_kind),
    }
}

/// What a line does, for the list of completions: the help of its command, or the form of its edit.
pub fn about(line: &str) -> String {
    let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
    match find(name) {
        Ok(action) if action.name == "what-if" && !argument.is_empty() => about_edit(argument),
        Ok(action) => format!("{}{}", action.help, shown_keys(action)),
        Err(_) => about_edit(line),
    }
}

fn shown_keys(action: &Action) -> String {
    let first = action.keys.first().and_then(|keys| key::parse_sequence(keys).ok());
    first.map(|keys| format!(" ({})", key::show_sequence(&keys))).unwrap_or_default()
}

fn about_edit(line: &str) -> String {
    edit_forms::find(line).map(|form| format!("{}: {}", form.usage, form.about)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (&'static str, String) {
        let invocation = parse(line, ViewId::Waiting).unwrap().unwrap();
        (invocation.action.name, invocation.argument)
    }

    #[test]
    fn names_prefixes_and_arguments() {
        assert_eq!(parsed("next 5"), ("next", "5".into()));
        assert_eq!(parsed("  th   light "), ("theme", "light".into()));
        assert_eq!(parsed("QUIT").0, "quit");
        let reject = ("reject", "too many of them".into());
        assert_eq!(parsed("reject too many of them"), reject);
        assert_eq!(parse("   ", ViewId::Cycle), Ok(None));
    }

    #[test]
    fn an_exact_name_wins_over_longer_ones() {
        assert_eq!(parsed("step").0, "step");
        assert_eq!(parsed("filter x").0, "filter");
    }

    #[test]
    fn an_edit_is_a_command() {
        assert_eq!(parsed("uncordon node a"), ("what-if", "uncordon node a".into()));
        assert!(about("uncordon").contains("uncordon node NAME: make it schedulable again"));
        assert!(about("what-if resize pod x").contains("what a pod, or one container, requests"));
    }

    #[test]
    fn mistakes_are_explained() {
        let error = |line: &str| parse(line, ViewId::Cycle).unwrap_err().to_string();
        assert_eq!(error("theem"), "there is no command \"theem\"; did you mean \"theme\"?");
        assert_eq!(error(":xyzzy"), error("xyzzy"));
        assert_eq!(error("xyzzy"), "there is no command \"xyzzy\"");
        assert!(error("st").starts_with("\"st\" could be step, step-back"));
        assert_eq!(parse("q!", ViewId::Queues), parse("quit", ViewId::Queues));
        assert_eq!(error("quit now"), "quit takes nothing after its name");
        assert_eq!(error("cycle"), "cycle needs NUMBER");
        assert_eq!(error("allow"), "allow works in: Waiting (7)");
    }

    #[test]
    fn completes_names_then_arguments() {
        let values = Completion::with_themes(&["dark", "light"]);
        assert_eq!(completions("qu", &values), ["queues", "quit"]);
        assert_eq!(completions("theme l", &values), ["theme light"]);
        assert_eq!(completions("th ", &values), ["theme dark", "theme light"]);
        assert_eq!(completions("quit x", &values), Vec::<String>::new());
        assert_eq!(completions("", &values).len(), all().count());
        assert_eq!(completions("unc", &values), ["uncordon"]);
    }

    #[test]
    fn a_blank_follows_where_another_word_can() {
        let going_on = ["theme", "what-if", "what-if cordon", "cordon node", "edit node"];
        assert!(going_on.into_iter().all(goes_on));
        let ended =
            ["quit", "theme dark", "cordon node a-0", "what-if cordon node a-0", "edit node a"];
        assert!(!ended.into_iter().any(goes_on));
    }

    #[test]
    fn a_line_needs_the_names_that_it_can_hold() {
        use NeededNames::{Few, WithPods};
        for (line, needed) in [
            ("cycle 1", None),
            ("break", None),
            ("break ", Some(Few)),
            ("branch f", Some(Few)),
            (" watch pod:", Some(WithPods)),
            ("watch no", Some(Few)),
            ("allow x", None),
            ("edit w", Some(WithPods)),
            ("why ", Some(WithPods)),
            ("survive zone", Some(Few)),
            ("cordon node n", Some(Few)),
            ("what-if cordon node n", Some(Few)),
            ("what-if delete pod ", Some(WithPods)),
            ("choose node a for pod ", Some(WithPods)),
        ] {
            assert_eq!(needed_names(line), needed, "{line}");
        }
    }
}
