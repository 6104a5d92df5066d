//! Secrets do not appear in messages, and files with cluster data are only readable by their owner.

use crate::harness::{Call, CallOutput};

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: \"https://127.0.0.1:1\"}}]
contexts: [{name: lab, context: {cluster: lab, user: me}}]
users:
- name: me
  user:
";

const CLUSTER: &str = "kind: Node\napiVersion: v1\nmetadata: {name: a, annotations: {x: LEAK}}\n";

fn leaks_nothing(said: &CallOutput) {
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(!text.contains("LEAK"), "{text}");
}

fn fails_without_leak(said: &CallOutput) {
    leaks_nothing(said);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
}

#[test]
fn a_broken_kubeconfig_is_named_and_not_shown() {
    for (user, place) in [
        ("    token: LEAK\n    password: [LEAK\n", "config:"),
        (
            "    token: LEAK\n    password: [LEAK, LEAK]\n",
            "config:11: users[0].user.password: expected",
        ),
        ("    token: {LEAK: LEAK}\n", "config:10: users[0].user.token: expected"),
    ] {
        let call = Call::new().file("config", &format!("{KUBECONFIG}{user}"));
        for line in ["run", "capture -o c.json", "schedule --dry-run"] {
            let said = call.run(&format!("{line} --kubeconfig config"));
            fails_without_leak(&said);
            assert!(said.stderr.starts_with(&format!("kubestep: {place}")), "{}", said.stderr);
        }
        leaks_nothing(&call.run("run -f config"));
        fails_without_leak(&call.run_with("run", &[("KUBECONFIG", "nowhere:config")]));
    }
}

/// A kubeconfig whose credentials come from a shell script.
fn with_plugin(script: &str) -> Call {
    let user = format!(
        "    exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, \
         interactiveMode: Never, args: [-c, '{script}', --secret=LEAK], \
         env: [{{name: KEY, value: LEAK}}]}}\n"
    );
    Call::new().file("config", &format!("{KUBECONFIG}{user}"))
}

#[test]
fn a_credential_plugin_that_fails_is_named_and_not_shown() {
    let call = with_plugin("echo LEAK; echo LEAK reason >&2; exit 3");
    let said = call.run("run --kubeconfig config");
    fails_without_leak(&said);
    let failed = "the credential plugin \"/bin/sh\" failed (exit status: 3); -v shows";
    assert!(said.stderr.contains(failed), "{}", said.stderr);
    let said = call.run("run -v --kubeconfig config");
    assert!(said.stderr.contains("(exit status: 3): LEAK reason\n"), "{}", said.stderr);
    call.says("errors/credential-plugin", "run --kubeconfig config");
    call.says("errors/credential-plugin-verbose", "run --verbose --kubeconfig config");
    let call = with_plugin("echo LEAK: [LEAK");
    let said = call.run("run -v --kubeconfig config");
    fails_without_leak(&said);
    assert!(said.stderr.contains("printed no valid ExecCredential"), "{}", said.stderr);
}

#[test]
fn a_credential_plugin_that_takes_long_is_named() {
    let said = with_plugin("sleep 4; exit 3").run("run --kubeconfig config");
    let waits = "waiting for the credential plugin \"/bin/sh\"\n";
    assert!(said.stderr.starts_with(waits), "{}", said.stderr);
}

#[test]
fn lines_of_secrets_in_cluster_files_are_not_shown() {
    let list = "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [{\"kind\": \"Secret\", \
                \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"a\"}, \"data\": {\"k\": \"LEAK\"}}, \
                {\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": 5}}]}";
    fails_without_leak(&Call::new().file("s.json", list).run("run -f s.json"));
}

#[test]
fn a_long_value_is_cut_in_messages() {
    let pod = "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: [{name: c, \
               resources: {requests: {cpu: LONG}}}]}\n";
    let pod = pod.replace("LONG", &"z".repeat(1_000_000));
    let said = Call::new().file("p.yaml", &pod).run("run -f p.yaml");
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.len() < 2_000, "{} bytes", said.stderr.len());
    assert!(said.stderr.contains("characters)…zz"), "{}", said.stderr);
}

#[cfg(unix)]
#[test]
fn files_with_a_cluster_are_their_owners_and_links_are_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let call = Call::new().file("c.yaml", CLUSTER).file("former", "former");
    let line = "bundle -f c.yaml -o b.jsonl";
    assert_eq!(call.run(line).code, Some(0));
    let mode = std::fs::metadata(call.path("b.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!call.written("b.jsonl").contains("LEAK"));
    std::os::unix::fs::symlink("former", call.path("link")).unwrap();
    for line in ["bundle -f c.yaml -o link", "run -f c.yaml --trace link"] {
        let said = call.run(line);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains("link: is a symbolic link"), "{}", said.stderr);
        assert_eq!(call.written("former"), "former");
        assert_eq!(call.run(&format!("{line} --follow-symlinks")).code, Some(0));
        assert_ne!(call.written("former"), "former");
        std::fs::write(call.path("former"), "former").unwrap();
    }
    call.says("errors/symlink", "run -f c.yaml --trace link");
    call.says("options/follow-symlinks", "run -f c.yaml --trace link --follow-symlinks");
    for place in ["-", "/dev/stdout"] {
        let said = call.run(&format!("bundle -f c.yaml -o {place}"));
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stdout.contains("\"record\":\"end\""), "{place}: {}", said.stdout);
    }
}
