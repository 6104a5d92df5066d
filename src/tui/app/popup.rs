//! Windows over the view: help and palette, messages, descriptions.

use std::sync::Arc;

use super::{App, Effect, Request};
use crate::tui::action::whatif::{Choice, Wish};
use crate::tui::action::{Action, Keymap};
use crate::tui::compare::Table;
use crate::tui::driver::Open;
use crate::tui::lines::{Line, LineGrid, Wrapped, wrapped};
use crate::tui::model::Model;
use crate::tui::prompt::Purpose;
use crate::tui::theme::Scope;
use crate::tui::view::ViewId;
use crate::tui::widget::grid::{CellOut, Column, GridSource, GridState};
use crate::tui::widget::status_line::Severity;
use crate::tui::{action, command};
use kubestep_debug::edit::offers::Offer;
use kubestep_live::{Decision, Verdict};

/// Widest a window gets; longer lines are hard to read.
const WIDEST: u16 = 110;

/// A window.
pub struct Popup {
    /// Its title.
    pub title: String,
    /// Keys that work in it, for its lower edge.
    pub footer: &'static str,
    content: Content,
    /// Its rows, laid out for the width they were last asked for: there can be thousands.
    laid_out: Option<(u16, Arc<dyn GridSource>)>,
    /// Selection, scroll position and filter.
    pub grid: GridState,
}

enum Content {
    Actions(Vec<ActionRow>),
    Offers(Vec<Offer>),
    Choices(Vec<Choice>),
    Lines(Vec<Line>),
    Table(Table),
}

/// A row of the help.
#[derive(Clone)]
struct ActionRow {
    action: Action,
    keys: String,
    usage: String,
    help: String,
    valid: bool,
}

impl Popup {
    fn new(title: &str, footer: &'static str, content: Content) -> Popup {
        let grid = GridState::default();
        Popup { title: title.to_owned(), footer, content, laid_out: None, grid }
    }

    /// Whether its rows can be sorted.
    pub fn has_order(&self) -> bool {
        matches!(self.content, Content::Table(_))
    }

    /// Width and height that show everything, on a screen of `size`.
    pub fn size(&mut self, size: (u16, u16)) -> (u16, u16) {
        let width = size.0.saturating_sub(4).min(WIDEST);
        let rows = self.source(width.saturating_sub(4)).rows().min(usize::from(u16::MAX)) as u16;
        (width, rows.saturating_add(3).clamp(5, size.1.saturating_sub(4).max(5)))
    }

    /// Its rows when it is `width` columns wide inside.
    pub fn source(&mut self, width: u16) -> Arc<dyn GridSource> {
        match &self.laid_out {
            Some((known, rows)) if *known == width => rows.clone(),
            _ => {
                let rows = self.content.rows(width);
                self.laid_out = Some((width, rows.clone()));
                rows
            }
        }
    }
}

impl Content {
    fn rows(&self, width: u16) -> Arc<dyn GridSource> {
        match self {
            Content::Actions(rows) => Arc::new(ActionGrid(rows.clone())),
            Content::Offers(offers) => Arc::new(OfferGrid(offers.clone())),
            Content::Choices(lines) => {
                let rows = choice_rows(lines, width).into_iter();
                Arc::new(LineGrid(rows.map(|(_, row)| row).collect()))
            }
            Content::Table(table) => Arc::new(table.clone()),
            Content::Lines(lines) => {
                let columns = usize::from(width.saturating_sub(2));
                Arc::new(LineGrid(wrapped(lines, columns)))
            }
        }
    }
}

/// The lines of choices in a window of that width, each with what it chooses.
fn choice_rows(lines: &[Choice], width: u16) -> Vec<(Option<Wish>, Wrapped)> {
    let columns = usize::from(width.saturating_sub(2));
    let rows = |(wish, text): &Choice| {
        let rows = wrapped(&[Line::text(text)], columns).into_iter();
        rows.map(|row| (wish.clone(), row)).collect::<Vec<_>>()
    };
    lines.iter().flat_map(rows).collect()
}

struct ActionGrid(Vec<ActionRow>);

impl GridSource for ActionGrid {
    fn rows(&self) -> usize {
        self.0.len()
    }
    fn columns(&self) -> usize {
        3
    }
    fn column(&self, column: usize) -> Column {
        match column {
            0 => Column::text("key", 11),
            1 => Column::text("command", 22),
            _ => Column::prose("what it does", 20),
        }
    }
    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some(row) = self.0.get(row) else { return };
        let dim = if row.valid { Scope::Text } else { Scope::TextDim };
        match column {
            0 => out.set(&row.keys, if row.valid { Scope::HintKey } else { Scope::TextDim }),
            1 => out.set(&row.usage, dim),
            _ => out.set(&row.help, dim),
        }
    }
}

struct OfferGrid(Vec<Offer>);

