//! Lists and watches with a real API server: see [`crate::control_plane`].

use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use kubestep_live::{Feed, NamespaceScope, Pace};
use serde_json::Value;

use crate::control_plane::ControlPlane;
use crate::mirror::Mirror;

/// Nodes with four CPUs, and pods that request one.
fn objects(nodes: usize, pods: usize) -> String {
    let mut text = String::new();
    for at in 0..nodes {
        let _ = write!(
            text,
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: node-{at}}}\nstatus:\n  \
             allocatable: {{cpu: \"4\", memory: 8Gi, pods: \"20\"}}\n"
        );
    }
    for at in 0..pods {
        let _ = write!(
            text,
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: pod-{at}}}\nspec:\n  containers:\n  \
             - {{name: c, image: pause, resources: {{requests: {{cpu: \"1\"}}}}}}\n"
        );
    }
    text
}

/// The nodes and pods that kubectl lists, in the format of [`Mirror::contents`].
fn contents(plane: &ControlPlane) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for plural in ["nodes", "pods"] {
        let list: Value =
            serde_json::from_str(&plane.kubectl(&format!("get {plural} -A -o json"), "")).unwrap();
        for item in list["items"].as_array().unwrap() {
            let metadata = &item["metadata"];
            let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
            let key = format!("{plural} {}/{}", text("namespace"), text("name"));
            all.push((key, text("resourceVersion")));
        }
    }
    all.sort();
    all
}

fn settle(mirror: &mut Mirror, feed: &mut Feed, plane: &ControlPlane) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let known = mirror.contents().into_iter();
        let known: Vec<_> = known
            .filter(|(key, _)| key.starts_with("nodes ") || key.starts_with("pods "))
            .collect();
        if known == contents(plane) {
            return;
        }
        assert!(Instant::now() < until, "notices: {:#?}", mirror.notices);
        while let Some(event) = feed.try_next() {
            mirror.take(event);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn kubestep(plane: &ControlPlane, user: &str, line: &str) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_kubestep"))
        .args(line.split_whitespace())
        .env("KUBECONFIG", plane.kubeconfig(user))
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn a_real_api_server_is_followed_captured_and_never_written_to() {
    let mut plane = ControlPlane::start();
    plane.kubectl("apply -f -", &objects(3, 5));
    let (snapshot, mut feed) =
        Feed::open(plane.target("admin"), NamespaceScope::default(), Pace::default()).unwrap();
    assert!(snapshot.server_version.starts_with("v1."), "{}", snapshot.server_version);
    let mut mirror = Mirror::new(&snapshot);
    settle(&mut mirror, &mut feed, &plane);
    plane.kubectl("delete pod pod-3 --grace-period=0 --force", "");
    plane.kubectl("label node node-1 colour=red", "");
    settle(&mut mirror, &mut feed, &plane);
    plane.restart();
    plane.kubectl("delete node node-2", "");
    plane.kubectl("apply -f -", &objects(5, 9));
    settle(&mut mirror, &mut feed, &plane);

    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    let live = kubestep(&plane, "admin", "run");
    let (_, reported, code) = kubestep(&plane, "admin", &format!("capture -o {path}"));
    assert_eq!(code, Some(0), "{reported}");
    let replayed = kubestep(&plane, "admin", &format!("run -f {path}"));
    assert_eq!((live.0, live.2), (replayed.0, replayed.2), "the capture decides the same");

    let verbs = plane.verbs_of("kubestep/");
    assert!(verbs.len() > 50, "{} requests", verbs.len());
    let writes: Vec<_> =
        verbs.iter().filter(|v| !["get", "list", "watch"].contains(&&***v)).collect();
    assert!(writes.is_empty(), "{writes:?}");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn the_printed_role_is_enough_and_without_it_nothing_is_shown() {
    let plane = ControlPlane::start();
    plane.kubectl("apply -f -", &objects(2, 1));
    let (output, reported, code) = kubestep(&plane, "viewer", "run");
    assert_eq!((output.as_str(), code), ("", Some(4)));
    assert!(reported.contains("kubestep rbac"), "{reported}");
    let (role, _, _) = kubestep(&plane, "viewer", "rbac");
    plane.kubectl("apply -f -", &role);
    plane.kubectl("create clusterrolebinding viewer --clusterrole=kubestep --user=viewer", "");
    let until = Instant::now() + Duration::from_secs(10);
    while kubestep(&plane, "viewer", "run").2 != Some(0) {
        assert!(Instant::now() < until, "{:?}", kubestep(&plane, "viewer", "run"));
    }
    let folder = tempfile::tempdir().unwrap();
    let [snapshot, stream] = ["snapshot", "stream"].map(|name| folder.path().join(name));
    let (snapshot, stream) = (snapshot.display(), stream.display());
    let lines =
        ["run".into(), format!("capture -o {snapshot}"), format!("record --for 2s -o {stream}")];
    for line in lines {
        let (_, reported, code) = kubestep(&plane, "viewer", &line);
        assert_eq!(code, Some(0), "{line}: {reported}");
        assert!(!reported.contains("cannot be read"), "{line}: {reported}");
    }
    let verbs = plane.verbs_of("kubestep/");
    assert!(verbs.iter().all(|verb| ["get", "list", "watch"].contains(&&**verb)), "{verbs:?}");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn a_recording_of_a_real_api_server_ends_as_the_server_does() {
    let plane = ControlPlane::start();
    plane.kubectl("apply -f -", &objects(3, 5));
    let folder = tempfile::tempdir().unwrap();
    let [plain, packed] = ["r.jsonl", "r.jsonl.gz"].map(|name| folder.path().join(name));
    let record = |output: &std::path::Path, redact: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubestep"));
        command.args(["record", "--for", "8s", "-o"]).arg(output).args(redact);
        command.env("KUBECONFIG", plane.kubeconfig("admin")).spawn().unwrap()
    };
    let children = [record(&plain, &[]), record(&packed, &["--redact"])];
    std::thread::sleep(Duration::from_secs(2));
    plane.kubectl("delete pod pod-3 --grace-period=0 --force", "");
    plane.kubectl("label node node-1 colour=red", "");
    plane.kubectl("delete node node-2", "");
    plane.kubectl("apply -f -", &objects(5, 12));
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));

    let live = kubestep(&plane, "admin", "run");
    let replayed = kubestep(&plane, "admin", &format!("run -f {}", plain.display()));
    // Pods created in the same second are queued in order of arrival; a list has them by name.
    // Which of these equal pods comes first does not change the totals.
    let pods = |text: &str| -> std::collections::BTreeSet<String> {
        let placed = text.lines().filter_map(|line| line.split_once("  on "));
        placed.map(|(pod, _)| pod.trim().to_owned()).collect()
    };
    assert_eq!((pods(&live.0), live.2), (pods(&replayed.0), replayed.2), "{}", replayed.1);
    let redacted = kubestep(&plane, "admin", &format!("run -f {}", packed.display()));
    let counts =
        |text: &str| text.lines().find(|line| line.contains(" placed, ")).map(str::to_owned);
    assert_eq!(counts(&live.0), counts(&redacted.0), "{}", redacted.0);
    assert!(!redacted.0.contains("pod-1"), "{}", redacted.0);
    let verbs = plane.verbs_of("kubestep/");
    assert!(verbs.iter().all(|verb| ["get", "list", "watch"].contains(&&**verb)), "{verbs:?}");
}
