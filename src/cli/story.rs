//! The built-in clusters as input for `kubestep demo` and `--demo`.

use anyhow::{Result, anyhow};

use kubestep_config::suggest;
use kubestep_source::Filter;
use kubestep_source::fixtures;

/// The story of that name.
///
/// # Errors
/// The name is unknown; the error has the nearest one.
pub(super) fn find(name: &str) -> Result<&'static fixtures::Story> {
    fixtures::find(name).ok_or_else(|| {
        let near = suggest::closest(name, fixtures::STORIES.iter().map(|story| story.name));
        let near = near.map(|near| format!(", did you mean {near:?}? ")).unwrap_or("; ".into());
        anyhow!("there is no story {name:?}{near}\"kubestep demo --list\" shows them all")
    })
}

/// The objects of a story, and its title.
pub(super) fn read(name: &str, filter: &Filter) -> Result<(kubestep_source::Input, String)> {
    let story = find(name)?;
    let mut read = kubestep_source::read_text(story.name, story.cluster.into(), filter)?;
    read.warnings.clear();
    Ok((read, format!("demo: {}", story.name)))
}
