//! `kubestep config`: validates a scheduler configuration as kube-scheduler does and shows it with
//! all defaults.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::format::{self, WIDTH};
use crate::cli::open::read_config;
use crate::cli::options::UnknownPluginPolicy;
use crate::cli::plugins::gates;
use crate::cli::registry::Subcommand;
use crate::cli::version::Scheduler;
use crate::report;
use kubestep_config as config;
use kubestep_config::{ConfigError, FeatureGates, ResolvedConfig, describe};

/// Check a KubeSchedulerConfiguration as kube-scheduler would, and show what would run
#[derive(Args, Debug)]
pub(super) struct Config {
    /// The configuration (v1, YAML or JSON), "-" for standard input; without it, the default one
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    unknown: UnknownPluginPolicy,
    #[command(flatten)]
    scheduler: Scheduler,
    /// List the feature gates that this program knows, with their state and effect
    #[arg(long, conflicts_with = "file")]
    list_feature_gates: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: ConfigFormat,
}

/// How a configuration is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ConfigFormat {
    /// For people: the plugins at each point, weights, arguments
    #[default]
    Text,
    /// For programs, problems included, as described in schema/ of the repository
    Json,
    /// The same as YAML
    Yaml,
    /// The whole configuration with all defaults, as kube-scheduler --write-config-to writes it
    Document,
}

impl Subcommand for Config {
    const NAME: &'static str = "config";

    fn run(&self) -> Result<Exit> {
        let gates = gates(&self.scheduler)?;
        if self.list_feature_gates {
            kubestep_output::print(&describe::features(&gates, WIDTH))?;
            return Ok(Exit::Fine);
        }
        let text = self.file.as_deref().map(read).transpose()?;
        let (text, unknown) = (text.as_deref(), self.unknown.or_opaque());
        let (registry, notices) = crate::plugins::registry_for(text, unknown)?;
        if matches!(self.output, ConfigFormat::Text | ConfigFormat::Document) {
            notices.iter().for_each(kubestep_output::line);
        }
        match config::resolve_as(text, Vec::new(), &gates, &registry.descriptors(), unknown) {
            Ok(resolved) => self.show(&resolved),
            Err(error) => self.reject(error, gates),
        }
    }
}

impl Config {
    fn show(&self, resolved: &ResolvedConfig) -> Result<Exit> {
        if matches!(self.output, ConfigFormat::Text | ConfigFormat::Document) {
            resolved.warnings.iter().for_each(kubestep_output::line);
        }
        kubestep_output::print(&match self.output {
            ConfigFormat::Text => describe::config(resolved, WIDTH),
            ConfigFormat::Json => format::json(&report::config::resolved(resolved)),
            ConfigFormat::Yaml => format::yaml(&report::config::resolved(resolved)),
            ConfigFormat::Document => config::to_yaml(&resolved.completed()),
        })?;
        Ok(Exit::Fine)
    }

    fn reject(&self, error: ConfigError, gates: FeatureGates) -> Result<Exit> {
        let value = report::config::rejected(&error, gates);
        match self.output {
            ConfigFormat::Json => kubestep_output::print(&format::json(&value))?,
            ConfigFormat::Yaml => kubestep_output::print(&format::yaml(&value))?,
            ConfigFormat::Text | ConfigFormat::Document => {
                let name = self.file.as_ref().map(|path| path.display().to_string());
                return Err(error).context(name.unwrap_or_default());
            }
        }
        Ok(Exit::Usage)
    }
}

/// The text of a file, or of standard input.
pub(super) fn read(path: &Path) -> Result<String> {
    if path.as_os_str() != kubestep_source::STDIN {
        return read_config(path);
    }
    let mut text = String::new();
    match std::io::stdin().lock().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => bail!("standard input: {error}"),
    }
}