impl GridSource for OfferGrid {
    fn rows(&self) -> usize {
        self.0.len()
    }
    fn columns(&self) -> usize {
        1
    }
    fn column(&self, _column: usize) -> Column {
        Column::prose("edit", 20)
    }
    fn cell(&self, row: usize, _column: usize, out: &mut CellOut) {
        let Some(offer) = self.0.get(row) else { return };
        let more = if offer.missing.is_empty() { "" } else { "…" };
        out.set(&format!("{}{more}", offer.words), Scope::Text);
    }
}

/// Rows of the help as seen from `view`: what works there first.
fn action_rows(keymap: &Keymap, view: ViewId) -> Vec<ActionRow> {
    let row = |spec: &action::Spec| {
        let own = if keymap.is_overridden(spec.action) { " (your keys)" } else { "" };
        let valid = spec.place.holds(view);
        let place = if valid { String::new() } else { format!(" [{}]", command::views_of(spec)) };
        ActionRow {
            action: spec.action,
            keys: keymap.keys_of(spec.action).take(2).collect::<Vec<_>>().join(" "),
            usage: format!(":{}{}", spec.name, spec.argument.usage()),
            help: format!("{}{own}{place}", spec.help),
            valid,
        }
    };
    // Actions of this view alone come first: they are what one looks for here.
    let rank = |spec: &&action::Spec| match (spec.place.holds(view), spec.place) {
        (true, action::Place::ANY) => 1,
        (true, _) => 0,
        (false, _) => 2,
    };
    let mut specs: Vec<_> = action::all().collect();
    specs.sort_by_key(rank);
    specs.into_iter().map(row).collect()
}

/// A decision of the cluster's scheduler and ours.
pub(in crate::tui) fn decision_lines(decision: &Decision) -> Vec<Line> {
    let scope = match decision.verdict {
        Verdict::Same => Scope::VerdictPass,
        Verdict::Tie => Scope::VerdictWait,
        Verdict::Different => Scope::VerdictFail,
        Verdict::Untried | Verdict::Incomparable => Scope::VerdictSkip,
    };
    let cycle = decision.cycle.map(|number| format!(" (cycle {number})")).unwrap_or_default();
    let heading = format!("{}: {}", decision.pod, decision.verdict.as_str());
    let mut lines =
        vec![Line::text(heading).scoped(scope), Line::field("  the cluster", &decision.theirs)];
    if decision.cycle.is_some() {
        lines.push(Line::field("  ours", format!("{}{cycle}", decision.ours)));
    }
    if !decision.reason.is_empty() {
        lines.push(Line::field("  where", &decision.reason));
    }
    lines
}

impl App {
    /// All keys and commands.
    pub fn open_help(&mut self) {
        let rows = action_rows(&self.keymap, self.view);
        let preset = match self.keymap.preset().name {
            "vi" => String::new(),
            other => format!(" ({other})"),
        };
        let title = format!("Keys and commands{preset}, {} first", self.view.title());
        self.push_popup(Popup::new(
            &title,
            "/ filter  Enter run  Esc close",
            Content::Actions(rows),
        ));
    }

    /// The help with its filter open.
    pub fn open_palette(&mut self) {
        self.popups.clear();
        self.open_help();
        self.ask(Purpose::Filter, "");
    }

    /// The decisions of the live cluster's scheduler beside ours, the newest last.
    pub fn open_decisions(&mut self, model: &Model) {
        let decisions = model.live.iter().flat_map(|live| &live.decisions);
        let mut lines: Vec<Line> =
            decisions.flat_map(|decision| decision_lines(decision)).collect();
        if lines.is_empty() {
            lines.push(Line::text("the cluster's scheduler has decided nothing yet"));
        }
        let title = "Decisions of the cluster's scheduler beside ours";
        self.push_popup(Popup::new(title, "/ filter  Esc close", Content::Lines(lines)));
        self.move_in_popup(isize::MAX);
    }

    /// A window with lines that somebody else made.
    pub fn open_text(&mut self, title: &str, lines: &[String]) {
        let lines = lines.iter().map(Line::text).collect();
        self.push_popup(Popup::new(title, "/ filter  Esc close", Content::Lines(lines)));
    }

    /// A window with a table.
    pub fn open_table(&mut self, title: &str, table: Table) {
        let footer = "z only what differs  / filter  Esc close";
        self.push_popup(Popup::new(title, footer, Content::Table(table)));
    }

    /// Everything about the selected row.
    pub fn describe(&mut self, model: &Model) {
        let column = self.grid(self.view).column;
        let Some(row) = self.selected_row() else {
            return self.say(Severity::Error, "there is no row to describe");
        };
        let view = self.source(model);
        let mut out = CellOut::default();
        view.cell(row, 0, &mut out);
        let lines = view.detail(row, column);
        let title = out.text.trim().to_owned();
        self.push_popup(Popup::new(&title, "/ filter  Esc close", Content::Lines(lines)));
    }

