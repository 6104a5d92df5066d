//! Tables in the documents, generated from those of the program.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use clap::{Arg, Command};
use kubestep::cli::EXITS;
use kubestep::tui::action::presets::PRESETS;
use kubestep::tui::{action, key};
use kubestep_config::versions::{Evidence, GateChange, Switch, between, since_patches, spec_text};
use kubestep_config::{Feature, FeatureGates, GateSpec, KubeVersion};
use kubestep_debug::breakpoint::variables::{Reach, VARIABLES};
use kubestep_debug::breakpoint::{CycleEvent, location};
use kubestep_debug::edit::FORMS;
use kubestep_live::kinds::{ReadKind, TABLE};
use kubestep_source::fixtures::STORIES;
use serde_json::Value;

use crate::documents::top;
use crate::regions::output;

/// A table's name and its generator.
pub type Table = (&'static str, fn() -> String);

/// The tables that the program writes into documents, by name.
pub const TABLES: &[Table] = &[
    ("breakpoint-outcomes", outcomes),
    ("breakpoint-points", points),
    ("breakpoint-queues", queues),
    ("breakpoint-variables", variables),
    ("commands", commands),
    ("edits", edits),
    ("exit-codes", exit_codes),
    ("feature-gates", feature_gates),
    ("key-presets", key_presets),
    ("keys", action::manual),
    ("kinds", kinds),
    ("mcp-tools", mcp_tools),
    ("options", options),
    ("plugins", plugins),
    ("scheduler-plugins", ported_plugins),
    ("schemas", schemas),
    ("stories", stories),
    ("themes", themes),
    ("version-changes", version_changes),
    ("versions", versions),
];

/// Rows of a table under a header; a bar in a cell is escaped.
fn rows<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&header.map(str::to_owned));
    text.push_str(&format!("|{}\n", "---|".repeat(N)));
    for row in rows {
        text.push_str(&line(&row.map(|cell| cell.replace('|', "\\|").replace('\n', " "))));
    }
    text
}

