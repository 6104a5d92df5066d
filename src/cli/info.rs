//! `kubestep info`: versions, and every path that is read.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::cli::exit::Exit;
use crate::cli::format::Format;
use crate::cli::memory;
use crate::cli::registry::Subcommand;
use crate::cli::waiting::PROGRESS_VARIABLE;
use crate::tui::settings::{self, CONFIG_DIR_VARIABLE};
use crate::tui::theme::Library;
use kubestep_config::KubeVersion;
use kubestep_live::SCHEDULER;

/// Environment variables that are read.
const VARIABLES: [&str; 11] = [
    CONFIG_DIR_VARIABLE,
    PROGRESS_VARIABLE,
    memory::VARIABLE,
    "KUBECONFIG",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "COLORFGBG",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
];

/// Show versions, and every path and environment variable that is read
#[derive(Args, Debug)]
pub(super) struct Info {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// A path and its purpose.
struct UsedPath {
    what: &'static str,
    path: String,
    exists: bool,
}

impl Subcommand for Info {
    const NAME: &'static str = "info";

    fn run(&self) -> Result<Exit> {
        kubestep_output::print(&self.output.show(text, value))?;
        Ok(Exit::Fine)
    }
}

/// All paths that are read without being named on the command line. None is written.
fn used() -> Vec<UsedPath> {
    let env = |name: &str| std::env::var(name).ok();
    let mut found = Vec::new();
    let mut add = |what, path: &Path| {
        let exists = path.exists();
        found.push(UsedPath { what, path: path.display().to_string(), exists });
    };
    if let Some(folder) = settings::config_dir(env) {
        add("settings and keys", &folder.join("config.yaml"));
        add("own themes", &folder.join("themes"));
    }
    match env("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(files) => std::env::split_paths(&files).for_each(|file| add("kubeconfig", &file)),
        None => {
            if let Some(home) = std::env::home_dir() {
                add("kubeconfig", &home.join(".kube").join("config"));
            }
        }
    }
    found
}

fn themes() -> Vec<String> {
    let folder = settings::config_dir(|name| std::env::var(name).ok());
    Library::new(folder.map(|folder| folder.join("themes"))).names()
}

fn text() -> String {
    let mut lines = vec![
        format!("kubestep           {}", env!("CARGO_PKG_VERSION")),
        format!("kube-scheduler     {} (embedded)", versions()),
        format!("platform           {} {}", std::env::consts::OS, std::env::consts::ARCH),
    ];
    for used in used() {
        let missing = if used.exists { "" } else { " (does not exist)" };
        lines.push(format!("{:<18} {}{missing}", used.what, used.path));
    }
    lines.push(format!("themes             {}", themes().join(", ")));
    lines.push("state              none".to_owned());
    for (name, value) in variables() {
        lines.push(format!("{name:<18} {}", value.unwrap_or_else(|| "not set".to_owned())));
    }
    lines.join("\n") + "\n"
}

fn versions() -> String {
    let (oldest, newest) = (KubeVersion::OLDEST, KubeVersion::NEWEST);
    format!("{oldest} to {newest}; {} if nothing names the version", KubeVersion::default())
}

fn variables() -> impl Iterator<Item = (&'static str, Option<String>)> {
    VARIABLES.into_iter().map(|name| (name, std::env::var(name).ok()))
}

fn value() -> Value {
    let paths: Vec<Value> = used()
        .iter()
        .map(|used| json!({"what": used.what, "path": used.path, "exists": used.exists}))
        .collect();
    let environment: serde_json::Map<String, Value> =
        variables().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    json!({
        "schema": "kubestep/info/v1",
        "version": env!("CARGO_PKG_VERSION"),
        "scheduler": SCHEDULER,
        "kubeVersions": KubeVersion::all().map(|version| json!({
            "version": version.to_string(),
            "proved": version.is_proved(),
            "default": version == KubeVersion::default(),
        })).collect::<Vec<_>>(),
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "paths": paths,
        "themes": themes(),
        "environment": environment,
    })
}
