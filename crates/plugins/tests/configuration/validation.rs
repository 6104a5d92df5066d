//! Every rule with a value that breaks it, in the words of upstream.

use kubestep_config::validation::Findings;
use kubestep_config::{Arguments, Feature, FeatureGates, FieldPath, Problem, load};
use kubestep_plugins::node_resources::fit::NodeResourcesFitArgs;

use super::{HEAD, plugins};

fn problems_with(gates: &FeatureGates, body: &str) -> Vec<String> {
    match load(Some(&format!("{HEAD}{body}")), gates, &plugins()) {
        Ok(_) => Vec::new(),
        Err(error) => {
            let without_place =
                |problem: &Problem| format!("{}: {}", problem.path, problem.message);
            error.problems.iter().map(without_place).collect()
        }
    }
}

fn problems(body: &str) -> Vec<String> {
    problems_with(&FeatureGates::default(), body)
}

/// The problems of a plugin's arguments, without the path up to them.
fn args_with(gates: &FeatureGates, plugin: &str, args: &str) -> Vec<String> {
    let body = format!("profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]");
    let start = "profiles[0].pluginConfig[0].args.";
    let own = |text: String| text.strip_prefix(start).map(str::to_owned).unwrap_or(text);
    problems_with(gates, &body).into_iter().map(own).collect()
}

fn args(plugin: &str, args: &str) -> Vec<String> {
    args_with(&FeatureGates::default(), plugin, args)
}

#[test]
fn leader_election_and_client() {
    let body = "leaderElection: {leaseDuration: -1s, renewDeadline: -1s, retryPeriod: -1s, \
                resourceLock: endpoints}\nclientConnection: {burst: -2}";
    assert_eq!(
        problems(body),
        [
            "clientConnection.burst: Invalid value: -2: must be non-negative",
            "leaderElection.leaseDuration: Invalid value: \"-1s\": must be greater than zero",
            "leaderElection.renewDeadline: Invalid value: \"-1s\": must be greater than zero",
            "leaderElection.retryPeriod: Invalid value: \"-1s\": must be greater than zero",
            "leaderElection.leaseDuration: Invalid value: \"-1s\": must be greater than `RenewDeadline`",
            "leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must be \
         \"leases\"",
        ]
    );
    assert_eq!(problems("leaderElection: {leaderElect: false, resourceLock: x}"), [""; 0]);
}

#[test]
fn numbers_of_the_whole() {
    assert_eq!(
        problems("parallelism: -1\npercentageOfNodesToScore: 101"),
        [
            "parallelism: Invalid value: -1: should be an integer value greater than zero",
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ]
    );
    assert_eq!(
        problems("podInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1"),
        [
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            "podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to \
         PodInitialBackoffSeconds",
        ]
    );
}

#[test]
fn profiles_and_their_plugins() {
    assert_eq!(
        problems("profiles: [{schedulerName: a}, {schedulerName: a}]"),
        ["profiles[1].schedulerName: Duplicate value: \"a\"",]
    );
    let removed = "was invalid in version \"kubescheduler.config.k8s.io/v1\" \
                   (KubeSchedulerConfiguration is version \"kubescheduler.config.k8s.io/v1\")";
    assert_eq!(
        problems(
            "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}, \
             multiPoint: {enabled: [{name: EBSLimits}]}}, pluginConfig: [{name: EBSLimits}]}]"
        ),
        [
            format!(
                "profiles[0].plugins.filter.enabled[0]: Invalid value: \"EBSLimits\": {removed}"
            ),
            format!("profiles[0].pluginConfig[0]: Invalid value: \"EBSLimits\": {removed}"),
        ]
    );
    assert_eq!(
        problems("profiles: [{pluginConfig: [{name: X}, {name: X}]}]"),
        ["profiles[0].pluginConfig[1]: Duplicate value: \"X\"",]
    );
}

#[test]
fn queue_sort_is_common() {
    let two = "{queueSort: {enabled: [{name: PrioritySort}, {name: X}]}}";
    let body = format!(
        "profiles: [{{schedulerName: a, plugins: {two}, pluginConfig: [{{name: PrioritySort}}]}}, \
         {{schedulerName: b, pluginConfig: [{{name: PrioritySort, args: {{x: 1}}}}]}}]"
    );
    assert_eq!(
        problems(&body),
        [
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: \
         only one queue sort plugin can be enabled",
            "profiles[1].plugins.queueSort: Invalid value: {\"disabled\":[],\"enabled\":[]}: \
         must be the same for all profiles",
            "profiles[1].pluginConfig.args: Invalid value: null: \
         queueSort must be the same for all profiles",
        ]
    );
    // validateCommonQueueSort compares every entry, and without a sorter those without a name.
    let unnamed = "{name: '', args: {x: 1}}";
    let body = format!(
        "profiles: [{{schedulerName: a, pluginConfig: [{unnamed}]}}, \
         {{schedulerName: b, pluginConfig: [{unnamed}, {unnamed}]}}]"
    );
    let differs = "profiles[1].pluginConfig.args: Invalid value: null: queueSort must be the same \
                   for all profiles";
    let found = problems(&body);
    assert_eq!(found.iter().filter(|text| *text == differs).count(), 2, "{found:?}");
}

