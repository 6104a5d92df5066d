//! The scheduling queues: which pod is where, since when, why, and when it leaves by itself.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::shared::outcome_lines;
use super::{OnEnter, RunTarget, View, ViewId, shared};
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model, QueuedPod, span};
use crate::tui::pod_sign::{self, is_failure};
use crate::tui::theme::Scope;
use crate::tui::widget::bar::{self, StyledParts};
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::Labels;
use kubestep_api::words::count;
use kubestep_debug::message::brief;
use kubestep_debug::trace::Entry;
use kubestep_framework::record::{Outcome, QueueName};
use kubestep_source::fixtures;

/// Moves that are drawn: no frame waits for more.
const MOVES: usize = 20_000;

/// Blanks behind each sparkline.
const GAP: &str = "   ";

/// The rows of the queues.
pub struct QueuesView<'a>(pub &'a Model);

impl QueuesView<'_> {
    fn pod(&self, row: usize) -> Option<&QueuedPod> {
        self.0.queued.get(row)
    }

    /// The pods that columns are measured by.
    fn measured(&self) -> impl Iterator<Item = &QueuedPod> {
        self.0.queued.iter().take(shared::MEASURED)
    }

    /// Time since the pod is in its queue.
    fn since(&self, pod: &QueuedPod) -> String {
        span(self.0.now.0 - pod.since.0)
    }

    /// Time until the pod leaves by itself.
    fn left(&self, pod: &QueuedPod) -> Option<String> {
        pod.until.map(|until| span((until.0 - self.0.now.0).max(0)))
    }

    fn last_cycle(&self, row: usize) -> Option<CyclePosition> {
        self.0.start_of_last_cycle(self.pod(row)?.info.key())
    }
}

fn name(queue: QueueName) -> &'static str {
    if queue == QueueName::None { "not served" } else { queue.as_str() }
}

/// The queues whose lengths are drawn.
const DRAWN: [QueueName; 3] = [QueueName::Active, QueueName::Backoff, QueueName::Unschedulable];
/// Widest a drawing of a queue's lengths gets.
const WIDEST: usize = 30;

/// The length of each drawn queue after each move up to the present, oldest first.
fn lengths(model: &Model) -> [Vec<usize>; 3] {
    let mut now = [0_i64; 3];
    let mut all: [Vec<i64>; 3] = Default::default();
    let reached = model.entries_reached.unwrap_or(usize::MAX);
    let past = model.events.partition_point(|(at, _)| (*at as usize) < reached);
    for (_, entry) in &model.events[past.saturating_sub(MOVES)..past] {
        let Entry::Move(moved) = entry.as_ref() else { continue };
        for (at, queue) in DRAWN.iter().enumerate() {
            now[at] += i64::from(moved.to == *queue) - i64::from(moved.from == *queue);
            all[at].push(now[at]);
        }
    }
    // Of a history whose beginning was dropped, the first lengths are not known: none is below 0.
    all.map(|values| {
        let lowest = values.iter().copied().min().unwrap_or(0).min(0);
        values.iter().map(|value| usize::try_from(value - lowest).unwrap_or(0)).collect()
    })
}

