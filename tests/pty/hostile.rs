//! No byte of a cluster, a file, an argument or a server reaches the terminal as anything but text,
//! whichever command prints it.

use std::path::Path;

use kubestep_output::clean::{escape_json, is_safe};
use portable_pty::CommandBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stand_in;
use crate::terminal::{Terminal, kubestep, plain_environment};

/// Sets the title and the clipboard, clears the screen, reorders and hides text, rings the bell.
const HOSTILE: &str = "\u{1b}[31m\u{1b}]0;PWN\u{7}\u{1b}]52;c;cHduZWQ=\u{7}\u{1b}P1$r\u{1b}\\\u{9b}2J\
    \u{9d}0;PWN\u{9c}\u{202e}evil\u{2066}x\u{200b}\u{61c}\u{feff}\u{2028}\r\u{8}\u{b}\u{7f}Z";

/// Fails if `bytes` contain anything but text, line ends and colors. Screens may also move the
/// cursor and switch modes.
fn assert_clean(bytes: &[u8], is_screen: bool, what: &str) {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("{what}: {error}")).unwrap();
    // The program itself asks for the terminal's colors.
    let asked = if is_screen { "\u{1b}]10;?\u{7}\u{1b}]11;?\u{7}\u{1b}[c" } else { "\0" };
    let text = text.replace(asked, "");
    let mut parts = text.split("\u{1b}[");
    let plain = |text: &str| {
        let bad = text.chars().find(|c| !matches!(c, '\n' | '\r' | '\t') && !is_safe(*c));
        assert_eq!(bad, None, "{what}: {text:?}");
    };
    plain(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || "?;:>".contains(c));
        let ends = if is_screen { "mHJKhlABCDGd" } else { "m" };
        assert!(rest.starts_with(|c| ends.contains(c)), "{what}: CSI {part:?}");
        plain(rest);
    }
}

/// The bytes that a command sends to its terminal until it exits.
fn sent(args: &[&str], is_screen: bool) -> String {
    sent_by(kubestep(args), is_screen, &format!("{args:?}"))
}

fn sent_by(command: CommandBuilder, is_screen: bool, what: &str) -> String {
    let mut terminal = Terminal::start(command, 200, 50);
    if is_screen {
        terminal.wait("a screen or an end", |screen| {
            screen.contents().contains("? help") || screen.contents().contains("kubestep: ")
        });
        terminal.send("c6d");
        std::thread::sleep(std::time::Duration::from_millis(200));
        terminal.send("\x1b\x03\x03");
    }
    terminal.exit_code();
    assert_clean(&terminal.bytes(), is_screen, what);
    String::from_utf8(terminal.bytes()).unwrap()
}

fn node(name: &str) -> Value {
    json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name,
        "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}})
}

fn pod(name: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i",
            "resources": {"requests": {"cpu": "500m"}}}]}})
}

