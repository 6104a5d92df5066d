//! `kubestep versions`: the versions that are served, and what changed between two of them.

use anyhow::{Result, bail};
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::format::{Format, WIDTH};
use crate::cli::registry::Subcommand;
use crate::cli::version::release;
use crate::report;
use kubestep_config::versions::{self, Between, Served};

/// List the versions of kube-scheduler that are served, or what changed in scheduling between two
///
/// The list says how each version is proved. Between two versions: decisions, messages and
/// configuration with the pull requests, feature gates with their defaults, stages and locks, and
/// the default plugins. With one version: what is new in it. A version like 1.36 is its newest
/// patch release; one like 1.34.1 is without what a later one brought.
#[derive(Args, Debug)]
pub(super) struct Versions {
    /// A version: 1.33, or a patch release: 1.33.4
    #[arg(value_name = "A", hide_possible_values = true, value_parser = release())]
    from: Option<Served>,
    /// The version to compare it with: 1.36
    #[arg(value_name = "B", hide_possible_values = true, value_parser = release())]
    to: Option<Served>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

impl Subcommand for Versions {
    const NAME: &'static str = "versions";

    fn run(&self) -> Result<Exit> {
        let between = self.between()?;
        let text = || match &between {
            Some(between) => versions::between_text(between, WIDTH),
            None => versions::list_text(WIDTH),
        };
        kubestep_output::print(
            &self.output.show(text, || report::versions::document(between.as_ref())),
        )?;
        Ok(Exit::Fine)
    }
}

impl Versions {
    fn between(&self) -> Result<Option<Between>> {
        let Some(from) = &self.from else { return Ok(None) };
        let named = [Some(from), self.to.as_ref()].into_iter().flatten();
        named.flat_map(Served::notices).for_each(kubestep_output::line);
        let (from, to) = match (&self.to, from.version.before()) {
            (Some(to), _) => (from.clone(), to.clone()),
            (None, Some(before)) => (before.into(), from.clone()),
            (None, None) => {
                bail!(
                    "{} is the oldest version that kubestep knows: name a second one to compare with",
                    from.version
                )
            }
        };
        let registry = crate::plugins::registry().descriptors();
        Ok(Some(versions::between(&from, &to, &registry)))
    }
}
