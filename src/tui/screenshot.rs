//! The screen as a picture: plain text, text with colours for terminals, SVG, HTML.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier, Style};

use super::color::{ANSI_16, Rgb, indexed_rgb};
use super::interface::Interface;
use super::text::width as text_width;
use super::theme::Theme;

/// Size of a cell in the picture, in pixels.
const CELL: (u16, u16) = (9, 18);
/// Where the text's baseline is within a cell.
const BASELINE: u16 = 14;
/// Stands for the terminal's own background where the theme names none.
const BLACK: Rgb = Rgb(0, 0, 0);

/// What a picture is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenFormat {
    /// The glyphs without colours.
    Text,
    /// With control sequences for colours.
    Ansi,
    /// Scalable vector graphics, as in the documentation.
    Svg,
    /// A page by itself.
    Html,
}

/// What is on the screen, in a format.
pub fn of(interface: &mut Interface, format: ScreenFormat) -> String {
    let (width, height) = interface.app.size();
    // Drawing into memory cannot fail.
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(drawn) = terminal.draw(|frame| interface.draw(frame));
    let mut buffer = drawn.buffer.clone();
    join_wide_glyphs(&mut buffer);
    in_format(&buffer, interface.app.theme(), format)
}

/// Empties the cells that a wide glyph covers, and gives them its style.
fn join_wide_glyphs(buffer: &mut Buffer) {
    let line = usize::from(buffer.area.width.max(1));
    for cells in buffer.content.chunks_mut(line) {
        let mut covered = 0;
        let mut style = Style::new();
        for cell in cells {
            if covered > 0 {
                covered -= 1;
                cell.set_symbol("").set_style(style);
            } else {
                (covered, style) = (text_width(cell.symbol()).saturating_sub(1), cell.style());
            }
        }
    }
}

/// Draws what is on the screen once more and writes it to `file`, SVG when its name ends so. A file that is
/// there already is not overwritten.
pub fn save(interface: &mut Interface, file: &Path) -> io::Result<()> {
    write_new(file, &of(interface, format_of(file)))
}

fn format_of(file: &Path) -> ScreenFormat {
    match file.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg")) {
        true => ScreenFormat::Svg,
        false => ScreenFormat::Text,
    }
}

fn write_new(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text.as_bytes())
}

fn in_format(buffer: &Buffer, theme: &Theme, format: ScreenFormat) -> String {
    match format {
        ScreenFormat::Text => text(buffer),
        ScreenFormat::Ansi => ansi(buffer),
        ScreenFormat::Svg => svg(buffer, theme),
        ScreenFormat::Html => html(buffer, theme),
    }
}

/// The glyphs, a line each.
fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for cells in buffer.content.chunks(usize::from(buffer.area.width.max(1))) {
        let line: String = cells.iter().map(Cell::symbol).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The text of a run of cells.
fn glyphs(buffer: &Buffer, (x, end): (u16, u16), y: u16) -> String {
    (x..end).filter_map(|x| buffer.cell((x, y))).map(Cell::symbol).collect()
}

/// Calls `write` for each run of equal style of a line.
fn runs(buffer: &Buffer, y: u16, mut write: impl FnMut(&Cell, (u16, u16))) {
    let mut x = 0;
    while x < buffer.area.width {
        let end = run_end(buffer, x, y);
        if let Some(cell) = buffer.cell((x, y)) {
            write(cell, (x, end));
        }
        x = end;
    }
}

/// The attributes that pictures show, with their control sequences and CSS.
const ATTRIBUTES: [(Modifier, &str, &str); 5] = [
    (Modifier::BOLD, "1", "font-weight:bold"),
    (Modifier::DIM, "2", "opacity:0.7"),
    (Modifier::ITALIC, "3", "font-style:italic"),
    (Modifier::UNDERLINED, "4", "text-decoration:underline"),
    (Modifier::REVERSED, "7", ""),
];

/// The cells with a control sequence in front of each run of equal style.
fn ansi(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        runs(buffer, y, |cell, run| {
            let attributes = ATTRIBUTES.iter().filter(|(it, ..)| cell.modifier.contains(*it));
            let mut codes: Vec<String> = attributes.map(|(_, code, _)| (*code).into()).collect();
            for (ground, color) in [(38, cell.fg), (48, cell.bg)] {
                codes.extend(rgb(color).map(|Rgb(r, g, b)| format!("{ground};2;{r};{g};{b}")));
            }
            let text = glyphs(buffer, run, y);
            let _ = match codes.is_empty() {
                true => write!(out, "{text}"),
                false => write!(out, "\u{1b}[{}m{text}\u{1b}[0m", codes.join(";")),
            };
        });
        out.push('\n');
    }
    out
}

