//! Edits on the command line: `--edit "cordon node a"`.

use anyhow::{Context, Result};

use kubestep_debug::Session;
use kubestep_debug::edit::Edit;

/// Applies edits in order and prints their side effects to standard error. All are parsed before
/// the first is applied.
pub(super) fn apply(session: &mut Session, option: &str, texts: &[String]) -> Result<()> {
    let unknown = session.world().config().unknown;
    let read =
        |text: &str| crate::plugins::read_edits(text, unknown).with_context(|| option.to_owned());
    let edits: Result<Vec<Vec<Edit>>> = texts.iter().map(|text| read(text)).collect();
    for edit in edits?.into_iter().flatten() {
        let words = edit.to_string();
        let applied = session.edit(edit, None);
        let applied = applied.with_context(|| format!("{option} {words:?}"))?;
        for note in applied.notes {
            kubestep_output::line(format!("{words}: {note}"));
        }
    }
    Ok(())
}
