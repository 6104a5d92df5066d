//! The variable `device`: a view of a device that copies nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use ::cel::ExecutionError;
use ::cel::common::traits::{self, Container, Indexer, Iterable, Sizer};
use ::cel::common::types::{CelBool, CelInt, CelList, CelString, MAP_TYPE, Type};
use ::cel::common::value::{CowVal, Val};

use crate::Options;
use crate::quantity::QuantityValue;
use crate::val::{Keys, string};
use crate::val_methods;
use crate::version::{self, VersionValue};
use kubestep_api::intern::Symbol;
use kubestep_api::{Device, DeviceAttribute, DeviceCapacity};

static DEVICE: Type = Type::new_unspecified_type("kubernetes.DRADevice");

/// Checks whether all attributes can be converted for expressions, even if they are not used.
///
/// # Errors
/// An attribute is not a valid version, or its type needs DRAListTypeAttributes.
pub(crate) fn check_attributes(device: &Device, lists: bool) -> Result<(), String> {
    for (name, attribute) in &device.attributes {
        attribute.to_val(lists).map_err(|text| format!("attribute {name}: {text}"))?;
    }
    Ok(())
}

/// Domain and identifier of an attribute or capacity; names without a domain belong to the
/// driver's.
fn qualified(name: Symbol, driver: Symbol) -> (&'static str, &'static str) {
    name.as_str().split_once('/').unwrap_or((driver.as_str(), name.as_str()))
}

/// An attribute or a capacity.
trait Shown: Debug + Send + Sync {
    /// The value in CEL. With `lists`, it may be a list.
    fn to_val<'v>(&self, lists: bool) -> Result<Box<dyn Val + 'v>, String>;
}

/// A list of values, unless there are none.
fn list<'v, T>(
    values: &[T],
    mut item: impl FnMut(&T) -> Result<Box<dyn Val + 'v>, String>,
) -> Option<Result<Box<dyn Val + 'v>, String>> {
    if values.is_empty() {
        return None;
    }
    let items: Result<Vec<_>, _> = values.iter().map(&mut item).collect();
    Some(items.map(|items| Box::new(CelList::from(items)) as Box<dyn Val + 'v>))
}

fn version_val<'v>(text: &str) -> Result<Box<dyn Val + 'v>, String> {
    let version = version::parse(text);
    let version = version.map_err(|text| format!("parse semantic version: {text}"))?;
    Ok(Box::new(VersionValue(version)))
}

/// The list of an attribute, if it has one.
fn list_of<'v>(attribute: &DeviceAttribute) -> Option<Result<Box<dyn Val + 'v>, String>> {
    list(&attribute.int_values, |value| Ok(Box::new(CelInt::from(*value))))
        .or_else(|| list(&attribute.bool_values, |value| Ok(Box::new(CelBool::from(*value)))))
        .or_else(|| {
            list(&attribute.string_values, |value| Ok(Box::new(CelString::from(value.as_str()))))
        })
        .or_else(|| list(&attribute.version_values, |value| version_val(value)))
}

impl Shown for DeviceAttribute {
    fn to_val<'v>(&self, lists: bool) -> Result<Box<dyn Val + 'v>, String> {
        if let Some(list) = list_of(self).filter(|_| lists) {
            return list;
        }
        if let Some(value) = self.int_value {
            return Ok(Box::new(CelInt::from(value)));
        }
        if let Some(value) = self.bool_value {
            return Ok(Box::new(CelBool::from(value)));
        }
        if let Some(value) = self.string_value {
            return Ok(Box::new(CelString::from(value.as_str())));
        }
        let Some(value) = self.version_value else {
            return Err("unsupported attribute value".to_owned());
        };
        version_val(&value)
    }
}

impl Shown for DeviceCapacity {
    fn to_val<'v>(&self, _lists: bool) -> Result<Box<dyn Val + 'v>, String> {
        Ok(Box::new(QuantityValue(self.value.clone())))
    }
}

/// The variable `device` of selectors.
#[derive(Clone, Copy, Debug)]
pub struct DeviceValue<'a> {
    driver: Symbol,
    device: &'a Device,
    options: Options,
}

