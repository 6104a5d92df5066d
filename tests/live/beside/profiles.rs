//! Several profiles, and an extender that filters, prefers and binds.

use serde_json::{Value, json};

use crate::beside::Story;
use crate::beside::stage::Stage;
use crate::control_plane::ControlPlane;
use crate::objects::node;

pub const STORIES: &[Story] = &[("profiles", profiles), ("extender", with_extender)];

/// `PORT` is replaced by the extender's port.
pub const CONFIG: &str = "\
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  plugins:
    multiPoint:
      disabled: [{name: TaintToleration}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  - name: PodTopologySpread
    args: {defaultingType: List}
extenders:
- urlPrefix: http://127.0.0.1:PORT
  filterVerb: filter
  prioritizeVerb: prioritize
  bindVerb: bind
  nodeCacheCapable: true
  weight: 5
  managedResources: [{name: example.com/managed, ignoredByScheduler: true}]
";

/// Rejects `b`, and prefers `c`.
pub fn extender(plane: &ControlPlane) -> u16 {
    crate::extender::start(plane, |verb, body| {
        let names = body["NodeNames"].as_array().cloned().unwrap_or_default();
        let broken = body["Pod"]["metadata"]["name"] == "broken";
        match verb {
            "/filter" if broken => Some(json!({"Error": "out of order"})),
            "/filter" => {
                let fine: Vec<&Value> = names.iter().filter(|name| *name != "b").collect();
                let failed: serde_json::Map<String, Value> = names
                    .iter()
                    .filter(|name| *name == "b")
                    .map(|name| (name.as_str().unwrap().to_owned(), json!("not on b")))
                    .collect();
                Some(json!({"NodeNames": fine, "FailedNodes": failed}))
            }
            "/prioritize" => {
                let score =
                    |name: &Value| json!({"Host": name, "Score": u8::from(name == "c") * 10});
                Some(names.iter().map(score).collect())
            }
            _ => None,
        }
    })
}

fn profiles(stage: &mut Stage) {
    stage.create(vec![node("small", "2"), node("large", "16")]);
    let mut packing = stage.pod("packed", "1");
    packing["spec"]["schedulerName"] = "packing".into();
    stage.create(vec![packing.clone(), stage.pod("plain", "1")]);
    stage.until("both are bound", |seen| seen.is_bound("packed") && seen.is_bound("plain"));
    packing["metadata"]["name"] = "too-much".into();
    packing["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "40".into();
    stage.create(vec![packing]);
    stage.until("one is rejected", |seen| seen.is_rejected("too-much"));
}

fn managed(stage: &Stage, name: &str, cpu: &str) -> Value {
    let mut pod = stage.pod(name, cpu);
    let resources = json!({"cpu": cpu, "example.com/managed": "1"});
    let limits = json!({"example.com/managed": "1"});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": resources, "limits": limits});
    pod
}

fn with_extender(stage: &mut Stage) {
    stage.create(vec![node("a", "16"), node("b", "32"), node("c", "4")]);
    stage.create(vec![managed(stage, "user", "1"), stage.pod("other", "1")]);
    stage.until("both are bound", |seen| seen.is_bound("user") && seen.is_bound("other"));
    stage.create(vec![managed(stage, "large", "20"), managed(stage, "broken", "1")]);
    for name in ["large", "broken"] {
        stage.until(&format!("{name} is rejected"), |seen| seen.is_rejected(name));
    }
}
