//! Breakpoints on the command line: sets them from options, and runs until one stops.

use std::path::Path;

use anyhow::{Context, Result, anyhow};

use kubestep_debug::breakpoint::{Definition, Moment, file, message};
use kubestep_debug::{ContinueOutcome, Session};

/// The most lines that logging breakpoints print.
const LOG_LINES: usize = 10_000;

/// Sets the breakpoints of `--break` and of a breakpoints file.
pub(super) fn set(session: &mut Session, breaks: &[String], path: Option<&Path>) -> Result<()> {
    let known = session.plugin_names();
    let mut definitions = Vec::new();
    for text in breaks {
        let read = Definition::parse_break(text, &known);
        let read = read.map_err(|problem| anyhow!("--break {text:?}: {problem}"))?;
        definitions.push((read, true));
    }
    if let Some(path) = path {
        let shown = path.display();
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("--breakpoints: {shown}"))?;
        let read = file::read(&text, &known);
        definitions.extend(read.map_err(|problem| anyhow!("--breakpoints: {shown}: {problem}"))?);
    }
    session.change_breakpoints(|list| {
        for (definition, enabled) in definitions {
            list.add(definition, enabled);
        }
    });
    Ok(())
}

/// Runs at most `limit` cycles, until a breakpoint stops or nothing is left to run. Returns the
/// lines of logging breakpoints, and where it stopped.
pub(super) fn run(session: &mut Session, limit: usize) -> Vec<String> {
    let mut ran = 0;
    let came_to = match limit {
        0 => ContinueOutcome::Paused,
        _ => session.continue_on(|| {
            ran += 1;
            ran < limit
        }),
    };
    let end = match came_to {
        ContinueOutcome::Stopped(hit) => Some(hit.moment),
        _ => Moment::after(session.history().len()),
    };
    let logged = session.logged(None, end, LOG_LINES);
    let line = |hit| message::of_hit(&session.recording(), session.breakpoints(), hit);
    let mut lines: Vec<String> = logged.iter().map(line).collect();
    if let ContinueOutcome::Stopped(hit) = &came_to {
        lines.push(format!("stopped at {}", line(hit)));
    }
    for item in session.breakpoints().items() {
        let problem = item
            .problem()
            .map(|problem| format!("the condition of {item} could not be evaluated: {problem}"));
        lines.extend(problem);
    }
    lines
}