impl<'a> DeviceValue<'a> {
    /// The view of a device of that driver.
    pub fn new(driver: Symbol, device: &'a Device, options: Options) -> DeviceValue<'a> {
        DeviceValue { driver, device, options }
    }
}

impl Val for DeviceValue<'_> {
    val_methods!(DEVICE, Indexer);
}

impl Indexer for DeviceValue<'_> {
    fn get<'b, 'v>(&'b self, field: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let (driver, device, Options { lists, sharing }) = (self.driver, self.device, self.options);
        Ok(match string(field)? {
            "driver" => CowVal::owned(CelString::from(driver.as_str())),
            "allowMultipleAllocations" => {
                let is_shared = sharing && device.allow_multiple_allocations == Some(true);
                CowVal::owned(CelBool::from(is_shared))
            }
            "attributes" => {
                CowVal::owned(AttributeNames::new(driver, &device.attributes, None, lists))
            }
            "capacity" => CowVal::owned(AttributeNames::new(driver, &device.capacity, None, lists)),
            other => return Err(ExecutionError::no_such_key(other)),
        })
    }

    fn steal<'v>(self: Box<Self>, field: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(field).map(CowVal::into_owned)
    }
}

/// A map of attributes or capacities: by domain, or within a domain by identifier. An unknown
/// domain is an empty map, an unknown identifier an error.
#[derive(Clone, Debug)]
struct AttributeNames<'a, T> {
    driver: Symbol,
    values: &'a BTreeMap<Symbol, T>,
    domain: Option<&'static str>,
    keys: Vec<CelString<'static>>,
    lists: bool,
}

impl<'a, T: Shown> AttributeNames<'a, T> {
    fn new(
        driver: Symbol,
        values: &'a BTreeMap<Symbol, T>,
        domain: Option<&str>,
        lists: bool,
    ) -> Self {
        let names = values.keys().map(|name| qualified(*name, driver));
        let keys: BTreeSet<&'static str> = names
            .filter(|(of, _)| domain.is_none_or(|domain| domain == *of))
            .map(|(of, id)| if domain.is_none() { of } else { id })
            .collect();
        let keys = keys.into_iter().map(CelString::from).collect();
        // An interned text outlives every value.
        let domain = domain.map(|domain| Symbol::new(domain).as_str());
        AttributeNames { driver, values, domain, keys, lists }
    }

    fn find(&self, key: &str) -> Option<&'a T> {
        let of_domain = |name: &Symbol| {
            let (domain, id) = qualified(*name, self.driver);
            Some(domain) == self.domain && id == key
        };
        self.values.iter().find(|(name, _)| of_domain(name)).map(|(_, value)| value)
    }
}

impl<T: Shown + Clone> Val for AttributeNames<'_, T> {
    val_methods!(MAP_TYPE, Container, Indexer, Iterable, Sizer);

    fn equals(&self, other: &dyn Val) -> bool {
        let (Some(sizer), Some(map)) = (other.as_sizer(), other.as_indexer()) else { return false };
        let same = |key: &CelString<'static>| match (self.get(key), map.get(key)) {
            (Ok(own), Ok(others)) => own.equals(&*others),
            _ => false,
        };
        other.get_type() == &MAP_TYPE && sizer.size() == self.size() && self.keys.iter().all(same)
    }
}

impl<T: Shown + Clone> Indexer for AttributeNames<'_, T> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let key = string(key)?;
        if self.domain.is_none() {
            return Ok(CowVal::owned(AttributeNames::new(
                self.driver,
                self.values,
                Some(key),
                self.lists,
            )));
        }
        let value = self.find(key).ok_or_else(|| ExecutionError::no_such_key(key))?;
        let value =
            value.to_val(self.lists).map_err(|text| ExecutionError::function_error(key, text))?;
        Ok(CowVal::Owned(value))
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}

impl<T: Shown> Container for AttributeNames<'_, T> {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        let key = string(key)?;
        Ok(self.keys.iter().any(|known| known.inner() == key))
    }
}

impl<T> Sizer for AttributeNames<'_, T> {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.keys.len()).unwrap_or(i64::MAX))
    }
}

impl<T: Shown> Iterable for AttributeNames<'_, T> {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Keys::new(&self.keys))
    }
}
