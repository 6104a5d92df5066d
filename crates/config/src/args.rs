//! The arguments of plugins: what a plugin that takes some declares, and how the rest of this
//! package handles them without knowing the plugin.
//!
//! A plugin lists its arguments once, with [`arguments!`](crate::arguments): that gives the
//! struct, its defaults, its texts for the manual, the strict reader and the writer. The rules that
//! no list can hold are in its implementation of [`Arguments`]. The plugin's descriptor names the
//! type by [`ArgsType::of`], and its factory gets the values by [`ProfileArgs::of`].
//!
//! ```
//! use kubestep_config::args::{ArgsType, Arguments};
//! use kubestep_config::validation::Findings;
//! use kubestep_config::{
//!     ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor, ProfileArgs, arguments,
//! };
//!
//! arguments! {
//!     /// Which nodes the plugin rejects.
//!     pub struct QuietHoursArgs for "QuietHours" {
//!         minutes: i32 = 30, put "minutes", "1 to 60", "How long a node is left alone.";
//!     }
//! }
//!
//! impl Arguments for QuietHoursArgs {
//!     fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
//!         if !(1..=60).contains(&self.minutes) {
//!             found.invalid(&path.field("minutes"), self.minutes, "not in valid range [1, 60]");
//!         }
//!     }
//! }
//!
//! const PLUGIN: PluginDescriptor = PluginDescriptor {
//!     args: Some(ArgsType::of::<QuietHoursArgs>()),
//!     ..PluginDescriptor::new("QuietHours", &[ExtensionPoint::Filter])
//! };
//! assert_eq!(PLUGIN.args.map(|args| args.kind), Some("QuietHoursArgs"));
//! assert_eq!(ProfileArgs::default().of::<QuietHoursArgs>().minutes, 30);
//! ```
//!
//! Upstream: `pkg/scheduler/apis/config/types_pluginargs.go` and
//! `pkg/scheduler/apis/config/v1/defaults.go`.
//!
//! [`ProfileArgs::of`]: crate::ProfileArgs::of

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use kubestep_api::intern::Symbol;
use serde::Deserialize;

use super::encode::Map;
use super::features::FeatureGates;
use super::path::FieldPath;
use super::points::ArgumentDoc;
use super::reader::{Fields, Reader};
use super::types::API_VERSION;
use super::validation::Findings;
use super::yaml_value::YamlValue;

/// The fields of a plugin's arguments; [`arguments!`](crate::arguments) implements it.
pub trait ArgumentFields: Default {
    /// The plugin that takes the arguments.
    const PLUGIN: &'static str;
    /// The kind of the arguments, as documents spell it: `NodeResourcesFitArgs`.
    const KIND: &'static str;
    /// The fields, in the order in which they are read and written.
    const DOCS: &'static [ArgumentDoc];

    /// Reads the fields that are given; the others keep the value they have in `default`.
    fn read(fields: &mut Fields<'_, '_>, default: Self) -> Self;

    /// Appends the fields to `map`.
    fn write(&self, map: Map) -> Map;
}

/// The rules for a plugin's arguments.
pub trait Arguments: ArgumentFields + Any + Clone + PartialEq + fmt::Debug + Send + Sync {
    /// Whether wrong values are reported only when a profile with the plugin is built, not when
    /// the document is validated.
    const CHECKED_WHEN_BUILT: bool = false;

    /// The values of fields that are not given, where they depend on feature gates.
    fn defaults(_gates: &FeatureGates) -> Self {
        Self::default()
    }

    /// Replaces given values that stand for a default, such as an empty list.
    fn complete(&mut self, _gates: &FeatureGates) {}

    /// Reports every wrong value to `found`. `path` leads to the arguments.
    fn validate(&self, _found: &mut Findings, _path: &FieldPath, _gates: &FeatureGates) {}

    /// The field `ignoredResources`, if the plugin has it: the resources that HTTP extenders mark
    /// as `ignoredByScheduler` replace its value.
    fn ignored_resources(&mut self) -> Option<&mut Vec<Symbol>> {
        None
    }
}

