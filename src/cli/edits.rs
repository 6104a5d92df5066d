//! Edits on the command line: `--edit "cordon node a"`.

use anyhow::{Context, Result};

use kubestep_debug::Session;
use kubestep_debug::edit::Edit;

/// Applies edits in order and prints their side effects to standard error. All are parsed before
/// the first is applied. Returns what was printed.
pub(super) fn apply(session: &mut Session, option: &str, texts: &[String]) -> Result<Vec<String>> {
    let unknown = session.world().config().unknown;
    let read =
        |text: &str| crate::plugins::read_edits(text, unknown).with_context(|| option.to_owned());
    let edits: Result<Vec<Vec<Edit>>> = texts.iter().map(|text| read(text)).collect();
    let mut notes = Vec::new();
    for edit in edits?.into_iter().flatten() {
        let words = edit.to_string();
        let applied = session.edit(edit, None);
        let applied = applied.with_context(|| format!("{option} {words:?}"))?;
        for note in applied.notes {
            let note = format!("{words}: {note}");
            kubestep_output::line(&note);
            notes.push(note);
        }
    }
    Ok(notes)
}
