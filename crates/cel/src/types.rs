//! Types of expressions, and their assignability.
//!
//! Upstream: `types.go`, `mapping.go` and `format.go` in cel-go's `checker`.

use std::slice;

use hashbrown::HashMap;

/// A type as the checker knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Type {
    /// A type without parameters, by its name.
    Named(&'static str),
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Optional(Box<Type>),
    /// The type of types.
    Kind(Option<Box<Type>>),
    /// A variable, bound when a type for it is found.
    Var(u32),
}

/// A type that is only known at run time.
pub(crate) const DYN: Type = Type::Named("dyn");
/// The same, for an attribute.
pub(crate) const ANY: Type = Type::Named("any");
/// The type of an expression whose error was already reported.
pub const ERROR: Type = Type::Named("!error!");
pub const BOOL: Type = Type::Named("bool");
pub const INT: Type = Type::Named("int");
pub(crate) const STRING: Type = Type::Named("string");
pub(crate) const QUANTITY: Type = Type::Named("kubernetes.Quantity");
pub(crate) const DEVICE: Type = Type::Named("kubernetes.DRADevice");

impl Type {
    /// A list of this type.
    pub fn list(of: Type) -> Type {
        Type::List(Box::new(of))
    }

    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Box::new(key), Box::new(value))
    }

    /// An optional value of this type.
    pub fn optional(of: Type) -> Type {
        Type::Optional(Box::new(of))
    }

    /// Whether it is only known at run time.
    pub(crate) fn is_dyn(&self) -> bool {
        *self == DYN || *self == ANY
    }

    fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || *self == ERROR
    }

    fn parameters(&self) -> Vec<&Type> {
        match self {
            Type::Named(_) | Type::Var(_) | Type::Kind(None) => Vec::new(),
            Type::List(of) | Type::Optional(of) | Type::Kind(Some(of)) => vec![of],
            Type::Map(key, value) => vec![key, value],
        }
    }

    fn is_same_shape(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Named(name), Type::Named(other)) => name == other,
            (Type::Named(_), _) => false,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn is_nullable(&self) -> bool {
        match self {
            Type::Optional(_) => true,
            Type::Named("null" | "any" | "dyn" | "duration" | "timestamp") => true,
            Type::Named(name) => name.contains('.'),
            _ => false,
        }
    }

    /// The name in a type mismatch error.
    pub fn shown(&self) -> String {
        self.text(Type::shown, |name| name)
    }

    /// The name in an error about a result type.
    pub fn declared(&self) -> String {
        self.text(Type::declared, |name| match name {
            "any" => "google.protobuf.Any",
            "null" => "null_type",
            other => other,
        })
    }

    fn text(&self, of: fn(&Type) -> String, named: fn(&'static str) -> &'static str) -> String {
        let name = match self {
            Type::Named(name) => return named(name).to_owned(),
            Type::Var(number) => return format!("_var{number}"),
            Type::Kind(None) => return "type".to_owned(),
            Type::Kind(Some(_)) => "type",
            Type::List(_) => "list",
            Type::Map(..) => "map",
            Type::Optional(_) => "optional_type",
        };
        let parameters: Vec<String> = self.parameters().into_iter().map(of).collect();
        format!("{name}({})", parameters.join(", "))
    }
}

/// The bindings of type variables.
#[derive(Clone, Default, Debug)]
pub struct TypeBindings(HashMap<u32, Type>);

impl TypeBindings {
    /// Whether `from` is assignable to `to`; if so, the resulting bindings are kept.
    pub(crate) fn assign(&mut self, from: &Type, to: &Type) -> bool {
        self.assign_all(slice::from_ref(from), slice::from_ref(to))
    }

    /// Whether each type is assignable to its counterpart.
    pub(crate) fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        let mut copy = self.clone();
        let all = from.len() == to.len()
            && from.iter().zip(to).all(|(from, to)| copy.is_assignable(from, to));
        if all {
            *self = copy;
        }
        all
    }

    /// The type with its variables resolved; with `close`, unbound ones become `DYN`.
    pub fn resolve(&self, of: &Type, close: bool) -> Type {
        let boxed = |of: &Type| Box::new(self.resolve(of, close));
        match of {
            Type::Var(number) => match self.0.get(number) {
                Some(known) => self.resolve(known, close),
                None if close => DYN,
                None => of.clone(),
            },
            Type::List(of) => Type::List(boxed(of)),
            Type::Map(key, value) => Type::Map(boxed(key), boxed(value)),
            Type::Optional(of) => Type::Optional(boxed(of)),
            Type::Kind(of) => Type::Kind(of.as_ref().map(|of| boxed(of))),
            Type::Named(_) => of.clone(),
        }
    }

    fn is_assignable(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Var(number) = to {
            match self.stands_for(from, *number) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Var(number) = from {
            return self.stands_for(to, *number).0;
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Named("null"), other) | (other, Type::Named("null")) => other.is_nullable(),
            (Type::Kind(_), Type::Kind(_)) => true,
            _ => {
                from.is_same_shape(to)
                    && from
                        .parameters()
                        .iter()
                        .zip(to.parameters())
                        .all(|(from, to)| self.is_assignable(from, to))
            }
        }
    }

    /// Whether the type variable can be bound to that type, and whether it was bound before.
    fn stands_for(&mut self, that: &Type, number: u32) -> (bool, bool) {
        if *that == Type::Var(number) {
            return (true, true);
        }
        if let Some(known) = self.0.get(&number).cloned() {
            if *that == known {
                return (true, true);
            }
            if !self.is_assignable(that, &known) {
                return (false, true);
            }
            let general = most_general(that, &known);
            if !self.mentions(&general, number) {
                self.0.insert(number, general);
            }
            return (true, true);
        }
        let is_free = !self.mentions(that, number);
        if is_free {
            self.0.insert(number, that.clone());
        }
        (is_free, false)
    }

    fn mentions(&self, within: &Type, number: u32) -> bool {
        match within {
            Type::Var(other) if *other == number => true,
            Type::Var(other) => self.0.get(other).is_some_and(|known| self.mentions(known, number)),
            other => other.parameters().iter().any(|of| self.mentions(of, number)),
        }
    }
}

/// The more general of two compatible types.
pub(crate) fn most_general(one: &Type, other: &Type) -> Type {
    if is_less_specific(one, other) { one.clone() } else { other.clone() }
}

fn is_less_specific(one: &Type, other: &Type) -> bool {
    if one.is_dyn() || matches!(one, Type::Var(_)) {
        return true;
    }
    if other.is_dyn() || matches!(other, Type::Var(_)) || !one.is_same_shape(other) {
        return false;
    }
    matches!(one, Type::Kind(_))
        || one
            .parameters()
            .iter()
            .zip(other.parameters())
            .all(|(one, other)| is_less_specific(one, other))
}
