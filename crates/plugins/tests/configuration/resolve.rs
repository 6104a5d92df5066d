//! Tests of whole documents: the outcome, the errors with their messages, and that no document
//! makes the program panic.

use proptest::prelude::*;

use kubestep_config::{
    ConfigError, DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginDescriptor, Problem,
    ResolvedConfig, find_plugin, resolve, to_json, to_yaml,
};
use kubestep_plugins::manual_permit::ManualPermitArgs;
use kubestep_plugins::node_resources::fit::NodeResourcesFitArgs;

use super::{HEAD, plugins, resolve_body};

fn try_resolve(body: &str) -> Result<ResolvedConfig, ConfigError> {
    resolve_body(body, &FeatureGates::default())
}

fn rejected(body: &str) -> String {
    try_resolve(body).unwrap_err().to_string()
}

fn names(config: &ResolvedConfig, point: ExtensionPoint) -> Vec<&'static str> {
    config.profiles[0].at(point).iter().map(|plugin| plugin.name.as_str()).collect()
}

#[test]
fn no_document_is_the_default_configuration() {
    let gates = FeatureGates::default();
    let config = resolve(None, &gates, &plugins()).unwrap();
    assert_eq!(config.profile("default-scheduler"), config.profiles.first());
    assert_eq!(config.profile("other"), None);
    assert_eq!(
        names(&config, ExtensionPoint::PostFilter),
        ["DynamicResources", "DefaultPreemption"]
    );
    assert_eq!(names(&config, ExtensionPoint::PlacementScore), ["NodeResourcesFit"]);
    assert_eq!(config.profiles[0].instances.len(), 20);
    assert_eq!((config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds), (1, 10));
    assert_eq!((config.parallelism, config.percentage_of_nodes_to_score), (16, 0));
    assert_eq!(config.warnings, []);
    assert_eq!(to_json(&try_resolve("").unwrap().document), to_json(&config.document));
}

#[test]
fn gates_bring_their_plugins() {
    let gates = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true";
    let gates = FeatureGates::parse(gates).unwrap();
    let config = resolve(None, &gates, &plugins()).unwrap();
    assert_eq!(names(&config, ExtensionPoint::Permit), ["GangScheduling"]);
    assert_eq!(
        names(&config, ExtensionPoint::PlacementScore),
        ["NodeResourcesFit", "PodGroupPodsCount"]
    );
}

#[test]
fn what_is_written_out_is_read_back() {
    let body = "profiles:\n- schedulerName: a\n  percentageOfNodesToScore: 0\n  plugins:\n    \
                score: {enabled: [{name: ImageLocality, weight: 7}], disabled: [{name: NodeAffinity}]}\n  \
                pluginConfig:\n  - {name: Other, args: {x: [1, {y: null}]}}\n  \
                - {name: VolumeBinding, args: {bindTimeoutSeconds: 3}}\n\
                extenders: [{urlPrefix: 'http://x', httpTimeout: 1m, tlsConfig: {certData: YWJj}}]\n\
                clientConnection: {qps: 0.1}\n";
    let config = try_resolve(body).unwrap();
    let again = resolve(Some(&to_yaml(&config.document)), &config.features, &plugins()).unwrap();
    // What was merged in by default is now the user's own.
    assert_eq!(to_json(&again.document), to_json(&config.document));
    assert_eq!(again.profiles, config.profiles);
    assert!(to_yaml(&config.document).starts_with(HEAD));
}

