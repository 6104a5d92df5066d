//! Keystroke stories and golden frames: the interface used as a person uses it, on a backend in memory.
//!
//! A golden file has the glyphs of a frame. One frame of each view, and one without colours, has two
//! more parts, one letter per cell for its style and what the letters mean: a changed colour concerns
//! these files only. `UPDATE_GOLDEN=1` rewrites them.

mod live;
mod sample;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};

use super::action::{KeyInput, Keymap};
use super::app::{App, Effect, LookOptions};
use super::color::ColorDepth;
use super::command::Command;
use super::glyph::Charset;
use super::key::KeyPress;
use super::model::Model;
use super::render::render;
use super::theme::Library;

pub use live::{LiveInterface, session, session_with};
pub use sample::{filter_frame, model, pod};

/// A running interface over a fixed model.
pub struct InterfaceStory {
    pub app: App,
    pub input: KeyInput,
    pub model: Model,
    pub effects: Vec<Effect>,
    terminal: Terminal<TestBackend>,
}

impl InterfaceStory {
    /// The dark theme in full colour at 80×24.
    pub fn new(model: Model) -> InterfaceStory {
        InterfaceStory::with(model, (80, 24), "dark", ColorDepth::Rgb, Charset::Unicode)
    }

    pub fn with(
        model: Model,
        size: (u16, u16),
        theme: &str,
        depth: ColorDepth,
        charset: Charset,
    ) -> InterfaceStory {
        let mut app = App::new(appearance(theme, depth, charset)).unwrap();
        app.resize(size.0, size.1);
        app.refresh(&model);
        let input = KeyInput::new(Keymap::default());
        let terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        InterfaceStory { app, input, model, effects: Vec::new(), terminal }
    }

    /// Types `keys`: characters, and names in angle brackets (`jj<Enter>:theme light<Enter>`). Draws after
    /// each key, as the program does.
    pub fn keys(mut self, keys: &str) -> InterfaceStory {
        for key in parse_keys(keys) {
            let effect = self.input.key(&mut self.app, key, &self.model);
            self.refresh();
            if effect != Effect::None {
                self.effects.push(effect);
            }
            self.draw();
        }
        self
    }

    pub fn resized(mut self, width: u16, height: u16) -> InterfaceStory {
        self.terminal.backend_mut().resize(width, height);
        self.app.resize(width, height);
        self.refresh();
        self.draw();
        self
    }

    pub fn refresh(&mut self) {
        self.app.refresh(&self.model);
        self.input.refresh(&self.app, &self.model);
    }

    pub fn draw(&mut self) -> Buffer {
        let (app, input, model) = (&mut self.app, &self.input, &self.model);
        self.terminal.draw(|frame| render(frame, app, input, model)).unwrap();
        self.terminal.backend().buffer().clone()
    }

    /// The screen's lines, without blanks at their ends.
    pub fn lines(&mut self) -> Vec<String> {
        lines_of(&self.draw())
    }

    pub fn text(&mut self) -> String {
        self.lines().join("\n")
    }

    /// Where the terminal's own cursor is.
    pub fn cursor(&mut self) -> (u16, u16) {
        self.draw();
        let at = self.terminal.get_cursor_position().unwrap();
        (at.x, at.y)
    }

    pub fn requests(&self) -> Vec<Command> {
        let request = |e: &Effect| match e {
            Effect::Session(r) => Some(r.clone()),
            _ => None,
        };
        self.effects.iter().filter_map(request).collect()
    }

    /// Compares the frame's glyphs with `tests/golden/NAME.txt`.
    pub fn golden(&mut self, name: &str) {
        golden(&self.draw(), name);
    }

    /// Compares the frame's glyphs and styles with `tests/golden/NAME.txt`.
    pub fn golden_with_styles(&mut self, name: &str) {
        let buffer = self.draw();
        let glyphs = glyphs(&buffer);
        compare(name, &format!("== glyphs ==\n{glyphs}== styles ==\n{}", styles(&buffer)));
    }
}

/// Compares a frame's glyphs with `tests/golden/NAME.txt`.
pub fn golden(buffer: &Buffer, name: &str) {
    compare(name, &glyphs(buffer));
}

fn compare(name: &str, text: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
    kubestep_output::golden::compare(&file, text);
}

fn appearance(theme: &str, depth: ColorDepth, charset: Charset) -> LookOptions {
    LookOptions { library: Library::default(), theme: theme.into(), depth, charset }
}

/// The screen's lines, without blanks at their ends.
fn lines_of(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[Cell]| cells.iter().map(Cell::symbol).collect::<String>();
    buffer.content.chunks(width).map(|c| line(c).trim_end().to_owned()).collect()
}

/// Keys of a story.
pub fn parse_keys(text: &str) -> Vec<KeyPress> {
    crate::tui::offscreen::parse_keys(text).unwrap()
}

/// A frame's lines, without blanks at their ends.
fn glyphs(buffer: &Buffer) -> String {
    lines_of(buffer).iter().map(|line| format!("{line}\n")).collect()
}

/// A frame's styles, a letter per cell, and what the letters mean.
fn styles(buffer: &Buffer) -> String {
    let mut legend: BTreeMap<String, char> = BTreeMap::new();
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let mut out = String::new();
    for cells in buffer.content.chunks(usize::from(buffer.area.width)) {
        for cell in cells {
            let next = letters[legend.len() % letters.len()];
            out.push(*legend.entry(style_of(cell)).or_insert(next));
        }
        out.push('\n');
    }
    out.push_str("== legend ==\n");
    let mut by_letter: Vec<_> = legend.iter().map(|(style, letter)| (letter, style)).collect();
    by_letter.sort_by_key(|(letter, _)| letters.iter().position(|l| l == *letter));
    for (letter, style) in by_letter {
        writeln!(out, "{letter} {style}").unwrap();
    }
    out
}

fn style_of(cell: &Cell) -> String {
    format!("fg={} bg={} mods={:?}", cell.fg, cell.bg, cell.modifier)
}

#[test]
fn stories_are_written_as_they_are_typed() {
    let shown: Vec<String> =
        parse_keys("g<Ctrl-d><<Enter>a>").iter().map(KeyPress::to_string).collect();
    assert_eq!(shown, ["g", "Ctrl-d", "<", "Enter", "a", ">"]);
}
