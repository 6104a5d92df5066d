//! Windows over the view: help and palette, messages, descriptions.

use std::sync::Arc;

use super::{App, Effect};
use crate::tui::action_error::ActionError;
use crate::tui::command::{Command, WhatIfCommand};
use crate::tui::command_result::{Choice, MenuItem, WindowContent};
use crate::tui::compare::Table;
use crate::tui::layout::WidthTier;
use crate::tui::lines::{DetailLine, LineGrid, Wrapped, wrapped};
use crate::tui::model::Model;
use crate::tui::prompt::{Prompt, Purpose};
use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::view::decision_lines;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource, GridState};
use crate::tui::widget::status_line::Severity;

/// Widest a window gets; longer lines are hard to read.
const WIDEST: u16 = 140;
/// A window takes the whole width if no more columns than this are left beside it.
const SLIVERS: u16 = 20;

/// A window over the view, with its scroll position.
pub struct Window {
    pub title: String,
    /// Keys that work in it, for its lower edge.
    pub footer: &'static str,
    content: WindowRows,
    /// Its rows, laid out for the width they were last asked for: there can be thousands.
    laid_out: Option<(u16, Arc<dyn GridSource>)>,
    /// Selection, scroll position and filter.
    pub grid: GridState,
    /// Whether it closes together with its filter's prompt.
    pub is_palette: bool,
}

enum WindowRows {
    Help(Vec<HelpRow>),
    Offers(Vec<MenuItem>),
    Choices(Vec<Choice>),
    Lines(Vec<DetailLine>),
    Table(Table),
}

/// A row of the help.
#[derive(Clone, Debug)]
pub struct HelpRow {
    pub name: &'static str,
    /// The keys of the action, separated by spaces.
    pub keys: String,
    /// Its name and argument, as typed.
    pub usage: String,
    pub help: String,
    /// Other words that people look for it with.
    pub search: &'static str,
    /// Whether it works in the view on screen.
    pub valid: bool,
    /// The views in which it works; empty for all.
    pub views: String,
}

impl HelpRow {
    /// The heading of a group.
    pub fn heading(title: &str) -> HelpRow {
        HelpRow {
            name: "",
            keys: String::new(),
            usage: title.to_owned(),
            help: String::new(),
            search: "",
            valid: true,
            views: String::new(),
        }
    }

    fn is_heading(&self) -> bool {
        self.name.is_empty()
    }
}

impl Window {
    fn new(title: &str, footer: &'static str, content: WindowRows) -> Window {
        let grid = GridState::default();
        let title = title.to_owned();
        Window { title, footer, content, laid_out: None, grid, is_palette: false }
    }

    /// Whether its rows can be sorted.
    pub fn has_order(&self) -> bool {
        matches!(self.content, WindowRows::Table(_))
    }

    /// Width and height that show everything, on a screen of `size`.
    pub fn size(&mut self, size: (u16, u16)) -> (u16, u16) {
        let width = match size.0 {
            narrow if narrow <= WIDEST + SLIVERS => narrow,
            _ => WIDEST,
        };
        let rows = self.source(width.saturating_sub(4)).rows().min(usize::from(u16::MAX)) as u16;
        (width, rows.saturating_add(3).clamp(5, size.1.max(5)))
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

/// A choice can span several rows; a step goes to the next choice. Rows that choose nothing are text, and
/// read line by line. `commands` are those of all rows.
impl Window {
    fn go_to_next_choice(&mut self, source: &dyn GridSource, commands: &[Option<WhatIfCommand>]) {
        let from = self.command(commands);
        while self.step(source, 1) && from.is_some() && self.command(commands) == from {}
    }

    /// To the first row of this choice, or from there to that of the one before.
    fn go_to_previous_choice(
        &mut self,
        source: &dyn GridSource,
        commands: &[Option<WhatIfCommand>],
    ) {
        if !self.go_to_start_of_choice(source, commands) && self.step(source, -1) {
            self.go_to_start_of_choice(source, commands);
        }
    }

    /// Returns whether the selection moved.
    fn go_to_start_of_choice(
        &mut self,
        source: &dyn GridSource,
        commands: &[Option<WhatIfCommand>],
    ) -> bool {
        let (from, command) = (self.grid.selected_row(), self.command(commands));
        while command.is_some() && self.step(source, -1) {
            if self.command(commands) != command {
                self.step(source, 1);
                break;
            }
        }
        self.grid.selected_row() != from
    }

    /// Moves by a row; `false` if there is none.
    fn step(&mut self, source: &dyn GridSource, rows: isize) -> bool {
        let from = self.grid.selected_row();
        self.grid.move_by(source, rows);
        self.grid.selected_row() != from
    }

    /// What Enter does in the selected row.
    fn command<'a>(&self, commands: &'a [Option<WhatIfCommand>]) -> Option<&'a WhatIfCommand> {
        commands.get(self.grid.selected_row()?)?.as_ref()
    }
}

