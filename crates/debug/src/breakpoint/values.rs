//! The types that conditions have besides CEL's own: amounts of resources, labels, and records with
//! named fields.

use std::cmp::Ordering;
use std::fmt::Debug;

use ::cel::ExecutionError;
use ::cel::common::traits::{self, Adder, Comparer, Container, Indexer, Iterable, Subtractor};
use ::cel::common::types::{CelDouble, CelInt, CelString, MAP_TYPE, Type};
use ::cel::common::value::{CowVal, StaticVal, Val};

use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, Name, Quantity, QuantityFormat};
use kubestep_cel::val::{Keys, string};
use kubestep_cel::val_methods;
use kubestep_framework::resource::Resource;

static AMOUNT: Type = Type::new_unspecified_type("Amount");
static FIELDS: Type = Type::new_unspecified_type("Object");

/// An amount of a resource, compared by value: `1` and `1000m` are equal.
#[derive(Clone, PartialEq, Debug)]
pub struct AmountValue(pub Quantity);

impl AmountValue {
    /// An amount in the scheduler's unit: CPU in millicores, everything else in whole units.
    pub fn of(resource: Symbol, amount: i64) -> AmountValue {
        AmountValue(match resource.as_str() {
            "cpu" => Quantity::new_milli(amount, QuantityFormat::DecimalSi),
            "memory" | "ephemeral-storage" => Quantity::new(amount, QuantityFormat::BinarySi),
            _ => Quantity::new(amount, QuantityFormat::DecimalSi),
        })
    }

    /// The amount that a CEL value stands for: an amount, or a number of units.
    fn from_val(value: &dyn Val) -> Option<Quantity> {
        if let Some(amount) = value.downcast_ref::<AmountValue>() {
            return Some(amount.0.clone());
        }
        if let Some(number) = value.downcast_ref::<CelInt>() {
            return Some(Quantity::new(*number.inner(), QuantityFormat::DecimalSi));
        }
        let number = *value.downcast_ref::<CelDouble>()?.inner();
        Some(Quantity::new_milli((number * 1e3).round() as i64, QuantityFormat::DecimalSi))
    }

    fn other(value: &dyn Val) -> Result<Quantity, ExecutionError> {
        let mistake = || ExecutionError::UnexpectedType {
            got: value.get_type().name().to_owned(),
            want: "an amount like 500m or 2Gi".to_owned(),
        };
        AmountValue::from_val(value).ok_or_else(mistake)
    }
}

impl Val for AmountValue {
    val_methods!(AMOUNT, Comparer, Adder, Subtractor, Any);

    fn equals(&self, other: &dyn Val) -> bool {
        AmountValue::from_val(other).is_some_and(|other| other == self.0)
    }
}

impl StaticVal for AmountValue {}

impl Comparer for AmountValue {
    fn compare(&self, other: &dyn Val) -> Result<Ordering, ExecutionError> {
        Ok(self.0.cmp(&AmountValue::other(other)?))
    }
}

impl Adder for AmountValue {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let mut sum = self.0.clone();
        sum.add(&AmountValue::other(other)?);
        Ok(CowVal::owned(AmountValue(sum)))
    }
}

impl Subtractor for AmountValue {
    fn sub<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let mut difference = self.0.clone();
        difference.sub(&AmountValue::other(other)?);
        Ok(CowVal::owned(AmountValue(difference)))
    }
}

/// A record with named fields.
pub trait HasFields: Clone + Debug + Send + Sync {
    /// The names of the fields that always exist, for messages; empty if there is no fixed set.
    const NAMES: &'static [&'static str];

    /// The value of a field; `None` if it is absent.
    fn field<'v>(&self, name: &str) -> Option<Box<dyn Val + 'v>>
    where
        Self: 'v;
}

/// A record as a CEL value.
#[derive(Clone, Debug)]
pub struct CelRecord<T>(pub T);

impl<T: HasFields> Val for CelRecord<T> {
    val_methods!(FIELDS, Indexer);
}

impl<T: HasFields> Indexer for CelRecord<T> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = string(key)?;
        match self.0.field(name) {
            Some(value) => Ok(CowVal::Owned(value)),
            None if T::NAMES.is_empty() || T::NAMES.contains(&name) => {
                Err(ExecutionError::no_such_key(name))
            }
            None => {
                let names = T::NAMES.join(", ");
                Err(ExecutionError::function_error(
                    name,
                    format!("no such field; there are {names}"),
                ))
            }
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}

/// Amounts by resource name: `cpu`, `memory`, `pods`, `["nvidia.com/gpu"]`.
#[derive(Clone, Copy, Debug)]
pub struct Amounts<'a>(pub &'a Resource);

impl HasFields for Amounts<'_> {
    const NAMES: &'static [&'static str] = &[];

    fn field<'v>(&self, name: &str) -> Option<Box<dyn Val + 'v>>
    where
        Self: 'v,
    {
        let resource = Symbol::new(name);
        Some(Box::new(AmountValue::of(resource, self.0.amount(resource))))
    }
}

/// Like [`Amounts`], for computed amounts.
#[derive(Clone, Debug)]
pub struct OwnAmounts(pub Resource);

impl HasFields for OwnAmounts {
    const NAMES: &'static [&'static str] = &[];

    fn field<'v>(&self, name: &str) -> Option<Box<dyn Val + 'v>>
    where
        Self: 'v,
    {
        let resource = Symbol::new(name);
        Some(Box::new(AmountValue::of(resource, self.0.amount(resource))))
    }
}

/// Labels. An absent label is an error in CEL, which a condition takes for false.
#[derive(Clone, Debug)]
pub struct LabelMap<'a> {
    labels: &'a Labels,
    keys: Vec<CelString<'static>>,
}

impl<'a> LabelMap<'a> {
    /// The labels of an object.
    pub fn new(labels: &'a Labels) -> LabelMap<'a> {
        let keys = labels.iter().map(|(key, _)| CelString::from(key.as_str()));
        LabelMap { labels, keys: keys.collect() }
    }

    fn find(&self, key: &str) -> Option<Name> {
        self.labels.iter().find(|(name, _)| name.as_str() == key).map(|(_, value)| *value)
    }
}

impl Val for LabelMap<'_> {
    val_methods!(MAP_TYPE, Indexer, Container, Iterable);
}

impl Indexer for LabelMap<'_> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let key = string(key)?;
        let value = self.find(key).ok_or_else(|| ExecutionError::no_such_key(key))?;
        Ok(CowVal::owned(CelString::from(value.text().into_string())))
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}

impl Container for LabelMap<'_> {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.find(string(key)?).is_some())
    }
}

impl Iterable for LabelMap<'_> {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Keys::new(&self.keys))
    }
}