#[test]
fn a_document_must_say_what_it_is() {
    let rejected = |text: &str| {
        resolve(Some(text), &FeatureGates::default(), &plugins()).unwrap_err().to_string()
    };
    let start = "the scheduler configuration cannot be read: ";
    assert_eq!(
        rejected(""),
        format!("{start}kind is missing; write kind: KubeSchedulerConfiguration")
    );
    assert_eq!(
        rejected("kind: KubeSchedulerConfiguration"),
        format!("{start}apiVersion is missing; write apiVersion: kubescheduler.config.k8s.io/v1")
    );
    assert_eq!(
        rejected("kind: Pod\napiVersion: kubescheduler.config.k8s.io/v1beta3"),
        format!(
            "{start}apiVersion (line 2, column 1): \"kubescheduler.config.k8s.io/v1beta3\" is not \
             served; kube-scheduler 1.36 takes kubescheduler.config.k8s.io/v1"
        )
    );
    assert_eq!(
        rejected("kind: Nope\napiVersion: kubescheduler.config.k8s.io/v1"),
        format!(
            "{start}kind (line 1, column 1): there is no kind \"Nope\" in \
             kubescheduler.config.k8s.io/v1; write KubeSchedulerConfiguration"
        )
    );
    assert_eq!(
        rejected("kind: VolumeBindingArgs\napiVersion: kubescheduler.config.k8s.io/v1"),
        format!(
            "{start}kind (line 1, column 1): \"VolumeBindingArgs\" holds the arguments of a \
             plugin, not a configuration; write KubeSchedulerConfiguration"
        )
    );
    assert_eq!(rejected("- 1"), format!("{start}expected a map of fields, got a list"));
}

#[test]
fn all_problems_of_a_document_are_reported_with_their_paths() {
    assert_eq!(
        rejected(
            "paralelism: 1\nprofiles:\n- pluginConfig:\n  - name: InterPodAffinity\n    args:\n      \
                 kind: InterPodAffinityArgs\n      hardPodAffinityWeight: heavy\n      x: 1\n      x: 2\n"
        ),
        "the scheduler configuration cannot be read\n  \
         profiles[0].pluginConfig[0].args.x (line 11, column 7): is given twice; remove one\n  \
         profiles[0].pluginConfig[0].args.hardPodAffinityWeight (line 9, column 7): \
         expected a whole number, got the text \"heavy\"\n  \
         profiles[0].pluginConfig[0].args.x (line 10, column 7): unknown field \"x\"; known fields: \
         apiVersion, kind, hardPodAffinityWeight, ignorePreferredTermsOfExistingPods\n  \
         profiles[0].pluginConfig[0].args.x (line 10, column 7): unknown field \"x\"; known fields: \
         apiVersion, kind, hardPodAffinityWeight, ignorePreferredTermsOfExistingPods\n  \
         paralelism (line 3, column 1): unknown field \"paralelism\"; did you mean \"parallelism\"?"
    );
}

#[test]
fn arguments_of_another_kind_are_rejected() {
    let config = |args: &str| {
        rejected(&format!(
            "profiles:\n- pluginConfig:\n  - name: VolumeBinding\n    args: {args}\n"
        ))
    };
    let start = "the scheduler configuration cannot be read: profiles[0].pluginConfig[0].args";
    assert_eq!(
        config("{kind: NodeAffinityArgs}"),
        format!(
            "{start}.kind (line 6, column 12): args for plugin VolumeBinding were not of type \
             VolumeBindingArgs.kubescheduler.config.k8s.io, got \
             NodeAffinityArgs.kubescheduler.config.k8s.io; write VolumeBindingArgs"
        )
    );
    assert_eq!(
        config("{kind: Nope}"),
        format!(
            "{start}.kind (line 6, column 12): there is no kind \"Nope\" in \
             kubescheduler.config.k8s.io/v1; write VolumeBindingArgs"
        )
    );
    assert_eq!(
        config("{apiVersion: v1}"),
        format!(
            "{start}.apiVersion (line 6, column 12): \"v1\" is not served; \
             use kubescheduler.config.k8s.io/v1 or omit apiVersion"
        )
    );
}

#[test]
fn invalid_values_are_reported_with_their_paths() {
    assert_eq!(
        rejected(
            "parallelism: 0\nprofiles:\n- {schedulerName: a}\n- percentageOfNodesToScore: 101\n"
        ),
        "the scheduler configuration is not valid\n  \
         parallelism (line 3, column 1): Invalid value: 0: should be an integer value greater than zero\n  \
         profiles[1].schedulerName (line 6, column 3): Required value\n  \
         profiles[1].percentageOfNodesToScore (line 6, column 3): Invalid value: 101: \
         not in valid range [0-100]"
    );
}

