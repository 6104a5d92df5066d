//! What implementations of CEL values share.

use ::cel::ExecutionError;
use ::cel::common::traits;
use ::cel::common::types::CelString;
use ::cel::common::value::Val;

/// The methods of a [`Val`] that are the same for every type: its CEL type, a boxed clone, and the
/// conversions to the traits that it implements (`Any` for a type without lifetimes).
///
/// `val_methods!(MAP_TYPE, Indexer, Container);` stands in an implementation of `Val`.
#[macro_export]
macro_rules! val_methods {
    (@Any) => {
        fn as_any(&self) -> Option<&dyn ::std::any::Any> {
            Some(self)
        }
    };
    (@Comparer) => { $crate::val_methods!(@ as_comparer, Comparer); };
    (@Container) => { $crate::val_methods!(@ as_container, Container); };
    (@Sizer) => { $crate::val_methods!(@ as_sizer, Sizer); };
    (@Adder) => { $crate::val_methods!(@borrowed as_adder, Adder); };
    (@Indexer) => { $crate::val_methods!(@borrowed as_indexer, Indexer); };
    (@Iterable) => { $crate::val_methods!(@borrowed as_iterable, Iterable); };
    (@Subtractor) => { $crate::val_methods!(@borrowed as_subtractor, Subtractor); };
    (@ $method:ident, $trait:ident) => {
        fn $method(&self) -> Option<&dyn ::cel::common::traits::$trait> {
            Some(self)
        }
    };
    (@borrowed $method:ident, $trait:ident) => {
        fn $method<'b, 'v>(&'b self) -> Option<&'b (dyn ::cel::common::traits::$trait + 'v)>
        where
            Self: 'v,
        {
            Some(self)
        }
    };
    ($type:expr $(, $trait:ident)*) => {
        fn get_type(&self) -> &::cel::common::types::Type {
            &$type
        }

        fn cel_type() -> &'static ::cel::common::types::Type {
            &$type
        }

        fn clone_as_boxed<'v>(&self) -> Box<dyn ::cel::common::value::Val + 'v>
        where
            Self: 'v,
        {
            Box::new(Clone::clone(self))
        }

        $($crate::val_methods!(@$trait);)*
    };
}

/// The text of a string, such as the key of a map.
///
/// # Errors
/// The value is not a string.
pub fn string(value: &dyn Val) -> Result<&str, ExecutionError> {
    let text = value.downcast_ref::<CelString<'_>>();
    text.map(CelString::inner).ok_or_else(|| ExecutionError::UnexpectedType {
        got: value.get_type().name().to_owned(),
        want: "string".to_owned(),
    })
}

/// Iterates over the keys of a map.
#[derive(Debug)]
pub struct Keys<'b>(std::slice::Iter<'b, CelString<'static>>);

impl<'b> Keys<'b> {
    /// Iterates over these keys.
    pub fn new(keys: &'b [CelString<'static>]) -> Keys<'b> {
        Keys(keys.iter())
    }
}

impl<'b, 'v> traits::Iterator<'b, 'v> for Keys<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|key| key as &(dyn Val + 'v))
    }
}
