//! How a verdict is shown: a glyph and a word before any colour, so that nothing depends on telling red
//! from green, and an ASCII form for terminals without UTF-8.

use std::borrow::Cow;

use super::theme::Scope;

/// What a cell of the interface says about a plugin, a point or a node.
///
/// The first seven are the scheduler framework's status codes; [`VerdictSign::NotEvaluated`] is ours and
/// common, because a node's filters stop at the first failure and large clusters are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerdictSign {
    /// Success, drawn in the matrix and in lists.
    Success,
    /// The pod does not fit now, but might after preemption.
    Unschedulable,
    /// The pod cannot fit and preemption would not help.
    Unresolvable,
    /// An error, not a rejection.
    Error,
    /// Permit holds the pod.
    Wait,
    /// The plugin had nothing to do for this pod.
    Skip,
    /// Another event is needed first.
    Pending,
    /// The scheduler never asked.
    NotEvaluated,
    /// The plugin is opaque.
    Unknown,
}

/// One row of the table below.
struct GlyphSign {
    glyph: &'static str,
    word: &'static str,
    meaning: &'static str,
    scope: Scope,
}

/// Whether glyphs may leave ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// Glyphs, arrows and box lines.
    #[default]
    Unicode,
    /// Bytes up to 0x7e only.
    Ascii,
}

impl VerdictSign {
    /// All verdicts, in the order of the legend.
    pub const ALL: [VerdictSign; 9] = [
        VerdictSign::Success,
        VerdictSign::Unschedulable,
        VerdictSign::Unresolvable,
        VerdictSign::Error,
        VerdictSign::Wait,
        VerdictSign::Skip,
        VerdictSign::Pending,
        VerdictSign::NotEvaluated,
        VerdictSign::Unknown,
    ];

    #[rustfmt::skip]
    const fn sign(self) -> GlyphSign {
        match self {
            VerdictSign::Success => GlyphSign { glyph: "✓", word: "pass", meaning: "Success", scope: Scope::VerdictPass },
            VerdictSign::Unschedulable => GlyphSign { glyph: "✗", word: "no", meaning: "Unschedulable", scope: Scope::VerdictFail },
            VerdictSign::Unresolvable => GlyphSign { glyph: "⊘", word: "unres", meaning: "UnschedulableAndUnresolvable (preemption can't help)", scope: Scope::VerdictNever },
            VerdictSign::Error => GlyphSign { glyph: "!", word: "err", meaning: "Error", scope: Scope::VerdictError },
            VerdictSign::Wait => GlyphSign { glyph: "◷", word: "wait", meaning: "Wait", scope: Scope::VerdictWait },
            VerdictSign::Skip => GlyphSign { glyph: "–", word: "skip", meaning: "Skip", scope: Scope::VerdictSkip },
            VerdictSign::Pending => GlyphSign { glyph: "○", word: "pend", meaning: "Pending", scope: Scope::VerdictPending },
            VerdictSign::NotEvaluated => GlyphSign { glyph: "·", word: "—", meaning: "not evaluated", scope: Scope::VerdictNone },
            VerdictSign::Unknown => GlyphSign { glyph: "?", word: "unkn", meaning: "unknown: the plugin is opaque", scope: Scope::VerdictPending },
        }
    }

    /// The sign, one column wide.
    pub const fn glyph(self) -> &'static str {
        self.sign().glyph
    }

    /// The short word, at most five columns.
    pub const fn word(self) -> &'static str {
        self.sign().word
    }

    /// The framework's own name of the status.
    pub const fn meaning(self) -> &'static str {
        self.sign().meaning
    }

    /// The theme's style for it.
    pub const fn scope(self) -> Scope {
        self.sign().scope
    }
}