impl GridSource for QueuesView<'_> {
    fn rows(&self) -> usize {
        self.0.queued.len()
    }

    fn columns(&self) -> usize {
        7
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let pods = self.0.queued.iter().map(|pod| pod.info.key());
                GridColumn::fitted("pod", 20, shared::widest(pods))
            }
            1 => {
                let widest = self.measured().map(|pod| name(pod.queue).len() + 2).max();
                GridColumn::text("queue", widest.unwrap_or(0).max(8) as u16)
            }
            2 => {
                let widest = self.measured().map(|pod| pod.info.priority().to_string().len());
                GridColumn::number("prio", widest.max().unwrap_or(0).max(4) as u16)
            }
            3 => GridColumn::number("attempts", 8).shown_from(WidthTier::Standard),
            4 => {
                let since = self.measured().map(|pod| self.since(pod).len());
                GridColumn::number("since", since.max().unwrap_or(0).max(6) as u16)
                    .shown_from(WidthTier::Standard)
            }
            5 => {
                let left = self.measured().filter_map(|pod| self.left(pod));
                let widest = left.map(|left| left.len()).max().unwrap_or(0);
                GridColumn::number("left", widest.max(6) as u16)
            }
            _ => GridColumn::prose_in(self, column, "why", 20),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(pod) = self.pod(row) else { return };
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => write!(out, "{}", pod.info.key()),
            1 => {
                let (sign, scope) = pod_sign::of_place(pod.place());
                out.set(sign, scope);
                write!(out, " {}", name(pod.queue))
            }
            2 => write!(out, "{}", pod.info.priority()),
            3 => write!(out, "{}", pod.attempts),
            4 => out.write_str(&self.since(pod)),
            5 => out.write_str(&self.left(pod).unwrap_or_default()),
            _ => {
                let cause = self.0.causes.get(&pod.info.key()).map(String::as_str);
                out.set(&why(pod, cause), Scope::TextDim);
                Ok(())
            }
        };
    }

    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        let pod = self.pod(row)?;
        match column {
            4 => Some(self.0.now.0 - pod.since.0),
            5 => pod.until.map(|until| until.0),
            _ => None,
        }
    }

    fn has_break(&self, row: usize) -> bool {
        self.0.has_break(|| self.location(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.pod(row).map_or(0, |p| shared::key_of(p.info.key()))
    }

    /// Pods leave at the head of the queue: the first of those that remain.
    fn line_instead(&self, _gone: usize) -> usize {
        0
    }

    fn is_current(&self, row: usize) -> bool {
        self.pod(row).is_some_and(|pod| self.0.is_current_pod(pod.info.key()))
    }

    fn is_failure(&self, row: usize) -> bool {
        self.pod(row).is_some_and(|pod| is_failure(pod.queue))
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn labels(&self, row: usize) -> Option<&Labels> {
        Some(&self.pod(row)?.info.pod.metadata.labels)
    }
}

/// What holds the pod up: plugins at Permit, or the cause, empty if it fits by now; until that is
/// worked out, what was said of its last attempt.
fn why<'a>(pod: &'a QueuedPod, cause: Option<&'a str>) -> Cow<'a, str> {
    let reason = brief(&pod.reason);
    match cause {
        _ if pod.waits_for.is_some() => format!("held by {}", names(pod)).into(),
        None => reason,
        Some("") if pod.attempts == 0 || reason.is_empty() => Cow::Borrowed(""),
        Some("") => format!("last attempt: {reason}").into(),
        Some(cause) => cause.into(),
    }
}

fn names(pod: &QueuedPod) -> String {
    pod.rejected_by.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", ")
}

/// Questions about a whole cluster.
const LOSS_AND_UPGRADE: (&str, &str) =
    ("R  P", "what if a zone or node is lost; what another version of Kubernetes changes");

/// What one is looking at before the first cycle, and the first keys.
fn first_lines(model: &Model) -> Vec<DetailLine> {
    let story = fixtures::of_source(&model.source);
    let what = story.map_or_else(
        || model.source.clone(),
        |story| format!("the story {}, {}", story.name, story.about),
    );
    let mut lines = vec![DetailLine::heading(format!(
        "kubestep, the debugger for Kubernetes scheduling: {what}"
    ))];
    if !model.queued.is_empty() {
        let pods = count(model.queued.len(), "pod");
        lines.push(DetailLine::text(format!(
            "{pods} to schedule; a cycle filters the nodes, scores them and binds the pod"
        )));
    }
    lines.extend(story.map(|story| {
        let commands: Vec<String> = story.example().iter().map(|line| format!(":{line}")).collect();
        DetailLine::key("r", format!("the whole story: {}", commands.join(", ")))
    }));
    let keys = match model.queued.is_empty() {
        false => [
            ("n  s  c", "run the next cycle, step into its plugins, run all cycles"),
            ("W  X", "why a pod is pending or on its node; what would make it fit"),
            LOSS_AND_UPGRADE,
        ],
        true => [
            ("E", "change the cluster: drain or lose a node, roll out, put or delete an object"),
            ("5  6", "its nodes; its pods, where W says why one is on its node"),
            LOSS_AND_UPGRADE,
        ],
    };
    lines.extend(keys.map(|(keys, what)| DetailLine::key(keys, what)));
    lines
}

impl View for QueuesView<'_> {
    fn location(&self, row: usize, _column: usize) -> Option<String> {
        Some(format!("pod:{}", self.pod(row)?.info.key()))
    }

    fn title(&self) -> String {
        use QueueName::{Active, Backoff, Gated, InFlight, Unschedulable};
        let count = |queue| self.0.queued.iter().filter(|p| p.queue == queue).count();
        let queues = [Active, Backoff, Unschedulable, Gated, InFlight];
        let counts: Vec<String> =
            queues.iter().map(|q| format!("{} {}", q.as_str(), count(*q))).collect();
        format!("Queues: {}", counts.join(", "))
    }

    fn banner(&self, width: u16) -> Vec<StyledParts> {
        let lengths = lengths(self.0);
        if lengths[0].len() < 2 {
            return Vec::new();
        }
        let now = |queue| self.0.queued.iter().filter(|pod| pod.queue == queue).count();
        let words = DRAWN.map(|queue| (format!("{} ", queue.as_str()), format!(" {}", now(queue))));
        let used: usize = words.iter().map(|(name, now)| name.len() + now.len() + GAP.len()).sum();
        let cells = usize::from(width).saturating_sub(used) / DRAWN.len();
        // One scale, so that the queues compare.
        let highest = lengths.iter().flatten().copied().max().unwrap_or(0);
        let mut parts = StyledParts::new();
        for ((queue, lengths), (name, now)) in DRAWN.iter().zip(&lengths).zip(words) {
            let drawn = bar::sparkline(lengths, highest, cells.min(WIDEST));
            parts.push((name, Scope::TextDim));
            parts.push((drawn, pod_sign::of_queue(*queue).1));
            parts.push((now + GAP, Scope::Text));
        }
        vec![parts]
    }

    fn empty(&self) -> String {
        let cycles = &self.0.cycles;
        let placed = cycles.iter().filter(|c| c.outcome == Outcome::Scheduled).count();
        let victims = cycles.iter().filter_map(|c| Some(c.preemption.as_ref()?.victims.len()));
        let evicted = match victims.sum() {
            0_usize => String::new(),
            pods => format!(", {} evicted", count(pods, "pod")),
        };
        match placed {
            0 => "No pod waits to be scheduled; 6 shows all pods.".into(),
            _ => format!(
                "No pod waits to be scheduled: {} placed{evicted}; 1 shows the cycles, 6 all pods.",
                count(placed, "pod")
            ),
        }
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(pod) = self.pod(row) else { return Vec::new() };
        let ((sign, scope), queue) = (pod_sign::of_place(pod.place()), name(pod.queue));
        let key = pod.info.key();
        let within = if pod.queue == QueueName::Backoff { "in " } else { "" };
        let mut lines = if self.0.cycles.is_empty() { first_lines(self.0) } else { Vec::new() };
        lines.push(DetailLine::text(format!("{sign} {key} is {within}{queue}")).scoped(scope));
        if let Some(left) = self.left(pod) {
            // A cluster's own time passes by itself.
            let hint = match self.0.followed() {
                Some(_) => "",
                None => "; + advances to the next timer",
            };
            lines.push(DetailLine::field("leaves in", format!("{left}{hint}")));
        }
        if let Some(node) = self.0.nomination_of(key) {
            lines.push(DetailLine::field(
                "nominated",
                format!("capacity is reserved on {node}; 5 shows it"),
            ));
        }
        if !pod.rejected_by.is_empty() {
            let what = match pod.queue {
                _ if pod.waits_for.is_some() => "held by",
                QueueName::Gated => "gated by",
                _ => "rejected by",
            };
            lines.push(DetailLine::field(what, names(pod)));
        }
        let last = self.0.last_cycle_of(key);
        // The last cycle's message has the reason otherwise.
        if !pod.reason.is_empty() && last.is_none_or(|cycle| cycle.message != pod.reason) {
            lines.push(DetailLine::field("why", &pod.reason));
        }
        if let Some(cycle) = last {
            lines.push(DetailLine::heading(format!("Last cycle, {}", cycle.cycle)));
            lines.extend(outcome_lines(cycle));
            lines.extend(super::live_decision_lines(self.0, cycle.cycle));
        }
        lines
    }

    fn detail_without_rows(&self) -> Vec<DetailLine> {
        if self.0.cycles.is_empty() { first_lines(self.0) } else { Vec::new() }
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        match self.last_cycle(row) {
            Some(moment) => OnEnter::Inspect(moment, ViewId::Cycle),
            None => OnEnter::Describe,
        }
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        let row = (0..self.rows()).find(|row| self.is_current(*row));
        row.map(|row| (row, None))
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.last_cycle(row)
    }

    fn run_to(&self, row: usize, _column: usize) -> Option<RunTarget> {
        self.pod(row).map(|pod| RunTarget::NextCycleOf(pod.info.key()))
    }
}