impl WindowRows {
    /// What a row stands for, in a window of that width inside.
    fn choice(&self, row: usize, width: u16) -> Option<WindowChoice> {
        match self {
            WindowRows::Help(rows) => Some(match rows.get(row)? {
                row if row.is_heading() => WindowChoice::Nothing,
                row => WindowChoice::Action(row.clone()),
            }),
            WindowRows::Offers(offers) => offers.get(row).cloned().map(WindowChoice::Offer),
            WindowRows::Choices(lines) => {
                let command = choice_rows(lines, width).get(row)?.0.clone();
                Some(command.map_or(WindowChoice::Nothing, WindowChoice::Command))
            }
            WindowRows::Lines(_) | WindowRows::Table(_) => None,
        }
    }

    fn rows(&self, width: u16) -> Arc<dyn GridSource> {
        match self {
            WindowRows::Help(rows) => Arc::new(ActionGrid(rows.clone())),
            WindowRows::Offers(offers) => Arc::new(OfferGrid(offers.clone())),
            WindowRows::Choices(lines) => {
                let rows = choice_rows(lines, width).into_iter();
                Arc::new(LineGrid(rows.map(|(_, row)| row).collect()))
            }
            WindowRows::Table(table) => Arc::new(table.clone()),
            WindowRows::Lines(lines) => {
                let columns = usize::from(width.saturating_sub(2));
                Arc::new(LineGrid(wrapped(lines, columns)))
            }
        }
    }
}

/// What a row of a window stands for.
enum WindowChoice {
    /// Nothing: the row explains the others.
    Nothing,
    Action(HelpRow),
    Command(WhatIfCommand),
    Offer(MenuItem),
}

/// The lines of choices in a window of that width, each with what it chooses.
fn choice_rows(lines: &[Choice], width: u16) -> Vec<(Option<WhatIfCommand>, Wrapped)> {
    let columns = usize::from(width.saturating_sub(2));
    let rows = |(command, text): &Choice| {
        let rows = wrapped(&[DetailLine::text(text)], columns).into_iter();
        rows.map(|row| (command.clone(), row)).collect::<Vec<_>>()
    };
    lines.iter().flat_map(rows).collect()
}

struct ActionGrid(Vec<HelpRow>);

impl GridSource for ActionGrid {
    fn rows(&self) -> usize {
        self.0.len()
    }
    fn columns(&self) -> usize {
        3
    }
    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::text("key", 11),
            1 => GridColumn::text("command", 23),
            _ => GridColumn::prose("what it does", 20),
        }
    }
    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(row) = self.0.get(row) else { return };
        let dim = if row.valid { Scope::Text } else { Scope::TextDim };
        match column {
            _ if row.is_heading() => {
                if column == 1 {
                    out.set(&row.usage, Scope::TextStrong);
                }
            }
            0 => out.set(&row.keys, if row.valid { Scope::HintKey } else { Scope::TextDim }),
            1 => out.set(&row.usage, dim),
            _ => out.set(&row.help, dim),
        }
    }

    /// Other words for it, too; a heading is never what one looks for.
    fn searched(&self, row: usize, column: usize, out: &mut CellWriter) {
        match self.0.get(row) {
            Some(row) if row.is_heading() => {}
            Some(found) if column == 2 => {
                out.set(&format!("{} {}", found.help, found.search), Scope::Text);
            }
            _ => self.cell(row, column, out),
        }
    }
}

struct OfferGrid(Vec<MenuItem>);