impl Charset {
    /// ASCII when asked for, or when the locale (`LC_ALL`, else `LC_CTYPE`, else `LANG`) names an encoding
    /// other than UTF-8. Without any locale UTF-8 is assumed: minimal containers set none and their
    /// terminals are UTF-8 all the same.
    pub fn choose(ascii: bool, env: impl Fn(&str) -> Option<String>) -> Charset {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .filter_map(|name| env(name))
            .find(|value| !value.is_empty())
            .unwrap_or_default()
            .to_lowercase();
        let other_encoding = locale.contains('.') && !locale.contains("utf");
        let plain = matches!(locale.as_str(), "c" | "posix") || other_encoding;
        if ascii || plain { Charset::Ascii } else { Charset::Unicode }
    }

    /// `text` in this character set: each of our signs has an ASCII stand-in, anything else from outside
    /// ASCII becomes `?`.
    pub fn show(self, text: &str) -> Cow<'_, str> {
        if self == Charset::Unicode || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.chars().map(stand_in).collect())
    }
}

/// The mark between breadcrumbs.
pub const CRUMB: &str = " ▸ ";
/// Marks the debugger's position.
pub const CURSOR: &str = "▶";
/// Marks where a breakpoint sits.
pub const BREAKPOINT: &str = "●";
/// Says that two values are not the same.
pub const DIFFERS: &str = "≠";
/// Marks a row that a person has marked.
pub const MARKED: &str = "◆";
/// A cell of a bar.
pub const BLOCK: &str = "█";
/// A cell of a bar's free part.
pub const TRACK: &str = "░";
/// A cell of a bar that is reserved.
pub const HATCH: &str = "▒";
/// A bar's last cell by eighths, from one to seven.
pub const EIGHTHS: [&str; 7] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Heights of a sparkline, from the lowest.
pub const HEIGHTS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Fills of adjacent segments, distinguished without colours.
pub const FILLS: [&str; 4] = ["█", "▒", "▓", "░"];
/// Shades of a heat map, from the lowest.
pub const SHADES: [&str; 5] = ["▁", "░", "▒", "▓", "█"];
/// Marks a line that is folded, and one that is not.
pub const FOLDS: [&str; 2] = ["▸", "▾"];
/// Stands for a pod in the active queue.
pub const DOT: &str = "•";
/// Stands for a pod behind a scheduling gate.
pub const GATED: &str = "◇";
/// Says that a node is cordoned.
pub const CORDONED: &str = "▣ cordoned";
/// Columns hidden at the left.
pub const MORE_LEFT: &str = "◂";
/// Columns hidden at the right.
pub const MORE_RIGHT: &str = "▸";
/// Marks an ascending column.
pub const ASCENDING: &str = "▲";
/// Marks a descending column.
pub const DESCENDING: &str = "▼";
/// A horizontal rule's cell.
pub const RULE: &str = "─";
/// A vertical rule's cell.
pub const BAR: &str = "│";
/// Stands for text that was cut.
pub const ELLIPSIS: char = '…';

