//! Breakpoints and watches in a YAML file, as they are written on the command line:
//!
//! ```yaml
//! breakpoints:
//! - break: Filter/TaintToleration node:gpu-* if attempts > 2
//! - watch: queue:active
//!   enabled: false
//! ```
//!
//! Such files are written by people, too: what they say in comments stays when it is saved again.

use serde::{Deserialize, Serialize};

use crate::breakpoint::BreakpointError;
use crate::breakpoint::definition::Definition;
use crate::breakpoint::list::ListedBreakpoint;
use kubestep_api::intern::Symbol;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BreakpointFile {
    #[serde(default)]
    breakpoints: Vec<BreakpointLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BreakpointLine {
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

fn yaml(error: impl std::fmt::Display) -> BreakpointError {
    BreakpointError::Yaml(error.to_string())
}

impl BreakpointLine {
    fn of(item: &ListedBreakpoint) -> BreakpointLine {
        let (text, enabled) = (Some(item.definition.to_string()), item.enabled);
        match item.definition.is_watch() {
            true => BreakpointLine { place: None, watch: text, enabled },
            false => BreakpointLine { place: text, watch: None, enabled },
        }
    }

    fn definition(&self, known: &[Symbol]) -> Result<Definition, BreakpointError> {
        match (&self.place, &self.watch) {
            (Some(text), None) => Definition::parse_break(text, known),
            (None, Some(text)) => Definition::parse_watch(text),
            _ => Err(BreakpointError::Incomplete("needs either break or watch")),
        }
    }
}

/// The file's text for `items`.
///
/// # Errors
/// They cannot be written as YAML.
pub fn write<'a>(
    items: impl IntoIterator<Item = &'a ListedBreakpoint>,
) -> Result<String, BreakpointError> {
    let document =
        BreakpointFile { breakpoints: items.into_iter().map(BreakpointLine::of).collect() };
    serde_yaml::to_string(&document).map_err(yaml)
}

/// The same over a file that is there: comments, and the way that lines are written, stay where
/// what they are about stays. `known` are the plugins of the profiles.
///
/// # Errors
/// They cannot be written as YAML.
pub fn write_over(
    before: &str,
    items: &[ListedBreakpoint],
    known: &[Symbol],
) -> Result<String, BreakpointError> {
    let text = merge(before, items, known)?;
    let wanted = items.iter().map(|item| (item.definition.clone(), item.enabled));
    // A file with another layout than this understands is written from scratch.
    match read(&text, known) {
        Ok(kept) if wanted.eq(kept.iter().cloned()) => Ok(text),
        _ => write(items),
    }
}

/// An entry of a list as it stands in a file: the lines above it, and its own.
struct FileEntry<'a> {
    above: Vec<&'a str>,
    own: Vec<&'a str>,
}

impl FileEntry<'_> {
    fn line(&self) -> Option<BreakpointLine> {
        let mut lines: Vec<BreakpointLine> =
            kubestep_api::yaml::from_str(&self.own.join("\n")).ok()?;
        lines.pop()
    }
}

fn merge(
    before: &str,
    items: &[ListedBreakpoint],
    known: &[Symbol],
) -> Result<String, BreakpointError> {
    let lines: Vec<&str> = before.lines().collect();
    let Some(list) = lines.iter().position(|line| line.starts_with("breakpoints:")) else {
        return write(items);
    };
    let (mut entries, tail) = entries(&lines[list + 1..]);
    let first = entries.first().and_then(|entry| entry.own.first()).copied().unwrap_or_default();
    let indent = " ".repeat(first.len() - first.trim_start().len());
    let mut out: Vec<String> = lines[..list].iter().map(|line| (*line).to_owned()).collect();
    out.push(if items.is_empty() { "breakpoints: []" } else { "breakpoints:" }.to_owned());
    for item in items {
        let same = |entry: &FileEntry| {
            let line = entry.line();
            line.is_some_and(|line| line.definition(known).as_ref() == Ok(&item.definition))
        };
        let found = entries.iter().position(same).map(|at| entries.remove(at));
        let unchanged = |entry: &FileEntry| entry.line().is_some_and(|l| l.enabled == item.enabled);
        match found {
            Some(entry) if unchanged(&entry) => {
                out.extend(entry.above.iter().chain(&entry.own).map(|line| (*line).to_owned()));
            }
            found => {
                let above = found.map(|entry| entry.above).unwrap_or_default();
                out.extend(above.into_iter().map(str::to_owned));
                let line = serde_yaml::to_string(&[BreakpointLine::of(item)]);
                let line = line.map_err(yaml)?;
                out.extend(line.lines().map(|line| format!("{indent}{line}")));
            }
        }
    }
    out.extend(tail.into_iter().map(str::to_owned));
    Ok(out.join("\n") + "\n")
}

