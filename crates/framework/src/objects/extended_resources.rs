//! The device class of each extended resource.
//!
//! Pods may request devices like a plain resource: by the extended resource name of a device class,
//! or by `deviceclass.resource.kubernetes.io/<class>`. As upstream, this is a cache that follows
//! the changes of classes one by one, so with two classes of the same resource its content depends
//! on their order. Upstream:
//! `staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestep_api::DeviceClass;
use kubestep_api::intern::Symbol;

/// The prefix of the implicit extended resource name of every class.
pub const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

/// Device classes by their extended resource.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct ExtendedResources {
    classes: BTreeMap<Symbol, Arc<DeviceClass>>,
}

impl ExtendedResources {
    /// The class for `resource`.
    pub fn class_for(&self, resource: Symbol) -> Option<&Arc<DeviceClass>> {
        self.classes.get(&resource)
    }

    /// Whether no class has an extended resource.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Adds or updates a class. Of two classes with the same resource the newer one wins, then the
    /// one whose name sorts first; the other is not stored at all.
    pub fn update(&mut self, old: Option<&DeviceClass>, new: &Arc<DeviceClass>) {
        let explicit = new.spec.extended_resource_name;
        if let Some(other) = explicit.and_then(|name| self.classes.get(&name))
            && !replaces(new, other)
        {
            return;
        }
        if let Some(old) = old {
            self.remove(old);
        }
        if let Some(name) = explicit {
            self.classes.insert(name, new.clone());
        }
        self.classes.insert(implicit_resource(new), new.clone());
    }

    /// Removes a deleted class.
    pub fn remove(&mut self, class: &DeviceClass) {
        self.classes.remove(&implicit_resource(class));
        if let Some(name) = class.spec.extended_resource_name {
            self.classes.remove(&name);
        }
    }
}

/// The resource name by which any pod may request a device of `class`.
pub fn implicit_resource(class: &DeviceClass) -> Symbol {
    Symbol::new(&format!("{DEVICE_CLASS_PREFIX}{}", class.metadata.name))
}

fn replaces(new: &DeviceClass, other: &DeviceClass) -> bool {
    let (created, other_created) =
        (new.metadata.creation_timestamp, other.metadata.creation_timestamp);
    created > other_created || (created == other_created && new.metadata.name < other.metadata.name)
}

#[cfg(test)]
mod tests {
    use kubestep_api::Name;

    use super::*;
    use kubestep_api::Time;

    fn class(name: &str, resource: Option<&str>, created: i64) -> Arc<DeviceClass> {
        let mut class = DeviceClass::default();
        class.metadata.name = name.into();
        class.metadata.creation_timestamp = Some(Time(created));
        class.spec.extended_resource_name = resource.map(Symbol::from);
        Arc::new(class)
    }

    fn server(known: &ExtendedResources, resource: &str) -> Option<Name> {
        known.class_for(resource.into()).map(|class| class.metadata.name)
    }

    #[test]
    fn a_class_serves_its_own_name_and_the_one_it_gives_itself() {
        let mut known = ExtendedResources::default();
        known.update(None, &class("gpu", Some("example.com/gpu"), 1));
        known.update(None, &class("fpga", None, 1));
        assert_eq!(server(&known, "example.com/gpu"), Some("gpu".into()));
        assert_eq!(server(&known, "deviceclass.resource.kubernetes.io/gpu"), Some("gpu".into()));
        assert_eq!(server(&known, "deviceclass.resource.kubernetes.io/fpga"), Some("fpga".into()));
        assert_eq!(server(&known, "example.com/fpga"), None);
    }

    #[test]
    fn the_newer_class_wins_then_the_first_name_and_the_loser_is_not_entered() {
        let mut known = ExtendedResources::default();
        let resource = Some("example.com/gpu");
        known.update(None, &class("m", resource, 5));
        known.update(None, &class("older", resource, 4));
        assert_eq!(server(&known, "example.com/gpu"), Some("m".into()));
        assert_eq!(server(&known, "deviceclass.resource.kubernetes.io/older"), None);
        known.update(None, &class("z", resource, 5));
        assert_eq!(server(&known, "example.com/gpu"), Some("m".into()));
        known.update(None, &class("a", resource, 5));
        assert_eq!(server(&known, "example.com/gpu"), Some("a".into()));
        known.update(None, &class("newer", resource, 6));
        assert_eq!(server(&known, "example.com/gpu"), Some("newer".into()));
    }

    #[test]
    fn a_changed_or_deleted_winner_leaves_a_hole() {
        let mut known = ExtendedResources::default();
        let (first, second) =
            (class("b", Some("example.com/gpu"), 1), class("a", Some("example.com/gpu"), 1));
        known.update(None, &first);
        known.update(None, &second);
        known.update(Some(&second), &class("a", Some("example.com/other"), 1));
        assert_eq!(server(&known, "example.com/gpu"), None);
        assert_eq!(server(&known, "example.com/other"), Some("a".into()));
        known.remove(&class("a", Some("example.com/other"), 1));
        assert_eq!(known.classes.len(), 1);
        assert_eq!(server(&known, "deviceclass.resource.kubernetes.io/b"), Some("b".into()));
    }
}
