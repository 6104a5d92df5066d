//! `kubestep demo`: the debugger on a built-in cluster.

use anyhow::{Result, anyhow};
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::open::{build, show};
use crate::cli::options::{Input, View};
use crate::cli::print;
use crate::cli::registry::Subcommand;
use crate::config::suggest;
use crate::fixtures;
use crate::source::{self, Filter};

/// Open a built-in cluster: no file and no cluster needed
#[derive(Args, Debug)]
pub(super) struct Demo {
    /// Which story to open; without it, the tour of several
    #[arg(value_name = "STORY")]
    story: Option<String>,
    /// List the stories
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    view: View,
}

impl Subcommand for Demo {
    const NAME: &'static str = "demo";

    /// Opens a story, or lists them.
    fn run(&self) -> Result<Exit> {
        if self.list {
            let line = |story: &fixtures::Story| format!("{:<22} {}\n", story.name, story.about);
            print(&fixtures::STORIES.iter().map(line).collect::<String>())?;
            return Ok(Exit::Fine);
        }
        let name = self.story.as_deref().unwrap_or(fixtures::TOUR);
        let story = fixtures::find(name).ok_or_else(|| {
            let near = suggest::closest(name, fixtures::STORIES.iter().map(|story| story.name));
            let near = near.map(|near| format!(", did you mean {near:?}")).unwrap_or_default();
            anyhow!("there is no story {name:?}{near}; \"kubestep demo --list\" shows them all")
        })?;
        let mut read = source::read_text(story.name, story.cluster.into(), &Filter::default())?;
        read.warnings.clear();
        let input = Input::default();
        show(build(read, &input, None, format!("demo: {}", story.name))?, &self.view)
    }
}
