//! Devices that are requested as extended resources: the scheduler creates the claims.

use serde_json::{Value, json};

use crate::beside::Story;
use crate::beside::devices::{class, slice};
use crate::beside::stage::Stage;
use crate::objects::node;

pub const STORIES: &[Story] = &[("extended", extended)];

fn user(stage: &Stage, name: &str) -> Value {
    let mut pod = stage.pod(name, "1");
    let resources = json!({"example.com/gpu": "1"});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": resources, "limits": resources});
    pod
}

fn extended(stage: &mut Stage) {
    stage.create(vec![node("a", "8"), node("b", "4")]);
    let mut class = class("gpu");
    class["spec"]["extendedResourceName"] = "example.com/gpu".into();
    stage.create(vec![class, slice("slice-b", "b", &["gpu-0"])]);
    stage.create(vec![user(stage, "first")]);
    stage.until("the first is bound", |seen| seen.is_bound("first"));
    stage.create(vec![user(stage, "second")]);
    stage.until("the second is rejected", |seen| seen.is_rejected("second"));
}
