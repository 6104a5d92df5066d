//! The built-in clusters: each demonstrates one reason why a pod is pending.
//!
//! The files in `fixtures/` are embedded into the program, so that `kubestep demo` works without
//! input. `fixtures/README.md` says what to look for in each.

/// A built-in cluster that shows something.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// The name, which is also that of its folder in `fixtures/`.
    pub name: &'static str,
    /// What it demonstrates, in one line.
    pub about: &'static str,
    /// Commands of the debugger that show it, unless [`EXAMPLE`] does.
    own_example: &'static [&'static str],
    /// The cluster, as YAML.
    pub cluster: &'static str,
}

/// The cluster that `kubestep demo` opens by default.
pub const TOUR: &str = "tour";

/// Commands of the debugger that show why a pod is pending.
const EXAMPLE: &[&str] = &["continue", "why"];

macro_rules! stories {
    ($($name:literal: $about:literal $(=> [$($example:literal),*])?,)*) => {
        /// All built-in clusters, the tour first.
        pub const STORIES: &[Story] = &[$(Story {
            name: $name,
            about: $about,
            own_example: &[$($($example),*)?],
            cluster: include_str!(concat!("../../../fixtures/", $name, "/cluster.yaml")),
        }),*];
    };
}

stories! {
    "tour": "a little of everything",
    "fragmented": "enough is free in total, but not on one node",
    "tainted": "the only node with enough free capacity has a taint",
    "affinity-typo": "no node has the requested label value",
    "affinity-alone": "the pod that it must be near does not exist",
    "anti-affinity-deadlock": "one more replica than nodes",
    "spread-skew": "a full zone blocks the spread",
    "preemption-budget": "a disruption budget decides which pod is evicted",
    "preemption-violates": "a disruption budget does not protect the only possible victim",
    "preemption-never": "a high priority, but it may not preempt",
    "gated": "a scheduling gate that was not removed",
    "wrong-scheduler": "a scheduler name that no profile serves",
    "host-port": "the host port is in use on every node",
    "held-at-permit": "a plugin waits for your decision" => ["continue", "waiting"],
    "zone-volume": "the volume is in a zone that is full",
    "claim-unbound": "a claim names a storage class that does not exist",
    "volume-limit": "no node can attach one more disk",
    "device-taken": "the GPU that is large enough is allocated to another claim",
    "gang-short": "all or nothing, and not enough capacity for all",
    "cordoned": "every node is cordoned",
    "node-pools": "every node is full, and one of karpenter's pools can create one that fits"
        => ["continue", "new-nodes"],
    "zone-loss": "which zone can be lost, and how a budget delays a drain"
        => ["survive zone"],
    "rollout": "which pods a rollout replaces in which order, and where it gets stuck"
        => ["rollout deployment web cpu=1500m", "continue", "disruptions"],
    "opaque-plugin": "plugins that kubestep does not have, and what they could change"
        => ["continue", "timeline"],
    "coscheduling": "Coscheduling rejects a group of which two of three pods fit",
    "numa": "enough is free on the node, but not in one NUMA zone",
    "quota": "a namespace gets back what another borrowed of its elastic quota",
    "upgrade": "what another version of Kubernetes decides otherwise"
        => ["upgrade 1.33"],
}

impl Story {
    /// Commands of the debugger that show what it demonstrates.
    pub fn example(&self) -> &'static [&'static str] {
        if self.own_example.is_empty() { EXAMPLE } else { self.own_example }
    }

    /// The name as that of a source of objects.
    pub fn source(&self) -> String {
        format!("{SOURCE}{}", self.name)
    }
}

/// Before the name of a story that is a source of objects.
const SOURCE: &str = "demo: ";

/// The built-in cluster that a source of objects is.
pub fn of_source(source: &str) -> Option<&'static Story> {
    find(source.strip_prefix(SOURCE)?)
}

/// The built-in cluster with that name.
pub fn find(name: &str) -> Option<&'static Story> {
    STORIES.iter().find(|story| story.name == name)
}
