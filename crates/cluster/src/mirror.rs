//! A simulated cluster that follows another one: its changes are applied with the versions and
//! times of the other one.

use crate::remote::{RequestKey, RequestResult};
use crate::{World, WorldError};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, Time, defaults};
use kubestep_config::ResolvedProfile;
use kubestep_framework::pod::NamespacedName;

impl World {
    /// From now on records this simulation's own writes, without the changes that it follows:
    /// [`ApiServer::take_writes`](crate::ApiServer::take_writes).
    pub fn note_writes(&mut self) {
        self.api_mut().note_writes();
    }

    /// From now on the scheduler's writes go to a remote API server, which this cluster mirrors:
    /// [`ApiServer::take_outbox`](crate::ApiServer::take_outbox) returns them, and
    /// [`World::answer`] delivers their results.
    pub fn mirror_remote(&mut self) {
        self.api_mut().be_remote();
    }

    /// Delivers the answer to a remote write, and continues what waited for it.
    pub fn answer(&mut self, ticket: u64, answer: RequestResult) {
        match self.api.answered(ticket, answer) {
            Some(RequestKey::Bind(uid)) => {
                self.scheduler.answered(Some(uid), self.now, &mut self.api);
            }
            Some(RequestKey::Evict(_)) => self.evictions_due = true,
            Some(_) => self.scheduler.answered(None, self.now, &mut self.api),
            None => {}
        }
        self.settle();
    }

    /// Sets the clock of an empty cluster so that it shows `now` after at most `objects` objects
    /// were loaded, because loading advances it.
    pub fn begin_at(&mut self, now: Time, objects: usize) {
        self.advance_to(Time(now.0 - objects as i64 * 1_000));
    }

    /// Advances the clock to `now`, if that is later, and handles everything that is due.
    pub fn advance_to(&mut self, now: Time) {
        if now > self.now() {
            self.advance(now.0 - self.now().0);
        }
    }

    /// Advances the clock by a microsecond. Timers that are due then wait for the next advance.
    pub fn step_clock(&mut self) {
        self.set_now(Time(self.now().0.saturating_add(1)));
    }

    /// Stores the other cluster's version of an object, without advancing the clock.
    pub fn accept(&mut self, mut object: Object) {
        defaults::apply(&mut object);
        self.api_mut().accept(object);
        self.settle();
    }

    /// Removes an object that the other cluster has deleted.
    pub fn forget(&mut self, kind: Kind, key: NamespacedName) {
        self.api_mut().forget(kind, key);
        self.settle();
    }

    /// Gives a scheduler name without a profile the first profile's plugins, so that its pods can
    /// be scheduled.
    ///
    /// # Errors
    /// A plugin cannot be built again.
    pub fn serve(&mut self, name: Symbol) -> Result<(), WorldError> {
        let mut config = (**self.config()).clone();
        let Some(first) = config.profiles.first().cloned() else { return Ok(()) };
        if config.profile(&name).is_some() {
            return Ok(());
        }
        config.profiles.push(ResolvedProfile { scheduler_name: name, ..first });
        self.reconfigure_to(config)
    }

    /// Parks a pending pod in the name of `by`, until it changes.
    pub fn park(&mut self, pod: NamespacedName, by: Symbol) {
        let now = self.now();
        self.scheduler_mut().park(pod, by, now);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_config as config;
    use kubestep_config::FeatureGates;
    use kubestep_framework::testing::{PodBuilder, node, pod};

    #[test]
    fn what_is_new_with_every_write_is_not_interned() {
        let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
        let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
        let mut world = World::new(&config, features, &registry).unwrap();
        world.accept(node("n1").into());
        for write in 0..2_000 {
            let (version, token) = (7_310_000_000_u64 + write, format!("kube-api-access-{write}"));
            let volumes = json!([{"name": token, "projected": {}}]);
            let mut pod = pod("a").on("n1").spec(json!({"volumes": volumes}));
            pod.metadata.resource_version = version.to_string().as_str().into();
            world.accept(pod.into());
            world.update(node("n1").into());
            assert_eq!([version.to_string(), token].map(|text| Symbol::known(&text)), [None, None]);
        }
        assert_eq!(world.scheduler().cache().pod_count(), 1);
    }
}