/// The cells as a page: one element for each run of equal style.
fn html(buffer: &Buffer, theme: &Theme) -> String {
    let surface = theme.surface().unwrap_or(BLACK);
    let ink = ink(surface);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>kubestep</title>\n\
         <pre style=\"background:{};color:{};padding:1em;line-height:1.2\">",
        hex(surface),
        hex(ink)
    );
    for y in 0..buffer.area.height {
        runs(buffer, y, |cell, run| {
            let text = escape(&glyphs(buffer, run, y));
            let style = css(cell, ink, surface);
            let _ = match style.is_empty() {
                true => write!(out, "{text}"),
                false => write!(out, "<span style=\"{style}\">{text}</span>"),
            };
        });
        out.push('\n');
    }
    out.push_str("</pre>\n</html>\n");
    out
}

fn css(cell: &Cell, ink: Rgb, surface: Rgb) -> String {
    let (fg, bg) = colors(cell, ink, surface);
    let shown =
        ATTRIBUTES.iter().filter(|(it, _, css)| cell.modifier.contains(*it) && !css.is_empty());
    let mut parts: Vec<String> = shown.map(|(_, _, css)| (*css).to_owned()).collect();
    if fg != ink {
        parts.push(format!("color:{}", hex(fg)));
    }
    if bg != surface {
        parts.push(format!("background:{}", hex(bg)));
    }
    parts.join(";")
}

/// The colour of text for which the theme has none.
fn ink(surface: Rgb) -> Rgb {
    if luminance(surface) > 384 { BLACK } else { Rgb(220, 220, 220) }
}

/// A cell's colours, reversed where it is.
fn colors(cell: &Cell, ink: Rgb, surface: Rgb) -> (Rgb, Rgb) {
    let (fg, bg) = (rgb(cell.fg).unwrap_or(ink), rgb(cell.bg).unwrap_or(surface));
    if cell.modifier.contains(Modifier::REVERSED) { (bg, fg) } else { (fg, bg) }
}

/// The cells as SVG: one rectangle and one text for each run of equal style.
fn svg(buffer: &Buffer, theme: &Theme) -> String {
    let (width, height) = (buffer.area.width * CELL.0, buffer.area.height * CELL.1);
    let surface = theme.surface().unwrap_or(BLACK);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"monospace\" font-size=\"15\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        hex(surface)
    );
    for y in 0..buffer.area.height {
        runs(buffer, y, |cell, run| write_run(&mut out, buffer, cell, run, y, surface));
    }
    out.push_str("</svg>\n");
    out
}

/// The column after the last that looks like `x`.
fn run_end(buffer: &Buffer, x: u16, y: u16) -> u16 {
    let style = |x: u16| buffer.cell((x, y)).map(Cell::style);
    (x + 1..buffer.area.width).find(|end| style(*end) != style(x)).unwrap_or(buffer.area.width)
}

fn write_run(
    out: &mut String,
    buffer: &Buffer,
    cell: &Cell,
    (x, end): (u16, u16),
    y: u16,
    surface: Rgb,
) {
    let (fg, bg) = colors(cell, ink(surface), surface);
    let (left, top, width) = (x * CELL.0, y * CELL.1, (end - x) * CELL.0);
    // Writing into a String cannot fail.
    if bg != surface {
        let (height, fill) = (CELL.1, hex(bg));
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
        );
    }
    let text = glyphs(buffer, (x, end), y);
    if text.trim().is_empty() {
        return;
    }
    let shown = ATTRIBUTES.iter().filter(|(it, ..)| cell.modifier.contains(*it));
    let shown = shown.filter_map(|(_, _, css)| css.split_once(':'));
    let attributes: String = shown.map(|(name, value)| format!(" {name}=\"{value}\"")).collect();
    let (baseline, fill) = (top + BASELINE, hex(fg));
    for (column, piece) in pieces(&text) {
        let (x, length) = (left + column * CELL.0, text_width(&piece) as u16 * CELL.0);
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{baseline}\" fill=\"{fill}\"{attributes} \
             textLength=\"{length}\">{}</text>",
            escape(&piece)
        );
    }
}