#[test]
fn what_cannot_be_built_is_rejected_in_upstreams_words() {
    let start = "kube-scheduler would not start with this configuration: ";
    let profile = "initializing profiles: creating profile for scheduler name default-scheduler: ";
    let sets = |sets: &str| rejected(&format!("profiles:\n- plugins: {{{sets}}}\n"));
    assert_eq!(
        sets("bind: {disabled: [{name: '*'}]}"),
        format!(
            "{start}profiles[0].plugins.bind (line 4, column 13): {profile}at least one bind \
             plugin is needed for profile with scheduler name \"default-scheduler\"; \
             enable DefaultBinder"
        )
    );
    assert_eq!(
        sets("multiPoint: {disabled: [{name: PrioritySort}]}"),
        format!(
            "{start}profiles[0].plugins.queueSort (line 4, column 3): {profile}only one queue sort \
             plugin required for profile with scheduler name \"default-scheduler\", but got 0; \
             enable PrioritySort and nothing else there"
        )
    );
    assert_eq!(
        sets("filter: {enabled: [{name: ImageLocality}]}"),
        format!(
            "{start}profiles[0].plugins.filter.enabled[0] (line 4, column 32): {profile}plugin \
             \"ImageLocality\" does not extend FilterPlugin plugin; ImageLocality runs at Score"
        )
    );
    let args = "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    \
                args: {scoringStrategy: {type: Bogus, resources: [{name: cpu, weight: 101}]}}\n";
    assert_eq!(
        rejected(args),
        format!(
            "{start}profiles[0].pluginConfig[0].args (line 6, column 5): {profile}initializing \
             plugin \"NodeResourcesFit\": [scoringStrategy.type: Unsupported value: \"Bogus\": \
             supported values: \"LeastAllocated\", \"MostAllocated\", \"RequestedToCapacityRatio\", \
             scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in \
             valid range (0, 100]]"
        )
    );
    let extender = "extenders:\n- urlPrefix: https://e\n  \
                    tlsConfig: {insecure: true, caFile: ca.pem}\n";
    assert_eq!(
        rejected(extender),
        format!(
            "{start}extenders[0].tlsConfig.insecure (line 5, column 15): couldn't build extenders: \
             specifying a root certificates file with the insecure flag is not allowed; remove \
             it, or the CA"
        )
    );
}

#[test]
fn one_plugin_makes_placements_at_most() {
    let gates =
        FeatureGates::parse("GenericWorkload=true,TopologyAwareWorkloadScheduling=true").unwrap();
    let mut registry = plugins();
    let first = *find_plugin(&registry, "TopologyPlacementGenerator").unwrap();
    let default_profile = DefaultProfile::Absent;
    registry.push(PluginDescriptor { name: "Second", default_profile, ..first });
    let body = "profiles:\n- plugins: {placementGenerate: {enabled: [{name: Second}]}}\n";
    let rejected = |registry: &[PluginDescriptor]| {
        resolve(Some(&format!("{HEAD}{body}")), &gates, registry).unwrap_err().to_string()
    };
    let text = "at most one placement generate plugin is allowed for profile with scheduler name \
                \"default-scheduler\"";
    let error = rejected(&registry);
    assert!(error.contains(text), "{error}");
    assert!(rejected(&plugins()).contains("PlacementGeneratePlugin \"Second\" does not exist"));
}

