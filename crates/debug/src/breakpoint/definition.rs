//! A breakpoint or a watch as it is written: `Filter/TaintToleration node:gpu-* once if attempts > 2`.

use std::fmt;

use crate::breakpoint::BreakpointError;
use crate::breakpoint::condition::Condition;
use crate::breakpoint::grain::HitUnit;
use crate::breakpoint::location::Location;
use crate::breakpoint::watch::Subject;
use kubestep_api::intern::Symbol;

/// What a breakpoint or watch looks at.
#[derive(Clone, PartialEq, Debug)]
pub enum BreakpointKind {
    /// A location in cycles or queues: `break Filter node:a-*`.
    Break {
        /// Which cycles, plugins, nodes or moves it hits.
        location: Location,
        /// How closely the recording has to be looked at.
        grain: HitUnit,
    },
    /// A value that changes: `watch node a-0 cpu`.
    Watch(Subject),
}

/// Which of the hits count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hits {
    /// Only this one, from 1.
    At(u64),
    /// Each hit whose number is divisible by this.
    Every(u64),
    /// This one and all after it.
    From(u64),
}

impl Hits {
    /// Whether the hit of that number counts.
    pub fn counts(self, number: u64) -> bool {
        match self {
            Hits::At(at) => number == at,
            Hits::Every(every) => number.is_multiple_of(every),
            Hits::From(from) => number >= from,
        }
    }
}

/// What a hit leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HitAction {
    /// The debugger stops at the hit.
    Stop,
    /// A message is logged, and the run goes on.
    Log,
    /// Nothing: the watch's value is shown.
    Show,
}

/// A breakpoint or a watch.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// What it looks at.
    pub what: BreakpointKind,
    /// What must hold as well.
    pub condition: Option<Condition>,
    /// Which of the hits count; all if nothing is said.
    pub hits: Option<Hits>,
    /// It is switched off when it has stopped the debugger once.
    pub once: bool,
    /// What a hit leads to.
    pub act: HitAction,
}

/// What is the same for breakpoints and watches.
#[derive(Default)]
struct Common {
    condition: Option<Condition>,
    hits: Option<Hits>,
    once: bool,
    log: bool,
    stop: bool,
    show: bool,
}

impl Common {
    /// Takes a word in, if it is one of these.
    fn take(&mut self, word: &str) -> Result<bool, BreakpointError> {
        let number = |text: &str| {
            let number = text.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| BreakpointError::Count(word.to_owned()))
        };
        match (word, word.split_once(':')) {
            ("once", _) => self.once = true,
            ("log", _) => self.log = true,
            ("stop", _) => self.stop = true,
            ("show", _) => self.show = true,
            (_, Some(("at", text))) => self.hits = Some(Hits::At(number(text)?)),
            (_, Some(("every", text))) => self.hits = Some(Hits::Every(number(text)?)),
            (_, Some(("from", text))) => self.hits = Some(Hits::From(number(text)?)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn definition(self, what: BreakpointKind) -> Definition {
        let Common { condition, hits, once, log, stop, show } = self;
        let counts = stop || once || condition.is_some() || hits.is_some();
        let act = match (log, show && !counts) {
            (true, _) => HitAction::Log,
            (false, true) => HitAction::Show,
            (false, false) => HitAction::Stop,
        };
        Definition { what, condition, hits, once, act }
    }
}

impl Definition {
    /// Reads a breakpoint. `known` are the plugins of the profiles.
    ///
    /// # Errors
    /// It is not a breakpoint, or one that cannot be hit.
    pub fn parse_break(text: &str, known: &[Symbol]) -> Result<Definition, BreakpointError> {
        let (head, mut common) = split_condition(text)?;
        let mut location = Location::default();
        let mut words = head.split_whitespace().peekable();
        while let Some(word) = words.next() {
            if word == "-l" {
                location.add_labels(&selector(&mut words))?;
            } else if !common.take(word)? {
                location.add(word, known)?;
            }
        }
        if location.is_anything() && common.condition.is_none() {
            return Err(BreakpointError::Incomplete(
                "a breakpoint needs a location or a condition, like Filter, NodeResourcesFit, \
                 pod:web-*, node:n1, queue:backoff, on:preemption or if attempts > 3",
            ));
        }
        location.check()?;
        let grain = HitUnit::of(&location, common.condition.as_ref())?;
        if common.show {
            return Err(BreakpointError::Combination(
                "show is for watches: a breakpoint stops or logs",
            ));
        }
        Ok(common.definition(BreakpointKind::Break { location, grain }))
    }

    /// Reads a watch.
    ///
    /// # Errors
    /// It is not a watch.
    pub fn parse_watch(text: &str) -> Result<Definition, BreakpointError> {
        let (head, mut common) = split_condition(text)?;
        let mut subject = Vec::new();
        for word in head.split_whitespace() {
            if !common.take(word)? {
                subject.push(word);
            }
        }
        let subject = Subject::parse(&subject)?;
        subject.check(common.condition.as_ref())?;
        Ok(common.definition(BreakpointKind::Watch(subject)))
    }

    /// Whether it is a watch.
    pub fn is_watch(&self) -> bool {
        matches!(self.what, BreakpointKind::Watch(_))
    }

    /// What a watch watches.
    pub fn subject(&self) -> Option<&Subject> {
        match &self.what {
            BreakpointKind::Watch(subject) => Some(subject),
            BreakpointKind::Break { .. } => None,
        }
    }

    /// The place of a breakpoint.
    pub fn location(&self) -> Option<&Location> {
        match &self.what {
            BreakpointKind::Break { location, .. } => Some(location),
            BreakpointKind::Watch(_) => None,
        }
    }
}

/// Takes the condition behind the word `if` off.
fn split_condition(text: &str) -> Result<(&str, Common), BreakpointError> {
    let mut common = Common::default();
    let at = text.match_indices("if").find(|(at, _)| {
        let before = text[..*at].chars().next_back().is_none_or(char::is_whitespace);
        before && text[at + 2..].chars().next().is_none_or(char::is_whitespace)
    });
    let Some((at, _)) = at else { return Ok((text, common)) };
    let condition = text[at + 2..].trim();
    if condition.is_empty() {
        return Err(BreakpointError::Incomplete(
            "write a condition after if, like if attempts > 3",
        ));
    }
    common.condition = Some(Condition::parse(condition)?);
    Ok((&text[..at], common))
}

/// The words of a selector: `tier in (a, b),app=web` goes on over its blanks.
fn selector<'a>(words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> String {
    let mut text = words.next().unwrap_or_default().to_owned();
    loop {
        let open = text.matches('(').count() > text.matches(')').count();
        let unfinished = open || text.ends_with([',', '=', '!']) || ends_in_operator(&text);
        let goes_on = |next: &&str| unfinished || matches!(*next, "in" | "notin" | "=" | "!=");
        match words.next_if(|next| goes_on(next)) {
            Some(next) => text = format!("{text} {next}"),
            None => return text,
        }
    }
}

fn ends_in_operator(text: &str) -> bool {
    text.ends_with(" in") || text.ends_with(" notin")
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hits::At(number) => write!(f, "at:{number}"),
            Hits::Every(number) => write!(f, "every:{number}"),
            Hits::From(number) => write!(f, "from:{number}"),
        }
    }
}

