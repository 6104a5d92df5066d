//! `kubestep config` and `kubestep plugins`.

use crate::harness::Call;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn of(name: &str, body: &str, line: &str) {
    let call = Call::new().file("scheduler.yaml", &format!("{HEAD}{body}"));
    call.says(&format!("config/{name}"), line);
}

const TWO_PROFILES: &str = "\
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      enabled: [{name: NodeResourcesFit, weight: 10}]
      disabled: [{name: ImageLocality}]
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}
- schedulerName: careful
  plugins: {permit: {enabled: [{name: ManualPermit}]}}
";

#[test]
fn the_default_configuration() {
    Call::new().says("config/default", "config");
    Call::new().says("config/default-document", "config -o document");
}

#[test]
fn a_configuration_is_shown_as_it_would_run() {
    of("two-profiles", TWO_PROFILES, "config scheduler.yaml");
    of("two-profiles-json", TWO_PROFILES, "config scheduler.yaml -o json");
    of("gates", "", "config scheduler.yaml -o yaml --feature-gates GenericWorkload=true");
}

#[test]
fn standard_input() {
    let text = format!("{HEAD}parallelism: 4\n");
    Call::new().stdin(&text).says("config/stdin", "config - -o document");
}

#[test]
fn what_is_hardly_meant_is_warned_of() {
    let body = "profiles:\n- plugins: {filter: {disabled: [{name: ImageLocality}]}}\n";
    of("warning", body, "config scheduler.yaml");
    of("warning-json", body, "config scheduler.yaml -o json");
}

#[test]
fn what_is_wrong_is_reported_with_its_place() {
    let wrong = "percentageOfNodesToScore: 101\npodMaxBackoffSeconds: 0\n";
    of("invalid", wrong, "config scheduler.yaml");
    of("invalid-json", wrong, "config scheduler.yaml -o json");
    of("invalid-yaml", "parallelism: many\n", "config scheduler.yaml -o yaml");
    let no_sorter = "profiles:\n- plugins: {queueSort: {disabled: [{name: '*'}]}}\n";
    of("not-built", no_sorter, "config scheduler.yaml -o json");
    Call::new().says("config/missing", "config scheduler.yaml");
    of("unknown-gate", "", "config scheduler.yaml --feature-gates Nope=true");
}

#[test]
fn feature_gates_are_listed() {
    let line = "config --list-feature-gates --feature-gates GenericWorkload=true";
    Call::new().says("config/feature-gates", line);
}

#[test]
fn plugins_are_listed_and_reported_of() {
    Call::new().says("plugins/all", "plugins");
    Call::new().says("plugins/one", "plugins noderesourcesfit");
    Call::new().says("plugins/two", "plugins ImageLocality GangScheduling");
    Call::new().says("plugins/all-json", "plugins -o json");
    Call::new().says("plugins/one-yaml", "plugins ManualPermit -o yaml");
    Call::new().says("plugins/unknown", "plugins NodeAfinity");
}
