//! A run as one HTML page for a ticket: the pending pods with their causes and the changes that help,
//! every cycle with its verdicts and scores, the nodes. It needs no network and no script: a script
//! only searches and unfolds.

mod cycles;
mod nodes;
mod pods;

use std::sync::Arc;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::disruption;
use crate::report::outline::Outline;
use crate::report::run::RunReport;
use kubestep_api::Time;
use kubestep_api::words::count;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, QueueName};
use kubestep_output::clean::clean_lines;

/// The style sheet, for light and dark screens, phones and paper.
const STYLE: &str = include_str!("page.css");
/// Search, and buttons that fold and unfold.
const SCRIPT: &str = include_str!("page.js");
/// The page may load nothing: no script, style, image or font from another file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// What the page shows.
pub struct ReportPage {
    /// Where the input came from, in a few words.
    pub name: String,
    /// The result of the run.
    pub run: RunReport,
    /// The pending pods that are explained, in the order of `run.pending`.
    pub pending: Vec<ExplainedPod>,
    /// The recorded cycles, oldest first.
    pub cycles: Vec<Arc<CycleRecord>>,
    /// When the run started; times are shown as distance to it.
    pub start: Time,
}

/// A pending pod with its explanation.
pub struct ExplainedPod {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The decisive cause, if it would not get a node now.
    pub cause: Option<String>,
    /// Why it is pending.
    pub why: Outline,
    /// What would help, line by line with the number of the change; `None` if it was not searched.
    pub fixes: Option<Vec<(Option<usize>, String)>>,
}

impl ReportPage {
    /// The page as a file.
    pub fn html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    title { "kubestep: " (self.name) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    (self.header())
                    main {
                        (self.disruption())
                        (pods::pending(self))
                        (pods::placed(self))
                        (cycles::section(self))
                        (nodes::section(&self.run))
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        clean_lines(&page.into_string()).into_owned() + "\n"
    }

    fn header(&self) -> Markup {
        let run = &self.run;
        html! {
            header {
                h1 { (self.name) }
                p.sum {
                    (run.placed.len()) " placed · "
                    @if !run.evicted.is_empty() { (run.evicted.len()) " evicted · " }
                    strong.bad[!run.pending.is_empty()] { (run.pending.len()) " pending" }
                    " · " (count(run.after.nodes.len(), "node")) " · "
                    (count(run.cycles, "scheduling cycle"))
                    " · kubestep with kube-scheduler " (run.gates.version_words())
                }
                (self.queues())
                @for notice in &run.notices { p.dim { (notice) } }
                nav {
                    a href="#pending" { "Pending" } a href="#placed" { "Placed" }
                    a href="#cycles" { "Cycles" } a href="#nodes" { "Nodes" }
                    input type="search" id="search" placeholder="Search pods, nodes, reasons"
                        aria-label="Search" hidden;
                    button type="button" id="unfold" hidden { "Unfold all" }
                    button type="button" id="fold" hidden { "Fold all" }
                }
            }
        }
    }

    /// Drained and lost nodes, and rollouts.
    fn disruption(&self) -> Markup {
        let text = self.run.disruption.as_ref().map(disruption::text);
        html! {
            @if let Some(text) = text {
                section id="disruption" { h2 { "Drains, losses and rollouts" } pre { (text) } }
            }
        }
    }

    /// How many pods are in each queue.
    fn queues(&self) -> Markup {
        use QueueName::{Active, Backoff, Gated, InFlight, None, Unschedulable};
        let of = |queue| self.run.pending.iter().filter(|pod| pod.place == queue).count();
        let queues = [Active, Backoff, Unschedulable, Gated, InFlight, None];
        let lengths = queues.map(|queue| (queue, of(queue)));
        html! {
            p.queues {
                @for (queue, pods) in lengths.into_iter().filter(|(_, pods)| *pods > 0) {
                    span.(queue_class(queue)) { (pods) " " (describe_queue(queue)) }
                }
            }
        }
    }
}

/// A queue in words.
fn describe_queue(queue: QueueName) -> &'static str {
    match queue {
        QueueName::None => "in no queue",
        queue => queue.as_str(),
    }
}

/// The class of a queue in the style sheet.
fn queue_class(queue: QueueName) -> &'static str {
    match queue {
        QueueName::Active | QueueName::InFlight => "wait",
        QueueName::Backoff | QueueName::Gated => "warn",
        QueueName::Unschedulable | QueueName::None => "bad",
    }
}
