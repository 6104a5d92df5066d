//! Volumes and claims as the scheduler decided them, before the API server confirms it.
//!
//! An assumed version is valid only while the object it was made from is the current one; any newer
//! version, or a deletion, invalidates it. Upstream:
//! `pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::objects::{Objects, Sharded};
use crate::pod::NamespacedName;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, ObjectMeta, PersistentVolume, PersistentVolumeClaim, ResourceVersion};

/// Why an object cannot be assumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssumeError {
    /// The object was deleted, or never existed.
    #[error("{resource} \"{key}\" not found")]
    NotFound {
        /// The plural of its kind.
        resource: &'static str,
        /// The object, by namespace and name.
        key: NamespacedName,
    },
    /// It was changed since.
    #[error("\"{key}\" is out of sync (stored: {stored}, assume: {new})")]
    OutOfSync {
        /// The object, by namespace and name.
        key: NamespacedName,
        /// The version that listers have.
        stored: ResourceVersion,
        /// The version that the assumed object was made from.
        new: ResourceVersion,
    },
}

/// A kind of object that can be assumed.
pub trait Assumable: Sized {
    /// The plural of the kind, as in the API's "not found".
    const RESOURCE: &'static str;
    /// The metadata, whose resource version decides.
    fn meta(&self) -> &ObjectMeta;
    /// All current objects of the kind.
    fn current(objects: &Objects) -> &Sharded<Self>;
}

impl Assumable for PersistentVolume {
    const RESOURCE: &'static str = "persistentvolumes";
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn current(objects: &Objects) -> &Sharded<PersistentVolume> {
        &objects.persistent_volumes
    }
}

impl Assumable for PersistentVolumeClaim {
    const RESOURCE: &'static str = "persistentvolumeclaims";
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn current(objects: &Objects) -> &Sharded<PersistentVolumeClaim> {
        &objects.persistent_volume_claims
    }
}

/// Assumed versions of objects of one kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Assumed<T>(BTreeMap<NamespacedName, Arc<T>>);

impl<T> Default for Assumed<T> {
    fn default() -> Assumed<T> {
        Assumed(BTreeMap::new())
    }
}

impl<T: Assumable> Assumed<T> {
    /// The object as the scheduler sees it.
    pub fn get<'a>(&'a self, objects: &'a Objects, key: NamespacedName) -> Option<&'a Arc<T>> {
        let current = T::current(objects).get(&key)?;
        Some(self.in_place_of(key, current))
    }

    /// All objects as the scheduler sees them, in no particular order.
    pub fn iter<'a>(&'a self, objects: &'a Objects) -> impl Iterator<Item = &'a Arc<T>> {
        T::current(objects).iter().map(|(key, current)| self.in_place_of(*key, current))
    }

    fn in_place_of<'a>(&'a self, key: NamespacedName, current: &'a Arc<T>) -> &'a Arc<T> {
        let valid = |assumed: &&Arc<T>| same_version(assumed.meta(), current.meta());
        self.0.get(&key).filter(valid).unwrap_or(current)
    }

    /// Assumes a version made from the current object.
    ///
    /// # Errors
    /// The object was changed since, or deleted.
    pub fn assume(&mut self, objects: &Objects, assumed: Arc<T>) -> Result<(), AssumeError> {
        let all = T::current(objects);
        // A version that is no longer valid never becomes valid again.
        let valid = |key: &NamespacedName, old: &T| {
            all.get(key).is_some_and(|current| same_version(old.meta(), current.meta()))
        };
        self.0.retain(|key, old| valid(key, old));
        let key = key_of(assumed.meta());
        let Some(current) = all.get(&key) else {
            return Err(AssumeError::NotFound { resource: T::RESOURCE, key });
        };
        if !same_version(current.meta(), assumed.meta()) {
            let [stored, new] = [current, &assumed].map(|object| object.meta().resource_version);
            return Err(AssumeError::OutOfSync { key, stored, new });
        }
        self.0.insert(key, assumed);
        Ok(())
    }

    /// The keys of all valid assumed versions.
    pub fn names(&self, objects: &Objects) -> Vec<NamespacedName> {
        let current = T::current(objects);
        let valid = |(key, assumed): &(&NamespacedName, &Arc<T>)| {
            current.get(*key).is_some_and(|now| same_version(assumed.meta(), now.meta()))
        };
        self.0.iter().filter(valid).map(|(key, _)| *key).collect()
    }

    /// Drops the assumed version, unless it was replaced by another one.
    pub fn restore(&mut self, assumed: &T) {
        let key = key_of(assumed.meta());
        if self.0.get(&key).is_some_and(|present| same_version(present.meta(), assumed.meta())) {
            self.0.remove(&key);
        }
    }
}

fn key_of(meta: &ObjectMeta) -> NamespacedName {
    NamespacedName::new(meta.namespace, meta.name)
}

fn same_version(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.resource_version == b.resource_version
}

/// Assumed volumes and claims.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct AssumedVolumes {
    /// Volumes that were bound to a claim.
    pub volumes: Assumed<PersistentVolume>,
    /// Claims for which a node was selected.
    pub claims: Assumed<PersistentVolumeClaim>,
}

impl AssumedVolumes {
    /// The volume of that name.
    pub fn volume<'a>(
        &'a self,
        objects: &'a Objects,
        name: Name,
    ) -> Option<&'a Arc<PersistentVolume>> {
        self.volumes.get(objects, NamespacedName::new(Symbol::EMPTY, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::Object;

    fn volume(version: &str, class: &str) -> PersistentVolume {
        let mut volume = PersistentVolume::default();
        volume.metadata.name = "v".into();
        volume.metadata.resource_version = version.into();
        volume.spec.storage_class_name = class.into();
        volume
    }

    fn class(assumed: &AssumedVolumes, objects: &Objects) -> Name {
        assumed.volume(objects, "v".into()).unwrap().spec.storage_class_name
    }

    #[test]
    fn an_assumption_lasts_until_the_object_changes() {
        let (mut objects, mut assumed) = (Objects::default(), AssumedVolumes::default());
        let missing = assumed.volumes.assume(&objects, Arc::new(volume("1", "b")));
        assert_eq!(missing.unwrap_err().to_string(), "persistentvolumes \"v\" not found");
        objects.insert(Object::from(volume("1", "a")));
        assumed.volumes.assume(&objects, Arc::new(volume("1", "b"))).unwrap();
        assert_eq!(class(&assumed, &objects), "b");
        objects.insert(Object::from(volume("2", "c")));
        assert_eq!(class(&assumed, &objects), "c");
        let late = assumed.volumes.assume(&objects, Arc::new(volume("1", "b")));
        let late = late.unwrap_err().to_string();
        assert_eq!(late, "\"v\" is out of sync (stored: 2, assume: 1)");
    }

    #[test]
    fn only_the_same_version_is_restored() {
        let (mut objects, mut assumed) = (Objects::default(), AssumedVolumes::default());
        objects.insert(Object::from(volume("1", "a")));
        assumed.volumes.assume(&objects, Arc::new(volume("1", "b"))).unwrap();
        assumed.volumes.restore(&volume("2", "b"));
        assert_eq!(class(&assumed, &objects), "b");
        assumed.volumes.restore(&volume("1", "b"));
        assert_eq!(class(&assumed, &objects), "a");
    }
}