/// The type of a plugin's arguments, for its descriptor.
#[derive(Clone, Copy)]
pub struct ArgsType {
    /// The kind, as documents spell it: `NodeResourcesFitArgs`.
    pub kind: &'static str,
    /// The fields, in the order in which a configuration is written out.
    pub docs: &'static [ArgumentDoc],
    read: fn(&mut Fields<'_, '_>, &FeatureGates) -> PluginArgs,
}

impl ArgsType {
    /// The arguments that are decoded into an `A`.
    pub const fn of<A: Arguments>() -> ArgsType {
        ArgsType { kind: A::KIND, docs: A::DOCS, read: read::<A> }
    }

    /// Reads the fields that are given and fills in the others.
    pub(super) fn read(&self, fields: &mut Fields<'_, '_>, gates: &FeatureGates) -> PluginArgs {
        (self.read)(fields, gates)
    }

    /// The arguments when none are given.
    pub fn default(&self, gates: &FeatureGates) -> PluginArgs {
        let mut reader = Reader { problems: Vec::new(), yaml: false };
        self.read(&mut reader.fields(&YamlValue::Null, &FieldPath::root()), gates)
    }
}

fn read<A: Arguments>(fields: &mut Fields<'_, '_>, gates: &FeatureGates) -> PluginArgs {
    let mut args = A::read(fields, A::defaults(gates));
    args.complete(gates);
    PluginArgs::new(args)
}

/// Two types of one kind are the same: a plugin has one type of arguments.
impl PartialEq for ArgsType {
    fn eq(&self, other: &ArgsType) -> bool {
        self.kind == other.kind
    }
}

impl Eq for ArgsType {}

impl fmt::Debug for ArgsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)
    }
}

/// The arguments of one plugin, of the type that its descriptor names.
#[derive(Clone)]
pub struct PluginArgs(Arc<dyn AnyArguments>);

impl PluginArgs {
    /// Arguments of a known type.
    pub fn new<A: Arguments>(args: A) -> PluginArgs {
        PluginArgs(Arc::new(args))
    }

    /// Arguments of a plugin whose descriptor names no type, as written.
    pub fn raw(value: serde_json::Value) -> PluginArgs {
        PluginArgs(Arc::new(RawArguments(value)))
    }

    /// The arguments, if `A` is their type.
    pub fn get<A: Arguments>(&self) -> Option<&A> {
        self.0.as_any().downcast_ref()
    }

    /// The arguments as written, of a plugin whose descriptor names no type.
    pub fn as_raw(&self) -> Option<&serde_json::Value> {
        self.0.as_any().downcast_ref().map(|RawArguments(value)| value)
    }

    /// The arguments as a document has them, with their kind.
    pub(super) fn encode(&self) -> YamlValue {
        self.0.encode()
    }

    /// Reports every wrong value to `found`. `path` leads to the arguments.
    pub(super) fn validate(&self, found: &mut Findings, path: &FieldPath, gates: &FeatureGates) {
        self.0.check(found, path, gates);
    }

    /// Whether upstream checks them only when it builds the plugin.
    pub(super) fn checked_when_built(&self) -> bool {
        self.0.checked_when_built()
    }

    /// The value of the field `ignoredResources`; `None` if the plugin has none.
    pub(super) fn ignored_resources(&self) -> Option<Vec<Symbol>> {
        self.0.ignored()
    }

    /// The same with another value of `ignoredResources`; `None` if the plugin has none.
    pub(super) fn with_ignored_resources(&self, resources: &[Symbol]) -> Option<PluginArgs> {
        self.0.with_ignored(resources)
    }
}

impl PartialEq for PluginArgs {
    fn eq(&self, other: &PluginArgs) -> bool {
        self.0.equals(other.0.as_any())
    }
}

impl fmt::Debug for PluginArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Arguments of any type, behind one pointer.
trait AnyArguments: fmt::Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn Any) -> bool;
    fn encode(&self) -> YamlValue;
    fn check(&self, found: &mut Findings, path: &FieldPath, gates: &FeatureGates);
    fn checked_when_built(&self) -> bool;
    fn ignored(&self) -> Option<Vec<Symbol>>;
    fn with_ignored(&self, resources: &[Symbol]) -> Option<PluginArgs>;
}

