//! `kubestep demo`: the debugger on a built-in cluster.

use anyhow::{Result, anyhow};

use crate::cli::exit::Exit;
use crate::cli::open::{build, show};
use crate::cli::options::{Demo, Input, View};
use crate::cli::print;
use crate::config::suggest;
use crate::fixtures;
use crate::source::{self, Filter};

/// Opens a story, or lists them.
pub(super) fn run(demo: &Demo, view: &View) -> Result<Exit> {
    if demo.list {
        let line = |story: &fixtures::Story| format!("{:<22} {}\n", story.name, story.about);
        print(&fixtures::STORIES.iter().map(line).collect::<String>())?;
        return Ok(Exit::Fine);
    }
    let name = demo.story.as_deref().unwrap_or(fixtures::TOUR);
    let story = fixtures::find(name).ok_or_else(|| {
        let near = suggest::closest(name, fixtures::STORIES.iter().map(|story| story.name));
        let near = near.map(|near| format!(", did you mean {near:?}")).unwrap_or_default();
        anyhow!("there is no story {name:?}{near}; \"kubestep demo --list\" shows them all")
    })?;
    let mut read = source::read_text(story.name, story.cluster.into(), &Filter::default())?;
    read.warnings.clear();
    let input = Input::default();
    show(build(read, &input, None, format!("demo: {}", story.name))?, view)
}