/// Clusters with hostile text, each with the hostile part.
fn clusters() -> Vec<(&'static str, Vec<Value>)> {
    let h = HOSTILE;
    let two = |name: &str| format!("{name}{h}");
    let with = |mut object: Value, path: &str, value: Value| {
        *object.pointer_mut(path).unwrap() = value;
        object
    };
    let mut spread = pod("a");
    spread["metadata"]["labels"] = json!({h: h});
    spread["spec"]["nodeSelector"] = json!({h: h});
    spread["spec"]["tolerations"] = json!([{"key": h, "operator": "Exists"}]);
    spread["spec"]["priorityClassName"] = h.into();
    let mut tainted = node("n");
    tainted["metadata"]["labels"][h] = h.into();
    tainted["spec"] = json!({"taints": [{"key": h, "value": h, "effect": "NoSchedule"}]});
    tainted["status"]["conditions"] = json!([{"type": h, "status": h, "message": h}]);
    let mut status = pod("a");
    status["spec"]["schedulerName"] = h.into();
    status["status"] = json!({"phase": h, "nominatedNodeName": h, "conditions":
        [{"type": "PodScheduled", "status": "False", "reason": h, "message": h}]});
    let mut volumes = pod("a");
    volumes["spec"]["volumes"] = json!([{"name": h, "persistentVolumeClaim": {"claimName": h}}]);
    volumes["spec"]["resourceClaims"] = json!([{"name": h, "resourceClaimName": h}]);
    let requests = json!({h: "1", "cpu": "100"});
    vec![
        ("names", vec![node(&two("n")), pod(&two("a")), pod(&two("b"))]),
        ("node names", vec![node("n"), with(pod("a"), "/spec", json!({"nodeName": h})), pod("b")]),
        ("kinds", vec![node("n"), pod("a"), with(pod("b"), "/kind", h.into())]),
        ("labels", vec![tainted, spread]),
        ("status", vec![node("n"), status, pod("b")]),
        ("volumes", vec![node("n"), volumes]),
        (
            "resources",
            vec![node("n"), with(pod("a"), "/spec/containers/0/resources/requests", requests)],
        ),
        (
            "amounts",
            vec![
                node("n"),
                with(pod("a"), "/spec/containers/0/resources/requests", json!({"cpu": h})),
            ],
        ),
    ]
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Every command that reads a cluster, with its arguments besides `-f FILE`.
const COMMANDS: [&[&str]; 14] = [
    &["run"],
    &["run", "-o", "json"],
    &["run", "-o", "yaml"],
    &["run", "-o", "csv"],
    &["run", "-o", "stream"],
    &["run", "-o", "junit"],
    &["run", "--pod", "POD"],
    &["explain"],
    &["explain", "-o", "yaml", "a"],
    &["explain", "-o", "wide", "--fix", "a"],
    &["diff", "--edit", "cordon node n"],
    &["render", "-o", "ansi", "--keys", "c6d"],
    &["bundle", "-o", "-", "--expect"],
    &[],
];

#[test]
fn clusters_in_files_reach_the_terminal_as_text() {
    let folder = TempDir::new().unwrap();
    let pod = write(folder.path(), "pod.json", &pod(&format!("extra{HOSTILE}")).to_string());
    let mut quoting = 0;
    for (what, objects) in clusters() {
        let list = json!({"kind": "List", "apiVersion": "v1", "items": objects});
        let file = write(folder.path(), &format!("{what}.json"), &list.to_string());
        for command in COMMANDS {
            let is_screen = command.is_empty();
            let named = command.iter().map(|arg| if *arg == "POD" { &pod } else { *arg });
            let mut args: Vec<&str> = named.collect();
            args.extend(["-f", &file]);
            args.extend(if is_screen { ["--theme", "dark"].as_slice() } else { &[] });
            quoting += usize::from(sent(&args, is_screen).contains("PWN"));
        }
    }
    assert!(quoting > 60, "only {quoting} outputs quote what is hostile");
}

#[test]
fn broken_files_and_configurations_reach_the_terminal_as_text() {
    let folder = TempDir::new().unwrap();
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let quoted = escape_json(serde_json::to_string(HOSTILE).unwrap());
    let mut quoting = 0;
    for (number, rest) in [
        format!("{quoted}: 1\n"),
        format!("extenders: [{{urlPrefix: {quoted}, filterVerb: x, weight: 1}}]\n"),
        format!("extenders: [{{urlPrefix: {quoted}, filterVerb: x, weight: -1}}]\n"),
        format!("profiles: [{{schedulerName: {quoted}, plugins: {{filter: {{enabled: [{{name: {quoted}}}]}}}}}}]\n"),
        format!("profiles: [{{schedulerName: {quoted}}}]\n"),
        format!("a: [{HOSTILE}\n"),
    ]
    .iter()
    .enumerate()
    {
        let file = write(folder.path(), &format!("{number}.yaml"), &format!("{config}{rest}"));
        let test = format!("apiVersion: kubestep/v1\nkind: Test\n{rest}");
        let test = write(folder.path(), &format!("{number}-test.yaml"), &test);
        for args in [
            ["config", &file].as_slice(),
            &["config", "-o", "json", &file],
            &["config", "-o", "yaml", &file],
            &["config", "-o", "document", &file],
            &["run", "-o", "text", "--demo", "tour", "--config", &file],
            &["run", "-f", &file],
            &["test", &test],
            &["replay", &file],
        ] {
            quoting += usize::from(sent(args, false).contains("PWN"));
        }
    }
    assert!(quoting > 20, "only {quoting} outputs quote what is hostile");
}

#[test]
fn settings_themes_and_breakpoints_reach_the_terminal_as_text() {
    let folder = TempDir::new().unwrap();
    let quoted = escape_json(serde_json::to_string(HOSTILE).unwrap());
    let themes = folder.path().join("themes");
    std::fs::create_dir(&themes).unwrap();
    let mut quoting = 0;
    for (settings, theme) in [
        (format!("preset: {quoted}\n"), format!("name: {quoted}\n")),
        (format!("{quoted}: 1\ntheme: own\n"), format!("scopes: {{{quoted}: {quoted}}}\n")),
        (format!("keys: {{{quoted}: {quoted}}}\ntheme: own\n"), format!("inherits: {quoted}\n")),
        (format!("theme: {quoted}\n"), format!("{quoted}: {quoted}\n")),
        (format!("keys: [{HOSTILE}\n"), format!("scopes: [{HOSTILE}\n")),
    ] {
        write(folder.path(), "config.yaml", &settings);
        write(&themes, "own.yaml", &theme);
        for breakpoints in [format!("breakpoints: [{quoted}]\n"), HOSTILE.to_owned()] {
            let breaks = write(folder.path(), "breaks.yaml", &breakpoints);
            for args in [
                ["demo", "tour"].as_slice(),
                &["demo", "tour", "--theme", "own"],
                &["demo", "tour", "--theme", HOSTILE],
                &["demo", "tour", "--breakpoints", &breaks],
            ] {
                let mut command = kubestep(args);
                command.env("KUBESTEP_CONFIG_DIR", folder.path());
                let what = format!("{args:?} with {settings:?} and {theme:?}");
                quoting += usize::from(sent_by(command, true, &what).contains("PWN"));
            }
        }
    }
    assert!(quoting > 10, "only {quoting} screens quote what is hostile");
}

#[test]
fn arguments_reach_the_terminal_as_text() {
    let option = format!("--{HOSTILE}");
    for args in [
        [HOSTILE].as_slice(),
        &["run", &option],
        &["run", "-o", HOSTILE],
        &["run", "-f", HOSTILE],
        &["run", "--demo", HOSTILE],
        &["run", "--demo", "tour", "--config", HOSTILE],
        &["run", "--demo", "tour", "--edit", HOSTILE],
        &["run", "--demo", "tour", "--break", HOSTILE],
        &["run", "--demo", "tour", "--tie-break", HOSTILE],
        &["run", "--demo", "tour", "--feature-gates", HOSTILE],
        &["run", "--demo", "tour", "-l", HOSTILE],
        &["run", "--demo", "tour", "--exclude", HOSTILE],
        &["explain", "--demo", "tour", HOSTILE],
        &["render", "--demo", "tour", "--view", HOSTILE],
        &["render", "--demo", "tour", "--size", HOSTILE],
        &["render", "--demo", "tour", "--theme", HOSTILE],
        &["info", HOSTILE],
        &["plugins", HOSTILE],
        &["completions", HOSTILE],
        &["demo", HOSTILE],
        &["run", "--kubeconfig", HOSTILE],
    ] {
        assert!(sent(args, false).contains("PWN"), "{args:?} does not quote it");
    }
}

#[test]
fn answers_of_a_server_reach_the_terminal_as_text() {
    let folder = TempDir::new().unwrap();
    let output = folder.path().join("out").display().to_string();
    let rejection = |code| {
        let status = json!({"kind": "Status", "code": code, "reason": HOSTILE,
            "message": format!("no {HOSTILE}")});
        stand_in::kubeconfig(folder.path(), code, status.to_string())
    };
    let version = json!({"gitVersion": HOSTILE, "metadata": {"resourceVersion": "1"}, "items": [
        {"metadata": {"name": HOSTILE, "uid": "u", "resourceVersion": "1"}, "value": 1}]});
    let listed = stand_in::kubeconfig(folder.path(), 200, version.to_string());
    for kubeconfig in [rejection(401), rejection(403), rejection(500), listed] {
        let kubeconfig = kubeconfig.display().to_string();
        for (args, is_screen) in [
            (["run"].as_slice(), false),
            (&["explain"], false),
            (&["capture", "-o", &output], false),
            (&["record", "--for", "1s", "-o", &output], false),
            (&["schedule", "--dry-run", "--config", HOSTILE], false),
            (&["--theme", "dark"], true),
        ] {
            let args = [args, &["--kubeconfig", &kubeconfig]].concat();
            let text = sent(&args, is_screen);
            assert!(text.contains("PWN"), "{args:?} does not quote it: {text}");
            let says_insecure = text.contains("is not verified (insecure-skip-tls-verify)");
            assert!(
                says_insecure || !args.contains(&"run") || !kubeconfig.contains("200."),
                "{text}"
            );
        }
    }
}

/// The environment variable of the process that must panic.
const CHILD: &str = "KUBESTEP_TEST_HOSTILE_PANIC";

/// Not a test by itself: the process that the next test starts.
#[test]
fn child_that_panics_with_hostile_text() {
    if std::env::var_os(CHILD).is_some() {
        kubestep_output::report_panics();
        panic!("{HOSTILE}");
    }
}

#[test]
fn a_panic_reaches_the_terminal_as_text() {
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    let test = "hostile::child_that_panics_with_hostile_text";
    command.args(["--exact", test, "--nocapture", "--color", "never"]);
    plain_environment(&mut command);
    command.env(CHILD, "1");
    command.env("RUST_BACKTRACE", "0");
    let mut terminal = Terminal::start(command, 200, 50);
    terminal.exit_code();
    let text = String::from_utf8(terminal.bytes()).unwrap();
    let ours = text.split_once("kubestep: internal error").unwrap().1;
    let (ours, _) = ours.split_once("help:").unwrap();
    assert!(ours.contains("PWN"), "{text:?}");
    assert_clean(ours.as_bytes(), false, "panic");
}
