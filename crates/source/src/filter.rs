//! Selects a part of the input: `-n`, `-l`, `--exclude KIND/NAME`.

use kubestep_api::glob::glob;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, Selector};

/// Which objects to read. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Limits kinds with a namespace to these namespaces; empty: all.
    pub namespaces: Vec<Symbol>,
    /// Limits pods to those that match; other kinds are not affected.
    pub pods: Option<Selector>,
    /// The objects that are not read, by kind and name.
    pub exclude: Vec<Exclude>,
    /// Whether a field that Kubernetes does not know, or that occurs twice, is an error; else it is
    /// a warning.
    pub strict: bool,
}

/// `KIND/NAME` or `KIND/NAMESPACE/NAME`; each part may contain `*` and `?`.
#[derive(Clone, Debug, PartialEq)]
pub struct Exclude {
    kind: Option<Kind>,
    namespace: Option<String>,
    name: String,
}

/// Why a text excludes no objects.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExcludeError {
    /// It has no slash, or more than two.
    #[error("{0:?} is not of the form KIND/NAME")]
    Form(String),
    /// The kind is unknown.
    #[error("{kind:?} in {text:?} is not a kind that the scheduler reads")]
    Kind {
        /// The kind as it was typed.
        kind: String,
        /// The whole argument of `--exclude`.
        text: String,
    },
    /// The name is empty.
    #[error("{0:?} names nothing: write KIND/* for all of a kind")]
    NoName(String),
}

impl Filter {
    /// Whether the object is selected.
    pub fn takes(&self, object: &Object) -> bool {
        let metadata = object.metadata();
        let namespace = !object.kind().is_namespaced()
            || self.namespaces.is_empty()
            || self.namespaces.contains(&metadata.namespace);
        let labels = match (object, &self.pods) {
            (Object::Pod(_), Some(selector)) => selector.matches(&metadata.labels),
            _ => true,
        };
        namespace && labels && !self.exclude.iter().any(|exclude| exclude.matches(object))
    }
}

impl Exclude {
    /// Parses `pods/web-*`, `Pod/shop/web-0` or `*/old-?`.
    ///
    /// # Errors
    /// It has another form, or the kind is unknown.
    pub fn parse(text: &str) -> Result<Exclude, ExcludeError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (kind, namespace, name) = match parts[..] {
            [kind, name] => (kind, None, name),
            [kind, namespace, name] => (kind, Some(namespace.to_string()), name),
            _ => return Err(ExcludeError::Form(text.to_owned())),
        };
        let kind = match kind {
            "*" => None,
            kind => Some(Kind::by_name(kind).ok_or_else(|| ExcludeError::Kind {
                kind: kind.to_owned(),
                text: text.to_owned(),
            })?),
        };
        if name.is_empty() {
            return Err(ExcludeError::NoName(text.to_owned()));
        }
        Ok(Exclude { kind, namespace, name: name.into() })
    }

    fn matches(&self, object: &Object) -> bool {
        let metadata = object.metadata();
        let namespace = |pattern: &String| glob(pattern, &metadata.namespace);
        self.kind.is_none_or(|kind| kind == object.kind())
            && self.namespace.as_ref().is_none_or(namespace)
            && glob(&self.name, &metadata.name.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::{Node, Pod};

    fn pod(namespace: &str, name: &str, app: &str) -> Object {
        let mut pod = Pod::default();
        pod.metadata.namespace = namespace.into();
        pod.metadata.name = name.into();
        pod.metadata.labels.insert("app".into(), app.into());
        pod.into()
    }

    #[test]
    fn exclusions_name_kind_and_name_and_perhaps_the_namespace() {
        let web = pod("shop", "web-0", "web");
        let mut node = Node::default();
        node.metadata.name = "web-0".into();
        let node = Object::from(node);
        for (text, of_pod, of_node) in [
            ("pods/web-*", true, false),
            ("po/shop/*", true, false),
            ("Pod/default/*", false, false),
            ("*/web-0", true, true),
            ("node/*", false, true),
        ] {
            let exclude = Exclude::parse(text).unwrap();
            assert_eq!(
                (exclude.matches(&web), exclude.matches(&node)),
                (of_pod, of_node),
                "{text}"
            );
        }
        assert_eq!(
            Exclude::parse("web").unwrap_err().to_string(),
            "\"web\" is not of the form KIND/NAME"
        );
        assert!(Exclude::parse("thing/x").is_err());
        assert!(Exclude::parse("pod/").is_err());
    }

    #[test]
    fn namespaces_concern_what_has_one_and_labels_concern_pods() {
        let filter = Filter {
            namespaces: vec!["shop".into()],
            pods: Some(Selector::parse("app=web").unwrap()),
            ..Filter::default()
        };
        assert!(filter.takes(&pod("shop", "a", "web")));
        assert!(!filter.takes(&pod("shop", "a", "db")));
        assert!(!filter.takes(&pod("other", "a", "web")));
        assert!(filter.takes(&Node::default().into()));
        assert!(Filter::default().takes(&pod("other", "a", "db")));
    }
}
