//! `kubestep demo`: the debugger on a built-in cluster.

use anyhow::{Result, anyhow};
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::open::{require_screen, session, show};
use crate::cli::options::{InputOptions, MemoryOptions, ViewOptions};
use crate::cli::registry::Subcommand;
use crate::cli::tries::Tries;
use crate::cli::version::Scheduler;
use kubestep_config::suggest;
use kubestep_source::{Filter, fixtures};

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
    scheduler: Scheduler,
    #[command(flatten)]
    view: ViewOptions,
    #[command(flatten)]
    memory: MemoryOptions,
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
        find(&story)?;
        require_screen()?;
        let (scheduler, memory) = (self.scheduler.clone(), self.memory.clone());
        let input =
            InputOptions { demo: Some(story), scheduler, memory, ..InputOptions::default() };
        show(session(&input, &Tries::default(), None)?, &self.view)
    }
}

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
pub(super) fn read(name: &str, filter: &Filter) -> Result<(kubestep_source::ReadInput, String)> {
    let story = find(name)?;
    let mut read = kubestep_source::read_text(story.name, story.cluster.into(), filter)?;
    read.warnings.clear();
    Ok((read, story.source()))
}
