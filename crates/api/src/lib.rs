//! Kubernetes objects in a compact form: typed structs with only the fields that kube-scheduler
//! 1.36 reads, under the API's own names, on compact names and interned strings.
//!
//! Every type is re-exported here: [`Pod`], [`Node`], [`Object`] for an object of any kind. To read
//! documents start at [`yaml`] and [`decode`](mod@decode); [`admission`] and [`defaults`] do to an
//! object what an API server does before it stores one. [`quantity`] and [`selector`] follow
//! upstream to the last digit and error text. Names of objects and values of labels are [`Name`]s,
//! other strings that occur often [`intern::Symbol`]s, and equal values are stored once ([`shared`]).

mod macros;

pub mod admission;
pub mod controllers;
pub mod coordination;
pub mod custom;
pub mod decode;
pub mod defaults;
pub mod duration;
pub mod glob;
pub mod intern;
pub mod kind;
pub mod map;
pub mod meta;
pub mod name;
pub mod node;
pub mod object;
pub mod pod;
pub mod pod_affinity;
pub mod provisioning;
pub mod quantity;
pub mod resource;
pub mod scheduling;
pub mod selector;
pub mod shared;
pub mod shared_text;
pub mod storage;
pub mod time;
pub mod uid;
pub mod version;
pub mod volumes;
pub mod words;
pub mod workload;
pub mod yaml;

pub use controllers::*;
pub use coordination::*;
pub use custom::{Custom, CustomKind, CustomObject};
pub use decode::{DecodeError, Decoded};
pub use duration::Duration;
pub use kind::Kind;
pub use map::{Annotations, Labels, ResourceList, SymbolMap};
pub use meta::*;
pub use name::Name;
pub use node::*;
pub use object::{Object, ObjectKey};
pub use pod::*;
pub use pod_affinity::*;
pub use provisioning::*;
pub use quantity::{Format as QuantityFormat, Quantity, QuantityError};
pub use resource::*;
pub use scheduling::*;
pub use selector::Selector;
pub use shared::{Pooled, SharedList};
pub use shared_text::SharedText;
pub use storage::*;
pub use time::{ParseTimeError, Time};
pub use uid::Uid;
pub use version::ResourceVersion;
pub use volumes::*;
pub use workload::*;
