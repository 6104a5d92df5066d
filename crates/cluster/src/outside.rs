//! A simulated cluster that follows another one: what changes there is taken over here, with
//! the versions and the time it has there.

use crate::World;
use crate::remote::{Answer, Question};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, Time, defaults};
use kubestep_config::ResolvedProfile;
use kubestep_framework::pod::NamespacedName;

impl World {
    /// From now on it is remembered what this simulation writes, as opposed to what it takes
    /// over: [`ApiServer::take_writes`](crate::ApiServer::take_writes).
    pub fn note_writes(&mut self) {
        self.api_mut().note_writes();
    }

    /// From now on what the scheduler writes is for an API server elsewhere, of which this
    /// cluster is the copy: [`ApiServer::take_outbox`](crate::ApiServer::take_outbox)
    /// gives it, and [`World::answer`] brings what became of it.
    pub fn write_elsewhere(&mut self) {
        self.api_mut().be_remote();
    }

    /// Takes the answer to a write elsewhere in, and goes on with whatever waited for it.
    pub fn answer(&mut self, ticket: u64, answer: Answer) {
        match self.api.answered(ticket, answer) {
            Some(Question::Bind(uid)) => {
                self.scheduler.answered(Some(uid), self.now, &mut self.api);
            }
            Some(Question::Evict(_)) => self.evictions_due = true,
            Some(_) => self.scheduler.answered(None, self.now, &mut self.api),
            None => {}
        }
        self.settle();
    }

    /// Sets the clock of a cluster that is still empty so that it shows `now` after at most
    /// `objects` were loaded: loading takes its time.
    pub fn begin_at(&mut self, now: Time, objects: usize) {
        self.advance_to(Time(now.0 - objects as i64 * 1_000));
    }

    /// Moves the clock to `now`, if that is later, and does what is due then.
    pub fn advance_to(&mut self, now: Time) {
        if now > self.now() {
            self.advance(now.0 - self.now().0);
        }
    }

    /// Takes an object over as it is there. The clock stands still.
    pub fn accept(&mut self, mut object: Object) {
        defaults::apply(&mut object);
        self.api_mut().accept(object);
        self.settle();
    }

    /// Forgets an object that is gone there.
    pub fn forget(&mut self, kind: Kind, key: NamespacedName) {
        self.api_mut().forget(kind, key);
        self.settle();
    }

    /// Gives a scheduler name that no profile serves the first profile's plugins, so that its
    /// pods can be tried.
    ///
    /// # Errors
    /// A plugin refuses to be built another time.
    pub fn serve(&mut self, name: Symbol) -> Result<(), String> {
        let mut config = (**self.config()).clone();
        let Some(first) = config.profiles.first().cloned() else { return Ok(()) };
        if config.profile(&name).is_some() {
            return Ok(());
        }
        config.profiles.push(ResolvedProfile { scheduler_name: name, ..first });
        self.reconfigure_to(config)
    }

    /// Puts a waiting pod aside in the name of `by`, until it changes.
    pub fn put_aside(&mut self, pod: NamespacedName, by: Symbol) {
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
