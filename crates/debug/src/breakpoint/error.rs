//! Why a breakpoint, a watch or a file of them is not accepted.

use super::CycleEvent;

/// Why a breakpoint, a watch, a condition or a file of them is not accepted. Each is one sentence
/// for people, with what to write instead where that is known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BreakpointError {
    /// A condition is not CEL.
    #[error("the condition {condition:?} cannot be read: {problem}")]
    Syntax {
        /// The condition as it was typed.
        condition: String,
        /// What the parser reported.
        problem: String,
    },
    /// A condition cannot be evaluated on any example.
    #[error("the condition {condition:?}: {problem}")]
    Condition {
        /// The condition as it was typed.
        condition: String,
        /// What the evaluation reported.
        problem: Box<BreakpointError>,
    },
    /// The evaluation of a condition failed.
    #[error("{0}")]
    Evaluation(String),
    /// A condition uses a variable that does not exist.
    #[error("unknown variable {name:?}; {hint}")]
    UnknownVariable {
        /// The variable as written in the condition.
        name: String,
        /// The variable that was probably meant, or all of them.
        hint: String,
    },
    /// A variable is compared with a value that it can never have.
    #[error("{name} is never {value:?}; it is one of {values}")]
    UnknownValue {
        /// The variable.
        name: String,
        /// The value as written in the condition.
        value: String,
        /// The values that it can have.
        values: String,
    },
    /// A word is not the name of what may stand there.
    #[error("{name:?} is {what}{hint}")]
    UnknownName {
        /// Name of the word.
        name: String,
        /// What it should be: `not a queue`.
        what: &'static str,
        /// The names there are, or the one that was probably meant.
        hint: String,
    },
    /// No node of the cluster has a resource.
    #[error("no node has the resource {name:?}{hint}")]
    UnknownResource {
        /// Name of the resource.
        name: String,
        /// The one that was probably meant.
        hint: String,
    },
    /// A part is given twice.
    #[error("{0} is given twice; set two breakpoints instead")]
    Repeated(&'static str),
    /// A part has no name.
    #[error("{0} needs a name, with * for any text")]
    NameMissing(&'static str),
    /// The text after `-l` is not a label selector.
    #[error("{0}")]
    Labels(String),
    /// The text after `at:`, `every:` or `from:` is not a count.
    #[error("{0:?}: a count is a number from 1")]
    Count(String),
    /// An outcome that belongs to no node is combined with a node.
    #[error(
        "on:{0} is about no node; leave out node:, or use Filter node:NAME if verdict != \"Success\""
    )]
    OutcomeOfNode(CycleEvent),
    /// Parts, or a part and a variable, that exclude each other.
    #[error("{0}")]
    Combination(&'static str),
    /// A part that is required is missing; the text says which and shows an example.
    #[error("{0}")]
    Incomplete(&'static str),
    /// A watch has another form.
    #[error("{0}")]
    WatchForm(String),
    /// An entry of a file is wrong.
    #[error("breakpoints[{index}]: {problem}")]
    InFile {
        /// Its index, from 0.
        index: usize,
        /// What is wrong with it.
        problem: Box<BreakpointError>,
    },
    /// A file is not YAML, or cannot be written as YAML.
    #[error("{0}")]
    Yaml(String),
}
