//! `kubestep render`, `info`, `completions`, `man`, and the name that kubectl calls it by.

use std::process::Command;

use crate::harness::Call;

#[test]
fn views_are_drawn() {
    Call::new().says("render/end", "render --demo tour --size 80x24");
    Call::new().says("render/view", "render --demo tainted --view filter --size 80x24 --keys n");
    let keys = "render --demo tour --size 80x24 --ascii --keys nnnnn4jj<enter>";
    Call::new().says("render/keys", keys);
    Call::new().says("render/digit", "render --demo gated --view 2 --size 80x24 --keys <esc>");
    Call::new().says("render/small", "render --demo tour --size 30x6");
}

#[test]
fn pictures_come_in_formats() {
    let of = |format: &str| {
        let line = format!("render --demo tainted --view filter --size 80x24 -o {format}");
        Call::new().run(&line).stdout
    };
    let (text, ansi, svg, html) = (of("txt"), of("ansi"), of("svg"), of("html"));
    assert!(text.contains("tainted") && !text.contains('\u{1b}'));
    let mut plain = String::new();
    for part in ansi.split('\u{1b}') {
        plain.push_str(
            part.strip_prefix('[').and_then(|p| Some(p.split_once('m')?.1)).unwrap_or(part),
        );
    }
    let plain: String = plain.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    assert_eq!(plain, text);
    assert!(ansi.contains(";2;"), "colours");
    assert!(svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"));
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    assert!(html.contains("<span style=\"color:#") || html.contains("background:#"));
    let colourless = "render --demo tainted --view filter --size 80x24 -o ansi --color never";
    assert!(!Call::new().run(colourless).stdout.contains("38;2"));
}

#[test]
fn what_cannot_be_drawn_is_told() {
    Call::new().says("render/unknown-view", "render --demo tour --view filtr");
    Call::new().says("render/size", "render --demo tour --size 10x10");
    Call::new().says("render/key", "render --demo tour --keys <nokey>");
    Call::new().says("render/theme", "render --demo tour --theme nope");
    Call::new().says("render/nothing", "render --kubeconfig nowhere");
}

#[test]
fn paths_and_versions_are_told() {
    let call = Call::new().file("themes/mine.yaml", "inherit: dark\n");
    let said = call.run_with("info", &[("KUBESTEP_CONFIG_DIR", "."), ("KUBECONFIG", "./a:./b")]);
    for told in ["(embedded)", "./config.yaml (not there)", "./themes\n", "./a (not there)", "mine"]
    {
        assert!(said.stdout.contains(told), "{told}: {}", said.stdout);
    }
    let said = call.run_with("info -o json", &[("KUBESTEP_CONFIG_DIR", ".")]);
    let value: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((value["environment"]["KUBECONFIG"].is_null(), said.code), (true, Some(0)));
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = Call::new().run(&format!("completions {shell}"));
        assert!(said.stdout.contains("explain") && said.stdout.contains("capacity"), "{shell}");
        assert_eq!((said.stderr.as_str(), said.code), ("", Some(0)));
    }
    Call::new().says("completions-unknown", "completions csh");
}

#[test]
fn every_command_has_a_manual_page() {
    let call = Call::new().file("man/note.txt", "");
    let said = call.run("man man");
    assert_eq!((said.stdout.as_str(), said.stderr.as_str(), said.code), ("", "", Some(0)));
    assert!(call.written("man/kubestep.1").contains(".TH kubestep 1"));
    assert!(call.written("man/kubestep-run.1").contains("capacity"));
    assert_eq!(call.run("man").stdout, call.written("man/kubestep.1"));
    Call::new().says("man-nowhere", "man nowhere");
}

#[cfg(unix)]
#[test]
fn kubectl_calls_it_by_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("kubectl-step");
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin("kubestep"), &link).unwrap();
    let output = Command::new(&link).args(["run", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Usage: kubectl step run"), "{text}");
}

/// The manifest and the recipe are made for this program.
#[test]
fn packages_name_the_program_as_it_is() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging");
    let krew = std::fs::read_to_string(folder.join("krew.yaml")).unwrap();
    let krew: serde_json::Value = serde_yaml::from_str(&krew).unwrap();
    assert_eq!(krew["spec"]["version"], format!("v{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(krew["spec"]["platforms"][0]["bin"], "kubectl-step");
    let recipe = std::fs::read_to_string(folder.join("Containerfile")).unwrap();
    assert!(recipe.contains(&format!("rust:{}-slim", env!("CARGO_PKG_RUST_VERSION"))));
}