/// The ASCII character for one of our signs.
fn stand_in(c: char) -> char {
    match c {
        '✓' => '+',
        '✗' | '×' => 'x',
        '⊘' => 'X',
        '◷' => 'w',
        '–' | '—' | '─' | '−' => '-',
        '○' => 'o',
        '÷' => '/',
        '∞' => '*',
        '·' => '.',
        '▁' => '_',
        '•' => 'a',
        '▏' | '▎' | '▍' | '░' | '▂' => '-',
        '▌' | '▋' | '▊' | '▉' | '▇' => '#',
        '▒' | '▄' => '=',
        '▓' | '▆' => '%',
        '▃' => ':',
        '▅' => '+',
        '▸' | '▶' | '→' => '>',
        '◂' | '←' => '<',
        '▲' => '^',
        '▼' | '▾' => 'v',
        '│' => '|',
        '…' => '~',
        '┌' | '┐' | '└' | '┘' => '+',
        '★' => '*',
        '●' => '@',
        'µ' => 'u',
        '◇' => 'g',
        '▣' => 'c',
        '≠' => '!',
        '◆' | '█' => '#',
        c if c.is_ascii() => c,
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::{sanitize, text};
    use std::collections::BTreeSet;

    #[test]
    fn every_verdict_differs_without_colour() {
        for charset in [Charset::Unicode, Charset::Ascii] {
            let shown = |text: &'static str| charset.show(text).into_owned();
            let glyphs: BTreeSet<_> = VerdictSign::ALL.iter().map(|v| shown(v.glyph())).collect();
            let words: BTreeSet<_> = VerdictSign::ALL.iter().map(|v| shown(v.word())).collect();
            assert_eq!(
                (glyphs.len(), words.len()),
                (VerdictSign::ALL.len(), VerdictSign::ALL.len())
            );
        }
    }

    #[test]
    fn every_sign_has_one_meaning_in_both_character_sets() {
        let others = [CURSOR, BREAKPOINT, MARKED, DOT, GATED, &CORDONED[..3], "★"];
        for charset in [Charset::Unicode, Charset::Ascii] {
            let verdicts = VerdictSign::ALL.map(VerdictSign::glyph);
            let signs = verdicts.into_iter().chain(others);
            let shown: Vec<String> = signs.map(|sign| charset.show(sign).into_owned()).collect();
            let different: BTreeSet<_> = shown.iter().collect();
            assert_eq!(different.len(), shown.len(), "{shown:?}");
        }
    }

    #[test]
    fn glyphs_fill_one_cell_and_words_at_most_five() {
        for verdict in VerdictSign::ALL {
            assert_eq!(text::width(verdict.glyph()), 1);
            assert!(text::width(verdict.word()) <= 5);
            assert!(verdict.glyph().chars().all(sanitize::is_safe));
        }
    }

    #[test]
    fn ascii_mode_shows_ascii_only_and_keeps_widths() {
        let ours = [
            CRUMB,
            CURSOR,
            BREAKPOINT,
            DIFFERS,
            MARKED,
            BLOCK,
            MORE_LEFT,
            MORE_RIGHT,
            ASCENDING,
            DESCENDING,
            RULE,
            BAR,
            "★┌µ→×−÷∞",
        ];
        let drawn = [
            EIGHTHS.as_slice(),
            &HEIGHTS,
            &FILLS,
            &SHADES,
            &FOLDS,
            &[TRACK, HATCH, DOT, GATED, CORDONED],
        ];
        let drawn = drawn.concat();
        let verdicts = VerdictSign::ALL.map(VerdictSign::glyph);
        for text in ours.into_iter().chain(verdicts).chain(drawn) {
            let shown = Charset::Ascii.show(text);
            assert!(shown.is_ascii() && (text == "?" || !shown.contains('?')), "{text}");
            assert_eq!(text::width(&shown), text::width(text));
        }
        assert_eq!(Charset::Ascii.show("日本"), "??");
        assert_eq!(Charset::Unicode.show("日本"), "日本");
    }

    #[test]
    fn the_locale_decides_unless_ascii_is_asked_for() {
        let with = |name: &'static str, value: &'static str| {
            Charset::choose(false, move |n| (n == name).then(|| value.to_owned()))
        };
        assert_eq!(with("LANG", "en_GB.UTF-8"), Charset::Unicode);
        assert_eq!(with("LANG", "de_DE.utf8"), Charset::Unicode);
        assert_eq!(with("LC_ALL", "C"), Charset::Ascii);
        assert_eq!(with("LC_CTYPE", "en_US.ISO-8859-1"), Charset::Ascii);
        assert_eq!(with("LANG", ""), Charset::Unicode);
        assert_eq!(Charset::choose(true, |_| Some("C.UTF-8".into())), Charset::Ascii);
    }

    #[test]
    fn lc_all_wins_over_lang() {
        let env = |name: &str| match name {
            "LC_ALL" => Some("POSIX".to_owned()),
            "LANG" => Some("en_US.UTF-8".to_owned()),
            _ => None,
        };
        assert_eq!(Charset::choose(false, env), Charset::Ascii);
    }
}