/// As it can be read again, without `break` or `watch` in front.
impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = vec![match &self.what {
            BreakpointKind::Break { location, .. } => location.to_string(),
            BreakpointKind::Watch(subject) => subject.to_string(),
        }];
        match self.act {
            HitAction::Log => words.push("log".into()),
            HitAction::Show => words.push("show".into()),
            HitAction::Stop => {}
        }
        if self.once {
            words.push("once".into());
        }
        words.extend(self.hits.map(|hits| hits.to_string()));
        words.extend(self.condition.as_ref().map(|condition| format!("if {}", condition.text())));
        words.retain(|word| !word.is_empty());
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<Symbol> {
        ["NodeResourcesFit", "TaintToleration"].map(Symbol::new).to_vec()
    }

    fn read(text: &str) -> Result<String, BreakpointError> {
        Definition::parse_break(text, &known()).map(|read| read.to_string())
    }

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for text in [
            "Filter",
            "TaintToleration",
            "Filter/TaintToleration pod:shop/web-* node:gpu-? once",
            "pod:web -l app=web,tier in (a, b) log at:3",
            "queue:backoff every:10",
            "pod:prod/* on:preemption",
            "Score/NodeResourcesFit from:2 if score > 80 && node.free.cpu < 500m",
            "if attempts >= 3",
        ] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        assert_eq!(read("filter nodeResourcesFIT").as_deref(), Ok("Filter/NodeResourcesFit"));
        assert_eq!(read("-l app = web Filter").as_deref(), Ok("Filter -l app = web"));
    }

    #[test]
    fn watches_too() {
        for text in [
            "node:a cpu",
            "node:a",
            "queue:active show",
            "pod:shop/web log",
            "node:a nvidia.com/gpu once if value < 2",
        ] {
            let read = Definition::parse_watch(text).map(|read| read.to_string());
            assert_eq!(read.as_deref(), Ok(text));
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, says) in [
            ("", "needs a location or a condition"),
            ("Filtre", "did you mean \"Filter\"?"),
            ("TaintTolerations", "did you mean \"TaintToleration\"?"),
            ("on:boom", "there are scheduled, unschedulable"),
            ("queue:x", "there are active, backoff"),
            ("Filter Score", "given twice"),
            ("Filter queue:active", "between the cycles"),
            ("Permit node:a", "only Filter and Score"),
            ("Bind if score > 1", "Score"),
            ("on:error node:a", "about no node"),
            ("pod:", "needs a name"),
            ("at:0 Filter", "from 1"),
            ("Filter if", "write a condition after if"),
            ("pods:x", "is not part"),
            ("Filter if value > 1", "watch"),
            ("Filter if to == 'active'", "queue:"),
        ] {
            let problem = read(text).unwrap_err().to_string();
            assert!(problem.contains(says), "{text}: {problem}");
        }
    }
}