#[test]
fn extenders_together() {
    let body = "extenders:\n- {prioritizeVerb: p, bindVerb: b, managedResources: [{name: cpu}]}\n\
                - {bindVerb: b, managedResources: [{name: x.io/r}, {name: x.io/r}, {name: 'a b'}]}";
    assert_eq!(
        problems(body),
        [
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            "extenders[0].managedResources[0].name: Invalid value: \"cpu\": \
         is an invalid extended resource name",
            "extenders[1].managedResources[1].name: Invalid value: \"x.io/r\": \
         duplicate extender managed resource name",
            "extenders[1].managedResources[2].name: Invalid value: \"a b\": the name must be letters, \
         digits, '-', '_' or '.', starting and ending with a letter or digit",
            "extenders: Invalid value: \"found 2 extenders implementing bind\": \
         only one extender can implement bind",
        ]
    );
}

#[test]
fn preemption_affinity_and_permit_arguments() {
    let preemption = |text| args("DefaultPreemption", text);
    assert_eq!(
        preemption("{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}"),
        [
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ]
    );
    assert_eq!(
        preemption("{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"),
        [
            "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as \
         minCandidateNodesAbsolute",
            "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as \
         minCandidateNodesPercentage",
        ]
    );
    assert_eq!(
        args("InterPodAffinity", "{hardPodAffinityWeight: -1}"),
        ["hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"]
    );
    let gt = "{timeoutSeconds: 0, selector: {matchExpressions: [{key: a, operator: Gt}]}}";
    assert_eq!(
        args("ManualPermit", gt),
        [
            "timeoutSeconds: Invalid value: 0: not in valid range [1, 900]",
            "selector.matchExpressions[0].operator: Unsupported value: \"Gt\": \
         supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\"",
        ]
    );
}

#[test]
fn dynamic_resources_arguments_follow_their_gates() {
    let both = "{filterTimeout: -1s, bindingTimeout: 999ms}";
    assert_eq!(
        args("DynamicResources", both),
        [
            "filterTimeout: Invalid value: \"-1s\": must be zero or positive",
            "bindingTimeout: Invalid value: \"999ms\": must be at least 1 second",
        ]
    );
    let gates = FeatureGates::default()
        .with(Feature::DRASchedulerFilterTimeout, false)
        .with(Feature::DRAResourceClaimDeviceStatus, false);
    assert_eq!(
        args_with(&gates, "DynamicResources", both),
        [
            "filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
            "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus \
         feature gate is disabled",
        ]
    );
    assert_eq!(args_with(&gates, "DynamicResources", "{}"), [""; 0]);
}

#[test]
fn added_affinity_must_compile() {
    let term = "{matchExpressions: [{key: a, operator: Gt, values: [x, y]}, \
                {key: '', operator: In}, {key: a, operator: Exists, values: ['-']}, \
                {key: a, operator: Nope}], matchFields: [{key: a, operator: In}, \
                {key: a, operator: Exists}]}";
    let affinity = format!(
        "{{addedAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
         {{nodeSelectorTerms: [{{}}, {term}]}}, preferredDuringSchedulingIgnoredDuringExecution: \
         [{{weight: 0, preference: {term}}}, {{weight: 1, preference: \
         {{matchFields: [{{operator: In}}]}}}}]}}}}"
    );
    let paths: Vec<String> = args("NodeAffinity", &affinity)
        .iter()
        .map(|text| {
            let text =
                text.replace("addedAffinity.requiredDuringSchedulingIgnoredDuringExecution", "R");
            text.replace("addedAffinity.preferredDuringSchedulingIgnoredDuringExecution", "P")
        })
        .collect();
    let name =
        "must be letters, digits, '-', '_' or '.', starting and ending with a letter or digit";
    let at = |rest: &str| format!("R.nodeSelectorTerms[1].match{rest}");
    assert_eq!(
        paths,
        [
            at(
                "Expressions[0].values: Invalid value: [\"x\",\"y\"]: for 'Gt', 'Lt' operators, exactly \
            one value is required"
            ),
            at(
                "Expressions[0].values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value \
            must be an integer"
            ),
            at(
                "Expressions[0].values[1]: Invalid value: \"y\": for 'Gt', 'Lt' operators, the value \
            must be an integer"
            ),
            at(&format!(
                "Expressions[1].key: Invalid value: \"\": the name must not be empty; the name {name}"
            )),
            at(
                "Expressions[1].values: Invalid value: []: for 'in', 'notin' operators, values set \
            can't be empty"
            ),
            at(
                "Expressions[2].values: Invalid value: [\"-\"]: values set must be empty for exists and \
            does not exist"
            ),
            at(&format!("Expressions[2].values[0][a]: Invalid value: \"-\": {name}")),
            at("Expressions[3].operator: Unsupported value: \"Nope\": supported values: \"In\", \
            \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\""),
            at("Fields[0].values: Invalid value: []: must have one element"),
            at(
                "Fields[1].operator: Unsupported value: \"Exists\": supported values: \"In\", \"NotIn\""
            ),
            "P[1].matchFields[0].values: Invalid value: []: must have one element".to_owned(),
        ]
    );
}

