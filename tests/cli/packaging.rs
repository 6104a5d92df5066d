//! `kubectl step`, the krew manifest and the container image recipe: they match this program, and
//! krew and image builders accept them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::harness::Call;

fn text(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// A manifest with the fields that krew knows, and no others.
///
/// Upstream: `pkg/index/types.go` of kubernetes-sigs/krew.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Plugin {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    version: String,
    short_description: String,
    description: String,
    caveats: String,
    homepage: String,
    platforms: Vec<Platform>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Platform {
    uri: String,
    sha256: String,
    selector: Selector,
    files: Vec<FileOperation>,
    bin: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct FileOperation {
    from: String,
    to: String,
}

/// The checks of krew: `internal/index/validation/validate.go`.
#[test]
fn the_manifest_is_one_that_krew_takes() {
    let written = text("packaging/krew/step.yaml");
    let plugin: Plugin = kubestep_api::yaml::from_str(&written).unwrap();
    assert_eq!(plugin.api_version, "krew.googlecontainertools.github.com/v1alpha2");
    // The file has the name of the plugin.
    assert_eq!((plugin.kind.as_str(), plugin.metadata.name.as_str()), ("Plugin", "step"));
    let spec = plugin.spec;
    assert_eq!(spec.version, format!("v{}", env!("CARGO_PKG_VERSION")));
    assert!(!spec.short_description.contains('\n') && spec.short_description.len() <= 50);
    assert!(spec.description.lines().chain(spec.caveats.lines()).all(|line| line.len() <= 80));
    let mut platforms = BTreeSet::new();
    for platform in &spec.platforms {
        let keys: Vec<&str> = platform.selector.match_labels.keys().map(String::as_str).collect();
        assert_eq!(keys, ["arch", "os"]);
        let [arch, os] = ["arch", "os"].map(|key| platform.selector.match_labels[key].as_str());
        let archive = format!("{}/{}/kubestep-{os}-{arch}.tar.gz", spec.homepage, spec.version);
        assert_eq!(platform.uri, archive);
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        assert!(platform.sha256.len() == 64 && platform.sha256.bytes().all(hex));
        let program = FileOperation { from: "kubestep".into(), to: platform.bin.clone() };
        assert!(platform.files.contains(&program));
        // kubectl finds a plugin by this name.
        assert_eq!(platform.bin, "kubectl-step");
        assert!(platforms.insert((os.to_owned(), arch.to_owned())));
    }
    // Until it is released, the manifest says so and what is to be done.
    let is_released = !spec.homepage.contains("example.com");
    assert_ne!(is_released, written.contains("NOT YET RELEASED"));
    assert!(is_released || written.contains("sha256sum"));
}

/// The instructions of the recipe with arguments; lines are joined at a trailing backslash.
fn instructions() -> Vec<(String, String)> {
    let recipe = text("packaging/Containerfile").replace("\\\n", " ");
    let lines = recipe.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, arguments)| (name.to_owned(), arguments.trim().to_owned()))
        .collect()
}

#[test]
fn the_recipe_is_one_that_builders_take() {
    const KNOWN: &[&str] = &["FROM", "WORKDIR", "COPY", "RUN", "LABEL", "USER", "ENTRYPOINT"];
    let instructions = instructions();
    let mut stages = Vec::new();
    for (name, arguments) in &instructions {
        assert!(KNOWN.contains(&name.as_str()), "{name}");
        if name == "FROM" {
            stages.extend(arguments.split_once(" AS ").map(|(_, stage)| stage));
        }
        if let Some(from) = arguments.strip_prefix("--from=") {
            assert!(stages.contains(&from.split(' ').next().unwrap()), "{arguments}");
        }
    }
    let of = |wanted: &str| -> Vec<&str> {
        let found = instructions.iter().filter(|(name, _)| name == wanted);
        found.map(|(_, arguments)| arguments.as_str()).collect()
    };
    assert!(of("FROM")[0].contains(&format!("rust:{}-slim", env!("CARGO_PKG_RUST_VERSION"))));
    let entry: Vec<String> = serde_json::from_str(of("ENTRYPOINT")[0]).unwrap();
    assert_eq!(entry, ["/usr/local/bin/kubestep"]);
    let [user, group] = of("USER")[0].split(':').collect::<Vec<_>>()[..] else { panic!("USER") };
    assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0);
    assert!(of("RUN").iter().any(|run| run.contains("kubectl-step")));
    assert!(of("RUN").iter().any(|run| run.contains("cargo build --release --locked")));
    let ignored = text(".dockerignore");
    assert!(ignored.lines().any(|line| line == "target"), "{ignored}");
}

