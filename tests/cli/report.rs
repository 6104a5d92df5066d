//! `kubestep report`: a page that needs nothing else, whatever the cluster contains.

use std::path::Path;

use crate::harness::Call;

/// The page of a story.
fn page(options: &str) -> String {
    let said = Call::new().run(&format!("report {options}"));
    assert_eq!(said.stderr, "");
    said.stdout
}

#[test]
fn the_page_of_a_story() {
    Call::new().says("help-report", "report --help");
    let page = page("--demo tainted");
    let (_, body) = page.split_once("<body>").unwrap();
    let (body, _) = body.split_once("<script>").unwrap();
    // A line for each element that begins one on the page.
    let lines = ["<section", "<details", "<p", "<tr", "<h3", "<div"];
    let body =
        lines.iter().fold(body.to_owned(), |body, tag| body.replace(tag, &format!("\n{tag}")));
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/report/tainted.txt");
    kubestep_output::golden::compare(&expected, &body);
}

#[test]
fn every_pending_pod_has_its_cause_and_what_was_tried() {
    let page = page("--demo tour");
    for words in [
        "<strong class=\"bad\">5 pending</strong>",
        "node selector disktype=sdd (no node has it; did you mean &quot;ssd&quot;?)",
        "<code>1. select pod default/database disktype=ssd (now sdd)</code>",
        "no profile serves the scheduler name &quot;volcanoo&quot;",
        "preempts 1 pod on b-0",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let searched = page.matches("class=\"fixes\"").count();
    assert_eq!(searched, 5, "one for each pending pod");
    let none = self::page("--demo tour --fixes 0");
    assert!(!none.contains("class=\"fixes\"") && none.contains("did you mean &quot;ssd&quot;"));
    Call::new().says("report/nobody", "report --demo tour --fixes 0 --explain 0 -o /dev/null");
}

#[test]
fn it_loads_nothing() {
    let page = page("--demo tour");
    for reference in ["http:", "https:", "//", "src=", "url(", "@import", "<link", "<iframe"] {
        let places =
            page.match_indices(reference).map(|(at, _)| &page[at..(at + 60).min(page.len())]);
        assert_eq!(places.collect::<Vec<_>>(), [""; 0], "{reference}");
    }
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'"));
}

#[test]
fn what_a_cluster_contains_is_text() {
    let cluster = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec:\n  taints:\n  - {key: a, \
                   value: '\"><script>alert(1)</script>', effect: NoSchedule}\nstatus:\n  \
                   allocatable: {cpu: 4, memory: 8Gi, pods: 110}\n---\napiVersion: v1\nkind: Pod\n\
                   metadata: {name: web}\nspec:\n  nodeSelector: {'x<img>': \"\\u202e'\\e[31m\"}\n  \
                   schedulingGates: [{name: 'a</summary><script>b'}]\n  containers: [{name: c}]\n";
    let said = Call::new().file("<b>.yaml", cluster).run("report -f <b>.yaml");
    let page = said.stdout;
    assert!(page.contains("a&lt;/summary&gt;&lt;script&gt;b"), "{page}");
    assert!(page.contains("&lt;b&gt;.yaml") && !page.contains("<b>.yaml"));
    assert_eq!(page.matches("<script>").count(), 1, "its own");
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn a_file_is_for_its_user_alone_and_whole() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("cluster.html");
    let said = Call::new().run(&format!("report --demo tainted -o {}", path.display()));
    assert_eq!(said.stdout, "");
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, page("--demo tainted"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    Call::new().says("report/nowhere", "report --demo tainted -o missing/cluster.html");
}

/// The page in Chromium, after its script ran.
fn browsed(path: &Path, fragment: &str) -> String {
    let chromium =
        std::env::var_os("KUBESTEP_CHROMIUM").expect("KUBESTEP_CHROMIUM names no browser");
    let profile = tempfile::TempDir::new().unwrap();
    let output = std::process::Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}{fragment}", path.display()))
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
#[cfg_attr(not(with_browser), ignore = "needs KUBESTEP_CHROMIUM")]
fn a_browser_opens_what_is_linked() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("cluster.html");
    Call::new().run(&format!("report --demo tour -o {}", path.display()));
    let is_open = |page: &str| {
        let (_, cycle) = page.split_once("id=\"cycle-5\"").unwrap();
        cycle.split_once('>').unwrap().0.contains("open")
    };
    let plain = browsed(&path, "");
    assert!(!is_open(&plain));
    // The script shows what only works with it.
    assert!(plain.contains("<button type=\"button\" id=\"unfold\">"), "the script did not run");
    assert!(is_open(&browsed(&path, "#cycle-5")));
}