fn code(text: impl std::fmt::Display) -> String {
    format!("`{text}`")
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

fn outcomes() -> String {
    listed(CycleEvent::ALL.iter().map(|(_, name)| *name))
}

fn points() -> String {
    listed(location::POINTS.iter().map(|point| point.name()))
}

fn queues() -> String {
    listed(location::QUEUES.iter().map(|(_, name)| *name).filter(|name| *name != "none"))
}

fn variables() -> String {
    let known = |reach| match reach {
        Reach::Pod => "everywhere",
        Reach::Cycle | Reach::Message => "in a cycle",
        Reach::Answer => "at a plugin",
        Reach::Score => "at a plugin's score",
        Reach::Total => "at a node's scores",
        Reach::Node => "at a node",
        Reach::Move => "at a queue move",
        Reach::Watch => "at a watch",
    };
    let row = |v: &kubestep_debug::breakpoint::variables::Variable| {
        [code(v.name), known(v.reach).to_owned(), v.help.to_owned()]
    };
    rows(["variable", "known", "value"], VARIABLES.iter().map(row))
}

fn edits() -> String {
    rows(
        ["edit", "what it does"],
        FORMS.iter().map(|form| [code(form.usage), form.about.to_owned()]),
    )
}

fn exit_codes() -> String {
    rows(
        ["exit code", "meaning"],
        EXITS.iter().map(|(exit, text)| [exit.code().to_string(), (*text).to_owned()]),
    )
}

fn mcp_tools() -> String {
    rows(["tool", "question", "arguments"], kubestep::cli::tool_rows())
}

fn stories() -> String {
    let row = |story: &kubestep_source::fixtures::Story| [code(story.name), story.about.to_owned()];
    rows(["story", "about"], STORIES.iter().map(row))
}

fn key_presets() -> String {
    let mut text = rows(["preset", "keys"], PRESETS.map(|p| [code(p.name), p.about.to_owned()]));
    for preset in PRESETS.iter().filter(|preset| !preset.keys.is_empty()) {
        let _ = writeln!(text, "\n**{}**\n", preset.name);
        let row = |(name, keys): &(&str, &[&str])| {
            [
                code(format!(":{name}")),
                keys.iter().map(|keys| shown_keys(keys)).collect::<Vec<_>>().join(" "),
            ]
        };
        text.push_str(&rows(["command", "keys"], preset.keys.iter().map(row)));
    }
    text
}

fn shown_keys(keys: &str) -> String {
    code(key::show_sequence(&key::parse_sequence(keys).unwrap()))
}

fn feature_gates() -> String {
    let row = |(gate, spec): (Feature, GateSpec)| {
        let default = if spec.default { "on" } else { "off" };
        let locked = if spec.locked { ", locked" } else { "" };
        let stage = format!("{}{locked}", spec.stage.name());
        [code(gate.name()), default.to_owned(), stage, gate.effect().to_owned()]
    };
    rows(["gate", "default", "stage", "effect"], FeatureGates::default().known().map(row))
}

fn versions() -> String {
    let row = |version: KubeVersion| {
        let since = |evidence| {
            let new = Switch::all().filter(|switch| switch.since() == version);
            new.filter(|switch| switch.evidence() == evidence).count().to_string()
        };
        let [recorded, read, listed, announced] = Evidence::ALL.map(since);
        let proof = version.proved_by().unwrap_or("not proved").to_owned();
        let heading = version.to_string().replace('.', "");
        let name = match version.before() {
            Some(_) => format!("[{version}](#new-in-{heading})"),
            None => version.to_string(),
        };
        [name, proof, recorded, read, listed, announced]
    };
    let header = ["version", "compared with", "recorded", "read", "listed", "announced"];
    rows(header, KubeVersion::all().map(row))
}

/// What is new in each version, the newest first.
fn version_changes() -> String {
    let registry = kubestep::plugins::registry().descriptors();
    let mut text = String::new();
    for version in KubeVersion::all().rev() {
        let Some(before) = version.before() else { continue };
        let between = between(&before.into(), &version.into(), &registry);
        let _ = writeln!(text, "\n## New in {version}\n");
        let header = ["change", "part", "what it changes", "pull requests", "known as"];
        text.push_str(&rows(header, between.switches.iter().map(|switch| switch_row(*switch))));
        let _ = writeln!(text);
        let header = ["gate", &before.to_string(), &version.to_string(), "effect"];
        text.push_str(&rows(header, between.gates.iter().map(gate_row)));
    }
    text
}

fn switch_row(switch: Switch) -> [String; 5] {
    let requests = switch.pull_requests().iter().map(|number| {
        format!("[{number}](https://github.com/kubernetes/kubernetes/pull/{number})")
    });
    let patches = match switch.patches() {
        [] => String::new(),
        _ => format!(" {}.", since_patches(switch)),
    };
    [
        code(switch.name()),
        switch.part().to_string(),
        switch.sentence().to_owned() + &patches,
        requests.collect::<Vec<_>>().join(", "),
        switch.evidence().name().to_owned(),
    ]
}

fn gate_row(change: &GateChange) -> [String; 4] {
    let name = code(change.gate.name());
    [name, spec_text(change.from), spec_text(change.to), change.gate.effect().to_owned()]
}

/// The in-tree plugins and kubestep's own.
fn plugins() -> String {
    let in_tree = kubestep_plugins::registry().descriptors();
    plugins_where(|name| in_tree.iter().any(|plugin| plugin.name == name), "##")
}

/// The plugins of the project scheduler-plugins.
fn ported_plugins() -> String {
    let ported = |name: &str| {
        kubestep_scheduler_plugins::entries().any(|entry| entry.descriptor.name == name)
    };
    plugins_where(ported, "###")
}

fn plugins_where(is_meant: impl Fn(&str) -> bool, heading: &str) -> String {
    let all: Value = serde_json::from_str(&output("plugins -o json")).unwrap();
    let mut text = String::new();
    let summary = |plugin: &Value| {
        let name = plugin["name"].as_str().unwrap();
        let points: Vec<&str> =
            plugin["points"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let weight = plugin["defaultWeight"].as_u64().filter(|weight| *weight > 0);
        let weight = weight.map(|weight| weight.to_string()).unwrap_or_default();
        let default = if plugin["enabledByDefault"] == true { "yes" } else { "" };
        let about = plugin["about"].as_str().unwrap().to_owned();
        let link = format!("[{name}](#{})", name.to_lowercase());
        [link, points.join(", "), default.to_owned(), weight, about]
    };
    let plugins = all["plugins"].as_array().unwrap().iter();
    let plugins: Vec<&Value> =
        plugins.filter(|plugin| is_meant(plugin["name"].as_str().unwrap())).collect();
    let header = ["plugin", "extension points", "default", "weight", "what it decides"];
    text.push_str(&rows(header, plugins.iter().copied().map(summary)));
    for plugin in plugins {
        let part = |name: &str| plugin[name].as_str().unwrap_or_default().to_owned();
        let _ = write!(
            text,
            "\n{heading} {}\n\n{}\n\n{}\n",
            part("name"),
            part("explanation"),
            part("example")
        );
        let arguments = plugin["args"].as_array().unwrap();
        if !arguments.is_empty() {
            let row = |argument: &Value| {
                let part = |name: &str| match &argument[name] {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other => code(other),
                };
                [code(part("name")), part("default"), part("about")]
            };
            let _ = writeln!(text, "\nArguments (`{}`):\n", part("argsKind"));
            text.push_str(&rows(["argument", "default", "meaning"], arguments.iter().map(row)));
        }
    }
    text
}

/// The kinds that are read from a live cluster.
fn kinds() -> String {
    let row = |read: &ReadKind| {
        let group = read.kind.group();
        let name = if group.is_empty() { String::new() } else { format!("{group}/") };
        let versions: Vec<String> = read.versions.iter().map(|v| format!("{name}{v}")).collect();
        [code(read.kind.as_str()), versions.join(", "), read.without.to_owned()]
    };
    rows(["kind", "API versions", "without it"], TABLE.iter().map(row))
}

/// Built-in themes, with the first sentence of their files.
fn themes() -> String {
    let info: Value = serde_json::from_str(&output("info -o json")).unwrap();
    let names = info["themes"].as_array().unwrap().iter().filter_map(Value::as_str);
    let row = |name: &str| {
        let file = fs::read_to_string(top(&format!("themes/{name}.yaml"))).unwrap();
        let comment = file.lines().map_while(|line| line.strip_prefix("# "));
        let comment = comment.collect::<Vec<_>>().join(" ");
        let end = comment.find(". ").map_or(comment.len(), |at| at + 1);
        [code(name), comment[..end].trim_end_matches('.').to_owned()]
    };
    rows(["theme", "what it is"], names.map(row))
}

fn commands() -> String {
    let command = kubestep::cli::command();
    let row = |of: &Command| {
        let name = of.get_name();
        let link = format!("[`kubestep {name}`](#kubestep-{name})");
        [link, of.get_about().map(ToString::to_string).unwrap_or_default()]
    };
    let alone = ["[`kubestep`](#kubestep)".to_owned(), "Open the debugger".to_owned()];
    let all = std::iter::once(alone).chain(command.get_subcommands().map(row));
    rows(["command", "what it does"], all.collect::<Vec<_>>())
}

/// The options of every command. Options that at least four commands share are listed once, at the
/// end.
fn options() -> String {
    let mut command = kubestep::cli::command();
    command.build();
    let commands: Vec<&Command> = std::iter::once(&command)
        .chain(command.get_subcommands().filter(|of| of.get_name() != "help"))
        .collect();
    let mut uses: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for of in &commands {
        for arg in shown(of) {
            uses.entry(identity(arg)).or_default().push(of.get_name());
        }
    }
    let is_shared = |arg: &&Arg| uses[&identity(arg)].len() > 3;
    let mut text = String::new();
    for of in &commands {
        section(&mut text, of, &shown(of).filter(|a| !is_shared(a)).collect::<Vec<_>>());
        let shared: Vec<String> = shown(of).filter(is_shared).map(|a| code(usage(a))).collect();
        if !shared.is_empty() {
            let _ = writeln!(
                text,
                "\nAnd, as [below](#options-of-several-commands): {}.",
                shared.join(", ")
            );
        }
        if let Some(after) = of.get_after_long_help().or(of.get_after_help()) {
            // The exit codes have their own page.
            let after = after.to_string();
            if of.get_name() != "kubestep" {
                let _ = write!(text, "\n```\n{}\n```\n", after.trim_end());
            }
        }
    }
    text.push_str("\n## Options of several commands\n\n");
    let mut seen = Vec::new();
    let all = commands.iter().flat_map(|of| shown(of));
    let shared = all.filter(|arg| {
        let first = is_shared(arg) && !seen.contains(&identity(arg));
        seen.push(identity(arg));
        first
    });
    text.push_str(&rows(["option", "what it does"], shared.map(described).collect::<Vec<_>>()));
    text
}

fn section(text: &mut String, of: &Command, own: &[&Arg]) {
    let name = match of.get_name() {
        "kubestep" => "kubestep".to_owned(),
        name => format!("kubestep {name}"),
    };
    let about = of.get_long_about().or(of.get_about()).map(ToString::to_string).unwrap_or_default();
    // clap removes the full stop of a first line.
    let about: Vec<String> =
        about.split("\n\n").map(|part| format!("{}.", part.trim_end_matches('.'))).collect();
    let _ = write!(text, "\n## {name}\n\n{}\n", about.join("\n\n"));
    if !own.is_empty() {
        text.push('\n');
        text.push_str(&rows(["option", "what it does"], own.iter().map(|arg| described(arg))));
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()))
}

fn identity(arg: &Arg) -> (String, String) {
    (usage(arg), help(arg))
}

/// The option as `--help` shows it: `-o, --output <FORMAT>`.
fn usage(arg: &Arg) -> String {
    // Removes the terminal style, which is invisible here.
    arg.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn help(arg: &Arg) -> String {
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
    text.unwrap_or_default()
}

fn described(arg: &Arg) -> [String; 2] {
    let short = arg.get_short().filter(|_| arg.get_long().is_some());
    let name = short.map(|short| format!("-{short}, ")).unwrap_or_default() + &usage(arg);
    let mut text = sentence(&help(arg));
    let values = if arg.get_action().takes_values() { arg.get_possible_values() } else { vec![] };
    if !values.is_empty() {
        let value = |value: &clap::builder::PossibleValue| match value.get_help() {
            Some(help) => format!("{} ({help})", code(value.get_name())),
            None => code(value.get_name()),
        };
        let values: Vec<String> = values.iter().map(value).collect();
        let _ = write!(text, ". One of {}", values.join("; "));
    }
    let defaults = arg.get_default_values();
    let is_empty = defaults.iter().all(|default| default.is_empty());
    if arg.get_action().takes_values() && !is_empty {
        let defaults: Vec<String> = defaults.iter().map(|d| code(d.to_string_lossy())).collect();
        let _ = write!(text, ". Default: {}", defaults.join(", "));
    }
    [code(name), text.replace('<', "&lt;")]
}

/// Every schema with its top-level fields.
fn schemas() -> String {
    let files = fs::read_dir(top("schema")).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.filter(|name| name.ends_with(".json")).collect();
    names.sort();
    let mut text = String::new();
    for file in names {
        let schema = fs::read_to_string(top(&format!("schema/{file}"))).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let title = schema["title"].as_str().unwrap();
        let about = schema["description"].as_str().unwrap_or_default();
        let _ = write!(
            text,
            "\n## {}\n\n`schema/{file}`: {title}. {about}\n",
            file.trim_end_matches(".json")
        );
        let Some(properties) = schema["properties"].as_object() else { continue };
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let field = |(name, field): (&String, &Value)| {
            let always = if required.contains(&Value::from(name.as_str())) { "yes" } else { "" };
            let about = field["description"].as_str().unwrap_or_default();
            [code(name), kind(field), always.to_owned(), about.to_owned()]
        };
        let _ = write!(
            text,
            "\n{}",
            rows(["field", "type", "always", "meaning"], properties.iter().map(field))
        );
    }
    text
}

/// The type of a field, in one or two words.
fn kind(field: &Value) -> String {
    if let Some(constant) = field["const"].as_str() {
        return code(constant);
    }
    if let Some(values) = field["enum"].as_array() {
        return listed(values.iter().filter_map(Value::as_str));
    }
    if let Some(reference) = field["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    match &field["type"] {
        Value::String(kind) if kind == "array" => format!("array of {}", kind_of_items(field)),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "one of several".into(),
    }
}

fn kind_of_items(field: &Value) -> String {
    match &field["items"] {
        Value::Null => "anything".into(),
        items => kind(items),
    }
}
