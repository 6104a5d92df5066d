//! Completion that knows names: pods, nodes, contexts and stories, from the files or the cluster
//! that the line names. The shell calls the program with `COMPLETE` set, as after
//! `source <(COMPLETE=bash kubestep)`.
//!
//! A cluster is asked for at most two seconds, and only for the first names.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde::Deserialize;

use crate::cli::cluster::runtime;
use kubestep_api::Kind;
use kubestep_live::failure::RequestFailure;
use kubestep_live::{KubeconfigTarget, Link};
use kubestep_output::clean::clean;
use kubestep_source::fixtures::STORIES;
use kubestep_source::{Filter, Progress};

/// How long a cluster is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most names that a cluster is asked for.
const MOST: usize = 500;
/// The largest file that is read for its names, in MiB.
const LARGEST: u32 = 64;

/// Answers the shell and ends the program if that is what the shell called it for.
pub(super) fn answer_shell(command: fn() -> Command) {
    CompleteEnv::with_factory(move || with_names(command())).complete();
}

/// The command line with completers for the values that are names.
fn with_names(command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect();
    let completed = command.mut_args(with_completer);
    names.into_iter().fold(completed, |command, name| {
        command.mut_subcommand(name, |subcommand| subcommand.mut_args(with_completer))
    })
}

fn with_completer(arg: Arg) -> Arg {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let find: fn(&TypedLine) -> Vec<String> = match (value.as_deref(), arg.get_long()) {
        (Some("POD"), _) => |line| line.names(Kind::Pod),
        (Some("NODE"), _) => |line| line.names(Kind::Node),
        (_, Some("namespace")) => |line| line.names(Kind::Namespace),
        (_, Some("context")) => TypedLine::contexts,
        (Some("STORY"), _) => |_| STORIES.iter().map(|story| story.name.to_owned()).collect(),
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(move |current: &OsStr| {
        let begun = current.to_string_lossy();
        let names = find(&TypedLine::of_process()).into_iter();
        let begins = |name: &String| name.starts_with(&*begun) && clean(name) == *name;
        names.filter(begins).map(CompletionCandidate::new).collect::<Vec<_>>()
    }))
}

/// The line that is completed, as far as it says where names come from.
#[derive(Default, Debug, PartialEq)]
struct TypedLine {
    files: Vec<PathBuf>,
    demo: Option<String>,
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    namespace: Option<String>,
}

/// The part of an object or kubeconfig entry that names are taken from.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: String,
    namespace: String,
}

#[derive(Deserialize)]
struct NamedItem {
    metadata: Named,
}

#[derive(Deserialize)]
struct NameList {
    items: Vec<NamedItem>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Kubeconfig {
    contexts: Vec<Named>,
}

impl TypedLine {
    /// The words that the shell passes, behind `--`.
    fn of_process() -> TypedLine {
        let words = std::env::args().skip_while(|word| word != "--").skip(1);
        TypedLine::new(&words.collect::<Vec<String>>())
    }

    fn new(words: &[String]) -> TypedLine {
        let mut line = TypedLine::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let mut value = || value.clone().or_else(|| words.next().cloned());
            match name {
                "-f" | "--filename" => line.files.extend(value().map(PathBuf::from)),
                "--demo" => line.demo = value(),
                "--kubeconfig" => line.kubeconfig = value().map(PathBuf::from),
                "--context" => line.context = value(),
                "-n" | "--namespace" => line.namespace = value(),
                _ => {}
            }
        }
        line
    }

    /// The names of the objects of a kind; pods outside of `default` with their namespaces.
    /// Empty if they are not available soon.
    fn names(&self, kind: Kind) -> Vec<String> {
        let mut names = match (&self.demo, self.files.as_slice()) {
            (Some(story), _) => of_story(story, kind),
            (None, []) => self.of_cluster(kind).unwrap_or_default(),
            (None, files) => of_files(files, kind),
        };
        names.sort();
        names.dedup();
        names
    }

