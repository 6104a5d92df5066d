//! Single changes on top of a document.

use kubestep_config::{ExtensionPoint, FeatureGates, Overlay, Switch, resolve, resolve_with};

use super::plugins;

fn overlay(plugin: &str, switch: Switch) -> Overlay {
    Overlay { plugin: plugin.into(), switch, profile: None }
}

fn at(text: Option<&str>, overlays: &[Overlay], point: ExtensionPoint) -> Vec<(String, i32)> {
    let gates = FeatureGates::default();
    let resolved = resolve_with(text, overlays.to_vec(), &gates, &plugins()).unwrap();
    let plugins = resolved.profiles[0].at(point).iter();
    plugins.map(|plugin| (plugin.name.to_string(), plugin.weight)).collect()
}

fn error(overlays: &[Overlay]) -> String {
    let gates = FeatureGates::default();
    resolve_with(None, overlays.to_vec(), &gates, &plugins()).unwrap_err().to_string()
}

#[test]
fn weights_change_where_the_plugin_is_switched_on() {
    let point = ExtensionPoint::Score;
    let heavy = [overlay("ImageLocality", Switch::Weight(9))];
    let own = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, \
                   profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 3}]}}}]}";
    for text in [None, Some(own)] {
        let before = at(text, &[], point);
        let after = at(text, &heavy, point);
        let names =
            |list: &[(String, i32)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&before), names(&after));
        assert!(after.contains(&("ImageLocality".into(), 9)), "{after:?}");
    }
}

#[test]
fn plugins_are_switched_off_and_on() {
    let has = |overlays: &[Overlay], point| {
        at(None, overlays, point).iter().any(|(name, _)| name == "NodeAffinity")
    };
    let (filter, score) = (ExtensionPoint::Filter, ExtensionPoint::Score);
    let off = overlay("NodeAffinity", Switch::Off(None));
    let off_at_score = overlay("NodeAffinity", Switch::Off(Some(score)));
    let on = overlay("NodeAffinity", Switch::On(None));
    let on_at_score = overlay("NodeAffinity", Switch::On(Some(score)));
    for (overlays, at_filter, at_score) in [
        (vec![], true, true),
        (vec![off.clone()], false, false),
        (vec![off_at_score.clone()], true, false),
        (vec![off.clone(), on.clone()], true, true),
        (vec![off.clone(), on_at_score.clone()], false, true),
        (vec![off_at_score, on_at_score], true, true),
    ] {
        let found = (has(&overlays, filter), has(&overlays, score));
        assert_eq!(found, (at_filter, at_score), "{overlays:?}");
    }
    assert!(error(&[off.clone(), off]).contains("disable NodeAffinity: it is not enabled"));
    assert!(error(&[on]).contains("it is already enabled"));
}

#[test]
fn what_cannot_be_changed_is_reported() {
    for (plugin, switch, part) in [
        ("NodeAfinity", Switch::Off(None), "no such plugin, did you mean \"NodeAffinity\"?"),
        ("NodeName", Switch::Weight(2), "it does not score, so a weight has no effect"),
        ("ImageLocality", Switch::Weight(0), "a weight is at least 1"),
        ("NodeName", Switch::On(Some(ExtensionPoint::Score)), "it does not run at Score"),
        ("ImageLocality", Switch::Weight(i32::MAX), ""),
    ] {
        let result =
            resolve_with(None, vec![overlay(plugin, switch)], &FeatureGates::default(), &plugins());
        match part {
            "" => assert!(result.is_ok()),
            part => assert!(result.unwrap_err().to_string().contains(part)),
        }
    }
    let in_other_profile =
        Overlay { profile: Some("batch".into()), ..overlay("ImageLocality", Switch::Weight(2)) };
    assert!(error(&[in_other_profile]).contains("in batch: there is no such profile"));
    let unchanged = resolve(None, &FeatureGates::default(), &plugins()).unwrap();
    assert_eq!(unchanged.overlays, []);
}
