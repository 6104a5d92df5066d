//! `kubestep render`, `info`, `completions` and `man`.

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
fn what_cannot_be_drawn_is_reported() {
    Call::new().says("render/unknown-view", "render --demo tour --view filtr");
    Call::new().says("render/size", "render --demo tour --size 10x10");
    Call::new().says("render/key", "render --demo tour --keys <nokey>");
    Call::new().says("render/theme", "render --demo tour --theme nope");
    Call::new().says("render/nothing", "render --kubeconfig nowhere");
}

#[test]
fn paths_and_versions_are_reported() {
    let call = Call::new().file("themes/mine.yaml", "inherit: dark\n");
    let said = call.run_with("info", &[("KUBESTEP_CONFIG_DIR", "."), ("KUBECONFIG", "./a:./b")]);
    for reported in [
        "(embedded)",
        "./config.yaml (does not exist)",
        "./themes\n",
        "./a (does not exist)",
        "mine",
    ] {
        assert!(said.stdout.contains(reported), "{reported}: {}", said.stdout);
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