#[test]
fn extenders_are_ordered_and_take_over_ignored_resources() {
    let body = "extenders:\n- {urlPrefix: 'http://a', ignorable: true}\n\
                - urlPrefix: http://b\n  managedResources: [{name: x.io/r, ignoredByScheduler: true}]\n\
                - {urlPrefix: 'http://c', httpTimeout: 1s}\n";
    let config = try_resolve(&format!(
        "{body}profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    \
         args: {{ignoredResources: [y.io/s]}}\n"
    ))
    .unwrap();
    let order: Vec<_> = config
        .extenders
        .iter()
        .map(|extender| (extender.url_prefix.as_str(), extender.http_timeout.to_string()))
        .collect();
    let second = |text: &str| text.to_owned();
    assert_eq!(
        order,
        [("http://b", second("5s")), ("http://c", second("1s")), ("http://a", second("5s"))]
    );
    assert_eq!(config.profiles[0].args.of::<NodeResourcesFitArgs>().ignored_resources, ["x.io/r"]);
    let completed = config.completed();
    assert_eq!(completed.extenders[0].http_timeout.to_string(), "5s");
    let written = to_yaml(&completed);
    assert!(written.contains("ignoredResources:\n      - x.io/r\n"), "{written}");
    assert_eq!(
        config.warnings[0].to_string(),
        "profiles[0].pluginConfig[0].args.ignoredResources (line 11, column 12): ignoredResources \
         is replaced by the resources that extenders mark ignoredByScheduler"
    );
    assert_eq!(
        rejected(&format!(
            "{body}profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: NodeResourcesFit}}]}}}}}}]\n"
        )),
        "kube-scheduler would not start with this configuration: profiles[0] (line 8, column 12): \
         couldn't build extenders: can't find NodeResourcesFitArgs in plugin config; an extender \
         has ignoredByScheduler, so every profile needs arguments for NodeResourcesFit"
    );
}

#[test]
fn the_completed_document_has_the_arguments_that_are_used() {
    let config = resolve(Some(RICH), &FeatureGates::default(), &plugins()).unwrap();
    let names: Vec<_> =
        config.completed().profiles[0].plugin_config.iter().map(|config| config.name).collect();
    assert_eq!(
        names,
        [
            "DefaultPreemption",
            "DynamicResources",
            "InterPodAffinity",
            "ManualPermit",
            "NodeAffinity",
            "NodeResourcesBalancedAllocation",
            "NodeResourcesFit",
            "PodTopologySpread",
            "VolumeBinding"
        ]
    );
}

#[test]
fn very_many_problems_are_reported_quickly() {
    let fields: String = (0..5000).map(|i| format!("x{}: 1\n", i % 2500)).collect();
    let error = try_resolve(&fields).unwrap_err();
    assert_eq!(error.problems.len(), 5100);
    assert_eq!(error.problems.iter().filter(|problem| problem.location.is_some()).count(), 100);
}

#[test]
fn profiles_share_one_queue_order() {
    // kubestep has one queue sort plugin, so a second one is made up here.
    let mut registry = plugins();
    let first = *find_plugin(&registry, "PrioritySort").unwrap();
    let default_profile = DefaultProfile::Absent;
    registry.push(PluginDescriptor { name: "OtherSort", default_profile, ..first });
    let sets = "{multiPoint: {disabled: [{name: PrioritySort}], enabled: [{name: OtherSort}]}}";
    let body = format!("profiles: [{{schedulerName: a}}, {{schedulerName: b, plugins: {sets}}}]");
    let text = format!("{HEAD}{body}");
    let error = resolve(Some(&text), &FeatureGates::default(), &registry).unwrap_err();
    assert_eq!(
        error.problems[0].message,
        "initializing profiles: different queue sort plugins for profile \"b\": \"OtherSort\", \
         first: \"PrioritySort\""
    );
}

