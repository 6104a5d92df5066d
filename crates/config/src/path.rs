//! The path of a field in a document: `profiles[0].plugins.filter.enabled[1]`.

use std::fmt;

/// One step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathStep {
    /// The field of that name.
    Field(String),
    /// The entry of a list, counted from 0.
    Index(usize),
    /// The entry of a map with arbitrary keys.
    Key(String),
}

/// The steps from the root of the document; empty for the root itself.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FieldPath {
    steps: Vec<PathStep>,
}

impl FieldPath {
    /// The root of the document.
    pub fn root() -> FieldPath {
        FieldPath::default()
    }

    /// The field `name` below this path.
    pub fn field(&self, name: &str) -> FieldPath {
        self.with(PathStep::Field(name.to_owned()))
    }

    /// The list entry `index` below this path.
    pub fn index(&self, index: usize) -> FieldPath {
        self.with(PathStep::Index(index))
    }

    /// The map entry `key` below this path.
    pub fn key(&self, key: &str) -> FieldPath {
        self.with(PathStep::Key(key.to_owned()))
    }

    fn with(&self, step: PathStep) -> FieldPath {
        let mut steps = self.steps.clone();
        steps.push(step);
        FieldPath { steps }
    }

    /// The steps from the root.
    pub fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// The path without its last step; `None` for the root.
    pub fn parent(&self) -> Option<FieldPath> {
        let (_, steps) = self.steps.split_last()?;
        Some(FieldPath { steps: steps.to_vec() })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            match step {
                PathStep::Field(name) if i == 0 => write!(f, "{name}")?,
                PathStep::Field(name) => write!(f, ".{name}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_upstream_prints_them() {
        let path = FieldPath::root().field("profiles").index(2).field("args").key("zone");
        assert_eq!(path.to_string(), "profiles[2].args[zone]");
        assert_eq!(path.parent().map(|path| path.to_string()), Some("profiles[2].args".into()));
        assert_eq!(FieldPath::root().to_string(), "");
        assert_eq!(FieldPath::root().parent(), None);
    }
}