/// Columns after which a piece of text ends at the next blank.
const PIECE: usize = 24;

/// Short pieces of a text, each with its column: not every program heeds `textLength`, and blanks at
/// the ends are dropped, so only short pieces stay in their cells everywhere.
fn pieces(text: &str) -> Vec<(u16, String)> {
    let mut pieces: Vec<(u16, String)> = Vec::new();
    let (mut column, mut end) = (0, 0);
    for word in text.split(' ') {
        if !word.is_empty() {
            match pieces.last_mut() {
                Some((_, piece)) if column == end + 1 && text_width(piece) < PIECE => {
                    piece.push(' ');
                    piece.push_str(word);
                }
                _ => pieces.push((column, word.to_owned())),
            }
            end = column + text_width(word) as u16;
        }
        column += text_width(word) as u16 + 1;
    }
    pieces
}

fn luminance(Rgb(r, g, b): Rgb) -> u32 {
    u32::from(r) + u32::from(g) + u32::from(b)
}

fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Reset => None,
        Color::Rgb(r, g, b) => Some(Rgb(r, g, b)),
        Color::Indexed(index) => Some(indexed_rgb(index)),
        named => ANSI_16.iter().find(|(color, _)| *color == named).map(|(_, rgb)| *rgb),
    }
}

fn hex(Rgb(r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::testing::{InterfaceStory, model};

    fn saved(name: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        let mut story = InterfaceStory::new(model()).keys("3");
        let buffer = story.draw();
        let picture = in_format(&buffer, story.app.theme(), format_of(&file));
        write_new(&file, &picture).unwrap();
        let again = write_new(&file, &picture).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        std::fs::read_to_string(file).unwrap()
    }

    #[test]
    fn text_is_the_screen_without_styles() {
        let mut story = InterfaceStory::new(model()).keys("3");
        assert_eq!(saved("frame.txt"), format!("{}\n", story.text()));
    }

    #[test]
    fn wide_glyphs_have_no_gaps() {
        let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 8, 1));
        crate::tui::text::put(&mut buffer, 0, 0, 8, "日本 b", Style::new().fg(Color::Red));
        join_wide_glyphs(&mut buffer);
        assert_eq!(text(&buffer), "日本 b\n");
        assert_eq!(run_end(&buffer, 0, 0), 6, "one run");
    }

    #[test]
    fn svg_has_every_attribute_that_html_has() {
        let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 8, 4));
        let mods = [Modifier::UNDERLINED, Modifier::DIM, Modifier::ITALIC, Modifier::BOLD];
        for (y, modifier) in (0..).zip(mods) {
            crate::tui::text::put(
                &mut buffer,
                0,
                y,
                8,
                "text",
                Style::new().add_modifier(modifier),
            );
        }
        let story = InterfaceStory::new(model());
        let picture = svg(&buffer, story.app.theme());
        let shown = [
            "text-decoration=\"underline\"",
            "opacity=\"0.7\"",
            "font-style=\"italic\"",
            "font-weight=\"bold\"",
        ];
        assert!(shown.iter().all(|attribute| picture.contains(attribute)), "{picture}");
    }

    #[test]
    fn svg_has_the_glyphs_and_the_themes_colours() {
        let svg = saved("frame.SVG");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("viewBox=\"0 0 720 432\""));
        assert!(svg.contains("fill=\"#12161c\"/>"), "the surface of the dark theme");
        assert!(svg.contains("fill=\"#ff7d6e\" font-weight=\"bold\""), "a failure in bold");
        assert!(svg.contains("node-a"));
        assert_eq!(escape("a<b>&c"), "a&lt;b&gt;&amp;c");
        let piece = |column, text: &str| (column, text.to_owned());
        assert_eq!(pieces("  one two   日本 b "), [piece(2, "one two"), piece(12, "日本 b")]);
        assert_eq!(
            pieces("a sentence of more columns than one"),
            [piece(0, "a sentence of more columns"), piece(27, "than one")]
        );
    }
}
