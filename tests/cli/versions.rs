//! `kubestep versions` and the options that choose a version.

use serde_json::Value;

use crate::harness::Call;

#[test]
fn the_versions_served_are_listed() {
    Call::new().says("help-versions", "versions --help");
    Call::new().says("versions/list", "versions");
}

#[test]
fn what_changed_is_listed() {
    Call::new().says("versions/between", "versions 1.34 1.36");
    Call::new().says("versions/back", "versions 1.36 1.35");
    Call::new().says("versions/one", "versions 1.37");
    Call::new().says("versions/same", "versions 1.36 1.36");
    Call::new().says("versions/nearest", "versions v1.29.4 1.32");
    Call::new().says("versions/patches", "versions 1.33.3 v1.33.13+k3s1");
    Call::new().says("versions/patch-back", "versions 1.35.6 1.36.1");
}

#[test]
fn what_is_no_version_is_rejected() {
    Call::new().says("versions/no-version", "versions newest");
    Call::new().says("versions/oldest", "versions 1.31");
}

#[test]
fn programs_get_json_and_yaml() {
    Call::new().says("versions/json", "versions 1.35 1.36 -o json");
    let json = Call::new().run("versions 1.35 1.36 -o json");
    let yaml = Call::new().run("versions 1.35 1.36 -o yaml");
    let yaml: Value = kubestep_api::yaml::from_str(&yaml.stdout).unwrap();
    assert_eq!(yaml, serde_json::from_str::<Value>(&json.stdout).unwrap());
    Call::new().says("versions/list-json", "versions -o json");
}