    fn of_cluster(&self, kind: Kind) -> Option<Vec<String>> {
        let (kubeconfig, context) = (self.kubeconfig.clone(), self.context.clone());
        let target = KubeconfigTarget { kubeconfig, context, server: None, verbose: false };
        let row = kubestep_live::kinds::row(kind).filter(|_| target.is_there())?;
        let path = |version: &&str| row.path(version, self.namespace.as_deref());
        let text = runtime().ok()?.block_on(async {
            let read = async {
                let link = Link::new(target).await.ok()?;
                for path in row.versions.iter().map(path) {
                    match link.get(&format!("{path}?limit={MOST}")).await {
                        Err(RequestFailure::Absent(_)) => {}
                        answer => return answer.ok(),
                    }
                }
                None
            };
            tokio::time::timeout(PATIENCE, read).await.ok().flatten()
        })?;
        let list: NameList = serde_json::from_slice(&text).ok()?;
        let names = list.items.into_iter().map(|item| item.metadata);
        Some(names.map(|named| qualified(&named.namespace, &named.name)).collect())
    }

    /// The contexts of the kubeconfig files.
    fn contexts(&self) -> Vec<String> {
        let files: Vec<PathBuf> = match (&self.kubeconfig, std::env::var_os("KUBECONFIG")) {
            (Some(path), _) => vec![path.clone()],
            (None, Some(paths)) if !paths.is_empty() => std::env::split_paths(&paths).collect(),
            _ => std::env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
        };
        let contexts = |path: PathBuf| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let read: Kubeconfig = kubestep_api::yaml::from_str(&text).unwrap_or_default();
            read.contexts
        };
        files.into_iter().flat_map(contexts).map(|context| context.name).collect()
    }
}

/// A pod's name as the program takes it: `NAMESPACE/NAME`, in `default` the name alone.
fn qualified(namespace: &str, name: &str) -> String {
    match namespace {
        "" | "default" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

fn of_story(story: &str, kind: Kind) -> Vec<String> {
    let Some(story) = kubestep_source::fixtures::find(story) else { return Vec::new() };
    let read = kubestep_source::read_text("", story.cluster.into(), &Filter::default());
    read.map(|input| of_input(&input, kind)).unwrap_or_default()
}

fn of_files(files: &[PathBuf], kind: Kind) -> Vec<String> {
    let progress = Progress::with_limit(Some(LARGEST));
    let read = kubestep_source::read(files, &Filter::default(), &progress);
    read.map(|input| of_input(&input, kind)).unwrap_or_default()
}

fn of_input(input: &kubestep_source::ReadInput, kind: Kind) -> Vec<String> {
    let objects = input.objects.iter().map(|loaded| &loaded.object);
    let of_kind = objects.filter(|object| object.kind() == kind);
    of_kind
        .map(|object| qualified(&object.metadata().namespace, &object.metadata().name.text()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_config::KubeVersion;

    fn line(text: &str) -> TypedLine {
        TypedLine::new(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn names_come_from_what_the_line_names() {
        let pods = line("kubestep explain --demo fragmented r").names(Kind::Pod);
        assert_eq!((pods.len(), pods.last().map(String::as_str)), (5, Some("report")));
        let nodes = line("kubestep explain report --demo=tainted --node").names(Kind::Node);
        assert!(nodes.contains(&"gpu-0".to_owned()), "{nodes:?}");
        let folder = concat!("-f ", env!("CARGO_MANIFEST_DIR"), "/fixtures/fragmented");
        assert_eq!(line(folder).names(Kind::Pod), pods);
        assert_eq!(line("--demo nothing").names(Kind::Pod), [""; 0]);
    }

    #[test]
    fn contexts_come_from_the_kubeconfig() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "contexts: [{name: lab}, {name: prod, context: {}}]").unwrap();
        let path = file.path().display();
        assert_eq!(line(&format!("--kubeconfig {path}")).contexts(), ["lab", "prod"]);
        let parsed = line("-n shop -f a.yaml --filename=b.yaml --context lab");
        assert_eq!((parsed.files.len(), parsed.namespace.as_deref()), (2, Some("shop")));
        assert_eq!(parsed.context.as_deref(), Some("lab"));
    }

    #[test]
    fn versions_are_completed() {
        for option in ["--kube-version", "--emulated-version"] {
            let words = ["kubestep", "run", option, "1.3"].map(Into::into).to_vec();
            let mut command = with_names(crate::cli::command());
            let found = clap_complete::engine::complete(&mut command, words, 3, None).unwrap();
            let found: Vec<_> = found.iter().map(|value| value.get_value().to_owned()).collect();
            let all = KubeVersion::all().map(|version| version.to_string().into());
            assert_eq!(found, all.collect::<Vec<std::ffi::OsString>>(), "{option}");
        }
    }

    #[test]
    fn the_command_line_with_completers_is_consistent() {
        with_names(crate::cli::command()).debug_assert();
    }
}
