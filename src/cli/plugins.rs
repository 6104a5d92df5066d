//! `kubestep plugins`: all plugins with their description and arguments.

use anyhow::{Result, anyhow};
use clap::Args;
use serde_json::json;

use crate::cli::exit::Exit;
use crate::cli::format::{Format, WIDTH};
use crate::cli::registry::Subcommand;
use crate::cli::version::Scheduler;
use crate::report::add_version;
use kubestep_config::points::in_version;
use kubestep_config::{FeatureGates, PluginDescriptor, describe, manual, suggest};
use kubestep_source::Captured;

/// List the scheduler's plugins, or describe some: extension points, weight, arguments, an example
#[derive(Args, Debug)]
pub(super) struct PluginsCommand {
    /// The plugins to describe; case does not matter
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    scheduler: Scheduler,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

impl Subcommand for PluginsCommand {
    const NAME: &'static str = "plugins";

    fn run(&self) -> Result<Exit> {
        let gates = gates(&self.scheduler)?;
        let all = in_version(&crate::plugins::registry().descriptors(), &gates);
        let named: Vec<PluginDescriptor> =
            self.names.iter().map(|name| find(&all, name, &gates)).collect::<Result<_>>()?;
        let plugins = if named.is_empty() { &all } else { &named };
        let text = || match named.as_slice() {
            [] => describe::plugins(&all, WIDTH),
            named => {
                let shown = named.iter().map(|plugin| manual::text(plugin, &gates, WIDTH));
                shown.collect::<Vec<_>>().join("\n")
            }
        };
        let value = || {
            let shown: Vec<_> = plugins.iter().map(|plugin| manual::json(plugin, &gates)).collect();
            let mut value = json!({"schema": "kubestep/plugins/v1", "plugins": shown});
            add_version(&mut value, gates);
            value
        };
        kubestep_output::print(&self.output.show(text, value))?;
        Ok(Exit::Fine)
    }
}

/// The gates of the options, without an input; prints the notices about them.
pub(super) fn gates(scheduler: &Scheduler) -> Result<FeatureGates> {
    let chosen = scheduler.choose(&Captured::default())?;
    chosen.notices.iter().for_each(kubestep_output::line);
    Ok(chosen.gates)
}

fn find(all: &[PluginDescriptor], name: &str, gates: &FeatureGates) -> Result<PluginDescriptor> {
    let found = all.iter().find(|plugin| plugin.name.eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        if let Some(at) = at_point(all, name) {
            return anyhow!("{name:?} is an extension point; these run there: {at}");
        }
        let near = suggest::closest(name, all.iter().map(|plugin| plugin.name));
        let near = near.map(|near| format!(", did you mean {near:?}? ")).unwrap_or("; ".into());
        let version = gates.version();
        anyhow!(
            "Kubernetes {version} has no plugin {name:?}{near}\"kubestep plugins\" lists them all"
        )
    })
}

/// The plugins that run at an extension point of that name; `None` if there is no such point.
fn at_point(all: &[PluginDescriptor], name: &str) -> Option<String> {
    let runs = |plugin: &&PluginDescriptor| {
        plugin.points.iter().any(|point| point.name().eq_ignore_ascii_case(name))
    };
    let plugins: Vec<&str> = all.iter().filter(runs).map(|plugin| plugin.name).collect();
    (!plugins.is_empty()).then(|| plugins.join(", "))
}
