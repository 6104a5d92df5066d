//! Answers that fold: why a pod is where it is, and the pod groups.

use super::{OnEnter, View};
use crate::report::outline::{LinkTarget, OutlineItem, Tone};
use crate::tui::command::Command;
use crate::tui::glyph::{FOLDS, VerdictSign};
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, FoldedOutline, Model, OutlineKind};
use crate::tui::pod_sign::{self, is_failure};
use crate::tui::theme::Scope;
use crate::tui::view::ViewId;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;
use kubestep_framework::pod::NamespacedName;

/// The rows of an outline.
pub struct OutlineView<'a> {
    model: &'a Model,
    folding: Option<&'a FoldedOutline>,
    /// The lines that are not folded away.
    open: Vec<usize>,
    kind: OutlineKind,
}

impl<'a> OutlineView<'a> {
    /// One of the outlines of the model.
    pub fn new(model: &'a Model, kind: OutlineKind) -> OutlineView<'a> {
        let folding = model.outline(kind);
        let open = folding.map_or(Vec::new(), FoldedOutline::open);
        OutlineView { model, folding, open, kind }
    }

    fn item(&self, row: usize) -> Option<&'a OutlineItem> {
        self.folding?.outline.items.get(*self.open.get(row)?)
    }

    /// The cell of the matrix in the last cycle of the pod.
    fn verdict(
        &self,
        pod: NamespacedName,
        node: Name,
        plugin: Option<Symbol>,
    ) -> Option<CyclePosition> {
        let start = self.model.start_of_last_cycle(pod)?;
        let names = &self.model.cycles.get(start.cycle)?.nodes;
        let id = *names.order.iter().find(|id| names.name(**id) == node)?;
        let columns = &self.model.cycles.get(start.cycle)?.filter.plugins;
        let plugin = plugin.filter(|plugin| columns.iter().any(|column| column.plugin == *plugin));
        let frame = match plugin.or_else(|| columns.first().map(|column| column.plugin)) {
            Some(plugin) => Frame::new(ExtensionPoint::Filter, Some(plugin), Some(id)),
            None => Frame::START,
        };
        Some(CyclePosition { frame, ..start })
    }
}

fn scope(tone: Tone) -> Scope {
    match tone {
        Tone::Plain => Scope::Text,
        Tone::Heading => Scope::TextStrong,
        Tone::Bad => Scope::VerdictFail,
        Tone::Good => Scope::VerdictPass,
        Tone::Dim => Scope::TextDim,
        Tone::Queued(queue) => pod_sign::of_queue(queue).1,
        Tone::Waiting => pod_sign::WAITING.1,
    }
}

/// The sign before a line.
fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Heading | Tone::Dim => "",
        Tone::Bad => VerdictSign::Unschedulable.glyph(),
        Tone::Good => VerdictSign::Success.glyph(),
        Tone::Queued(queue) => pod_sign::of_queue(queue).0,
        Tone::Waiting => pod_sign::WAITING.0,
    }
}

impl GridSource for OutlineView<'_> {
    fn rows(&self) -> usize {
        self.open.len()
    }

    fn columns(&self) -> usize {
        1
    }

    fn column(&self, column: usize) -> GridColumn {
        GridColumn::prose_in(self, column, "Enter folds, unfolds, or goes there", 40)
    }

    fn cell(&self, row: usize, _column: usize, out: &mut CellWriter) {
        let (Some(item), Some(folding)) = (self.item(row), self.folding) else { return };
        let more = self.open.get(row).is_some_and(|at| folding.outline.has_more(*at));
        let mark = match (more, folding.is_folded(item)) {
            (false, _) => " ",
            (true, folded) => FOLDS[usize::from(!folded)],
        };
        let sign = match sign(item.tone) {
            "" => String::new(),
            sign => format!("{sign} "),
        };
        let indent = usize::from(item.depth) * 2;
        out.set(&format!("{:indent$}{mark} {sign}{}", "", item.text), scope(item.tone));
    }

    fn key(&self, row: usize) -> u64 {
        self.item(row).map_or(0, FoldedOutline::key)
    }

    fn is_failure(&self, row: usize) -> bool {
        self.item(row).is_some_and(|item| match item.tone {
            Tone::Queued(queue) => is_failure(queue),
            tone => matches!(tone, Tone::Bad),
        })
    }
}

impl View for OutlineView<'_> {
    fn title(&self) -> String {
        match (self.folding, self.kind) {
            (Some(folding), _) => folding.outline.title.clone(),
            (None, OutlineKind::Groups) => "Pod groups".into(),
            (None, OutlineKind::Why) => "Why?".into(),
        }
    }

    fn empty(&self) -> String {
        match self.kind {
            OutlineKind::Groups => {
                "No PodGroup of scheduling.k8s.io exists, and no pod names one. Groups of \
                                    plugins, such as Coscheduling's, are in W."
                    .into()
            }
            OutlineKind::Why => "No pod is chosen: select one in 2, 6 or 7 and type gw.".into(),
        }
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(item) = self.item(row) else { return Vec::new() };
        let mut lines = vec![DetailLine::text(&item.text).scoped(scope(item.tone))];
        lines.extend(item.to.map(|to| {
            let where_to = match to {
                LinkTarget::Verdict(_, node, Some(plugin)) => {
                    format!("what {plugin} said of {node}")
                }
                LinkTarget::Verdict(_, node, None) => format!("node {node} in the filter matrix"),
                LinkTarget::Cycle(cycle) => format!("cycle {cycle}"),
                LinkTarget::Pod(pod) => format!("why {pod} is where it is"),
                LinkTarget::Search(pod) => {
                    format!("the smallest changes that would make {pod} fit")
                }
            };
            DetailLine::key("Enter", where_to)
        }));
        lines
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        let (Some(item), Some(folding)) = (self.item(row), self.folding) else {
            return OnEnter::Describe;
        };
        let more = self.open.get(row).is_some_and(|at| folding.outline.has_more(*at));
        match item.to {
            _ if more => OnEnter::Run(Command::Fold(self.kind, FoldedOutline::key(item))),
            Some(LinkTarget::Verdict(pod, node, plugin)) => match self.verdict(pod, node, plugin) {
                Some(position) => OnEnter::Inspect(position, ViewId::Filter),
                None => OnEnter::View(ViewId::Nodes),
            },
            Some(LinkTarget::Cycle(number)) => {
                let at = self.model.cycles.binary_search_by_key(&number, |cycle| cycle.cycle);
                let moment = |cycle| {
                    OnEnter::Inspect(CyclePosition { cycle, frame: Frame::START }, ViewId::Cycle)
                };
                at.map_or(OnEnter::Describe, moment)
            }
            Some(LinkTarget::Pod(pod)) => OnEnter::Run(Command::WhyView(pod)),
            Some(LinkTarget::Search(pod)) => OnEnter::Run(Command::Fixes(pod)),
            None => OnEnter::Describe,
        }
    }
}