#[test]
fn settings_without_effect_are_warned_about() {
    let body = "profiles:\n- plugins:\n    multiPoint: {disabled: [{name: ImageLocalty}]}\n    \
                filter: {enabled: [{name: NodeName, weight: 3}], disabled: [{name: ImageLocality}, {name: '*'}]}\n  \
                pluginConfig:\n  - {name: ManualPermit, args: {timeoutSeconds: 5}}\n---\nmore: 1\n";
    let warnings: Vec<_> =
        try_resolve(body).unwrap().warnings.iter().map(Problem::to_string).collect();
    assert_eq!(
        warnings,
        [
            "only the first document of the file is read",
            "profiles[0].plugins.multiPoint.disabled[0] (line 5, column 29): disabling \"ImageLocalty\" \
         has no effect: there is no such plugin; did you mean \"ImageLocality\"?",
            "profiles[0].plugins.filter.disabled[0] (line 6, column 65): disabling \"ImageLocality\" \
         has no effect: it does not run at Filter",
            "profiles[0].plugins.filter.enabled[0].weight (line 6, column 41): weight 3 has no effect \
         at Filter",
            "profiles[0].pluginConfig[0] (line 8, column 5): arguments for ManualPermit, which is not \
         enabled",
        ]
    );
}

#[test]
fn manual_permit_runs_where_it_is_enabled() {
    let body = "profiles:\n- plugins:\n    permit: {enabled: [{name: ManualPermit}]}\n  pluginConfig:\n  \
                - name: ManualPermit\n    args: {selector: {matchLabels: {app: web}}, timeoutSeconds: 60}\n";
    let config = try_resolve(body).unwrap();
    assert_eq!(names(&config, ExtensionPoint::Permit), ["ManualPermit"]);
    let args: ManualPermitArgs = config.profiles[0].args.of();
    assert_eq!(args.timeout_seconds, 60);
    assert_eq!(args.selector.match_labels.get_str("app").copied(), Some("web".into()));
    let bad = body.replace("60", "901").replace("web", "'not a label'");
    assert_eq!(
        rejected(&bad),
        "the scheduler configuration is not valid\n  \
         profiles[0].pluginConfig[0].args.timeoutSeconds (line 8, column 59): \
         Invalid value: 901: not in valid range [1, 900]\n  \
         profiles[0].pluginConfig[0].args.selector.matchLabels[app] (line 8, column 37): \
         Invalid value: \"not a label\": must be letters, digits, '-', '_' or '.', \
         starting and ending with a letter or digit"
    );
}

/// A document with every field, as the starting point for mutations.
const RICH: &str = include_str!("rich.yaml");

#[test]
fn the_rich_document_is_good() {
    let config = resolve(Some(RICH), &FeatureGates::default(), &plugins()).unwrap();
    assert_eq!(config.profiles.len(), 2);
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
}

fn scalar() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("null"),
        Just("-1"),
        Just("1e400"),
        Just("99999999999999999999"),
        Just("[]"),
        Just("{}"),
        Just("\"*\""),
        Just("\"\""),
        Just("&a [*a]"),
        Just("!!binary x"),
        Just("<<: {a: 1}"),
        Just("é\u{301}\u{0}"),
        Just("true"),
        Just("- - -"),
    ]
}

fn check(text: &str) {
    let gates = FeatureGates::default().with(Feature::StorageCapacityScoring, true);
    match resolve(Some(text), &gates, &plugins()) {
        Ok(config) => drop(to_yaml(&config.document)),
        Err(error) => assert!(!error.problems.is_empty() && !error.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn replaced_values_never_panic(edits in prop::collection::vec((0..70usize, scalar()), 1..4)) {
        let mut lines: Vec<String> = RICH.lines().map(str::to_owned).collect();
        for (line, value) in edits {
            let count = lines.len();
            let line = &mut lines[line % count];
            let name = line.split(": ").next().unwrap_or_default().to_owned();
            *line = format!("{name}: {value}");
        }
        check(&lines.join("\n"));
    }

    #[test]
    fn broken_texts_never_panic(start in 0..2500usize, len in 0..40usize, new in "\\PC{0,6}") {
        let chars: Vec<char> = RICH.chars().collect();
        let start = start.min(chars.len());
        let end = (start + len).min(chars.len());
        let kept = chars[..start].iter().chain(&chars[end..]);
        check(&kept.collect::<String>());
        let edited = chars[..start].iter().copied().chain(new.chars()).chain(chars[end..].iter().copied());
        check(&edited.collect::<String>());
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,200}") {
        check(&text);
    }
}