/// The entries of the list that these lines begin with, and the lines after the last one.
fn entries<'a>(lines: &[&'a str]) -> (Vec<FileEntry<'a>>, Vec<&'a str>) {
    let (mut entries, mut above): (Vec<FileEntry>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in lines {
        let text = line.trim_start();
        match entries.last_mut() {
            _ if text.is_empty() || text.starts_with('#') => above.push(line),
            _ if text.starts_with("- ") => {
                entries.push(FileEntry { above: std::mem::take(&mut above), own: vec![line] });
            }
            Some(last) => {
                last.own.append(&mut above);
                last.own.push(line);
            }
            None => above.push(line),
        }
    }
    (entries, above)
}

/// Reads a file's text: definitions with whether each is enabled. All of them or, with a
/// mistake in one, none. `known` are the plugins of the profiles.
///
/// # Errors
/// It is not YAML, or one of them is wrong; the first that is.
pub fn read(text: &str, known: &[Symbol]) -> Result<Vec<(Definition, bool)>, BreakpointError> {
    let document: BreakpointFile = match text.trim() {
        "" => BreakpointFile { breakpoints: Vec::new() },
        text => kubestep_api::yaml::from_str(text).map_err(yaml)?,
    };
    let lines = document.breakpoints.into_iter().enumerate();
    lines
        .map(|(at, line)| {
            let read = line.definition(known).map_err(|problem| BreakpointError::InFile {
                index: at,
                problem: Box::new(problem),
            })?;
            Ok((read, line.enabled))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakpoint::list::Breakpoints;

    #[test]
    fn a_file_brings_back_what_was_saved() {
        let mut list = Breakpoints::default();
        let definition = Definition::parse_break("Filter pod:web-* if attempts > 2", &[]).unwrap();
        list.add(definition, true);
        list.add(Definition::parse_watch("queue:active show").unwrap(), false);
        let text = write(list.items()).unwrap();
        assert_eq!(
            text,
            "breakpoints:\n- break: Filter pod:web-* if attempts > 2\n- watch: queue:active show\n  \
             enabled: false\n"
        );
        let read = read(&text, &[]).unwrap();
        let kept: Vec<_> = list.items().iter().map(|i| (i.definition.clone(), i.enabled)).collect();
        assert_eq!(read, kept);
    }

    #[test]
    fn comments_stay_with_what_they_are_about() {
        let before = "# Ours.\nbreakpoints: # all of them\n# The web pods.\n- break: 'pod:web-*'  \
                      # sic\n\n# Gone soon.\n- break: on:error\n  enabled: false\n# Room.\n- watch: \
                      queue:active\n# The end.\n";
        let mut list = Breakpoints::default();
        let read_back = read(before, &[]).unwrap();
        for (definition, on) in read_back {
            list.add(definition, on);
        }
        let same = before.replace(" # all of them", "");
        assert_eq!(write_over(before, list.items(), &[]).unwrap(), same);
        list.remove(2);
        list.set_enabled(3, false);
        list.add(Definition::parse_break("on:tie", &[]).unwrap(), true);
        let after = write_over(before, list.items(), &[]).unwrap();
        assert_eq!(
            after,
            "# Ours.\nbreakpoints:\n# The web pods.\n- break: 'pod:web-*'  # sic\n# Room.\n- watch: \
             queue:active\n  enabled: false\n- break: on:tie\n# The end.\n"
        );
        list.clear();
        assert_eq!(
            write_over(&after, list.items(), &[]).unwrap(),
            "# Ours.\nbreakpoints: []\n# The end.\n"
        );
        let flow = "breakpoints: [{break: on:error}]\n";
        list.add(Definition::parse_break("on:tie", &[]).unwrap(), true);
        let line = write_over(flow, list.items(), &[]).unwrap();
        assert_eq!(line, "breakpoints:\n- break: on:tie\n");
    }

    #[test]
    fn mistakes_name_their_line() {
        let problem = |text| read(text, &[]).unwrap_err().to_string();
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
