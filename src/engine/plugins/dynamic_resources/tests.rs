//! Tests of DynamicResources for pods with and without claims.

use serde_json::json;

use super::build;
use crate::api::Object;
use crate::config::ProfileArgs;
use crate::engine::fixture::{Fixture, object, plugin, pod};
use crate::engine::framework::events::{Action, ClusterEvent, EventResource, Hint};
use crate::engine::status::Code;

fn claim(name: &str, allocated: bool) -> Object {
    let status = match allocated {
        true => json!({"allocation": {"devices": {}}}),
        false => json!({}),
    };
    Object::ResourceClaim(std::sync::Arc::new(object(json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": status,
    }))))
}

#[test]
fn without_claims_all_nodes_score_nothing() {
    let fixture = Fixture::new(vec![json!({"metadata": {"name": "n"}})], vec![]);
    let plugin = plugin(build, &ProfileArgs::default());
    let pod = pod(json!({"metadata": {"name": "p"}}));
    let cx = fixture.cycle(&pod);
    let mut state = Default::default();
    let node = fixture.snapshot.by_name("n".into()).unwrap();
    assert_eq!(plugin.score(&cx, &state, node).unwrap_err().message(), "not found");
    assert_eq!(plugin.pre_filter(&cx, &mut state).status.code(), Code::Skip);
    assert_eq!(plugin.score(&cx, &state, node), Ok(0));
}

#[test]
fn a_claim_must_be_there_and_its_class_too() {
    let mut fixture = Fixture::new(vec![json!({"metadata": {"name": "n"}})], vec![]);
    let plugin = plugin(build, &ProfileArgs::default());
    let pod = pod(json!({
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    let missing = "could not find ResourceClaim \"default/mine\"";
    assert_eq!(plugin.pre_enqueue(&fixture.queue(), &pod).message(), missing);
    fixture.objects.insert(claim("mine", false));
    assert!(plugin.pre_enqueue(&fixture.queue(), &pod).is_success());
    let refused = fixture.filter(&plugin, &pod).unwrap_err();
    assert_eq!(refused.message(), "request r: device class gpu does not exist");
    assert_eq!(refused.code(), Code::UnschedulableAndUnresolvable);
    fixture.objects.insert(claim("mine", true));
    assert_eq!(fixture.refusals(&plugin, &pod), [""]);
}

#[test]
fn a_claim_that_was_freed_helps_any_pod() {
    let mut fixture = Fixture::default();
    let plugin = plugin(build, &ProfileArgs::default());
    let pod = pod(json!({
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    let event = ClusterEvent::new(EventResource::ResourceClaim, Action::UPDATE);
    let hint = |fixture: &Fixture, old, new| fixture.hint(&plugin, &pod, event, old, new);
    let freed = (Some(claim("other", true)), Some(claim("other", false)));
    // A pod whose own claims do not resolve cannot be helped by anything.
    assert_eq!(hint(&fixture, freed.0.clone(), freed.1.clone()), Hint::Skip);
    fixture.objects.insert(claim("mine", false));
    assert_eq!(hint(&fixture, freed.0, freed.1), Hint::Queue);
    assert_eq!(hint(&fixture, None, Some(claim("mine", false))), Hint::Queue);
    assert_eq!(hint(&fixture, None, Some(claim("other", false))), Hint::Skip);
    let unchanged = Some(claim("mine", false));
    assert_eq!(hint(&fixture, unchanged.clone(), unchanged), Hint::Skip);
}