impl GridSource for OfferGrid {
    fn rows(&self) -> usize {
        self.0.len()
    }
    fn columns(&self) -> usize {
        2
    }
    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let longest = self.0.iter().map(|offer| width(&offer.label()));
                GridColumn::fitted("edit", 30, longest.max().unwrap_or(0))
            }
            _ => GridColumn::prose("what it does", 20).shown_from(WidthTier::Standard),
        }
    }
    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(offer) = self.0.get(row) else { return };
        match column {
            0 => out.set(&offer.label(), Scope::Text),
            _ => out.set(offer.about(), Scope::TextDim),
        }
    }
}

impl App {
    /// Opens the window of keys and commands.
    pub fn open_help(&mut self, title: &str, rows: Vec<HelpRow>) {
        let footer = "/ filter  Enter run  Esc close";
        self.push_window(Window::new(title, footer, WindowRows::Help(rows)));
        // The first action, not its heading.
        self.move_in_window(1);
    }

    /// Makes the open window a palette, and asks for its filter.
    pub fn open_palette(&mut self) {
        if let Some(window) = self.windows.last_mut() {
            window.is_palette = true;
        }
        self.ask(Purpose::Filter, "");
    }

    pub fn close_windows(&mut self) {
        self.windows.clear();
    }

    /// The decisions of the live cluster's scheduler beside ours, the newest last.
    pub fn open_decisions(&mut self, model: &Model) {
        let decisions = model.live.iter().flat_map(|live| &live.decisions);
        let mut lines: Vec<DetailLine> =
            decisions.flat_map(|decision| decision_lines(decision)).collect();
        if lines.is_empty() {
            lines.push(DetailLine::text("the cluster's scheduler has not decided anything yet"));
        }
        let title = "Decisions of the cluster's scheduler and ours";
        self.push_window(Window::new(title, "/ filter  Esc close", WindowRows::Lines(lines)));
        self.move_in_window(isize::MAX);
    }

    /// Everything about the selected row.
    pub fn describe(&mut self, model: &Model) -> Result<Effect, ActionError> {
        let column = self.grid(self.view).column;
        let row = self.selected_row().ok_or("there is no row to describe")?;
        let view = self.source(model);
        let mut out = CellWriter::default();
        view.cell(row, 0, &mut out);
        let lines = view.detail(row, column);
        let title = out.text.trim().to_owned();
        self.push_window(Window::new(&title, "/ filter  Esc close", WindowRows::Lines(lines)));
        Ok(Effect::None)
    }

    /// The details of the selected cell for the clipboard, under the view's title.
    pub fn copy(
        &mut self,
        model: &Model,
        write: fn(&str, &[DetailLine]) -> String,
    ) -> Result<Effect, ActionError> {
        let column = self.grid(self.view).column;
        let rows = self.chosen_rows(model);
        if rows.is_empty() {
            return Err("there is no row to copy".into());
        }
        let view = self.source(model);
        let lines: Vec<DetailLine> =
            rows.iter().flat_map(|row| view.detail(*row, column)).collect();
        Ok(Effect::Copy(write(&view.title(), &lines)))
    }

    /// The whole line of help of the action or edit selected in the open window.
    pub(in crate::tui) fn selected_help(&self) -> Option<&str> {
        let window = self.windows.last()?;
        match &window.content {
            WindowRows::Help(rows) => {
                let help = &rows.get(window.grid.selected_row()?)?.help;
                Some(help.as_str()).filter(|help| !help.is_empty())
            }
            WindowRows::Offers(offers) => {
                let offer = offers.get(window.grid.selected_row()?)?;
                Some(offer.about()).filter(|about| !about.is_empty())
            }
            WindowRows::Lines(_) | WindowRows::Choices(_) | WindowRows::Table(_) => None,
        }
    }

