//! Scheduling with the debugger: a person sees every decision and can hold it.

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::{MemoryOptions, Screen};
use crate::tui::data_source::DataSource;
use kubestep_cluster::World;
use kubestep_debug::Session;
use kubestep_live::InteractiveScheduler;
use kubestep_live::extender_client::{self, CallScope};
use kubestep_live::scheduling::{Reporter, Wire};

use super::port::Observability;

/// Whether the debugger is shown.
#[derive(Args, Debug)]
#[command(next_help_heading = "Screen")]
pub(super) struct ScreenMode {
    /// Show the debugger: no cycle runs until you step, or play with Space; a cycle that you step
    /// into is written only when you leave it
    #[arg(long)]
    pub tui: bool,
    #[command(flatten)]
    screen: Screen,
    #[command(flatten)]
    memory: MemoryOptions,
}

/// What the debugger shows besides the session.
pub(super) struct SchedulingScreen {
    /// Name of the kubeconfig's context.
    pub context: String,
    /// Whether all writes are sent with dryRun=All.
    pub dry_run: bool,
    /// The notices to show at the start.
    pub notices: Vec<String>,
}

impl ScreenMode {
    /// Schedules until the debugger is closed.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn run(
        &self,
        mut world: World,
        wire: Wire,
        mut watched: Observability,
        start: SchedulingScreen,
    ) -> Result<Exit> {
        let SchedulingScreen { context, dry_run, notices } = start;
        let how = if dry_run { "dry run in" } else { "scheduling in" };
        let name = format!("{how} {context}");
        // Only the session that acts lets extenders bind; its copies only call them.
        let extenders = world.api().extenders().cloned();
        if extenders.is_some() {
            let asking = extender_client::connect(&world.config().extenders, CallScope::Reads);
            world.api_mut().set_extenders(asking.context("extenders")?);
        }
        let mut session = Session::new(world);
        session.set_history_memory(self.memory.bytes());
        session.act(extenders);
        let report: Reporter = Box::new(move |world, report| watched.see(world, &report));
        let scheduler =
            InteractiveScheduler::new(Box::new(wire), &session, (context, dry_run), report);
        let opened = open::OpenedSession { session, name, notices };
        let data_source = DataSource::Scheduling(Box::new(scheduler));
        let (code, left) = open::screen(opened, &self.screen, data_source)?;
        if !left.unsent.is_empty() {
            kubestep_output::line(format!("held and not written: {}", left.unsent));
        }
        match (code, left.lost) {
            (0, true) => Ok(Exit::Lost),
            (code, _) => open::leave(code),
        }
    }
}
