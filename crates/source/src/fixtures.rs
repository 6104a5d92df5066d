//! The built-in clusters: each tells one story of a pending pod.
//!
//! They are the files in `fixtures/`, put into the program, so that `kubestep demo` works
//! with nothing at hand. `fixtures/README.md` says what to look for in each.

/// A built-in cluster.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// The name, also that of its folder in `fixtures/`.
    pub name: &'static str,
    /// What it is about, in one line.
    pub about: &'static str,
    /// The cluster, as YAML.
    pub cluster: &'static str,
}

/// The story that `kubestep demo` opens by itself.
pub const TOUR: &str = "tour";

macro_rules! stories {
    ($($name:literal: $about:literal,)*) => {
        /// All stories, the tour first.
        pub const STORIES: &[Story] = &[$(Story {
            name: $name,
            about: $about,
            cluster: include_str!(concat!("../../../fixtures/", $name, "/cluster.yaml")),
        }),*];
    };
}

stories! {
    "tour": "a little of everything",
    "fragmented": "enough is free, but nowhere together",
    "tainted": "the only node with room is kept for others",
    "affinity-typo": "no node has the label value asked for",
    "affinity-alone": "the pod to be near is not there",
    "anti-affinity-deadlock": "one replica more than nodes",
    "spread-skew": "a full zone holds the others back",
    "preemption-budget": "a disruption budget decides who has to go",
    "preemption-violates": "a disruption budget is no shield where there is no choice",
    "preemption-never": "important, but it may not push anybody out",
    "gated": "a scheduling gate nobody removed",
    "wrong-scheduler": "a scheduler name that no profile serves",
    "host-port": "every node has somebody on that port",
    "held-at-permit": "a plugin waits for a person's word",
    "zone-volume": "the disk is in a zone that is full",
    "claim-unbound": "a claim names a storage class that does not exist",
    "volume-limit": "no node can attach one disk more",
    "device-taken": "the GPU that is large enough has somebody else's claim",
    "gang-short": "all or nothing, and there is not enough for all",
    "cordoned": "every node is out of service",
}

/// The story of that name.
pub fn find(name: &str) -> Option<&'static Story> {
    STORIES.iter().find(|story| story.name == name)
}