#[test]
fn resource_arguments() {
    let resources = "{resources: [{name: cpu, weight: 2}, {name: cpu}]}";
    assert_eq!(
        args("NodeResourcesBalancedAllocation", resources),
        [
            "resources[0].weight: Invalid value: 2: must be 1",
            "resources[1].name: Duplicate value: \"cpu\"",
        ]
    );
    // Those of NodeResourcesFit are checked only when the plugin is built.
    assert_eq!(args("NodeResourcesFit", "{scoringStrategy: {type: Bogus}}"), [""; 0]);
}

/// The problems of NodeResourcesFit's arguments, which only building looks at.
fn fit(text: &str) -> Vec<String> {
    let gates = FeatureGates::default();
    let body = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {text}}}]}}]"
    );
    let document = load(Some(&body), &gates, &plugins()).unwrap().document;
    let args = document.profiles[0].plugin_config[0].args.as_ref().unwrap();
    let mut found = Findings::default();
    let args = args.get::<NodeResourcesFitArgs>().unwrap();
    args.validate(&mut found, &FieldPath::root(), &gates);
    found.problems.iter().map(Problem::to_string).collect()
}

#[test]
fn resources_fit_arguments() {
    assert_eq!(
        fit("{ignoredResourceGroups: [a.b/c], ignoredResources: [x]}"),
        [
            "ignoredResourceGroups[0]: Invalid value: \"a.b/c\": resource group name can't contain '/'"
        ]
    );
    let strategy = |text: &str| fit(&format!("{{scoringStrategy: {{{text}}}}}"));
    assert_eq!(
        strategy("type: RequestedToCapacityRatio"),
        [
            "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is \
         RequestedToCapacityRatio"
        ]
    );
    assert_eq!(
        strategy("type: MostAllocated, requestedToCapacityRatio: {}"),
        ["scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not \
         RequestedToCapacityRatio"]
    );
    assert_eq!(
        strategy("type: RequestedToCapacityRatio, requestedToCapacityRatio: {}"),
        [
            "scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must \
         be specified"
        ]
    );
    let points =
        "{utilization: 5, score: 11}, {utilization: 5}, {utilization: 4}, {utilization: 101}";
    let shape =
        format!("type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: [{points}]}}");
    assert_eq!(
        strategy(&shape),
        [
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 5: values \
         must be sorted in increasing order",
            "scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid \
         range [0, 10]",
            "scoringStrategy.requestedToCapacityRatio.shape[3].utilization: Invalid value: 101: not in \
         valid range [0, 100]",
        ]
    );
}

#[test]
fn topology_spread_arguments() {
    let spread = |text: &str| args("PodTopologySpread", text);
    assert_eq!(
        spread("{defaultingType: Nope}"),
        ["defaultingType: Unsupported value: \"Nope\": supported values: \"System\", \"List\""]
    );
    let good = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway";
    assert_eq!(
        spread(&format!("{{defaultConstraints: [{{{good}}}]}}")),
        ["defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty"]
    );
    let list = format!(
        "{{defaultingType: List, defaultConstraints: [{{{good}}}, {{{good}}}, \
         {{labelSelector: {{}}}}, {{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: X}}]}}"
    );
    assert_eq!(
        spread(&list),
        [
            "defaultConstraints[1]: Duplicate value: \"{zone, ScheduleAnyway}\"",
            "defaultConstraints[2].maxSkew: Invalid value: 0: not in valid range (0, inf)",
            "defaultConstraints[2].topologyKey: Required value: can not be empty",
            "defaultConstraints[2].whenUnsatisfiable: Required value: can not be empty",
            "defaultConstraints[2].labelSelector: Forbidden: constraint must not define a selector, \
         as they deduced for each pod",
            "defaultConstraints[3].topologyKey: Invalid value: \"a b\": the name must be letters, \
         digits, '-', '_' or '.', starting and ending with a letter or digit",
            "defaultConstraints[3].whenUnsatisfiable: Unsupported value: \"X\": supported values: \
         \"DoNotSchedule\", \"ScheduleAnyway\"",
        ]
    );
}

#[test]
fn volume_binding_arguments_follow_their_gate() {
    assert_eq!(
        args("VolumeBinding", "{bindTimeoutSeconds: -1, shape: [{score: 3}]}"),
        [
            "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a \
         negative value",
            "shape: Invalid value: [{\"score\":3,\"utilization\":0}]: unexpected field `shape`, \
         remove it or turn on the feature gate StorageCapacityScoring",
        ]
    );
    let gates = FeatureGates::default().with(Feature::StorageCapacityScoring, true);
    assert_eq!(
        args_with(&gates, "VolumeBinding", "{shape: [{score: 11}]}"),
        ["shape[0].score: Invalid value: 11: not in valid range [0, 10]"]
    );
    assert_eq!(args_with(&gates, "VolumeBinding", "{}"), [""; 0]);
}
