//! `kubestep demo`: the debugger on a built-in cluster.

use anyhow::Result;
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::open::{require_screen, session, show};
use crate::cli::options::{Input, Memory, View};
use crate::cli::registry::Subcommand;
use crate::cli::story;
use crate::cli::tries::Tries;
use kubestep_source::fixtures;

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
    #[command(flatten)]
    memory: Memory,
}

impl Subcommand for Demo {
    const NAME: &'static str = "demo";

    /// Opens a story, or lists them.
    fn run(&self) -> Result<Exit> {
        if self.list {
            let line = |story: &fixtures::Story| format!("{:<22} {}\n", story.name, story.about);
            kubestep_output::print(&fixtures::STORIES.iter().map(line).collect::<String>())?;
            return Ok(Exit::Fine);
        }
        let story = self.story.clone().unwrap_or_else(|| fixtures::TOUR.to_owned());
        story::find(&story)?;
        require_screen()?;
        let input = Input { demo: Some(story), memory: self.memory.clone(), ..Input::default() };
        show(session(&input, &Tries::default(), None)?, &self.view)
    }
}