impl<A: Arguments> AnyArguments for A {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn encode(&self) -> YamlValue {
        let map = Map::default().put("apiVersion", API_VERSION).put("kind", A::KIND);
        self.write(map).into()
    }

    fn check(&self, found: &mut Findings, path: &FieldPath, gates: &FeatureGates) {
        self.validate(found, path, gates);
    }

    fn checked_when_built(&self) -> bool {
        A::CHECKED_WHEN_BUILT
    }

    fn ignored(&self) -> Option<Vec<Symbol>> {
        self.clone().ignored_resources().cloned()
    }

    fn with_ignored(&self, resources: &[Symbol]) -> Option<PluginArgs> {
        let mut args = self.clone();
        *args.ignored_resources()? = resources.to_vec();
        Some(PluginArgs::new(args))
    }
}

/// Arguments of unknown type: kept as written, and nothing is checked.
#[derive(PartialEq, Debug)]
struct RawArguments(serde_json::Value);

impl AnyArguments for RawArguments {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn encode(&self) -> YamlValue {
        // Reading a JSON value as a tree cannot fail.
        YamlValue::deserialize(&self.0).unwrap_or(YamlValue::Null)
    }

    fn check(&self, _found: &mut Findings, _path: &FieldPath, _gates: &FeatureGates) {}

    fn checked_when_built(&self) -> bool {
        false
    }

    fn ignored(&self) -> Option<Vec<Symbol>> {
        None
    }

    fn with_ignored(&self, _resources: &[Symbol]) -> Option<PluginArgs> {
        None
    }
}

/// Declares the arguments of a plugin: the struct, its defaults, its reader, its writer and its
/// texts for the manual, from one list.
///
/// Each field has its type (an [`ArgumentValue`](crate::ArgumentValue)), its default, whether it
/// is written always (`put`) or unless it is zero or empty (`put_some`), its key in a document,
/// what it takes in a few words, and what it changes in a sentence. [`args`](crate::args) shows an
/// example.
#[macro_export]
macro_rules! arguments {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident for $plugin:literal {
            $($field:ident: $type:ty = $default:expr,
                $put:ident $key:literal, $takes:literal, $doc:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        $vis struct $name {
            $(#[doc = $doc] pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::args::ArgumentFields for $name {
            const PLUGIN: &'static str = $plugin;
            const KIND: &'static str = concat!($plugin, "Args");
            const DOCS: &'static [$crate::ArgumentDoc] =
                &[$($crate::ArgumentDoc { name: $key, takes: $takes, doc: $doc }),*];

            fn read(fields: &mut $crate::reader::Fields<'_, '_>, default: Self) -> Self {
                Self { $($field: fields.value($key).unwrap_or(default.$field),)* }
            }

            fn write(&self, map: $crate::encode::Map) -> $crate::encode::Map {
                map$(.$put($key, $crate::ArgumentValue::write(&self.$field)))*
            }
        }
    };
}

/// Declares a struct that is in a field of a configuration or of a plugin's arguments, with its
/// reader and its writer, from one list: each field with its type, whether it is written always
/// (`put`) or unless it is zero or empty (`put_some`), and its key. A field that is not given is
/// zero or empty.
#[macro_export]
macro_rules! argument_object {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$doc:meta])* $field:ident: $type:ty, $put:ident $key:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug)]
        $vis struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $crate::ArgumentValue for $name {
            fn read(
                reader: &mut $crate::reader::Reader,
                node: &$crate::yaml_value::YamlValue,
                path: &$crate::FieldPath,
            ) -> Self {
                let mut fields = reader.fields(node, path);
                let read = Self { $($field: fields.value($key).unwrap_or_default(),)* };
                fields.finish();
                read
            }

            fn write(&self) -> $crate::yaml_value::YamlValue {
                $crate::encode::Map::default()
                    $(.$put($key, $crate::ArgumentValue::write(&self.$field)))*
                    .into()
            }
        }
    };
}