    /// Opens a window that the session filled.
    pub(super) fn open_window(&mut self, content: WindowContent) {
        match content {
            WindowContent::Lines(title, lines) => {
                let lines = lines.iter().map(DetailLine::text).collect();
                self.push_window(Window::new(
                    &title,
                    "/ filter  Esc close",
                    WindowRows::Lines(lines),
                ));
            }
            WindowContent::Report { title, lines, .. } => {
                self.open_window(WindowContent::Lines(title, lines));
            }
            WindowContent::Answer(title, lines) => {
                self.push_window(Window::new(
                    &title,
                    "/ filter  Esc close",
                    WindowRows::Lines(lines),
                ));
            }
            WindowContent::Table(title, table) => {
                let footer = "z only what differs  / filter  Esc close";
                self.push_window(Window::new(&title, footer, WindowRows::Table(table)));
            }
            WindowContent::Branches(title, lines) => {
                let footer = "Enter go to the branch  / filter  Esc close";
                self.push_window(Window::new(&title, footer, WindowRows::Choices(lines)));
            }
            WindowContent::Fixes(title, lines) => {
                // The first change, not what is said above it.
                let first = isize::from(lines.iter().any(|(fix, _)| fix.is_some()));
                let footer = match first {
                    0 => "/ filter  Esc close",
                    _ => "Enter apply in a branch  / filter  Esc close",
                };
                self.push_window(Window::new(&title, footer, WindowRows::Choices(lines)));
                self.move_in_window(first);
            }
            WindowContent::Offers(title, offers) => {
                let footer = "Enter apply  / filter  Esc close";
                self.push_window(Window::new(&title, footer, WindowRows::Offers(offers)));
            }
        }
    }

    fn push_window(&mut self, window: Window) {
        // The same again would lie over itself unseen.
        if self.windows.last().is_some_and(|open| open.title == window.title) {
            self.windows.pop();
            self.hint("this window is open already; Esc closes it");
        }
        self.windows.push(window);
        self.refresh_window();
    }

    /// Whether a window lies over the view.
    pub fn has_window(&self) -> bool {
        !self.windows.is_empty()
    }

    /// The open window, if any.
    pub(in crate::tui) fn window(&mut self) -> Option<&mut Window> {
        self.windows.last_mut()
    }

    pub(super) fn refresh_window(&mut self) {
        let size = self.size;
        if let Some(window) = self.windows.last_mut() {
            let width = window.size(size).0.saturating_sub(4);
            let source = window.source(width);
            window.grid.refresh(&*source, u64::from(width));
        }
    }

    /// Moves in the open window; says whether there is one.
    pub(super) fn move_in_window(&mut self, lines: isize) -> bool {
        let size = self.size;
        let Some(window) = self.windows.last_mut() else { return false };
        let width = window.size(size).0.saturating_sub(4);
        let source = window.source(width);
        match &window.content {
            WindowRows::Lines(_) => window.grid.scroll_by(&*source, lines),
            WindowRows::Choices(choices) if lines.abs() == 1 => {
                let rows = choice_rows(choices, width).into_iter();
                let commands: Vec<Option<WhatIfCommand>> = rows.map(|(of, _)| of).collect();
                match lines {
                    1 => window.go_to_next_choice(&*source, &commands),
                    _ => window.go_to_previous_choice(&*source, &commands),
                }
            }
            _ => window.grid.move_by(&*source, lines),
        }
        true
    }

    /// Does what an entry of a menu stands for, or asks for what the text of its edit lacks.
    fn take_item(&mut self, item: MenuItem) -> Effect {
        let offer = match item {
            MenuItem::Edit(offer) => offer,
            MenuItem::Command { command, .. } => return Effect::Session(command),
        };
        if offer.missing.is_empty() {
            return Effect::Session(Command::WhatIf(WhatIfCommand::EditLine(offer.words)));
        }
        let purpose = Purpose::Argument { command: "what-if", what: "EDIT" };
        self.prompt = Some(Prompt::with_end(purpose, &offer.words, &offer.end));
        self.notify(Severity::Info, format!("complete it: {}", offer.label()));
        Effect::None
    }

    /// Does what the selected row of the open window stands for; `None` when no window is open.
    pub(super) fn choose_in_window(&mut self) -> Option<Effect> {
        let width = self.windows.last_mut()?.size(self.size).0.saturating_sub(4);
        let window = self.windows.last()?;
        let row = window.grid.selected_row();
        let chosen = row.and_then(|row| window.content.choice(row, width));
        let Some(choice) = chosen else {
            self.hint("there is nothing to open in this window; Esc closes it");
            return Some(Effect::None);
        };
        Some(match choice {
            WindowChoice::Nothing => Effect::None,
            WindowChoice::Action(row) => {
                self.windows.pop();
                match row.valid {
                    true => Effect::Invoke(row.name),
                    false => self.fail(format!("{} works in: {}", row.name, row.views)),
                }
            }
            WindowChoice::Command(command) => {
                self.windows.pop();
                Effect::Session(Command::WhatIf(command))
            }
            WindowChoice::Offer(offer) => {
                self.windows.pop();
                self.take_item(offer)
            }
        })
    }
}