    /// The details of the selected cell for the clipboard, under the view's title.
    pub fn copy(&mut self, model: &Model, write: fn(&str, &[Line]) -> String) -> Effect {
        let column = self.grid(self.view).column;
        let rows = self.chosen_rows(model);
        if rows.is_empty() {
            return self.fail("there is no row to copy".into());
        }
        let view = self.source(model);
        let lines: Vec<Line> = rows.iter().flat_map(|row| view.detail(*row, column)).collect();
        Effect::Copy(write(&view.title(), &lines))
    }

    /// The whole line of help of the action selected in the open window.
    pub(in crate::tui) fn selected_help(&self) -> Option<&str> {
        let popup = self.popups.last()?;
        match &popup.content {
            Content::Actions(rows) => Some(&rows.get(popup.grid.selected_row()?)?.help),
            Content::Lines(_) | Content::Offers(_) | Content::Choices(_) | Content::Table(_) => {
                None
            }
        }
    }

    /// Opens a window that the session filled.
    pub(super) fn open_window(&mut self, open: Open) {
        match open {
            Open::Lines(title, lines) => {
                let lines = lines.iter().map(Line::text).collect();
                self.push_popup(Popup::new(&title, "/ filter  Esc close", Content::Lines(lines)));
            }
            Open::Answer(title, lines) => {
                self.push_popup(Popup::new(&title, "/ filter  Esc close", Content::Lines(lines)));
            }
            Open::Branches(title, lines) => {
                let footer = "Enter go to the branch  / filter  Esc close";
                self.push_popup(Popup::new(&title, footer, Content::Choices(lines)));
            }
            Open::Fixes(title, lines) => {
                // The first change, not what is said above it.
                let first = isize::from(lines.iter().any(|(fix, _)| fix.is_some()));
                let footer = match first {
                    0 => "/ filter  Esc close",
                    _ => "Enter do it as a what-if  / filter  Esc close",
                };
                self.push_popup(Popup::new(&title, footer, Content::Choices(lines)));
                self.move_in_popup(first);
            }
            Open::Offers(title, offers) => {
                let footer = "Enter do  / filter  Esc close";
                self.push_popup(Popup::new(&title, footer, Content::Offers(offers)));
            }
            // The event loop has the terminal to give away.
            Open::Editor(..) => {}
        }
    }

    fn push_popup(&mut self, popup: Popup) {
        // The same again would lie over itself unseen.
        if self.popups.last().is_some_and(|open| open.title == popup.title) {
            self.popups.pop();
            self.tell("this window is open already; Esc closes it");
        }
        self.popups.push(popup);
        self.sync_popup();
    }

    /// The open window, if any.
    pub(in crate::tui) fn popup(&mut self) -> Option<&mut Popup> {
        self.popups.last_mut()
    }

    pub(super) fn sync_popup(&mut self) {
        let size = self.size;
        if let Some(popup) = self.popups.last_mut() {
            let width = popup.size(size).0.saturating_sub(4);
            let source = popup.source(width);
            popup.grid.refresh(&*source, u64::from(width));
        }
    }

    /// Moves in the open window; says whether there is one.
    pub(super) fn move_in_popup(&mut self, lines: isize) -> bool {
        let size = self.size;
        let Some(popup) = self.popups.last_mut() else { return false };
        let width = popup.size(size).0.saturating_sub(4);
        let source = popup.source(width);
        popup.grid.move_by(&*source, lines);
        true
    }

    /// Does an edit on offer, or asks for what its words lack.
    fn take_offer(&mut self, offer: Offer) -> Effect {
        if offer.missing.is_empty() {
            return Effect::Session(Request::WhatIf(Wish::Edits(vec![offer.words])));
        }
        self.ask(Purpose::Argument(Action::WhatIf(action::WhatIf::Do)), &offer.words);
        self.say(Severity::Info, format!("complete it: {}{}", offer.words, offer.missing));
        Effect::None
    }

    /// Runs the selected action of the help; `None` when no window is open.
    pub(super) fn choose_in_popup(&mut self, model: &Model) -> Option<Effect> {
        let size = self.size;
        let popup = self.popups.last_mut()?;
        let width = popup.size(size).0.saturating_sub(4);
        let chosen = match (&popup.content, popup.grid.selected_row()) {
            (Content::Actions(rows), Some(row)) => rows.get(row).cloned(),
            (Content::Choices(lines), Some(row)) => {
                let wish = choice_rows(lines, width).get(row)?.0.clone();
                let Some(wish) = wish else { return Some(Effect::None) };
                self.popups.pop();
                return Some(Effect::Session(Request::WhatIf(wish)));
            }
            (Content::Offers(offers), Some(row)) => {
                let offer = offers.get(row).cloned()?;
                self.popups.pop();
                return Some(self.take_offer(offer));
            }
            _ => None,
        };
        let Some(row) = chosen else {
            self.tell("there is nothing to open in this window; Esc closes it");
            return Some(Effect::None);
        };
        self.popups.pop();
        if !row.valid {
            let spec = action::spec(row.action);
            return Some(self.fail(format!("{} works in: {}", spec.name, command::views_of(spec))));
        }
        Some(self.invoke_by_key(row.action, model))
    }
}
