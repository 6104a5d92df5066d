//! Edits on the command line: `--edit "cordon node a"`.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};

use crate::cli::open::read_config;
use crate::debug::Session;
use crate::debug::edit::{Edit, PolicyEdit};

/// Applies edits one after the other, and says on standard error what they did beyond their
/// words. All are read before the first is applied.
pub(super) fn apply(session: &mut Session, option: &str, texts: &[String]) -> Result<()> {
    let edits: Result<Vec<Vec<Edit>>> =
        texts.iter().map(|text| read(text).with_context(|| option.to_owned())).collect();
    for edit in edits?.into_iter().flatten() {
        let words = edit.to_string();
        let applied = edit.apply(&mut session.world().clone());
        let applied = applied.with_context(|| format!("{option} {words:?}"))?;
        for note in applied.notes {
            eprintln!("{words}: {note}");
        }
        session.change(Arc::new(edit)).map_err(|error| anyhow!("{option} {words:?}: {error}"))?;
    }
    Ok(())
}

/// The edits that a text means; `put` and `config` also take a file, as `put @web.yaml`.
fn read(text: &str) -> Result<Vec<Edit>> {
    let file =
        |verb: &str| text.strip_prefix(verb).map(str::trim).and_then(|t| t.strip_prefix('@'));
    if let Some(path) = file("put ") {
        let text = read_config(path.as_ref())?;
        return Ok(Edit::put_all(path, &text)?);
    }
    if let Some(path) = file("config ") {
        return Ok(vec![Edit::Policy(PolicyEdit::Load(read_config(path.as_ref())?))]);
    }
    Ok(vec![text.parse()?])
}
