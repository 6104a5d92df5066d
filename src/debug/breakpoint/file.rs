//! Breakpoints and watches in a YAML file, as they are written on the command line:
//!
//! ```yaml
//! breakpoints:
//! - break: Filter/TaintToleration node:gpu-* if attempts > 2
//! - watch: queue:active
//!   enabled: false
//! ```

use serde::{Deserialize, Serialize};

use crate::debug::breakpoint::definition::Definition;
use crate::debug::breakpoint::list::Item;
use crate::intern::Symbol;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    breakpoints: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "break", skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    watch: Option<String>,
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    enabled: bool,
}

fn yes() -> bool {
    true
}

/// The file's text for `items`.
///
/// # Errors
/// They cannot be written as YAML.
pub fn write<'a>(items: impl IntoIterator<Item = &'a Item>) -> Result<String, String> {
    let line = |item: &Item| {
        let (text, enabled) = (Some(item.definition.to_string()), item.enabled);
        match item.definition.is_watch() {
            true => Line { place: None, watch: text, enabled },
            false => Line { place: text, watch: None, enabled },
        }
    };
    let document = Document { breakpoints: items.into_iter().map(line).collect() };
    serde_yaml::to_string(&document).map_err(|error| error.to_string())
}

/// Reads a file's text: definitions with whether each is enabled. All of them or, with a
/// mistake in one, none. `known` are the plugins of the profiles.
///
/// # Errors
/// The text is for people and says which one is wrong.
pub fn read(text: &str, known: &[Symbol]) -> Result<Vec<(Definition, bool)>, String> {
    let document: Document = match text.trim() {
        "" => Document { breakpoints: Vec::new() },
        text => serde_yaml::from_str(text).map_err(|error| error.to_string())?,
    };
    let lines = document.breakpoints.into_iter().enumerate();
    lines
        .map(|(at, line)| {
            let read = match (&line.place, &line.watch) {
                (Some(text), None) => Definition::parse_break(text, known),
                (None, Some(text)) => Definition::parse_watch(text),
                _ => Err("needs either break or watch".into()),
            };
            let read = read.map_err(|problem| format!("breakpoints[{at}]: {problem}"))?;
            Ok((read, line.enabled))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::breakpoint::list::Breakpoints;

    #[test]
    fn a_file_brings_back_what_was_saved() {
        let mut list = Breakpoints::default();
        let definition = Definition::parse_break("Filter pod:web-* if attempts > 2", &[]).unwrap();
        list.add(definition, true);
        list.add(Definition::parse_watch("queue:active stop").unwrap(), false);
        let text = write(list.items()).unwrap();
        assert_eq!(
            text,
            "breakpoints:\n- break: Filter pod:web-* if attempts > 2\n- watch: queue:active stop\n  \
             enabled: false\n"
        );
        let read = read(&text, &[]).unwrap();
        let kept: Vec<_> = list.items().iter().map(|i| (i.definition.clone(), i.enabled)).collect();
        assert_eq!(read, kept);
    }

    #[test]
    fn mistakes_name_their_line() {
        let problem = |text| read(text, &[]).unwrap_err();
        assert!(
            problem("breakpoints:\n- break: Filter\n- break: Filtre\n")
                .starts_with("breakpoints[1]: \"Filtre\" is neither")
        );
        assert!(problem("breakpoints:\n- enabled: true\n").contains("either break or watch"));
        assert!(problem("breakpoints: [").contains("line"));
        assert!(problem("more: 1").contains("unknown field"));
        assert_eq!(read("", &[]), Ok(Vec::new()));
    }
}
