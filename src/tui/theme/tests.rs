//! Themes load without warnings, are legible, stay apart for colour-blind eyes, and really differ.

use ratatui::style::{Color, Modifier};

use super::*;
use crate::tui::color::indexed_rgb;

fn load(name: &str, depth: ColorDepth) -> Theme {
    let (theme, warnings) = Theme::load(&Library::default(), name, depth).unwrap();
    assert_eq!(warnings, Vec::<String>::new(), "{name}");
    theme
}

fn user_library(files: &[(&str, &str)]) -> (tempfile::TempDir, Library) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(format!("{name}.yaml")), text).unwrap();
    }
    let library = Library::new(Some(dir.path().to_owned()));
    (dir, library)
}

fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Rgb(r, g, b) => Some(Rgb(r, g, b)),
        Color::Indexed(i) => Some(indexed_rgb(i)),
        _ => None,
    }
}

/// Linear light of an sRGB colour, each channel 0 to 1.
fn linear(Rgb(r, g, b): Rgb) -> [f64; 3] {
    [r, g, b].map(|v| {
        let v = f64::from(v) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    })
}

/// WCAG 2 contrast ratio, 1 to 21.
fn contrast(a: Rgb, b: Rgb) -> f64 {
    let luminance = |c: Rgb| {
        let [r, g, b] = linear(c);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (x, y) = (luminance(a), luminance(b));
    (x.max(y) + 0.05) / (x.min(y) + 0.05)
}

/// CIE L*a*b* under D65 of linear light.
fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
    let f = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
    let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
    let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
    let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

type Matrix = [[f64; 3]; 3];

/// Machado, Oliveira and Fernandes 2009, severity 1: protanopia, deuteranopia, tritanopia.
const VISION: [(&str, Matrix); 3] = [
    (
        "protanopia",
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ),
];

/// How far two colours are apart for an eye with `vision` (CIE76; about 2 is the least one notices).
fn distance(vision: &Matrix, a: Rgb, b: Rgb) -> f64 {
    let seen = |c: Rgb| {
        let light = linear(c);
        lab(vision.map(|row| (0..3).map(|i| row[i] * light[i]).sum::<f64>().clamp(0.0, 1.0)))
    };
    let (x, y) = (seen(a), seen(b));
    (0..3).map(|i| (x[i] - y[i]).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn text_is_legible_on_its_background() {
    for (name, _) in BUILT_IN {
        let theme = load(name, ColorDepth::Rgb);
        let Some(surface) = theme.surface() else { continue };
        for scope in Scope::ALL {
            let style = theme.style(*scope);
            let Some(fg) = style.fg.and_then(rgb) else { continue };
            let bg = style.bg.and_then(rgb).unwrap_or(surface);
            // Rules, free room and the sign of what was never asked stand back, 3:1; all else is
            // text. A dim colour would stand back further than it says.
            use Scope::{Border, LoadTrack, VerdictNone};
            let decoration = matches!(scope, Border | LoadTrack | VerdictNone);
            assert!(!style.add_modifier.contains(Modifier::DIM), "{name} {}", scope.name());
            let least = if decoration { 3.0 } else { 4.5 };
            let ratio = contrast(fg, bg);
            assert!(ratio >= least, "{name} {}: {ratio:.2} < {least}", scope.name());
        }
    }
}

/// What rows have besides bars: text, and signs that stand back.
fn is_in_rows(scope: Scope) -> bool {
    let in_rows = ["text", "verdict", "score", "name"];
    in_rows.iter().any(|key| scope::key_covers(key, scope.name()))
}

#[test]
fn text_stays_legible_under_the_selection() {
    for (name, _) in BUILT_IN {
        let theme = load(name, ColorDepth::Rgb);
        let bars = [Scope::Selection, Scope::SelectionOther, Scope::SelectionCell];
        for bar in bars.iter().filter_map(|s| theme.style(*s).bg.and_then(rgb)) {
            for scope in Scope::ALL.iter().filter(|scope| is_in_rows(**scope)) {
                let Some(fg) = theme.style(*scope).fg.and_then(rgb) else { continue };
                let least = if *scope == Scope::VerdictNone { 1.5 } else { 4.5 };
                let ratio = contrast(fg, bar);
                assert!(ratio >= least, "{name} {}: {ratio:.2} < {least}", scope.name());
            }
        }
    }
}

#[test]
fn the_selection_stands_out_from_the_page_and_its_cell_from_the_row() {
    for (name, _) in BUILT_IN {
        let theme = load(name, ColorDepth::Rgb);
        let Some(page) = theme.surface() else { continue };
        let ground = |scope| theme.style(scope).bg.and_then(rgb).unwrap();
        let (row, cell) = (ground(Scope::Selection), ground(Scope::SelectionCell));
        for (what, ratio) in [("row", contrast(row, page)), ("cell", contrast(cell, row))] {
            assert!(ratio >= 1.5, "{name}: {what} {ratio:.2}");
        }
    }
}

#[test]
fn verdicts_stay_apart_for_colour_blind_eyes() {
    use Scope::{VerdictFail, VerdictNever, VerdictPass, VerdictSkip, VerdictWait};
    let pairs = [
        (VerdictPass, VerdictFail),
        (VerdictPass, VerdictNever),
        (VerdictPass, VerdictWait),
        (VerdictPass, VerdictSkip),
        (VerdictFail, VerdictSkip),
        (VerdictFail, VerdictWait),
    ];
    for name in ["dark-cvd", "light-cvd"] {
        let theme = load(name, ColorDepth::Rgb);
        for (vision, matrix) in &VISION {
            for (a, b) in pairs {
                let [x, y] = [a, b].map(|s| theme.style(s).fg.and_then(rgb).unwrap());
                let apart = distance(matrix, x, y);
                let names = (a.name(), b.name());
                assert!(apart >= 15.0, "{name} under {vision}: {names:?} only {apart:.1} apart");
            }
        }
    }
}

#[test]
fn scores_grow_steadily_in_lightness() {
    use Scope::{Score1, Score2, Score3, Score4, Score5};
    for name in ["dark", "light", "dark-cvd", "light-cvd", "high-contrast"] {
        let theme = load(name, ColorDepth::Rgb);
        let surface = theme.surface().unwrap();
        let ramp = [Score1, Score2, Score3, Score4, Score5]
            .map(|s| contrast(theme.style(s).fg.and_then(rgb).unwrap(), surface));
        assert!(ramp.is_sorted_by(|a, b| a < b), "{name}: {ramp:?}");
    }
}

#[test]
fn every_theme_differs_from_every_other() {
    for depth in [ColorDepth::Ansi256, ColorDepth::Rgb] {
        for (i, (a, _)) in BUILT_IN.iter().enumerate() {
            for (b, _) in &BUILT_IN[i + 1..] {
                assert_ne!(load(a, depth).styles, load(b, depth).styles, "{a} {b}");
            }
        }
    }
}

#[test]
fn fewer_colours_never_lose_the_selection() {
    for (name, _) in BUILT_IN {
        for depth in [ColorDepth::None, ColorDepth::Ansi16, ColorDepth::Ansi256, ColorDepth::Rgb] {
            let theme = load(name, depth);
            let selection = theme.style(Scope::Selection);
            let reversed = selection.add_modifier.contains(Modifier::REVERSED);
            assert!(
                reversed || selection.bg.is_some_and(|c| c != Color::Black),
                "{name} {depth:?}"
            );
            assert_ne!(selection, theme.style(Scope::Text));
        }
    }
}

#[test]
fn without_colours_no_theme_emits_one() {
    for (name, _) in BUILT_IN {
        let theme = load(name, ColorDepth::None);
        for scope in Scope::ALL {
            let style = theme.style(*scope);
            assert!(style.fg.is_none_or(|c| c == Color::Reset), "{name}");
            assert!(style.bg.is_none_or(|c| c == Color::Reset), "{name}");
        }
        assert_eq!(theme.name(), name);
    }
}

#[test]
fn a_prefix_styles_all_scopes_below_it() {
    let (_dir, library) = user_library(&[(
        "mine",
        "palette: { p: '#010203' }\nverdict: { fg: p }\nverdict.fail: { fg: red, mods: [bold] }\n",
    )]);
    let (theme, warnings) = Theme::load(&library, "mine", ColorDepth::Rgb).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(theme.style(Scope::VerdictPass).fg, Some(Color::Rgb(1, 2, 3)));
    let fail = theme.style(Scope::VerdictFail);
    assert_eq!((fail.fg, fail.add_modifier), (Some(Color::Red), Modifier::BOLD));
    assert_eq!(theme.style(Scope::Tab), Style::new());
}

#[test]
fn a_child_recolours_its_parents_palette() {
    let (_dir, library) =
        user_library(&[("child", "inherits: dark\npalette: { pass: '#0a0b0c' }")]);
    let (theme, _) = Theme::load(&library, "child", ColorDepth::Rgb).unwrap();
    assert_eq!(theme.style(Scope::VerdictPass).fg, Some(Color::Rgb(10, 11, 12)));
    assert_eq!(
        theme.style(Scope::VerdictFail),
        load("dark", ColorDepth::Rgb).style(Scope::VerdictFail)
    );
}

#[test]
fn a_users_theme_replaces_the_built_in_one_and_may_build_on_it() {
    let (_dir, library) = user_library(&[("dark", "inherits: dark\ntab: { fg: red }")]);
    let (theme, _) = Theme::load(&library, "dark", ColorDepth::Rgb).unwrap();
    assert_eq!(theme.style(Scope::Tab).fg, Some(Color::Red));
    assert_eq!(theme.style(Scope::Border), load("dark", ColorDepth::Rgb).style(Scope::Border));
    assert_eq!(library.names().iter().filter(|n| *n == "dark").count(), 1);
}

#[test]
fn mistakes_in_a_theme_are_warnings_that_name_the_entry() {
    let (_dir, library) = user_library(&[(
        "odd",
        "verdict.pas: { fg: red }\ntab: { fg: purplish }\nzzz: 1\nborder: { mods: [blink] }\n",
    )]);
    let (_, warnings) = Theme::load(&library, "odd", ColorDepth::Rgb).unwrap();
    assert_eq!(
        warnings,
        [
            "theme odd: unknown key \"verdict.pas\", did you mean \"verdict.pass\"?",
            "theme odd: tab: unknown colour \"purplish\"",
            "theme odd: unknown key \"zzz\"",
            "theme odd: border: mods are bold, dim, italic, underline, reverse, strike",
        ]
    );
}

#[test]
fn broken_themes_are_errors() {
    let (_dir, library) = user_library(&[
        ("a", "inherits: b"),
        ("b", "inherits: a"),
        ("list", "- 1"),
        ("torn", "tab: {"),
    ]);
    let load = |name: &str| Theme::load(&library, name, ColorDepth::Rgb).unwrap_err();
    assert_eq!(load("a"), ThemeError::Cycle("a".into()));
    assert!(matches!(load("list"), ThemeError::NotYaml { .. }));
    assert!(matches!(load("torn"), ThemeError::NotYaml { .. }));
    assert!(matches!(load("../../etc/passwd"), ThemeError::Unknown { .. }));
    assert!(
        load("nope").to_string().starts_with("there is no theme \"nope\"; themes are dark, light")
    );
}
