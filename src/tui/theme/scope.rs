//! The places a theme can style, each with its dotted name in theme files.

/// Declares [`Scope`] with the name of every variant, so that neither can lack the other.
macro_rules! scopes {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*) => {
        /// A place that a theme styles. A theme file may name it in full (`verdict.pass`) or by a prefix
        /// (`verdict`); the longest match wins.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Scope {
            #[default]
            $($(#[doc = $doc])* $variant,)*
        }

        impl Scope {
            /// Every scope, in order of declaration.
            pub const ALL: &[Scope] = &[$(Scope::$variant,)*];

            /// The name in theme files.
            pub const fn name(self) -> &'static str {
                match self { $(Scope::$variant => $name,)* }
            }
        }
    };
}

scopes! {
    /// Text that no other scope is for.
    Text = "text",
    /// Labels, units and other secondary text.
    TextDim = "text.dim",
    /// Emphasised text, such as the decisive cause.
    TextStrong = "text.strong",
    /// Titles of panes and windows.
    Title = "title",
    /// Title of the pane that has the keys.
    TitleFocus = "title.focus",
    /// Rules between panes, and frames of windows.
    Border = "border",
    /// Header line of a grid.
    Header = "header",
    /// The header of the chosen column.
    HeaderChosen = "header.chosen",
    /// The selected row in a list.
    Selection = "selection",
    /// The selected row of a pane without the keys.
    SelectionOther = "selection.other",
    /// The selected cell within the selected row.
    SelectionCell = "selection.cell",
    /// The row of the debugger's position.
    Cursor = "cursor",
    /// The cycle of the debugger's position in the strip of all cycles.
    CursorCycle = "cursor.cycle",
    /// Where a breakpoint sits.
    Breakpoint = "breakpoint",
    /// A row that a person marked.
    Mark = "mark",
    /// What lies after the debugger's position.
    Future = "future",
    /// Breadcrumbs before the last one.
    Crumb = "crumb",
    /// The last breadcrumb, where the debugger is.
    CrumbCurrent = "crumb.current",
    /// View names in the first line.
    Tab = "tab",
    /// The view on screen.
    TabActive = "tab.active",
    /// The mode word: paused, running, waiting for input.
    Chip = "chip",
    /// The mode word while running.
    ChipRunning = "chip.running",
    /// The mode word at an earlier position than the last recorded one.
    ChipReplay = "chip.replay",
    /// A key in a hint.
    HintKey = "hint.key",
    /// What the key does.
    HintText = "hint.text",
    /// The line of the prompt.
    Prompt = "prompt",
    /// Suggested completion after the typed text.
    PromptGhost = "prompt.ghost",
    /// The background of windows.
    Popup = "popup",
    /// A message that informs.
    MessageInfo = "message.info",
    /// A message that warns.
    MessageWarning = "message.warning",
    /// A message about a failure.
    MessageError = "message.error",
    /// A verdict that passes.
    VerdictPass = "verdict.pass",
    /// A verdict that preemption may change.
    VerdictFail = "verdict.fail",
    /// Unschedulable and not resolvable by preemption.
    VerdictNever = "verdict.never",
    /// A plugin that ended with an error.
    VerdictError = "verdict.error",
    /// A pod that a plugin holds at Permit.
    VerdictWait = "verdict.wait",
    /// A plugin that had nothing to check.
    VerdictSkip = "verdict.skip",
    /// A verdict that waits for an event.
    VerdictPending = "verdict.pending",
    /// A plugin that was not evaluated on the node.
    VerdictNone = "verdict.none",
    /// Lowest fifth of the scores.
    Score1 = "score.1",
    /// Scores in the second fifth.
    Score2 = "score.2",
    /// Scores in the third fifth.
    Score3 = "score.3",
    /// Scores in the fourth fifth.
    Score4 = "score.4",
    /// Scores in the highest fifth.
    Score5 = "score.5",
    /// A bar that is less than two thirds full.
    LoadLow = "load.low",
    /// A bar that is less than nine tenths full.
    LoadHigh = "load.high",
    /// A bar that is fuller.
    LoadFull = "load.full",
    /// Room of a bar that is reserved.
    LoadReserved = "load.reserved",
    /// The free part of a bar.
    LoadTrack = "load.track",
    /// Series 1 of a drawing: a plugin's share, a victim.
    Series1 = "series.1",
    /// Series 2 of a drawing: a plugin's share, a victim.
    Series2 = "series.2",
    /// Series 3 of a drawing: a plugin's share, a victim.
    Series3 = "series.3",
    /// Series 4 of a drawing: a plugin's share, a victim.
    Series4 = "series.4",
    /// Series 5 of a drawing: a plugin's share, a victim.
    Series5 = "series.5",
    /// Series 6 of a drawing: a plugin's share, a victim.
    Series6 = "series.6",
    /// Series 7 of a drawing: a plugin's share, a victim.
    Series7 = "series.7",
    /// Series 8 of a drawing: a plugin's share, a victim.
    Series8 = "series.8",
    /// A plugin's name within a text.
    Name = "name",
    /// The mode word when nothing is left to do.
    ChipIdle = "chip.idle",
    /// A node that shares the highest total.
    ScoreTie = "score.tie",
    /// The score of the node that was chosen.
    ScoreWinner = "score.winner",
}

impl Scope {
    /// The scope of a score between 0 and 100: a ramp of one hue, always shown beside the number.
    pub fn of_score(score: i64) -> Scope {
        match score {
            i64::MIN..=19 => Scope::Score1,
            20..=39 => Scope::Score2,
            40..=59 => Scope::Score3,
            60..=79 => Scope::Score4,
            80.. => Scope::Score5,
        }
    }

    /// The scope of a bar that is so full, in thousandths.
    pub fn of_load(thousandths: i64) -> Scope {
        match thousandths {
            i64::MIN..=666 => Scope::LoadLow,
            667..=899 => Scope::LoadHigh,
            900.. => Scope::LoadFull,
        }
    }

    /// The scope of a series of a drawing; after the last comes the first again.
    pub fn of_series(number: usize) -> Scope {
        use Scope::{Series1, Series2, Series3, Series4, Series5, Series6, Series7, Series8};
        let all = [Series1, Series2, Series3, Series4, Series5, Series6, Series7, Series8];
        all[number % all.len()]
    }

    /// Whether a theme key is a scope's name or a prefix of one.
    pub fn is_known(key: &str) -> bool {
        Scope::ALL.iter().any(|scope| key_covers(key, scope.name()))
    }
}

/// Whether the theme key `key` applies to the scope called `name`.
pub fn key_covers(key: &str, name: &str) -> bool {
    name.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_covers_whole_segments_only() {
        assert!(key_covers("verdict", "verdict.pass"));
        assert!(key_covers("verdict.pass", "verdict.pass"));
        assert!(!key_covers("verd", "verdict.pass"));
        assert!(!key_covers("verdict.pass", "verdict"));
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = Scope::ALL.iter().map(|s| s.name()).collect();
        assert_eq!(names.len(), Scope::ALL.len());
    }

    #[test]
    fn scores_fall_into_fifths() {
        assert_eq!(Scope::of_score(-5), Scope::Score1);
        assert_eq!(Scope::of_score(19), Scope::Score1);
        assert_eq!(Scope::of_score(20), Scope::Score2);
        assert_eq!(Scope::of_score(100), Scope::Score5);
    }
}
