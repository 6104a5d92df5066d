//! Problems of a configuration: where they are, what they are, and how to fix them.

use std::fmt;

use super::locate::locate;
use super::path::FieldPath;

/// The maximum number of problems with a location, as every location needs another reading of the
/// text.
const MOST_LOCATED: usize = 100;

/// The maximum number of problems that an error prints.
const MOST_SHOWN: usize = 30;

/// A location in a text, both numbers from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A problem of a document, and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The field; the root for a problem of the whole document.
    pub path: FieldPath,
    /// Its location in the text, if known.
    pub location: Option<Location>,
    /// What is wrong, in upstream's words.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
}

impl Problem {
    /// A problem without a location.
    pub fn new(path: &FieldPath, message: impl Into<String>) -> Problem {
        Problem { path: path.clone(), location: None, message: message.into(), help: None }
    }

    /// Adds how to fix it.
    pub fn help(self, help: impl Into<String>) -> Problem {
        Problem { help: Some(help.into()), ..self }
    }

    /// Looks up the location of the field in its text. For a field that is not in the text, such as
    /// a default, it is that of the nearest field above.
    pub(super) fn locate(&mut self, text: &str) {
        let mut path = self.path.clone();
        while self.location.is_none() && path != FieldPath::root() {
            self.location = locate(text, &path);
            path = path.parent().unwrap_or_default();
        }
    }
}

impl fmt::Display for Problem {
    /// `profiles[0].args.nope (line 3, column 5): unknown field; did you mean …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.to_string();
        match (path.is_empty(), self.location) {
            (true, None) => {}
            (true, Some(location)) => write!(f, "{location}: ")?,
            (false, None) => write!(f, "{path}: ")?,
            (false, Some(location)) => write!(f, "{path} ({location}): ")?,
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// The step that rejected a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigStage {
    /// It is not a valid document of the right kind.
    Decode,
    /// A value is not allowed.
    Validate,
    /// kube-scheduler cannot be built with it.
    Build,
}

/// Why a configuration was rejected: all problems of the first step that found any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The step that found the problem.
    pub stage: ConfigStage,
    /// Its problems, at least one.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// An error with one problem.
    pub fn one(stage: ConfigStage, problem: Problem) -> ConfigError {
        ConfigError { stage, problems: vec![problem] }
    }

    pub(super) fn located(mut self, text: Option<&str>) -> ConfigError {
        if let Some(text) = text {
            let first = self.problems.iter_mut().take(MOST_LOCATED);
            first.for_each(|problem| problem.locate(text));
        }
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            ConfigStage::Decode => "the scheduler configuration cannot be read",
            ConfigStage::Validate => "the scheduler configuration is not valid",
            ConfigStage::Build => "kube-scheduler would not start with this configuration",
        })?;
        match self.problems.as_slice() {
            [problem] => write!(f, ": {problem}"),
            problems => {
                let (shown, rest) = problems.split_at(problems.len().min(MOST_SHOWN));
                shown.iter().try_for_each(|problem| write!(f, "\n  {problem}"))?;
                if rest.is_empty() { Ok(()) } else { write!(f, "\n  and {} more", rest.len()) }
            }
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> Problem {
        Problem::new(&FieldPath::root().field("a").index(1), "is wrong").help("do better")
    }

    #[test]
    fn a_problem_says_where_what_and_what_to_do() {
        let mut problem = problem();
        assert_eq!(problem.to_string(), "a[1]: is wrong; do better");
        problem.locate("a:\n- 1\n- 2\n");
        assert_eq!(problem.to_string(), "a[1] (line 3, column 3): is wrong; do better");
    }

    #[test]
    fn what_is_not_written_is_found_at_what_is() {
        let mut problem = Problem::new(&FieldPath::root().field("a").field("b"), "is missing");
        problem.locate("x: 1\na: {}\n");
        assert_eq!(problem.to_string(), "a.b (line 2, column 1): is missing");
        let mut problem = Problem::new(&FieldPath::root().field("b"), "is missing");
        problem.locate("x: 1\n");
        assert_eq!(problem.to_string(), "b: is missing");
    }

    #[test]
    fn an_error_lists_its_problems() {
        let one = ConfigError::one(ConfigStage::Decode, problem());
        assert_eq!(
            one.to_string(),
            "the scheduler configuration cannot be read: a[1]: is wrong; do better"
        );
        let two =
            ConfigError { stage: ConfigStage::Validate, problems: vec![problem(), problem()] };
        assert_eq!(
            two.to_string(),
            "the scheduler configuration is not valid\n  \
             a[1]: is wrong; do better\n  a[1]: is wrong; do better"
        );
        let many = ConfigError { stage: ConfigStage::Validate, problems: vec![problem(); 32] };
        assert!(many.to_string().ends_with("do better\n  and 2 more"));
        assert_eq!(many.to_string().lines().count(), 32);
    }
}