#[cfg(unix)]
mod as_a_plugin {
    use std::process::{Command, Output};

    use super::*;

    /// Runs the program by the name that kubectl uses.
    fn step(line: &str) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("kubectl-step");
        std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin("kubestep"), &link).unwrap();
        Command::new(&link).args(line.split(' ')).env("HOME", folder.path()).output().unwrap()
    }

    #[test]
    fn its_help_speaks_of_kubectl() {
        let text = String::from_utf8(step("run --help").stdout).unwrap();
        assert!(text.contains("Usage: kubectl step run"), "{text}");
    }

    /// Options in common with kubectl have the same meaning and syntax.
    #[test]
    fn the_options_of_kubectl_mean_the_same() {
        let cluster = "\
            {apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: []}}\n---\n\
            {apiVersion: v1, kind: Pod, metadata: {name: db, namespace: data}, spec: {containers: []}}\n";
        let call = Call::new().bytes("c.yaml", cluster.as_bytes());
        let pods = |options: &str| {
            let text = call.run(&format!("run -f c.yaml {options}")).stdout;
            ["shop/web", "data/db"].map(|pod| text.contains(pod))
        };
        assert_eq!(pods("-n shop"), [true, false]);
        assert_eq!(pods("--namespace=data"), [false, true]);
        assert_eq!(pods("-A"), [true, true]);
        assert_eq!(pods("--all-namespaces"), [true, true]);
        let reported = |line: &str| String::from_utf8(step(line).stderr).unwrap();
        assert!(reported("run --kubeconfig nowhere --context lab -A").contains("nowhere"));
        assert!(reported("explain web -A -n shop").contains("cannot be used with"));
    }
}

/// The arguments of each command line of the program in a text, as a shell splits them. Variables
/// stay as they are.
fn lines_of(program: &str, text: &str) -> Vec<Vec<String>> {
    let begin = format!("{program} ");
    let calls = text.lines().filter_map(|line| line.split_once(&begin));
    let ends = |line: &str| line.split([';', '|', '>', '\n']).next().unwrap().replace("2", "");
    calls
        .map(|(_, rest)| {
            let line = ends(rest).replace(['\'', '"'], "");
            line.split_whitespace().map(str::to_owned).collect()
        })
        .collect()
}

fn check_lines(program: &str, text: &str, expected: usize) {
    let lines = lines_of(program, text);
    assert_eq!(lines.len(), expected, "{lines:?}");
    for words in lines {
        let all = std::iter::once("kubestep".to_owned()).chain(words);
        kubestep::cli::command().try_get_matches_from(all).unwrap();
    }
}

/// k9s takes a plugin with these fields; the keys call commands that exist.
#[test]
fn the_keys_for_k9s_call_this_program() {
    let file: serde_json::Value =
        kubestep_api::yaml::from_str(&text("packaging/k9s.yaml")).unwrap();
    let plugins = file["plugins"].as_object().unwrap();
    let keys: Vec<&str> =
        plugins.values().map(|plugin| plugin["shortCut"].as_str().unwrap()).collect();
    assert_eq!(keys, ["Shift-W", "Shift-X"]);
    for plugin in plugins.values() {
        let fields: BTreeSet<&str> =
            plugin.as_object().unwrap().keys().map(String::as_str).collect();
        let known = "args background command confirm description scopes shortCut";
        assert_eq!(fields, known.split(' ').collect());
        assert_eq!(plugin["scopes"][0], "pods");
        check_lines("kubectl step", plugin["args"][1].as_str().unwrap(), 1);
    }
}

/// The workflows are YAML, and the commands in them exist.
#[test]
fn workflows_call_this_program() {
    let workflow = |name: &str| -> serde_json::Value {
        kubestep_api::yaml::from_str(&text(&format!("packaging/github/{name}.yaml"))).unwrap()
    };
    let steps = workflow("scheduler-tests")["jobs"]["test"]["steps"].clone();
    let runs = steps.as_array().unwrap().iter().filter_map(|step| step["run"].as_str());
    let runs: Vec<&str> = runs.filter(|run| run.starts_with("kubestep ")).collect();
    check_lines("kubestep", &runs.join("\n"), 4);
    let release = workflow("release");
    let platforms = &release["jobs"]["build"]["strategy"]["matrix"]["include"];
    let manifest = text("packaging/krew/step.yaml");
    for platform in platforms.as_array().unwrap() {
        let archive = format!("kubestep-{}.tar.gz", platform["platform"].as_str().unwrap());
        assert!(manifest.contains(&archive), "{archive}");
    }
}
