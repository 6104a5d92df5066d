//! The table of tools: a name, a subcommand with its fixed options, and the arguments that may be
//! given.

use serde_json::{Map, Value};

/// A tool for agents: a subcommand with some of its options.
pub(super) struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    /// The subcommand and its fixed options.
    pub command: &'static [&'static str],
    /// Groups of parameters that several tools share.
    arguments: &'static [&'static [Parameter]],
    /// The schema of the JSON that the subcommand prints.
    schema: &'static str,
}

/// An argument of a tool.
pub(super) struct Parameter {
    pub name: &'static str,
    pub form: ArgumentForm,
    pub required: bool,
    pub description: &'static str,
}

/// How an argument is given on the command line.
pub(super) enum ArgumentForm {
    /// A positional argument.
    Positional,
    /// The value of this option.
    Text(&'static str),
    /// As this option, once for each.
    Texts(&'static str),
    /// As this option, a whole number.
    Number(&'static str),
    /// On standard input, which this option reads.
    Input(&'static str),
}

impl Tool {
    /// The parameters of all its groups.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.arguments.iter().flat_map(|group| group.iter())
    }

    /// The schema of its answers. The protocol wants the type even where it follows from the rest.
    pub(super) fn output_schema(&self) -> Map<String, Value> {
        let mut schema: Map<String, Value> = serde_json::from_str(self.schema).unwrap_or_default();
        schema.entry("type").or_insert_with(|| "object".into());
        schema
    }
}

impl Parameter {
    const fn new(name: &'static str, form: ArgumentForm, description: &'static str) -> Parameter {
        Parameter { name, form, required: false, description }
    }

    const fn required(
        name: &'static str,
        form: ArgumentForm,
        description: &'static str,
    ) -> Parameter {
        Parameter { name, form, required: true, description }
    }

    /// Its option on the command line.
    #[cfg(test)]
    pub(super) fn option(&self) -> Option<&'static str> {
        match self.form {
            ArgumentForm::Positional => None,
            ArgumentForm::Text(option)
            | ArgumentForm::Texts(option)
            | ArgumentForm::Number(option)
            | ArgumentForm::Input(option) => Some(option),
        }
    }
}

const INPUT: &[Parameter] = &[
    Parameter::new(
        "files",
        ArgumentForm::Texts("--filename"),
        "Files or folders with Kubernetes objects: manifests, lists, dumps, captures, recordings, bundles. Without files and story: the cluster of the kubeconfig",
    ),
    Parameter::new(
        "story",
        ArgumentForm::Text("--demo"),
        "A built-in example cluster instead of files, such as tour or tainted",
    ),
    Parameter::new(
        "context",
        ArgumentForm::Text("--context"),
        "The kubeconfig's context, if the cluster is live",
    ),
    Parameter::new(
        "namespaces",
        ArgumentForm::Texts("--namespace"),
        "Take only objects of these namespaces; all without it",
    ),
    Parameter::new(
        "config",
        ArgumentForm::Text("--config"),
        "A file with the KubeSchedulerConfiguration; the default one without it",
    ),
    Parameter::new(
        "feature_gates",
        ArgumentForm::Text("--feature-gates"),
        "Feature gates as kube-scheduler takes them: A=true,B=false",
    ),
    Parameter::new(
        "kube_version",
        ArgumentForm::Text("--kube-version"),
        "The version of kube-scheduler to decide as, such as 1.33; the input's own version without it",
    ),
];

const PODS: &[Parameter] = &[
    Parameter::new(
        "pod_files",
        ArgumentForm::Texts("--pod"),
        "Files with pods or workloads to be tried in addition",
    ),
    Parameter::new(
        "manifest",
        ArgumentForm::Input("--pod"),
        "A manifest (YAML) of a pod or workload to be tried in addition",
    ),
    Parameter::new("replicas", ArgumentForm::Number("--replicas"), "Replicas of what is tried"),
];

const EDITS: &[Parameter] = &[Parameter::required(
    "edits",
    ArgumentForm::Texts("--edit"),
    "Changes in order: \"cordon node a\", \"label node a zone=b\", \"resize pod web cpu=500m\", \"drain node a\", \"lose zone=b\", \"rollout deployment web cpu=1\", \"delete pod web\"",
)];
const MAYBE_EDITS: &[Parameter] = &[Parameter::new(
    "edits",
    ArgumentForm::Texts("--edit"),
    "Changes that are made first, in order: \"cordon node a\", \"resize pod web cpu=500m\", \"drain node a\", \"lose zone=b\", \"rollout deployment web cpu=1\"",
)];
const CYCLES: &[Parameter] = &[Parameter::new(
    "max_cycles",
    ArgumentForm::Number("--max-cycles"),
    "Stop after this many scheduling cycles",
)];
const POD: &[Parameter] = &[Parameter::new(
    "pod",
    ArgumentForm::Positional,
    "The pod: its name, or NAMESPACE/NAME; without it, the one that is pending",
)];
const NODE: &[Parameter] = &[Parameter::required(
    "node",
    ArgumentForm::Text("--why-not"),
    "The node that the pod is not on",
)];

const INSTANCE_TYPES: &[Parameter] = &[Parameter::new(
    "instance_types",
    ArgumentForm::Texts("--instance-types"),
    "Files that say where new nodes come from: a catalogue of instance types with prices, NodePools, NodeClaims, DaemonSets, a snapshot of cluster-autoscaler",
)];

const EXPLAIN: &str = include_str!("../../../schema/explain.v1.json");
const RUN: &str = include_str!("../../../schema/run.v1.json");

/// The tools in the order in which they are listed.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "run",
        title: "Schedule everything",
        description: "Schedules all pending pods on a copy of the cluster: which pod gets which node, which are evicted, which stay pending and with what message, how full the nodes are.",
        command: &["run"],
        arguments: &[INPUT, PODS, MAYBE_EDITS, CYCLES],
        schema: RUN,
    },
    Tool {
        name: "explain",
        title: "Why is a pod pending, or on its node?",
        description: "Explains one pod: the decisive cause, what every plugin says on every node with the figures behind it, preemption, queue, and when it is tried again.",
        command: &["explain"],
        arguments: &[POD, INPUT, PODS, CYCLES],
        schema: EXPLAIN,
    },
    Tool {
        name: "why_not",
        title: "Why is a pod not on this node?",
        description: "Explains why a pod is not on a given node: which plugin rejects it and with what figures, or by how many points it scores below the chosen node.",
        command: &["explain"],
        arguments: &[POD, NODE, INPUT, PODS, CYCLES],
        schema: EXPLAIN,
    },
    Tool {
        name: "fix",
        title: "What is the smallest change that makes a pod fit?",
        description: "Searches the smallest changes to pod, nodes, volumes or budgets that make a pending pod fit, and tries each on a copy of the cluster. Explains the pod as well. May take long on large clusters.",
        command: &["explain", "--fix"],
        arguments: &[POD, INPUT, INSTANCE_TYPES, PODS, CYCLES],
        schema: EXPLAIN,
    },
    Tool {
        name: "new_node",
        title: "Which new node would take a pod?",
        description: "Tries nodes that could be created, of karpenter's NodePools, of cluster-autoscaler's groups and copies of existing nodes, each on a copy of the cluster: which fit, at which price, and what rejects the others. Explains the pod as well.",
        command: &["explain", "--new-node"],
        arguments: &[POD, INPUT, INSTANCE_TYPES, PODS, CYCLES],
        schema: EXPLAIN,
    },
    Tool {
        name: "new_nodes",
        title: "How many new nodes do all pending pods need?",
        description: "Schedules everything, then tries nodes that could be created for the pods that stay pending: how many pods one takes, how many such nodes are needed, a mix of nodes with its price, and why the others stay pending.",
        command: &["run", "--new-node"],
        arguments: &[INPUT, INSTANCE_TYPES, PODS, MAYBE_EDITS, CYCLES],
        schema: RUN,
    },
    Tool {
        name: "what_if",
        title: "What would a change do?",
        description: "Compares the cluster with the same after changes: which pods move, become pending or get a node, and which verdicts and scores differ.",
        command: &["diff"],
        arguments: &[EDITS, INPUT, CYCLES],
        schema: include_str!("../../../schema/diff.v1.json"),
    },
    Tool {
        name: "diff",
        title: "What differs between two configurations or clusters?",
        description: "Compares two runs: another configuration, version, feature gates or files against the given ones.",
        command: &["diff"],
        arguments: &[
            &[
                Parameter::new(
                    "files_b",
                    ArgumentForm::Texts("--filename-b"),
                    "The files of the other side",
                ),
                Parameter::new(
                    "config_b",
                    ArgumentForm::Text("--config-b"),
                    "The KubeSchedulerConfiguration of the other side",
                ),
                Parameter::new(
                    "feature_gates_b",
                    ArgumentForm::Text("--feature-gates-b"),
                    "The feature gates of the other side",
                ),
                Parameter::new(
                    "kube_version_b",
                    ArgumentForm::Text("--kube-version-b"),
                    "The version of kube-scheduler of the other side, such as 1.36",
                ),
            ],
            INPUT,
            CYCLES,
        ],
        schema: include_str!("../../../schema/diff.v1.json"),
    },
    Tool {
        name: "capacity",
        title: "How many more would fit?",
        description: "How many more pods of a workload would fit after the pending ones are scheduled, on which nodes, and what stops the next one. Needs pod_files or manifest.",
        command: &["run", "--capacity"],
        arguments: &[INPUT, PODS, MAYBE_EDITS],
        schema: RUN,
    },
    Tool {
        name: "survive",
        title: "What if a zone or node goes away?",
        description: "Loses each value of a node label in turn (zone, pool, hostname), or one zone or node, and reports which pods then stay pending.",
        command: &["run"],
        arguments: &[
            &[Parameter::required(
                "key",
                ArgumentForm::Text("--survive"),
                "The node label: zone, hostname, or any key such as topology.kubernetes.io/zone; node for each node; zone=a or \"node a-0\" for one",
            )],
            INPUT,
            CYCLES,
        ],
        schema: include_str!("../../../schema/survive.v1.json"),
    },
    Tool {
        name: "upgrade",
        title: "What does an upgrade of Kubernetes change?",
        description: "Schedules the cluster as by two versions of kube-scheduler: which pods move, become pending or get a node, whose message changes, which parts of the configuration the newer version rejects, and which change of the scheduler causes each difference.",
        command: &["upgrade"],
        arguments: &[
            &[Parameter::new(
                "to",
                ArgumentForm::Text("--to"),
                "The version after the upgrade, such as 1.36; kube_version names the one before it",
            )],
            INPUT,
            CYCLES,
        ],
        schema: include_str!("../../../schema/upgrade.v1.json"),
    },
    Tool {
        name: "check_config",
        title: "Would kube-scheduler start with this configuration?",
        description: "Checks a KubeSchedulerConfiguration and prints it with all defaults and the plugins of each profile. Without a file, the default configuration.",
        command: &["config"],
        arguments: &[&[Parameter::new(
            "config",
            ArgumentForm::Positional,
            "The file with the configuration",
        )]],
        schema: include_str!("../../../schema/config.v1.json"),
    },
];
